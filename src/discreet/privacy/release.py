"""The two rhythms of a release, and what a learner gets to see.

*Batch*: one release per batch of distinct users, each user in exactly one batch, so batches compose
in parallel. *Stream*: a release after every episode, one guarantee over the whole stream.

A plan is calibrated once, carries its noise parameters and its guarantee, and holds no data.

**Integers end to end.** Whatever the mechanism, what a release holds and publishes is a vector of
integers. `Debias` turns them into unbiased estimates, by a fixed function that knows no data: two
data sets that release the same integers give bit-equal outputs. Sums of floating-point numbers
would not do: their rounding depends on what was added to what, and betrays it.
"""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet.errors import InvalidInputError, UnknownNameError, UnsupportedError
from discreet.mdp.counts import Counts, dense_of, rows_of
from discreet.mdp.shape import Shape
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.noise import IntArray, Sampler

if TYPE_CHECKING:
    from discreet.privacy.calibration.routes import Route

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, init=False)
class PrivateCounts:
    """Noisy statistics: the only thing a learner ever sees of its users.

    Values are unbiased estimates of the raw counts (integers with integer noise, debiased where the
    mechanism needs it). A statistic that the plan does not release is None. Statistics are given
    and read dense, or as the rows that ``played`` marks (see `Counts`), whichever suits.

    Attributes:
        users: users behind the statistics (public).
        row_transitions: ``[R, S]`` or None; dense, ``transitions`` is ``[H, S, A, S]``. With
            stationary counts the first axis has length 1.
        row_visits: ``[R]`` or None; dense, ``visits`` is ``[H, S, A]``.
        row_rewards: ``[R]`` or None; dense, ``rewards`` is ``[H, S, A]``.
        noise_variance: statistic -> variance of the noise on one of its released counters.
        played: ``bool[H, S, A]``, the counters that the batch's public policy can touch; all others
            are exactly zero and carry no noise.
        guarantee: what has been promised for this release.
    """

    users: int
    row_transitions: FloatArray | None
    row_visits: FloatArray | None
    row_rewards: FloatArray | None
    noise_variance: Mapping[str, float]
    played: BoolArray
    guarantee: Guarantee

    def __init__(
        self,
        users: int,
        transitions: FloatArray | None,
        visits: FloatArray | None,
        rewards: FloatArray | None,
        noise_variance: Mapping[str, float],
        played: BoolArray,
        guarantee: Guarantee,
    ) -> None:
        put = object.__setattr__
        put(self, "users", users)
        put(self, "row_transitions", _as_rows(transitions, played, 1))
        put(self, "row_visits", _as_rows(visits, played, 0))
        put(self, "row_rewards", _as_rows(rewards, played, 0))
        put(self, "noise_variance", noise_variance)
        put(self, "played", played)
        put(self, "guarantee", guarantee)

    @property
    def transitions(self) -> FloatArray | None:
        """``[H, S, A, S]`` or None."""
        return _as_dense(self.row_transitions, self.played)

    @property
    def visits(self) -> FloatArray | None:
        """``[H, S, A]`` or None."""
        return _as_dense(self.row_visits, self.played)

    @property
    def rewards(self) -> FloatArray | None:
        """``[H, S, A]`` or None."""
        return _as_dense(self.row_rewards, self.played)


def _as_rows(values: FloatArray | None, played: BoolArray, axes: int) -> FloatArray | None:
    """Rows ``[R, ...]`` with ``axes`` more axes, from rows or from a dense array."""
    if values is None:
        return None
    if values.ndim == 3 + axes and values.shape[:3] == played.shape:
        return rows_of(values, played)
    if values.ndim != 1 + axes or len(values) != played.sum():
        raise InvalidInputError(
            f"Expected a statistic of shape {played.shape} or the {played.sum()} rows of played, "
            f"got shape {values.shape}."
        )
    return values


def _as_dense(rows: FloatArray | None, played: BoolArray) -> FloatArray | None:
    return None if rows is None else dense_of(rows, played)


