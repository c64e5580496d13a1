"""Compiled planning of flow-ucb (equations in `learner`).

Arrays over rows have a leading axis of length H, or 1 where the problem was declared stationary.
``number[h, s, a]`` says which row of the model belongs there, -1 for none.
"""

from typing import NamedTuple

import numpy as np

from discreet._jit import kernel
from discreet._types import FloatArray, Int32Array, IntArray
from discreet.learners.flow_ucb.belief import Belief
from discreet.learners.flow_ucb.evidence import BIAS, DOUBT, NOISE, SAMPLING, TOTAL, VISITS
from discreet.learners.flow_ucb.plan import DEVIATION, NEXT_VARIANCE, REWARD, SHARE, Route

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
    rows: Sparse, i: int, move: FloatArray, following: FloatArray, mean: float, everywhere: float
) -> float:
    """Squared deviations of the next value from row i's mean, each by the noise that is left there.

    The projection onto counts that are not negative takes most of the noise away where there is
    nothing to count. A counter of x keeps the share x/sqrt(F) of its noise's variance F, at least
    `QUIET` and at most all of it.

    Args:
        rows: of the model.
        i: the row.
        move: its sums.
        following: values of the next step.
        mean: of the next value.
        everywhere: the sum of squared deviations over all states.
    """
    deviation = QUIET * everywhere
    scale = move[VISITS] / max(np.sqrt(move[NOISE]), 1e-300)
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
def hidden_deviation(move: FloatArray, mean: float, hidden: Hidden) -> float:
    """The squared deviation of a place to which a row may lead unseen, in units of its noise.

    Consistent counts that are not negative give to counters of nothing and take from the others. A
    way to a state where few come loses, in every batch alike, 0.3 to 0.7 standard deviations with
    three to five states, one with ten, 1.4 to 1.8 with twenty to forty, about half of that where
    who comes stays, and nothing with two (measured; a count below that loses most of itself). So
    share·(sum of w·sigma) visits of the row may have led there without being counted.

    Args:
        move: sums of the row.
        mean: of its next value.
        hidden: behind the rows of this step.
    """
    if hidden.value <= mean or move[NOISE] <= 0.0:
        return 0.0
    return float((hidden.share * move[BIAS] * (hidden.value - mean)) ** 2 / move[NOISE])


@kernel
def move_variance(
    visits: float,
    sampling: float,
    noise: float,
    doubt: float,
    variance: float,
    deviation: float,
    remaining: float,
) -> float:
    """Variance of an estimated P·V; infinite where noise alone explains the visits.

    ``remaining`` steps, H - h, bound how far a next value can be off: the lower-order term.
    """
    certain = visits - np.sqrt(doubt)
    if certain <= 0.0:
        return np.inf
    square = sampling * variance + noise * deviation + (2.0 * remaining * sampling / visits) ** 2
    return float(square / certain**2)


@kernel
def gain_variance(
    visits: float, sampling: float, noise: float, doubt: float, reward: float, centre: float
) -> float:
    """Variance of an estimated reward; infinite where noise alone explains the visits.

    Rewards are released as sums of r - ``centre``: noise on the visits moves them no further.
    """
    certain = visits - np.sqrt(doubt)
    if certain <= 0.0:
        return np.inf
    square = sampling * reward * (1.0 - reward) + noise + doubt * (reward - centre) ** 2
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
    belief: Belief,
    rows: Sparse,
    place: tuple[int, int, int],
    following: FloatArray,
    around: tuple[float, float],
    hidden: Hidden,
    remaining: int,
    centre: float,
) -> RowEstimate:
    """What the belief says of the row at ``place``.

    With one step remaining nothing follows, and only its reward counts. The sum of squared
    deviations from a row's mean m is that from the plain mean c plus S·(m - c)² (``around``:
    `middle` of the following values).
    """
    move, gain = belief.moves[place], belief.gains[place]
    reward = mean_reward(gain)
    mean, variance, deviation = 0.0, 0.0, 0.0
    error = gain_variance(gain[VISITS], gain[SAMPLING], gain[NOISE], gain[DOUBT], reward, centre)
    if remaining > 1:
        i = belief.number[place]
        if i >= 0:
            mean, variance = spread(rows, i, following)
            everywhere = around[1] + following.size * (mean - around[0]) ** 2
            deviation = noisy_deviation(rows, i, move, following, mean, everywhere)
            deviation += hidden_deviation(move, mean, hidden)
        error += move_variance(
            move[VISITS],
            move[SAMPLING],
            move[NOISE],
            move[DOUBT],
            variance,
            deviation,
            float(remaining),
        )
    return RowEstimate(reward, mean, variance, deviation, error)


