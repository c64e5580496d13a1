"""What a learner gets to see, and the layout of its counters.

**Integers end to end.** Whatever the mechanism, what a release holds and publishes is a vector of
integers. `Debias` turns them into unbiased estimates, by a fixed function that knows no data: two
data sets that release the same integers give bit-equal outputs. Sums of floating-point numbers
would not do: their rounding depends on what was added to what, and betrays it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from discreet import _validate
from discreet._types import BoolArray, FloatArray, IntArray
from discreet.errors import InvalidInputError
from discreet.mdp.counts import Counts, dense_of, rows_of
from discreet.mdp.shape import Shape
from discreet.privacy.guarantee import Guarantee


@dataclass(frozen=True, eq=False, init=False)
class PrivateCounts:
    """Noisy statistics: the only thing a learner ever sees of its users.

    Values are unbiased estimates of the raw counts (integers with integer noise, debiased where the
    mechanism needs it). A statistic that the mechanism does not release is None. Statistics are
    given and read dense, or as the rows that ``support`` marks (see `Counts`), whichever suits.

    Attributes:
        users: users behind the statistics (public).
        row_transitions: ``[R, S]`` or None; dense, ``transitions`` is ``[H, S, A, S]``. With
            stationary counts the first axis has length 1.
        row_visits: ``[R]`` or None; dense, ``visits`` is ``[H, S, A]``. A statistic of its own, or
            another measurement of what the mechanism releases of the rewards.
        row_rewards: ``[R]`` or None; dense, ``rewards`` is ``[H, S, A]``: sums of rewards r, or of
            r - 1/2 where ``centred``.
        noise_variance: statistic -> variance of the noise on one of its released counters.
        support: ``bool[H, S, A]``, counters that the batch's public policy can touch; all others
            are exactly zero and carry no noise.
        guarantee: of this release.
        centred: ``row_rewards`` estimates sums of r - 1/2, which move less than sums of r when a
            user is replaced; R = C + N/2 with any measurement N of the visits.
        last_transitions: False if the rows of the last step hold no transitions (zeros without
            noise): their sums are no visits.
        dropped_out: statistic -> ``[steps]``, the estimated number of users who had left the policy
            by that step (each with the noise of one counter); None where nobody counts them.
    """

    users: int
    row_transitions: FloatArray | None
    row_visits: FloatArray | None
    row_rewards: FloatArray | None
    noise_variance: Mapping[str, float]
    support: BoolArray
    guarantee: Guarantee
    centred: bool
    last_transitions: bool
    dropped_out: Mapping[str, FloatArray] | None

    def __init__(
        self,
        users: int,
        transitions: FloatArray | None,
        visits: FloatArray | None,
        rewards: FloatArray | None,
        noise_variance: Mapping[str, float],
        support: BoolArray,
        guarantee: Guarantee,
        *,
        centred: bool = False,
        last_transitions: bool = True,
        dropped_out: Mapping[str, FloatArray] | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "users", users)
        put(self, "row_transitions", _as_rows(transitions, support, 1))
        put(self, "row_visits", _as_rows(visits, support, 0))
        put(self, "row_rewards", _as_rows(rewards, support, 0))
        put(self, "noise_variance", noise_variance)
        put(self, "support", support)
        put(self, "guarantee", guarantee)
        put(self, "centred", centred)
        put(self, "last_transitions", last_transitions)
        put(self, "dropped_out", dropped_out)

    @property
    def centre(self) -> float:
        """c: ``row_rewards`` estimates sums of r - c."""
        return 0.5 if self.centred else 0.0

    @property
    def transitions(self) -> FloatArray | None:
        """``[H, S, A, S]`` or None."""
        return _as_dense(self.row_transitions, self.support)

    @property
    def visits(self) -> FloatArray | None:
        """``[H, S, A]`` or None."""
        return _as_dense(self.row_visits, self.support)

    @property
    def rewards(self) -> FloatArray | None:
        """``[H, S, A]`` or None."""
        return _as_dense(self.row_rewards, self.support)

    def plain(self) -> "PrivateCounts":
        """The same with sums of r where there are sums of r - 1/2, and the noise that these have.

        R = C + N/2 with the measurement N of the visits, or else with the sums of the transitions.
        Free: post-processing of what is released.
        """
        if not self.centred or self.row_rewards is None:
            return self
        visits, variance = self._visits_seen()
        noise = dict(self.noise_variance)
        noise["rewards"] += variance / 4
        return PrivateCounts(
            self.users,
            self.row_transitions,
            self.row_visits,
            self.row_rewards + visits / 2,
            noise,
            self.support,
            self.guarantee,
            last_transitions=self.last_transitions,
            dropped_out=self.dropped_out,
        )

    def _visits_seen(self) -> tuple[FloatArray, float]:
        """Visits ``[R]`` and the variance of their noise."""
        if self.row_visits is not None:
            return self.row_visits, self.noise_variance["visits"]
        if self.row_transitions is None or not self.last_transitions:
            raise InvalidInputError(
                "Expected visits, or the transitions of every step, to make sums of rewards of "
                "centred ones; ask for last_transitions=True, or read the centred rewards."
            )
        states = self.row_transitions.shape[1]
        return self.row_transitions.sum(axis=-1), states * self.noise_variance["transitions"]


def _as_rows(values: FloatArray | None, support: BoolArray, axes: int) -> FloatArray | None:
    """Rows ``[R, ...]`` with ``axes`` more axes, from rows or from a dense array."""
    if values is None:
        return None
    if values.ndim == 3 + axes and values.shape[:3] == support.shape:
        return rows_of(values, support)
    if values.ndim != 1 + axes or len(values) != support.sum():
        raise InvalidInputError(
            f"Expected a statistic of shape {support.shape} or the {support.sum()} rows of "
            f"support, got shape {values.shape}."
        )
    return values


def _as_dense(rows: FloatArray | None, support: BoolArray) -> FloatArray | None:
    return None if rows is None else dense_of(rows, support)


@dataclass(frozen=True, eq=False)
class Debias:
    """The one function from released integers to unbiased estimates: ``scale·(integer - centre)``.

    It depends on public facts only: the mechanism, the number of users, who reported which step.

    Attributes:
        scale: what one unit of the released integers is worth.
        centres: statistic -> what its integers are on average where nobody was (0 by default).
        scales: statistic -> its own scale, where it differs.
    """

    scale: float = 1.0
    centres: Mapping[str, FloatArray | float] = field(default_factory=dict)
    scales: Mapping[str, float] = field(default_factory=dict)

    def __call__(self, name: str, integers: IntArray) -> FloatArray:
        """Estimates of one statistic."""
        return debias(integers, self.scales.get(name, self.scale), self.centres.get(name, 0.0))


def debias(integers: IntArray, scale: float, centres: FloatArray | float) -> FloatArray:
    """``scale·(integer - centre)``; refuses what is not an integer.

    >>> debias(np.array([0, 1]), 2.0, 0.25).tolist()
    [-0.5, 1.5]
    """
    if not np.issubdtype(np.asarray(integers).dtype, np.integer):
        raise InvalidInputError(
            f"Expected released integers, got {np.asarray(integers).dtype}: floating-point sums "
            f"betray what was added to what. Nothing was released."
        )
    estimates = np.asarray(integers - centres, np.float64)
    estimates *= scale
    return estimates


def raw_statistics(counts: Counts, statistics: tuple[str, ...]) -> dict[str, IntArray]:
    """The raw counters by name, in the order of ``statistics``."""
    return {name: np.asarray(getattr(counts, name), np.int64) for name in statistics}


def check_counts(counts: Counts, shape: Shape, *, users: int | None = None) -> None:
    """Refuse counts whose sensitivity mechanisms do not cover: nothing is released.

    No sum of well-formed episodes is refused, so a refusal says nothing about anybody's episode:
    it says that these are not such sums (another problem, a user counted twice, other rewards).
    """
    if counts.shape != shape:
        raise InvalidInputError(f"Expected counts of {shape}, got {counts.shape}.")
    _validate.count(users=counts.users)
    if users is not None and counts.users != users:
        raise InvalidInputError(f"Expected the counts of {users} user(s), got {counts.users}.")
    if min(counts.row_transitions.min(initial=0), counts.row_rewards.min(initial=0)) < 0:
        raise InvalidInputError("Expected nonnegative counts; a count is below zero.")
    visits = counts.row_visits
    if (dense_of(visits, counts.support).sum(axis=(1, 2)) > counts.users).any():
        raise InvalidInputError(
            f"Expected at most {counts.users} transitions per step, one per user; "
            f"a user was counted twice, or `users` is wrong."
        )
    if (counts.row_rewards > visits).any():
        raise InvalidInputError(
            "Expected rewards in [0, 1] per visit; a reward sum exceeds its visits. "
            "Scale rewards to [0, 1] first."
        )


def one_action(shape: Shape) -> BoolArray:
    """What a policy with one action per state plays: its rows are as many as any other's."""
    support = np.zeros(shape.visits, np.bool_)
    support[:, :, 0] = True
    return support


