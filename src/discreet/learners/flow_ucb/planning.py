"""Planning of flow-ucb: the optimistic policy of an estimate, and the greedy one.

Arrays over rows have a leading axis of length H, or 1 where the problem was declared stationary.
``number[h, s, a]`` says which row of the model belongs there, -1 for none.
"""

import math
from typing import NamedTuple

import numpy as np

from discreet._jit import kernel
from discreet._types import FloatArray, Int32Array, IntArray
from discreet.learners.estimate import (
    BIAS,
    NOISE,
    SAMPLING,
    TOTAL,
    VISIT_VARIANCE,
    VISITS,
    ModelEstimate,
    reward_square,
    transition_square,
)
from discreet.mdp.shape import Shape

MOMENTS = 4
NEXT_VARIANCE, DEVIATION, REWARD, SHARE = range(MOMENTS)
"""Of the row that a candidate policy takes: the variance of the next value and its squared
deviations, as far as noise reaches or hides; the mean reward; and the share of width·sd that is its
bonus, 1 where anything of it is pooled, less where it stands alone before others that are
unsure."""


class CandidatePolicy(NamedTuple):
    """A deterministic policy with what was known when it was made (a *plan* is a release).

    Attributes:
        actions: ``[H, S]``.
        values: ``[H + 1, S]``, its value by its own account, bonuses included.
        bonus: ``[H, S]``, the part of the value that is not known.
        moments: ``[H, S, 4]``, the columns above.
        occupancy: ``[H, S]``, how likely the model is there.
    """

    actions: IntArray
    values: FloatArray
    bonus: FloatArray
    moments: FloatArray
    occupancy: FloatArray

    @classmethod
    def empty(cls, horizon: int, states: int) -> "CandidatePolicy":
        """To be filled."""
        return cls(
            np.zeros((horizon, states), np.int64),
            np.zeros((horizon + 1, states)),
            np.zeros((horizon, states)),
            np.zeros((horizon, states, MOMENTS)),
            np.zeros((horizon, states)),
        )


POSITIVE = 1 / math.sqrt(2 * math.pi)
"""Mean of the positive part of a normal variable, in standard deviations."""
SEEN = 2.0
"""Times the visits that projected noise explains from which somebody was seen. Not varied."""
TIE = 1e-9
"""Values that differ by less are as good as each other: rounding, not a choice."""
QUIET = 0.15
"""Share of a counter's noise variance that the projection leaves where it left no count. Measured:
with 1 the errors of estimates are 0.4 to 0.9 of what is claimed, with this 0.6 to 1."""
SURE = 2.0
"""Standard deviations by which a chance has to be above zero to count as one. Not varied."""


class Sparse(NamedTuple):
    """Rows without their zeros: row i has ``ends[i]:ends[i + 1]`` of columns and entries."""

    ends: IntArray
    columns: Int32Array
    entries: FloatArray


@kernel
def sparse(rows: FloatArray) -> Sparse:
    """The entries of ``rows[R, S]`` that are not zero: few, where there are many states."""
    ends = np.zeros(rows.shape[0] + 1, np.int64)
    for i in range(rows.shape[0]):
        filled = 0
        for j in range(rows.shape[1]):
            filled += rows[i, j] != 0.0
        ends[i + 1] = ends[i] + filled
    columns, entries = np.empty(ends[-1], np.int32), np.empty(ends[-1])
    for i in range(rows.shape[0]):
        k, j = ends[i], 0
        while k < ends[i + 1]:
            if rows[i, j] != 0.0:
                columns[k], entries[k] = j, rows[i, j]
                k += 1
            j += 1
    return Sparse(ends, columns, entries)


@kernel
def middle(values: FloatArray) -> tuple[float, float]:
    """The plain mean of all values, and their sum of squared deviations from it."""
    mean = 0.0
    for j in range(values.size):
        mean += values[j]
    mean /= values.size
    deviation = 0.0
    for j in range(values.size):
        deviation += (values[j] - mean) ** 2
    return mean, deviation


