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

from typing import Any, NamedTuple

import numpy as np

from discreet._types import BoolArray, FloatArray, IntArray, JsonObject, Plain
from discreet.mdp.policies import DeterministicPolicy

COLUMNS = 5
VISITS, SAMPLING, NOISE, VISIT_VARIANCE, BIAS = range(COLUMNS)
"""Columns of the sums of a row: N, M, F or G, D; of transitions, the sum of w·sigma, which is how
far noise that was projected to be positive can be off in one direction."""
TOTAL = BIAS
"""Of rewards, the weighted sum stands there."""
NORMAL = 1.96
"""Two-sided 95%."""


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


class Rows(NamedTuple):
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

    def layer(self, step: int) -> Rows:
        """All rows ``[S, A]`` of a step, by the weights of rewards; nothing where none is kept."""
        h = step if len(self.number) > 1 else 0
        number, sums = self.number[h], self.reward_sums[h]
        transitions = np.where(number[..., None] >= 0, self.transitions[number], 0.0)
        return Rows(
            transitions,
            sums[..., VISITS],
            sums[..., TOTAL],
            sums[..., SAMPLING],
            self.transition_sums[h, ..., NOISE],
            sums[..., NOISE],
            sums[..., VISIT_VARIANCE],
        )

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
        transition_sums: ``[L, S, A, 5]``, the sums behind them; their noise holds the bias of the
            projection, but for a step's own rows (`flow_ucb.own_step`).
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
    rows: Rows, probabilities: FloatArray, following: FloatArray, reach: float
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
    states: int, horizon: int, starts: int, *, last_transitions: bool = True, look: float = 0.0
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
        look: variance of a transition counter over that of visits that are released besides.
    """
    inside = 1 - 1 / states
    factors = np.full(horizon, inside * states / 2)
    factors[0] = (1 - 1 / starts) * states
    factors[1:2] = inside / (1 / starts + 1 / states)
    if not last_transitions:
        factors[-1] = inside * (starts if horizon == 2 else states)
    if look:
        free = np.full(horizon, inside)
        free[0] = 1 - 1 / starts
        factors = np.where(free > 0, factors * free / np.maximum(free + factors * look, 1e-300), 0)
    return factors


class Estimate(NamedTuple):
    """A value and an interval of about 95%: an approximation (`PolicyValue`)."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} (95% interval {self.low:.3f} to {self.high:.3f})"


class PolicyValue:
    """Policies valued, and chosen, by sums of counts as they were released, below zero or not.

    Cutting counts off at zero would add up to a value that is too high. A row is *known* where its
    visits exceed twice their own noise. The interval is plus and minus 1.96 standard errors by
    linear error propagation: the error of every row's r + P·V, times how often the policy visits
    it. Rows are taken as independent, errors as normal, and the policy as if it had not been chosen
    by the same data: an approximation, not a theorem. States in which nothing is known are worth 0
    in the estimate and up to all remaining rewards in the upper end.

    Args:
        sums: of all releases.
        horizon: H.
        start: ``bool[S]``, the states an episode can begin in.
    """

    def __init__(self, sums: CountSums, horizon: int, start: BoolArray) -> None:
        self.sums = sums
        self.horizon = horizon
        self.start = start

    def greedy(self) -> DeterministicPolicy:
        """Backward induction over what is known; an action is worth a standard error less.

        So the better known of two that look alike is taken; where nothing is known, the first.
        """
        states = len(self.start)
        actions, values = np.zeros((self.horizon, states), np.int64), np.zeros(states)
        for h in reversed(range(self.horizon)):
            worth, deviation, known = self.step(h, values, cut=True)
            actions[h] = np.argmax(np.where(known, worth - deviation, -np.inf), axis=1)
            best = (np.arange(states), actions[h])
            values = np.where(known[best], worth[best], 0.0)
        return DeterministicPolicy(actions)

    def step(
        self, h: int, ahead: FloatArray, *, cut: bool
    ) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Values r + P·V, their standard errors, and where they are known: ``[S, A]`` each.

        ``cut``: probabilities and rewards are brought into their range, for planning.
        """
        rows = self.sums.layer(h)
        known = rows.visits > np.maximum(2 * np.sqrt(rows.visit_variance), 0.5)
        visits = np.where(known, rows.visits, 1.0)
        rows = rows._replace(visits=visits)
        mean, probabilities = np.clip(rows.rewards / visits, 0.0, 1.0), _cut(rows.transitions)
        following, square = next_value(rows, probabilities, ahead, float(self.horizon - h))
        square = square + reward_square(
            rows.sampling, rows.reward_noise, rows.visit_variance, mean, 0.0
        )
        worth = mean + following
        if not cut:
            worth = rows.rewards / visits + (rows.transitions @ ahead) / visits
        return worth, np.sqrt(square) / visits, known

    def of(self, policy: DeterministicPolicy) -> tuple[Estimate, BoolArray]:
        """The value of a policy, and in which states ``bool[H, S]`` its action is known."""
        states, horizon = len(self.start), self.horizon
        known = np.zeros((horizon, states), np.bool_)
        values, errors = np.zeros(states), np.zeros((horizon, states))
        for h in reversed(range(horizon)):
            chosen = (np.arange(states), policy.actions[h])
            worth, deviation, sure = (part[chosen] for part in self.step(h, values, cut=False))
            known[h] = sure
            values, errors[h] = np.where(sure, worth, 0.0), np.where(sure, deviation, 0.0)
        share = self._first_states()
        value, lost, total = float(share @ values), 0.0, np.zeros(self.sums.number.shape)
        for h in range(horizon):
            chosen, layer = (np.arange(states), policy.actions[h]), h if len(total) > 1 else 0
            total[layer, *chosen] += share * errors[h]  # steps that are one share their errors
            lost += float(share[~known[h]].sum()) * (horizon - h)
            moved = _cut(self.sums.layer(h).transitions[chosen])
            share = np.where(known[h], share, 0.0) @ moved
        off = NORMAL * float(np.sqrt((total**2).sum()))
        value, low, high = np.clip([value, value - off, value + off + lost], 0.0, horizon)
        return Estimate(float(value), float(low), float(high)), known

    def _first_states(self) -> FloatArray:
        if len(self.sums.number) > 1:
            seen = np.maximum(self.sums.layer(0).visits.sum(axis=1), 0.0) * self.start
            if seen.sum() > 0:
                return np.asarray(seen / seen.sum())
        return np.asarray(self.start / self.start.sum())


def _cut(transitions: FloatArray) -> FloatArray:
    kept = np.maximum(transitions, 0.0)
    total = kept.sum(axis=-1, keepdims=True)
    even = np.full_like(kept, 1 / kept.shape[-1])
    return np.where(total > 0, kept / np.where(total > 0, total, 1.0), even)