def check_support(support: BoolArray | None, shape: Shape) -> BoolArray:
    """The mask ``bool[H, S, A]``; all counters when none is given."""
    if support is None:
        return np.ones(shape.visits, np.bool_)
    mask = np.asarray(support)
    if mask.shape != shape.visits or mask.dtype != np.bool_:
        raise InvalidInputError(
            f"Expected support to be bool{list(shape.visits)}, got {mask.dtype}{list(mask.shape)}."
        )
    return mask


def supported_counts(counts: Counts, shape: Shape, support: BoolArray) -> Counts:
    """Valid counts, with exactly the rows of the public mask ``support``, visited or not.

    Steps outside it count as nothing. Refusing them would say that somebody left the policy, and
    counting less moves no release further (proof in `privacy.sensitivity`).
    """
    check_counts(counts, shape)
    return counts.at(support)


def flatten(
    counts: Counts, statistics: tuple[str, ...], *, stationary: bool, last_transitions: bool = True
) -> IntArray:
    """The statistics in order, each flattened (summed over steps first if ``stationary``)."""
    parts = raw_statistics(counts, statistics)
    if "transitions" in parts and not last_transitions:
        parts["transitions"] = parts["transitions"].copy()
        parts["transitions"][-1] = 0
    kept = parts.values()
    return np.concatenate([(p.sum(axis=0) if stationary else p).ravel() for p in kept])