@kernel
def mean_after(rows: Sparse, i: int, following: FloatArray) -> float:
    """Mean over the next states of row i."""
    mean = 0.0
    for k in range(rows.ends[i], rows.ends[i + 1]):
        mean += rows.entries[k] * following[rows.columns[k]]
    return mean


@kernel
def spread(rows: Sparse, i: int, following: FloatArray) -> tuple[float, float]:
    """Mean and variance of the next value after row i."""
    mean = mean_after(rows, i, following)
    variance = 0.0
    for k in range(rows.ends[i], rows.ends[i + 1]):
        variance += rows.entries[k] * (following[rows.columns[k]] - mean) ** 2
    return mean, variance


@kernel
def noisy_deviation(
    rows: Sparse, i: int, moved: FloatArray, following: FloatArray, mean: float, everywhere: float
) -> float:
    """Squared deviations of the next value from row i's mean, each by the noise that is left there.

    The projection onto counts that are not negative takes most of the noise away where there is
    nothing to count. A counter of x keeps the share x/sqrt(F) of its noise's variance F, at least
    `QUIET` and at most all of it.
    """
    deviation = QUIET * everywhere
    scale = moved[VISITS] / max(np.sqrt(moved[NOISE]), 1e-300)
    for k in range(rows.ends[i], rows.ends[i + 1]):
        left = min(rows.entries[k] * scale, 1.0)
        if left > QUIET:
            deviation += (left - QUIET) * (following[rows.columns[k]] - mean) ** 2
    return deviation


class Hidden(NamedTuple):
    """What noise may have hidden behind every row of a step.

    Attributes:
        share: of a standard deviation, lost of a rare way in every batch.
        value: of the best state that such a way may lead to.
    """

    share: float
    value: float


@kernel
def best_unseen(unseen: FloatArray, following: FloatArray) -> float:
    """The largest next value among states in which nobody was seen."""
    best = 0.0
    for j in range(following.size):
        best = max(best, unseen[j] * following[j])
    return best


@kernel
def hidden_deviation(moved: FloatArray, mean: float, hidden: Hidden) -> float:
    """The squared deviation of a place to which a row may lead unseen, in units of its noise.

    Consistent counts that are not negative give to counters of nothing and take from the others. A
    way to a state where few come loses, in every batch alike, 0.3 to 0.7 standard deviations with
    three to five states, one with ten, 1.4 to 1.8 with twenty to forty, about half of that where
    who comes stays, and nothing with two (measured; a count below that loses most of itself). So
    share·(sum of w·sigma) visits of the row may have led there without being counted.
    """
    if hidden.value <= mean or moved[NOISE] <= 0.0:
        return 0.0
    return float((hidden.share * moved[BIAS] * (hidden.value - mean)) ** 2 / moved[NOISE])


_transition_square, _reward_square = kernel(transition_square), kernel(reward_square)


@kernel
def transition_variance(
    visits: float,
    sampling: float,
    noise: float,
    visit_variance: float,
    variance: float,
    deviation: float,
    remaining: float,
) -> float:
    """Variance of an estimated P·V; infinite where noise alone explains the visits.

    ``remaining`` steps, H - h, bound how far a next value can be off: the lower-order term.
    """
    certain = visits - np.sqrt(visit_variance)
    if certain <= 0.0:
        return np.inf
    square = _transition_square(visits, sampling, noise, variance, deviation, 2.0 * remaining)
    return float(square / certain**2)


@kernel
def reward_variance(
    visits: float,
    sampling: float,
    noise: float,
    visit_variance: float,
    reward: float,
    centre: float,
) -> float:
    """Variance of an estimated reward; infinite where noise alone explains the visits.

    Rewards are released as sums of r - ``centre``: noise on the visits moves them no further.
    """
    certain = visits - np.sqrt(visit_variance)
    if certain <= 0.0:
        return np.inf
    square = _reward_square(sampling, noise, visit_variance, reward, centre)
    return float((square + (2.0 * sampling / visits) ** 2) / certain**2)