@dataclass(frozen=True, eq=False)
class Debias:
    """The one function from released integers to unbiased estimates: ``scale·(integer - centre)``.

    It depends on public facts only: the plan, the number of users, who reported which step.

    Attributes:
        scale: what one unit of the released integers is worth.
        centres: statistic -> what its integers are on average where nobody was (0 by default).
    """

    scale: float = 1.0
    centres: Mapping[str, FloatArray | float] = field(default_factory=dict)

    def __call__(self, name: str, integers: IntArray) -> FloatArray:
        """Estimates of one statistic."""
        return debias(integers, self.scale, self.centres.get(name, 0.0))


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
    return np.asarray(scale * (integers - centres), np.float64)


@dataclass(frozen=True)
class Traffic:
    """What one user sends in one batch."""

    messages: int
    bytes: int


class Encoder(Protocol):
    """The part of a local or shuffle mechanism that runs on a user's own device.

    Small, free of data and serialisable: what a device needs is `to_dict`, nothing else.
    """

    @property
    def traffic(self) -> Traffic:
        """What one device sends."""

    def encode(
        self, states: IntArray, actions: IntArray, rewards: FloatArray, sampler: Sampler
    ) -> IntArray:
        """One user's private report.

        Args:
            states: ``int64[H + 1]``, the states visited, with the one after the last step.
            actions: ``int64[H]``.
            rewards: ``float64[H]`` in [0, 1]; rounded to bits on the device.
            sampler: the device's randomness.

        Returns:
            The messages, one per row; their meaning is the mechanism's own affair.
        """

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, with ``"encoder"`` naming the mechanism."""

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`."""


_ENCODERS = {
    "additive": "encoders:AdditiveEncoder",
    "one-step": "one_step:OneStepEncoder",
    "randomized-response": "encoders:FlipEncoder",
    "shuffle-bits": "shuffle:ShuffleEncoder",
}


