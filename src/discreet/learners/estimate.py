"""One estimate of a model from released counts: sums with weights, and the variances they carry.

A *row* is (h, s, a), or (s, a) where steps are one. Over releases i with weights w_i, with n_i
visits and noise of variance sigma_i² on one counter, a row has

    N = sum w·n,  M = sum w²·n,  F (transitions) or G (rewards) = sum w²·sigma²,  D = sum w²·d,

where d is the variance of the visits themselves. The value r + P·V of a row has the variance

    [M·Var_P V + F·sum_s' (V(s') - P·V)² + (reach·M/N)²  +  M·r(1-r) + G + D·(r - c)²] / certain²:

sampling; noise, which moves P·V only as far as V differs between states; a lower-order term for
rows seen a few times; rewards, released as sums of r - c. ``certain`` are the visits that noise
does not explain, N less some sqrt D. Whoever estimates says which deviations those are and what
``reach`` is: flow-ucb, explore-then-commit, `fit` and studies share the sums and these
formulas, and differ in their weights. `discreet.learners.pooling` pools steps where that holds.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from discreet._types import BoolArray, FloatArray, IntArray, JsonObject, Plain
from discreet.mdp.shape import Shape
from discreet.privacy.mechanisms.base import BatchMechanism
from discreet.privacy.statistics import PrivateCounts

COLUMNS = 5
VISITS, SAMPLING, NOISE, VISIT_VARIANCE, BIAS = range(COLUMNS)
"""Columns of the sums of a row: N, M, F or G, D; of transitions, the sum of w·sigma, which is how
far noise that was projected to be positive can be off in one direction."""
TOTAL = BIAS
"""Of rewards, the weighted sum stands there."""


class ReleasedRows(NamedTuple):
    """What a release says of the rows in its support, ``[R]`` each; numbers stand for all rows.

    Attributes:
        rows: steps, states and actions.
        transitions: ``[R, S]``.
        visits: of each row.
        rewards: sums of r.
        sampling: visits whose next states are a sample.
        reward_sampling: visits whose rewards are.
        noise: variance of one transition counter.
        reward_noise: of a sum of rewards, its visits given.
        visit_variance: of the visits.
    """

    rows: tuple[IntArray, ...]
    transitions: FloatArray
    visits: FloatArray
    rewards: FloatArray
    sampling: FloatArray
    reward_sampling: FloatArray
    noise: FloatArray | float
    reward_noise: FloatArray | float
    visit_variance: FloatArray | float

    @classmethod
    def of(
        cls,
        counts: PrivateCounts,
        policy: FloatArray,
        start: BoolArray,
        mechanism: BatchMechanism,
        expected: FloatArray | None = None,
    ) -> "ReleasedRows":
        """A release of users of ``policy[H, S, A]``, projected onto consistent flows.

        Reports that show a part of the visits add variance to each; half of it is left in a state's
        total, which the flow measures twice. Where nothing counts who took which action at the last
        step, it is as many as the policy says, more or less.

        Args:
            counts: the release.
            policy: what its users followed.
            start: ``bool[S]``, the states an episode can begin in.
            mechanism: of the release.
            expected: ``[H, S, A]``, the visits that a model foretold, at the last step too: if
                fewer were seen, it was noise.
        """
        from discreet.privacy.projection.flow import released_flow

        rows = np.nonzero(counts.support)
        flow, visits = released_flow(counts, start, policy[rows])
        rewards = np.asarray(counts.row_rewards) + counts.centre * visits
        # Nobody begins outside the declared starts; without noise, rows there would have weight.
        begun = (rows[0] > 0) | start[rows[1]]
        if not begun.all():
            rows = tuple(axis[begun] for axis in rows)
            flow, visits, rewards = flow[begun], visits[begun], rewards[begun]
        noise, per_visit = counts.noise_variance, mechanism.visit_variance
        seen = np.maximum(visits, 0.0 if expected is None else expected[rows])
        factors = mechanism_factors(mechanism.shape, start, mechanism)
        spread = noise["transitions"] * factors[rows[0]] + per_visit * seen / 2
        if expected is None and counts.row_visits is None and not counts.last_transitions:
            last = rows[0] == len(factors) - 1
            spread = spread + np.where(last, seen * (1 - policy[rows]), 0.0)
        return cls(
            rows,
            flow,
            visits,
            rewards,
            sampling=seen * (1 + per_visit),
            reward_sampling=seen,
            noise=noise["transitions"],
            reward_noise=noise["rewards"] + mechanism.reward_visit_variance * seen,
            visit_variance=spread,
        )


class RowSums(NamedTuple):
    """Sums of rows of any shape: T ``[..., S]``, N, R, M, F, G and D (module docstring)."""

    transitions: FloatArray
    visits: FloatArray
    rewards: FloatArray
    sampling: FloatArray
    noise: FloatArray
    reward_noise: FloatArray
    visit_variance: FloatArray

    def certain(self, deviations: float) -> FloatArray:
        """Visits that noise does not explain: so many standard deviations below those counted."""
        certain: FloatArray = self.visits - deviations * np.sqrt(self.visit_variance)
        return certain


class CountSums(NamedTuple):
    """Weighted sums over releases; the first axis is H long, or 1 where steps are one.

    The sums of ``transitions[R, S]`` are filled row by row, as rows are released for the first
    time, and ``number[h, s, a]`` says where (-1: nowhere). The room for all rows is reserved, the
    memory is used as rows are filled.
    """

    number: IntArray
    transitions: FloatArray
    transition_sums: FloatArray
    reward_sums: FloatArray

    @classmethod
    def empty(cls, layers: int, states: int, actions: int) -> "CountSums":
        number = np.full((layers, states, actions), -1, np.int64)
        sums = [np.zeros((layers, states, actions, COLUMNS)) for _ in range(2)]
        return cls(number, np.zeros((number.size, states)), *sums)

    def add(
        self, batch: ReleasedRows, weight: FloatArray | float, reward_weight: FloatArray | float
    ) -> None:
        """Add a release; rows whose transitions have no weight, or none at all, take no place."""
        from discreet.learners.pooling import add_rows

        steps, states, actions = batch.rows
        rows = (steps * 0 if len(self.number) == 1 else steps, states, actions)
        weight = np.broadcast_to(np.asarray(weight, np.float64), steps.shape)
        new = np.zeros(self.number.shape, np.bool_)
        filled = batch.transitions.any(axis=-1) & (weight > 0)
        new[tuple(axis[filled] for axis in rows)] = True
        new &= self.number < 0
        self.number[new] = self.number.max() + 1 + np.arange(new.sum())
        add_rows(self.number[rows], weight, batch.transitions, self.transitions)
        sums, reward_sums = np.zeros((2, steps.size, COLUMNS))
        for w, varied, noise, out in (
            (weight, batch.sampling, batch.noise, sums),
            (reward_weight, batch.reward_sampling, batch.reward_noise, reward_sums),
        ):
            out[:, VISITS] = w * batch.visits
            out[:, SAMPLING] = w**2 * varied
            out[:, NOISE] = w**2 * noise
            out[:, VISIT_VARIANCE] = w**2 * batch.visit_variance
        sums[:, BIAS] = weight * np.sqrt(batch.noise)
        reward_sums[:, TOTAL] = reward_weight * batch.rewards
        np.add.at(self.transition_sums, rows, sums)
        np.add.at(self.reward_sums, rows, reward_sums)

    def layer(self, step: int) -> RowSums:
        """All rows ``[S, A]`` of a step, by the weights of rewards; nothing where none is kept."""
        h = step if len(self.number) > 1 else 0
        number, sums = self.number[h], self.reward_sums[h]
        transitions = np.where(number[..., None] >= 0, self.transitions[number], 0.0)
        return RowSums(
            transitions,
            sums[..., VISITS],
            sums[..., TOTAL],
            sums[..., SAMPLING],
            self.transition_sums[h, ..., NOISE],
            sums[..., NOISE],
            sums[..., VISIT_VARIANCE],
        )

    def pooled(self) -> "CountSums":
        """All steps as one."""
        total, used = CountSums.empty(1, *self.number.shape[1:]), self.number >= 0
        some = used.any(axis=0)
        total.number[0, some] = np.arange(some.sum())
        _, states, actions = np.nonzero(used)
        place = total.number[0, states, actions]
        np.add.at(total.transitions, place, self.transitions[self.number[used]])
        total.transition_sums[0] = self.transition_sums.sum(axis=0)
        total.reward_sums[0] = self.reward_sums.sum(axis=0)
        return total

    def to_dict(self) -> dict[str, Plain]:
        """Plain values, without the rows that are not in use."""
        arrays = self._replace(transitions=self.transitions[: self.number.max() + 1])._asdict()
        return {name: array.tolist() for name, array in arrays.items()}

    @classmethod
    def from_dict(cls, data: JsonObject) -> "CountSums":
        sums = cls.empty(*np.shape(data["number"]))
        for name, array in sums._asdict().items():
            values = np.array(data[name], array.dtype)
            array[: len(values)] = values.reshape(len(values), *array.shape[1:])
        return sums


class ModelEstimate(NamedTuple):
    """A model as a planner reads it, in the layout of `CountSums`.

    A row is *alone* where neither its transitions nor its rewards are pooled: then its error is
    independent of that of every other row.

    Attributes:
        number: ``[L, S, A]``, the row of ``probabilities`` that belongs there, -1 for none.
        probabilities: ``[R, S]``, where rows lead.
        transition_sums: ``[L, S, A, 5]``, the sums behind them.
        reward_sums: ``[L, S, A, 5]``.
        pooled_transitions: ``bool[L, S, A]``, whose sums are those of all steps.
        pooled_rewards: likewise.
    """

    number: IntArray
    probabilities: FloatArray
    transition_sums: FloatArray
    reward_sums: FloatArray
    pooled_transitions: BoolArray
    pooled_rewards: BoolArray


class Estimate(NamedTuple):
    """A value and an interval of about 95%: an approximation, said by who makes it.

    >>> print(Estimate(2041.27, 2030.1, 2052.4).in_units(0, 1, 4))
    2,041.3 (95% interval 2,030.1 to 2,052.4)
    >>> print(Estimate(0.5, 0.4, 0.6).in_units(0, 100, 4))
    50.0 (95% interval 40.0 to 60.0)
    """

    value: float
    low: float
    high: float

    def in_units(self, low: float, high: float, steps: int) -> "Estimate":
        """Of so many steps with rewards from ``low`` to ``high`` instead of 0 to 1."""
        return Estimate(*(low * steps + (high - low) * number for number in self))

    def __str__(self) -> str:
        wide = self.high - self.low
        digits = max(0, 2 - math.floor(math.log10(wide))) if wide > 0 else 3
        value, low, high = (f"{number:,.{digits}f}" for number in self)
        return f"{value} (95% interval {low} to {high})"


def weight_of(expected: FloatArray, variance: float, ease: float) -> FloatArray:
    """Weight of a release in rows: near 1 where counts dwarf the noise, near 0 below it.

    Args:
        expected: visits of each row, foretold without the release: a weight that saw its noise
            would be a bias.
        variance: of one counter.
        ease: variance per visit against which noise is weighed.
    """
    if variance == 0:
        return np.ones_like(expected)
    weight: FloatArray = expected / (expected + variance / ease)
    return weight


def transition_square(  # also compiled: scalars or arrays
    visits: Any, sampling: Any, noise: Any, variance: Any, deviation: Any, reach: Any
) -> Any:
    """The first half of the numerator, with ``variance`` and ``deviation`` of the next value."""
    few = reach * sampling / visits
    return sampling * variance + noise * deviation + few**2


def reward_square(sampling: Any, noise: Any, visit_variance: Any, reward: Any, centre: Any) -> Any:
    """The second half: the error of a sum of rewards."""
    return sampling * reward * (1.0 - reward) + noise + visit_variance * (reward - centre) ** 2


def next_value(
    rows: RowSums, probabilities: FloatArray, following: FloatArray, reach: float
) -> tuple[FloatArray, FloatArray]:
    """P·V of rows, and the numerator of its variance."""
    mean: FloatArray = probabilities @ following
    square: FloatArray = probabilities @ (following * following)
    variance = np.maximum(square - mean * mean, 0.0)
    # The sum over states of (V - P·V)², without an array of that size.
    count, first, second = len(following), following.sum(), (following * following).sum()
    deviation = np.maximum(second - 2 * mean * first + count * mean * mean, 0.0)
    visits = np.maximum(rows.visits, 1e-9)
    return mean, transition_square(visits, rows.sampling, rows.noise, variance, deviation, reach)


def visit_noise_factors(
    states: int,
    horizon: int,
    starts: int,
    *,
    last_transitions: bool = True,
    visits_ratio: float = 0.0,
) -> FloatArray:
    """Variance of a state's visits at each step, after flow consistency, per counter's variance.

    The visits of a layer sum to the users, which leaves 1 - 1/k of the variance with k states. They
    are measured by the ``states`` counters going out (not at the last step without its
    transitions), from step 1 on by the counters coming in, one per state of the layer before, and
    by a second measurement, if there is one: with one start, step 0 is exact and step 1 almost.

    >>> visit_noise_factors(states=4, horizon=3, starts=1).tolist()
    [0.0, 0.6, 1.5]

    Args:
        states: S.
        horizon: H.
        starts: the states an episode can begin in.
        last_transitions: whether the transitions of the last step are released.
        visits_ratio: variance of a transition counter over that of visits released besides.
    """
    inside = 1 - 1 / states
    factors = np.full(horizon, inside * states / 2)
    factors[0] = (1 - 1 / starts) * states
    factors[1:2] = inside / (1 / starts + 1 / states)
    if not last_transitions:
        factors[-1] = inside * (starts if horizon == 2 else states)
    if visits_ratio:
        free = np.full(horizon, inside)
        free[0] = 1 - 1 / starts
        factors = np.where(
            free > 0, factors * free / np.maximum(free + factors * visits_ratio, 1e-300), 0
        )
    return factors


def mechanism_factors(shape: Shape, start: BoolArray, mechanism: BatchMechanism) -> FloatArray:
    """`visit_noise_factors` of what this mechanism releases."""
    noise = mechanism.noise_variance(mechanism.min_users)
    return visit_noise_factors(
        shape.states,
        shape.horizon,
        int(start.sum()),
        last_transitions=mechanism.last_transitions,
        visits_ratio=noise["transitions"] / noise["visits"] if noise.get("visits") else 0.0,
    )


def action_values(
    rows: RowSums, ahead: FloatArray, *, centre: float, deviations: float, signed: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Values r + P·V of rows, and their variances: infinite where noise explains the visits.

    Args:
        rows: of one step.
        ahead: V, the values of the next states.
        centre: c, where rewards were released as sums of r - c.
        deviations: of the visits' noise; only rows with more visits than so many are known.
        signed: values of counts as they are, below zero or not: cut off at zero, they would add
            up to a value that is too high. Variances are those of probabilities in either case.
    """
    known = rows.visits > np.maximum(deviations * np.sqrt(rows.visit_variance), 0.5)
    visits = np.where(known, rows.visits, 1.0)
    mean = np.clip(rows.rewards / visits, 0.0, 1.0)
    # Half of what a visit can earn from here, as if once more than was seen.
    reach = (1.0 + float(np.ptp(ahead))) / 2
    following, square = next_value(
        rows._replace(visits=visits), probabilities_of(rows.transitions), ahead, reach
    )
    square = square + reward_square(
        rows.sampling, rows.reward_noise, rows.visit_variance, mean, centre
    )
    values = mean + following
    if signed:  # sums over next states would add noise of the sums; deviations from the mean do not
        apart = (rows.transitions * (ahead - following[..., None])).sum(axis=-1)
        values = rows.rewards / visits + following + apart / visits
    return values, np.where(known, square / visits**2, np.inf)


def probabilities_of(transitions: FloatArray) -> FloatArray:
    """Where rows lead, by their counts above zero; anywhere where there is none."""
    kept = np.maximum(transitions, 0.0)
    total = kept.sum(axis=-1, keepdims=True)
    even = np.full_like(kept, 1 / kept.shape[-1])
    return np.where(total > 0, kept / np.where(total > 0, total, 1.0), even)