class RowEstimate(NamedTuple):
    """What is known of one row.

    Attributes:
        reward: mean.
        mean: of the next value.
        next_variance: of the next value.
        deviation: squared deviations of the next value, as far as noise reaches or hides.
        error: variance of the estimate, sd² in `learner`; infinite: not known.
    """

    reward: float
    mean: float
    next_variance: float
    deviation: float
    error: float


@kernel
def estimate(
    model: ModelEstimate,
    rows: Sparse,
    place: tuple[int, int, int],
    following: FloatArray,
    around: tuple[float, float],
    hidden: Hidden,
    remaining: int,
    centre: float,
) -> RowEstimate:
    """What the estimate says of the row at ``place``.

    With one step remaining nothing follows, and only its reward counts. The sum of squared
    deviations from a row's mean m is that from the plain mean c plus S·(m - c)² (``around``:
    `middle` of the following values).
    """
    moved, paid = model.transition_sums[place], model.reward_sums[place]
    reward = mean_reward(paid)
    mean, variance, deviation = 0.0, 0.0, 0.0
    error = reward_variance(
        paid[VISITS], paid[SAMPLING], paid[NOISE], paid[VISIT_VARIANCE], reward, centre
    )
    if remaining > 1:
        i = model.number[place]
        if i >= 0:
            mean, variance = spread(rows, i, following)
            everywhere = around[1] + following.size * (mean - around[0]) ** 2
            deviation = noisy_deviation(rows, i, moved, following, mean, everywhere)
            deviation += hidden_deviation(moved, mean, hidden)
        error += transition_variance(
            moved[VISITS],
            moved[SAMPLING],
            moved[NOISE],
            moved[VISIT_VARIANCE],
            variance,
            deviation,
            float(remaining),
        )
    return RowEstimate(reward, mean, variance, deviation, error)


@kernel
def stands_alone(model: ModelEstimate, place: tuple[int, int, int]) -> bool:
    """Whether nothing of a row is pooled (`ModelEstimate`)."""
    return not (model.pooled_transitions[place] or model.pooled_rewards[place])


@kernel
def bonus_share(error: float, later: float) -> float:
    """What remains of sd as the bonus of a row that stands alone before others that are unsure.

    (sqrt(error + later) - sqrt(later))/sqrt(error), without the cancellation: along a candidate
    policy such bonuses add up to the root of the sum of squares.
    """
    if error <= 0.0:
        return 1.0
    return float(np.sqrt(error) / (np.sqrt(error + later) + np.sqrt(later)))


class Valued(NamedTuple):
    """What an action is worth, optimistically.

    Attributes:
        compared: by which it is compared with other actions of its state.
        value: what those before it may hope for.
        bonus: the part of the value that is not known.
        share: of width·sd that is in the bonus.
        unsure: expected sum of squared errors of rows that stand alone, from here on.
    """

    compared: float
    value: float
    bonus: float
    share: float
    unsure: float


@kernel
def valued(row: RowEstimate, later: float, alone: bool, width: float, ceiling: float) -> Valued:
    """An action's worth by its row.

    What follows is much the same whichever action is taken, and hardly counts in the difference of
    two: actions are compared with the whole of their own errors, or the better of two that are both
    unsure would be left for good where much is unsure behind them.
    """
    if np.isinf(row.error):
        return Valued(ceiling, ceiling, ceiling, 1.0, 0.0)
    share = bonus_share(row.error, later) if alone else 1.0
    unsure = later + row.error if alone else later
    whole, known = width * np.sqrt(row.error), row.reward + row.mean
    bonus = share * whole
    compared, value = min(known + whole, ceiling), min(known + bonus, ceiling)
    return Valued(compared, value, min(bonus, ceiling), share, unsure)