def flatten_rows(counts: Counts, statistics: tuple[str, ...]) -> IntArray:
    """As `flatten`, of the rows that are kept: all counters of the support and no others."""
    return np.concatenate([getattr(counts, f"row_{name}").ravel() for name in statistics])


def split_rows(
    values: IntArray, support: BoolArray, statistics: tuple[str, ...]
) -> dict[str, IntArray]:
    """The statistics as rows, from a vector laid out as `flatten_rows` does."""
    rows, states = int(support.sum()), support.shape[1]
    sizes = [rows * states if name == "transitions" else rows for name in statistics]
    parts = np.split(values, np.cumsum(sizes)[:-1])
    return {
        name: part.reshape(rows, states) if name == "transitions" else part
        for name, part in zip(statistics, parts, strict=True)
    }


def split(
    values: FloatArray, shape: Shape, statistics: tuple[str, ...], *, steps: int
) -> dict[str, FloatArray]:
    """The statistics from a vector laid out as `flatten` does, each in its own shape."""
    cells = (steps, shape.states, shape.actions)
    parts: dict[str, FloatArray] = {}
    start = 0
    for name in statistics:
        part = (*cells, shape.states) if name == "transitions" else cells
        parts[name] = values[start : start + int(np.prod(part))].reshape(part)
        start += int(np.prod(part))
    return parts