@kernel
def stands_alone(belief: Belief, place: tuple[int, int, int]) -> bool:
    """Whether nothing of a row is pooled (`Belief`)."""
    return not (belief.pooled_moves[place] or belief.pooled_gains[place])


@kernel
def bonus_share(error: float, later: float) -> float:
    """What remains of sd as the bonus of a row that stands alone before others that are unsure.

    (sqrt(error + later) - sqrt(later))/sqrt(error), without the cancellation: along a route such
    bonuses add up to the root of the sum of squares.
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

    Args:
        row: its estimate.
        later: what is unsure from the next state on.
        alone: whether its error is independent of the others'.
        width: in standard deviations.
        ceiling: no action is worth more; one that is not known is worth that much.
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
def mean_reward(gains: FloatArray) -> float:
    """Of one row, between zero and one; zero without visits."""
    if gains[VISITS] <= 0.0:
        return 0.0
    return float(min(max(gains[TOTAL] / gains[VISITS], 0.0), 1.0))


@kernel
def preferred(value: float, best: float, tie: float, luck: float) -> bool:
    """Whether an action is better than the best so far, or as good and luckier."""
    return value > best + TIE or (value > best - TIE and tie > luck)


@kernel
def optimistic(
    belief: Belief,
    width: FloatArray,
    unseen: FloatArray,
    hiding: float,
    explore: bool,
    centre: float,
    tie: FloatArray,
    out: Route,
) -> None:
    """Backward induction with bonuses; without ``explore``, greedily, shunning unknown actions.

    No action is worth more than a reward of one and then the best state of the next step.

    A row of which anything is pooled is wrong in the same way at every step: its standard
    deviations add up along a route. Rows that stand alone are wrong independently of each other:
    their variances do, and ``unsure`` is the expected sum of those from a state on.
    """
    number, rows = belief.number, sparse(belief.probabilities)
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
                row = estimate(belief, rows, place, following, around, hidden, remaining, centre)
                if layers > 1 and number[place] >= 0:  # one layer: all pooled, or nothing follows
                    later = mean_after(rows, number[place], unsure[h + 1])
                alone, wide = stands_alone(belief, place), width[place] if explore else 0.0
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
    """``out[0] = initial``, without the comparison of shapes that is compiled for seconds."""
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
def certain_moves(belief: Belief, out: FloatArray) -> None:
    """``out[L, S, A, S]``: chances that are above `SURE` standard deviations of theirs, or none."""
    layers, states, choices = belief.number.shape
    out[:] = 0.0
    for layer, s, a in np.ndindex(layers, states, choices):
        i, move = belief.number[layer, s, a], belief.moves[layer, s, a]
        if i < 0 or move[VISITS] <= np.sqrt(move[DOUBT]):
            continue
        for j in range(states):
            chance = belief.probabilities[i, j]
            square = move[NOISE] + move[SAMPLING] * chance * (1.0 - chance)
            if chance * move[VISITS] > SURE * np.sqrt(square):
                out[layer, s, a, j] = chance


@kernel
def largest_chances(certain: FloatArray, initial: FloatArray, out: FloatArray) -> None:
    """``out[h, s]``: the largest chance, over all policies, of being at s in step h.

    Args:
        certain: `certain_moves`.
        initial: where episodes start.
        out: to be filled.
    """
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
def charted_occupancy(
    belief: Belief, actions: IntArray, initial: FloatArray, out: FloatArray
) -> None:
    """As `state_occupancy`, but nobody comes out of a row that is not known."""
    horizon, states = actions.shape
    layers = belief.number.shape[0]
    out[:] = 0.0
    _begin(initial, out)
    for h in range(horizon - 1):
        layer = h if layers > 1 else 0
        for s in range(states):
            a = actions[h, s]
            move, gain = belief.moves[layer, s, a], belief.gains[layer, s, a]
            seen = move[VISITS] > np.sqrt(move[DOUBT]) and gain[VISITS] > np.sqrt(gain[DOUBT])
            i = belief.number[layer, s, a]
            if out[h, s] == 0.0 or i < 0 or not seen:
                continue
            for j in range(states):
                out[h + 1, j] += out[h, s] * belief.probabilities[i, j]