@kernel
def mean_reward(reward_sums: FloatArray) -> float:
    """Of one row, between zero and one; zero without visits."""
    if reward_sums[VISITS] <= 0.0:
        return 0.0
    return float(min(max(reward_sums[TOTAL] / reward_sums[VISITS], 0.0), 1.0))


@kernel
def preferred(value: float, best: float, tie: float, luck: float) -> bool:
    """Whether an action is better than the best so far, or as good and luckier."""
    return value > best + TIE or (value > best - TIE and tie > luck)


@kernel
def optimistic(
    model: ModelEstimate,
    width: FloatArray,
    unseen: FloatArray,
    hiding: float,
    explore: bool,
    centre: float,
    tie: FloatArray,
    out: CandidatePolicy,
) -> None:
    """Backward induction with bonuses; without ``explore``, greedily, shunning unknown actions.

    No action is worth more than a reward of one and then the best state of the next step.

    A row of which anything is pooled is wrong in the same way at every step: its standard
    deviations add up along a candidate policy. Rows that stand alone are wrong independently of
    each other: their variances do, and ``unsure`` is the expected sum of those from a state on.
    """
    number, rows = model.number, sparse(model.probabilities)
    actions, values, moments = out.actions, out.values, out.moments
    horizon = actions.shape[0]
    layers, states, choices = number.shape
    values[horizon] = 0.0
    unsure = np.zeros((horizon + 1, states))
    for h in range(horizon - 1, -1, -1):
        layer = h if layers > 1 else 0
        following, around, remaining = values[h + 1], middle(values[h + 1]), horizon - h
        ceiling = 1.0 + np.max(following)
        hidden = Hidden(hiding, best_unseen(unseen[min(h + 1, layers - 1)], following))
        for s in range(states):
            best, luck = -1.0, -1.0
            values[h, s] = 0.0
            for a in range(choices):
                place, later = (layer, s, a), 0.0
                row = estimate(model, rows, place, following, around, hidden, remaining, centre)
                if layers > 1 and number[place] >= 0:  # one layer: all pooled, or nothing follows
                    later = mean_after(rows, number[place], unsure[h + 1])
                alone, wide = stands_alone(model, place), width[place] if explore else 0.0
                worth = valued(row, later, alone, wide, ceiling)
                shunned = not explore and np.isinf(row.error)
                compared, value = (0.0, 0.0) if shunned else (worth.compared, worth.value)
                values[h, s] = max(values[h, s], value)
                if preferred(compared, best, tie[h, s, a], luck):
                    best, luck = max(compared, best), tie[h, s, a]
                    actions[h, s], out.bonus[h, s] = a, worth.bonus
                    moments[h, s, NEXT_VARIANCE] = row.next_variance
                    moments[h, s, DEVIATION] = row.deviation
                    moments[h, s, REWARD], moments[h, s, SHARE] = row.reward, worth.share
                    unsure[h, s] = worth.unsure


@kernel
def _begin(initial: FloatArray, out: FloatArray) -> None:
    for s in range(initial.size):
        out[0, s] = initial[s]


@kernel
def state_occupancy(
    number: IntArray,
    probabilities: FloatArray,
    actions: IntArray,
    initial: FloatArray,
    out: FloatArray,
) -> None:
    """``out[h, s]``: how likely the model is at s in step h under a deterministic policy.

    A row that nobody has visited leads anywhere.
    """
    horizon, states = actions.shape
    layers = number.shape[0]
    out[:] = 0.0
    _begin(initial, out)
    for h in range(horizon - 1):
        layer = h if layers > 1 else 0
        for s in range(states):
            if out[h, s] == 0.0:
                continue
            i = number[layer, s, actions[h, s]]
            for j in range(states):
                chance = probabilities[i, j] if i >= 0 else 1.0 / states
                out[h + 1, j] += out[h, s] * chance