def load_encoder(data: Mapping[str, Any]) -> Encoder:
    """The encoder that `Encoder.to_dict` described: all that a device has to call."""
    kind = str(data.get("encoder"))
    if kind not in _ENCODERS:
        raise UnknownNameError("encoder", kind, _ENCODERS)
    module, _, name = _ENCODERS[kind].partition(":")
    home = importlib.import_module(f"discreet.privacy.mechanisms.{module}")
    encoder: Encoder = getattr(home, name).from_dict(data)
    return encoder


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchPlan(ABC):
    """A calibrated one-shot release, used once per batch of distinct users."""

    shape: Shape
    statistics: tuple[str, ...]
    mechanism: str
    guarantee: Guarantee

    @abstractmethod
    def noise_variance(self, users: int) -> dict[str, float]:
        """Noise variance on one counter of each released statistic, for a batch of ``users``."""

    @property
    def visit_variance(self) -> float:
        """Variance that each visit adds to its counter, beyond `noise_variance`.

        Zero where every visit is reported; more where a user reports a part of the episode.
        """
        return 0.0

    @abstractmethod
    def release(
        self, counts: Counts, *, sampler: Sampler, played: BoolArray | None = None
    ) -> PrivateCounts:
        """Release one batch. ``played`` marks the (h, s, a) its public policy can reach."""

    def simulate(
        self,
        draw: Callable[[int], Counts],
        users: int,
        *,
        sampler: Sampler,
        played: BoolArray | None = None,
    ) -> PrivateCounts:
        """Release a simulated batch; ``draw(n)`` runs n fresh users.

        The default draws all users at once. A mechanism in which users report different things
        (one step each, for instance) splits them first, which keeps the simulation exact.
        """
        _validate.count(users=users)
        return self.release(draw(users), sampler=sampler, played=played)

    def traffic(self, users: int, *, played: BoolArray | None = None) -> Traffic | None:
        """What a user's device sends; None where users hand over raw episodes."""
        if self.guarantee.notion not in ("LDP", "SDP"):
            return None
        return self.encoder(users, played=played).traffic

    def accountings(self, users: int, *, with_library: bool = False) -> "list[Route]":
        """Independent accountings of this release (see `calibration.cross_check`), if any."""
        return []

    def encoder(self, users: int, *, played: BoolArray | None = None) -> Encoder:
        """What runs on the device of each of ``users`` users (local and shuffle only)."""
        raise UnsupportedError(
            f"The mechanism {self.mechanism!r} has no encoder: its users hand raw episodes to a "
            f"trusted learner; use Local or Shuffle to encode on the device."
        )

    def release_reports(
        self,
        reports: IntArray,
        users: int,
        *,
        secure: bool = True,
        played: BoolArray | None = None,
    ) -> PrivateCounts:
        """Release a batch from the encoded reports of its users (local and shuffle only).

        Args:
            reports: the messages of all users, one below the other.
            users: number of users behind them.
            secure: False if the devices drew simulated noise.
            played: marks the (h, s, a) that the batch's public policy can reach.
        """
        raise UnsupportedError(
            f"The mechanism {self.mechanism!r} takes raw counts (`release`), not reports."
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class StreamPlan(ABC):
    """A calibrated continual release: cumulative statistics after every one of ``episodes``."""

    shape: Shape
    statistics: tuple[str, ...]
    mechanism: str
    guarantee: Guarantee
    episodes: int
    stationary: bool = False
    response: ClassVar[Literal["unit", "cell", "category"]] = "unit"
    """What one step of a user adds to the released counters, see `StreamBlock`."""

    @abstractmethod
    def noise_variance(self, episode: int) -> dict[str, float]:
        """Noise variance on one counter of each statistic, released after ``episode`` users."""

    @abstractmethod
    def error_bound(self, episode: int, failure: float) -> float:
        """A bound that |noise| on one counter exceeds with probability at most ``failure``."""

    def error_bounds(self, failure: float) -> FloatArray:
        """`error_bound` after 1, 2, ..., ``episodes`` users."""
        return np.array([self.error_bound(k, failure) for k in range(1, self.episodes + 1)])

    @abstractmethod
    def open(self, sampler: Sampler) -> "StreamRelease":
        """Start a stream; a stream is used once."""

    def encoder(self) -> Encoder:
        """What runs on every user's device (local only)."""
        raise UnsupportedError(
            f"The mechanism {self.mechanism!r} has no encoder: its users hand raw episodes to a "
            f"trusted learner; use Local to encode on the device."
        )

    @property
    def cells(self) -> int:
        """Counters released per episode, all statistics together."""
        sizes = {
            "transitions": int(np.prod(self.shape.transitions)),
            "visits": int(np.prod(self.shape.visits)),
            "rewards": int(np.prod(self.shape.visits)),
        }
        total = sum(sizes[name] for name in self.statistics)
        return total // self.shape.horizon if self.stationary else total


@dataclass(frozen=True, eq=False)
class StreamBlock:
    """All randomness of the next releases, drawn ahead so that a compiled loop can use it.

    The integers (in units of ``scale``) released after k users are ``noise[k] + sum over users
    i <= k of their steps``, where a step (h, s, a, s', reward bit r) of user i adds, by the plan's
    ``response``,

    * ``"unit"``: one to the transition and visit counters and r to the reward counter (additive
      noise; ``gains`` is empty);
    * ``"cell"``: ``gains[i, c]`` to each counter c that "unit" would add one to, where c counts
      cells per step also when the released counters are pooled over steps;
    * ``"category"``: with g = ``gains[i, ((s·A + a)·S + s')·2 + r]`` if h == ``steps[i]`` and 0
      otherwise, g to the transition and visit counters and r·g to the reward counter.

    Public are ``scale·(integers - centres[k])``, see `debias`. With "unit" nothing is left to do:
    the sum of counts and noise is public as it is (a whole number, or one on a dyadic grid, so that
    the sum is exact in double precision).

    Attributes:
        noise: ``float64[n, cells]``, on each cumulative counter; all values are integers, or
            multiples of the plan's grid.
        gains: ``float64[n, g]``; what a true unit adds after randomisation: -1, 0 or 1.
        steps: ``int64[n]``, the one step each user reports; empty unless "category".
        centres: ``float64[n, cells]``; empty (no columns) for "unit".
        scale: of the estimates.
    """

    noise: FloatArray
    gains: FloatArray
    steps: IntArray
    centres: FloatArray
    scale: float = 1.0


@dataclass(eq=False)
class StreamRelease(ABC):
    """One running stream. Compiled learners take noise in blocks; `add` is the plain interface."""

    plan: StreamPlan
    sampler: Sampler
    episode: int = field(default=0, init=False)
    _way: str | None = field(default=None, init=False, repr=False)

    @abstractmethod
    def noise_block(self, episodes: int) -> FloatArray:
        """Noise on each *cumulative* counter after each of the next ``episodes`` releases.

        Shape ``[episodes, plan.cells]``; cells are the statistics of the plan in order, each
        flattened. Block boundaries do not change the values. The caller adds the true cumulative
        counts (a compiled kernel that simulates, releases and learns does so in place).
        Implementations advance ``self.episode``. Mechanisms that randomise the data instead of
        adding noise refuse it: `block` serves all of them.
        """

    def block(self, episodes: int) -> StreamBlock:
        """All randomness of the next ``episodes`` releases, for every kind of response."""
        noise = self.noise_block(episodes)
        nothing = np.empty((episodes, 0))
        return StreamBlock(noise, nothing, np.empty(0, np.int64), nothing)

    def add(self, counts: Counts) -> PrivateCounts:
        """Take one more user's counts and return the cumulative private statistics."""
        check_counts(counts, self.plan.shape, users=1)
        self.use("add")
        values = self._take(counts)  # refuses, before anything changes, when the stream is over
        self.episode += 1
        return unflatten(values, self.plan, self.episode, secure=self.sampler.secure)

    @abstractmethod
    def _take(self, counts: Counts) -> FloatArray:
        """What is public after one more user, laid out as `flatten` does: debiased integers."""

    def add_report(self, report: IntArray) -> PrivateCounts:
        """Take one more user's encoded report and return the cumulative private statistics."""
        raise UnsupportedError(
            f"The mechanism {self.plan.mechanism!r} takes raw counts (`add`), not reports."
        )

    def use(self, way: str) -> None:
        """A stream is used in one way: through `add`, through `add_report` or in blocks."""
        if self._way not in (None, way):
            raise UnsupportedError(
                f"This stream has been used through `{self._way}`; open another one to use `{way}`."
            )
        self._way = way


def raw_statistics(counts: Counts, statistics: tuple[str, ...]) -> dict[str, IntArray]:
    """The raw counters by name, in the order of ``statistics``."""
    return {name: np.asarray(getattr(counts, name), np.int64) for name in statistics}


def check_counts(counts: Counts, shape: Shape, *, users: int | None = None) -> None:
    """Refuse counts whose sensitivity the plans do not cover: nothing is released.

    No sum of well-formed episodes is refused, so a refusal says nothing about anybody's episode:
    it says that these are not such sums (another problem, a user counted twice, other rewards).
    """
    if counts.shape != shape:
        raise InvalidInputError(f"Expected counts of {shape}, got {counts.shape}.")
    _validate.count(users=counts.users)
    if users is not None and counts.users != users:
        raise InvalidInputError(f"Expected the counts of {users} user(s), got {counts.users}.")
    if (counts.row_transitions < 0).any() or (counts.row_rewards < 0).any():
        raise InvalidInputError("Expected nonnegative counts; a count is below zero.")
    if (counts.visits.sum(axis=(1, 2)) > counts.users).any():
        raise InvalidInputError(
            f"Expected at most {counts.users} transitions per step, one per user; "
            f"a user was counted twice, or `users` is wrong."
        )
    if (counts.row_rewards > counts.row_visits).any():
        raise InvalidInputError(
            "Expected rewards in [0, 1] per visit; a reward sum exceeds its visits. "
            "Scale rewards to [0, 1] first."
        )


def check_played(played: BoolArray | None, shape: Shape) -> BoolArray:
    """The mask ``bool[H, S, A]``; all counters when none is given."""
    if played is None:
        return np.ones(shape.visits, np.bool_)
    mask = np.asarray(played)
    if mask.shape != shape.visits or mask.dtype != np.bool_:
        raise InvalidInputError(
            f"Expected played to be bool{list(shape.visits)}, got {mask.dtype}{list(mask.shape)}."
        )
    return mask


def played_counts(counts: Counts, shape: Shape, played: BoolArray) -> Counts:
    """Valid counts, with exactly the rows of the public mask ``played``, visited or not.

    Steps outside it count as nothing. Refusing them would say that somebody left the policy, and
    counting less moves no release further (proof in `privacy.sensitivity`).
    """
    check_counts(counts, shape)
    return counts.at(played)


def noisy_batch(
    plan: BatchPlan,
    counts: Counts,
    draw: Callable[[str, int], IntArray],
    *,
    secure: bool,
    played: BoolArray | None,
) -> PrivateCounts:
    """Add noise to the counters that the batch's policy can touch; all others stay exactly zero.

    Args:
        plan: carries the statistics and the guarantee.
        counts: the raw counts of the batch.
        draw: ``draw(statistic, n)`` returns n independent integers of mean zero.
        secure: whether ``draw`` protects real people.
        played: ``bool[H, S, A]`` or None for everything.
    """
    return randomised_batch(
        plan, counts, lambda name, raw: raw + draw(name, raw.size), secure=secure, played=played
    )


def randomised_batch(
    plan: BatchPlan,
    counts: Counts,
    randomise: Callable[[str, IntArray], IntArray],
    *,
    secure: bool,
    played: BoolArray | None,
    estimate: Debias | None = None,
) -> PrivateCounts:
    """As `noisy_batch`, with ``randomise(statistic, raw values)`` instead of added noise.

    ``estimate`` takes the bias out of the randomised integers, where they have one.
    """
    mask = check_played(played, plan.shape)
    kept = played_counts(counts, plan.shape, mask)
    released: dict[str, IntArray] = {}
    for name in plan.statistics:
        raw: IntArray = getattr(kept, f"row_{name}")
        released[name] = np.asarray(randomise(name, raw.ravel())).reshape(raw.shape)
    return batch_release(plan, released, counts.users, mask, secure=secure, estimate=estimate)


def batch_release(
    plan: BatchPlan,
    released: Mapping[str, IntArray],
    users: int,
    played: BoolArray,
    *,
    secure: bool,
    estimate: Debias | None = None,
) -> PrivateCounts:
    """`PrivateCounts` of a batch from its released integers by name, dense or as rows."""
    debiased = estimate or Debias()
    values = {name: debiased(name, integers) for name, integers in released.items()}
    return PrivateCounts(
        users=users,
        transitions=values.get("transitions"),
        visits=values.get("visits"),
        rewards=values.get("rewards"),
        noise_variance=plan.noise_variance(users),
        played=played,
        guarantee=plan.guarantee.stamped(secure=secure),
    )


def flatten(counts: Counts, statistics: tuple[str, ...], *, stationary: bool) -> IntArray:
    """The statistics in order, each flattened (summed over steps first if ``stationary``)."""
    parts = raw_statistics(counts, statistics).values()
    return np.concatenate([(p.sum(axis=0) if stationary else p).ravel() for p in parts])


def flatten_rows(counts: Counts, statistics: tuple[str, ...]) -> IntArray:
    """As `flatten`, of the rows that are kept: all played counters and no others."""
    return np.concatenate([getattr(counts, f"row_{name}").ravel() for name in statistics])


def split_rows(
    values: IntArray, played: BoolArray, statistics: tuple[str, ...]
) -> dict[str, IntArray]:
    """The statistics as rows, from a vector laid out as `flatten_rows` does."""
    rows, states = int(played.sum()), played.shape[1]
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


def unflatten(values: FloatArray, plan: StreamPlan, episode: int, *, secure: bool) -> PrivateCounts:
    """Cumulative private statistics from a vector laid out as `flatten` does."""
    steps = 1 if plan.stationary else plan.shape.horizon
    parts = split(values, plan.shape, plan.statistics, steps=steps)
    return PrivateCounts(
        users=episode,
        transitions=parts.get("transitions"),
        visits=parts.get("visits"),
        rewards=parts.get("rewards"),
        noise_variance=plan.noise_variance(episode),
        played=np.ones((steps, *plan.shape.visits[1:]), np.bool_),
        guarantee=plan.guarantee.stamped(secure=secure),
    )