@kernel
def certain_transitions(model: ModelEstimate, out: FloatArray) -> None:
    """``out[L, S, A, S]``: chances that are above `SURE` standard deviations of theirs, or none."""
    layers, states, choices = model.number.shape
    out[:] = 0.0
    for layer, s, a in np.ndindex(layers, states, choices):
        i, moved = model.number[layer, s, a], model.transition_sums[layer, s, a]
        if i < 0 or moved[VISITS] <= np.sqrt(moved[VISIT_VARIANCE]):
            continue
        for j in range(states):
            chance = model.probabilities[i, j]
            square = moved[NOISE] + moved[SAMPLING] * chance * (1.0 - chance)
            if chance * moved[VISITS] > SURE * np.sqrt(square):
                out[layer, s, a, j] = chance


@kernel
def largest_chances(certain: FloatArray, initial: FloatArray, out: FloatArray) -> None:
    """``out[h, s]``: the largest chance, over all policies, of being at s in step h."""
    horizon, states = out.shape
    layers, _, choices, _ = certain.shape
    _begin(initial, out)
    chance, before = np.empty(states), np.empty(states)
    for h in range(1, horizon):
        for target in range(states):
            chance[:] = 0.0
            chance[target] = 1.0
            for k in range(h - 1, -1, -1):
                layer = k if layers > 1 else 0
                for s in range(states):
                    before[s] = 0.0
                    for a in range(choices):
                        mean = 0.0
                        for j in range(states):
                            mean += certain[layer, s, a, j] * chance[j]
                        before[s] = max(before[s], mean)
                chance, before = before, chance
            out[h, target] = 0.0
            for s in range(states):
                out[h, target] += initial[s] * chance[s]


@kernel
def reachable_occupancy(
    model: ModelEstimate, actions: IntArray, initial: FloatArray, out: FloatArray
) -> None:
    """As `state_occupancy`, but nobody comes out of a row that is not known."""
    horizon, states = actions.shape
    layers = model.number.shape[0]
    out[:] = 0.0
    _begin(initial, out)
    for h in range(horizon - 1):
        layer = h if layers > 1 else 0
        for s in range(states):
            a = actions[h, s]
            moved, paid = model.transition_sums[layer, s, a], model.reward_sums[layer, s, a]
            seen = moved[VISITS] > np.sqrt(moved[VISIT_VARIANCE]) and paid[VISITS] > np.sqrt(
                paid[VISIT_VARIANCE]
            )
            i = model.number[layer, s, a]
            if out[h, s] == 0.0 or i < 0 or not seen:
                continue
            for j in range(states):
                out[h + 1, j] += out[h, s] * model.probabilities[i, j]


def unseen_states(model: ModelEstimate) -> FloatArray:
    """``[L, S]``: 1 where visits are no more than projected noise explains, 0 from `SEEN` times on.

    Linear between, and by the action that was seen most. Projected noise looks like visits: of each
    of the S counters that lead to a state the positive part stays, `POSITIVE` standard deviations
    in the mean, and at least one is allowed for. Where the transitions of the last step are its
    own, they may not have been released: what counts is how often its rewards were seen, against
    the noise of the same action one step before.
    """
    nothing = max(1.0, POSITIVE * model.number.shape[1]) * model.transition_sums[..., BIAS]
    visits = model.transition_sums[..., VISITS].copy()
    if len(visits) > 1:
        own = ~model.pooled_transitions[-1]
        visits[-1, own] = model.reward_sums[-1, own, VISITS]
        nothing[-1, own] = nothing[-2, own]
    seen = (visits / np.maximum(nothing, 1e-9)).max(axis=-1)
    unseen: FloatArray = np.clip(SEEN - seen, 0.0, 1.0)
    return unseen


class Planner:
    """Makes candidate policies from estimates.

    Attributes:
        shape: of the problem.
        initial: ``[S]``, the distribution that episodes are taken to start from.
        centre: what rewards are released less of: 1/2 where they are centred, or 0.
    """

    def __init__(self, shape: Shape, initial: FloatArray, centre: float) -> None:
        self.shape = shape
        self.initial = initial
        self.centre = centre

    @property
    def reward_share(self) -> float:
        """How much of the variance of a row's visits can be in that of its rewards.

        A sum of r - c moves by at most max(c, 1 - c) with one visit more or less: 1/4 of the
        variance where rewards are centred, all of it where they are not (``bits``, ``one-step``).
        """
        return max(self.centre, 1 - self.centre) ** 2

    def optimistic(
        self, model: ModelEstimate, width: FloatArray, tie: FloatArray, hiding: float = 0.0
    ) -> CandidatePolicy:
        """The candidate policy of the largest value, with ``width`` standard deviations per row."""
        return self._made(model, width, tie, hiding, explore=True)

    def greedy(self, model: ModelEstimate, tie: FloatArray) -> CandidatePolicy:
        """The best policy of the model; actions that are not known are shunned."""
        return self._made(model, np.zeros(model.number.shape), tie, 0.0, explore=False)

    def _made(
        self,
        model: ModelEstimate,
        width: FloatArray,
        tie: FloatArray,
        hiding: float,
        *,
        explore: bool,
    ) -> CandidatePolicy:
        candidate = CandidatePolicy.empty(self.shape.horizon, self.shape.states)
        unseen = unseen_states(model) if hiding else np.zeros(model.number.shape[:2])
        optimistic(model, width, unseen, hiding, explore, self.centre, tie, candidate)
        state_occupancy(
            model.number, model.probabilities, candidate.actions, self.initial, candidate.occupancy
        )
        return candidate

    def reachable(self, model: ModelEstimate, candidate: CandidatePolicy) -> CandidatePolicy:
        """With its occupancy as far as it leads through rows that are known."""
        occupancy = np.zeros_like(candidate.occupancy)
        reachable_occupancy(model, candidate.actions, self.initial, occupancy)
        return candidate._replace(occupancy=occupancy)

    def value(self, candidate: CandidatePolicy) -> float:
        """Of a candidate policy, by its own account."""
        return float(self.initial @ candidate.values[0])

    def closeness(self, model: ModelEstimate, within: float) -> FloatArray:
        """``[L, S, A]``: how close actions come to the best of their state, by the model.

        1 for the best, 0 for those worse by the share ``within`` of the state's value, linear
        between. An action of which nothing is known has 0, where others have a value: its bonus
        needs no help.
        """
        values = self.greedy(model, np.zeros(self.shape.visits)).values
        best = values[:-1, :, None]
        visits, total = model.reward_sums[..., VISITS], model.reward_sums[..., TOTAL]
        # `mean_reward` of all rows.
        reward = np.clip(total / np.where(visits > 0, visits, np.inf), 0.0, 1.0)
        known = np.broadcast_to(reward, self.shape.visits).copy()
        numbers = np.broadcast_to(model.number, self.shape.visits)
        for h in range(self.shape.horizon - 1):
            following = np.append(model.probabilities @ values[h + 1], 0.0)  # -1: no row, nothing
            known[h] += following[numbers[h]]
        close = np.clip(1 - (best - known) / np.maximum(within * best, 1e-12), 0.0, 1.0)
        return np.asarray(close if len(model.number) > 1 else close.max(axis=0, keepdims=True))

    def largest_chances(self, model: ModelEstimate) -> FloatArray:
        """``[H, S]``: the largest chance of every state at every step, over all policies.

        By chances that stand out of their noise: where noise leads, nobody comes.
        """
        certain = np.empty((*model.number.shape, self.shape.states))
        certain_transitions(model, certain)
        out = np.zeros((self.shape.horizon, self.shape.states))
        largest_chances(certain, self.initial, out)
        return out

    @property
    def chance_work(self) -> float:
        """Multiplications that `largest_chances` takes."""
        s, a, h = self.shape.states, self.shape.actions, self.shape.horizon
        return float(s**3 * a * h**2 / 2)
