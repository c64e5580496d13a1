"""What flow-ucb makes of an estimate, compiled: policies, what is unknown about them, checks."""

from typing import NamedTuple

import numpy as np

from discreet._jit import kernel
from discreet._types import BoolArray, FloatArray, IntArray
from discreet.learners.estimate import (
    BIAS,
    COLUMNS,
    NOISE,
    SAMPLING,
    TOTAL,
    VISIT_VARIANCE,
    VISITS,
    CountSums,
    ModelEstimate,
    reward_square,
    transition_square,
)
from discreet.learners.pooling import row_model
from discreet.mdp.shape import Shape

MOMENTS = 4
NEXT_VARIANCE, DEVIATION, REWARD, HIDDEN = range(MOMENTS)
"""Of a row: the variance of the next value; its squared deviations, as far as noise reaches; the
mean reward; and how much better than the next value a way is that the projection may hide."""
SEEN = 0.5
"""Standard deviation to which a reward is known that was seen: half of what rewards differ by."""
TIE = 1e-9
"""Values that differ by less are as good as each other: rounding, not a choice."""


class CandidatePolicy(NamedTuple):
    """A deterministic policy with what was known when it was made.

    Attributes:
        actions: ``[H, S]``.
        values: ``[H + 1, S]``, its value by its own account, bonuses included.
        bonus: ``[H, S]``, the part of the value that is not known.
        moments: ``[H, S, 4]`` of the rows it takes, the columns above.
        occupancy: ``[H, S]``, how likely the model is there.
    """

    actions: IntArray
    values: FloatArray
    bonus: FloatArray
    moments: FloatArray
    occupancy: FloatArray


class Sparse(NamedTuple):
    """Rows without their zeros: row i has ``ends[i]:ends[i + 1]`` of columns and entries."""

    ends: IntArray
    columns: IntArray
    entries: FloatArray


def sparse(rows: FloatArray) -> Sparse:
    """The entries of ``rows[R, S]`` that are not zero: few, where there are many states."""
    places, columns = np.nonzero(rows)
    ends = np.searchsorted(places, np.arange(len(rows) + 1))
    return Sparse(ends, np.ascontiguousarray(columns), rows[places, columns])


@kernel
def next_value(
    columns: IntArray,
    entries: FloatArray,
    moved: FloatArray,
    following: FloatArray,
    out: FloatArray,
) -> float:
    """Mean of the next value after a row; its variance and deviations go to the moments ``out``.

    The projection onto counts that are not negative takes the noise away where there is nothing to
    count: a counter of x keeps the share x/sqrt(F) of its noise's variance F, at most all of it.
    """
    mean, variance, deviation = 0.0, 0.0, 0.0
    for k in range(columns.size):
        mean += entries[k] * following[columns[k]]
    scale = moved[VISITS] / max(np.sqrt(moved[NOISE]), 1e-300)
    for k in range(columns.size):
        square = (following[columns[k]] - mean) ** 2
        variance += entries[k] * square
        deviation += min(entries[k] * scale, 1.0) * square
    out[NEXT_VARIANCE], out[DEVIATION] = variance, deviation
    return mean


@kernel
def mean_reward(paid: FloatArray) -> float:
    """Of one row, between zero and one; zero without visits."""
    if paid[VISITS] <= 0.0:
        return 0.0
    return float(min(max(paid[TOTAL] / paid[VISITS], 0.0), 1.0))


_transition_square, _reward_square = kernel(transition_square), kernel(reward_square)


@kernel
def reward_variance(paid: FloatArray, reward: float, centre: float) -> float:
    """Variance of an estimated reward; infinite where noise alone explains the visits."""
    certain = paid[VISITS] - np.sqrt(paid[VISIT_VARIANCE])
    if certain <= 0.0:
        return np.inf
    square = _reward_square(paid[SAMPLING], paid[NOISE], paid[VISIT_VARIANCE], reward, centre)
    return float((square + (2.0 * paid[SAMPLING] / paid[VISITS]) ** 2) / certain**2)


@kernel
def transition_variance(
    moved: FloatArray, variance: float, deviation: float, remaining: float
) -> float:
    """Variance of an estimated P·V; infinite where noise alone explains the visits."""
    certain = moved[VISITS] - np.sqrt(moved[VISIT_VARIANCE])
    if certain <= 0.0:
        return np.inf
    square = _transition_square(
        moved[VISITS], moved[SAMPLING], moved[NOISE], variance, deviation, 2.0 * remaining
    )
    return float(square / certain**2)


@kernel
def bonus_of(
    moved: FloatArray,
    paid: FloatArray,
    moments: FloatArray,
    width: float,
    remaining: int,
    centre: float,
) -> float:
    """sqrt((width·sd)² + bias²); infinite where noise alone explains the visits.

    With one step remaining nothing follows, and only the reward counts.
    """
    square, bias = reward_variance(paid, moments[REWARD], centre), 0.0
    if remaining > 1:
        square += transition_variance(
            moved, moments[NEXT_VARIANCE], moments[DEVIATION], float(remaining)
        )
        certain = moved[VISITS] - np.sqrt(moved[VISIT_VARIANCE])
        bias = moments[HIDDEN] * moved[BIAS] / max(certain, 1e-300)
    return np.inf if np.isinf(square) else float(np.sqrt(width**2 * square + bias**2))


@kernel
def optimistic(
    model: ModelEstimate,
    rows: Sparse,
    width: FloatArray,
    hiding: float,
    explore: bool,
    centre: float,
    tie: FloatArray,
    out: CandidatePolicy,
) -> None:
    """Backward induction with bonuses; without ``explore``, greedily, shunning unknown actions.

    No action is worth more than a reward of one and then the best state of the next step; one that
    is not known is worth that much. The largest ``tie`` wins where values are alike, and where it
    is negative an action is not possible.
    """
    horizon, states, choices = model.number.shape
    moments = np.empty(MOMENTS)
    for h in range(horizon - 1, -1, -1):
        following = out.values[h + 1]
        top = following[0]
        for s in range(1, states):
            top = max(top, following[s])
        for s in range(states):
            best, luck = -1.0, -1.0
            for a in range(choices):
                if tie[h, s, a] < 0.0:
                    continue
                moved, paid = model.transition_sums[h, s, a], model.reward_sums[h, s, a]
                for m in range(MOMENTS):
                    moments[m] = 0.0
                moments[REWARD], mean, i = mean_reward(paid), 0.0, model.number[h, s, a]
                if h < horizon - 1 and i >= 0:
                    columns = rows.columns[rows.ends[i] : rows.ends[i + 1]]
                    entries = rows.entries[rows.ends[i] : rows.ends[i + 1]]
                    mean = next_value(columns, entries, moved, following, moments)
                    moments[HIDDEN] = hiding * (top - mean)
                wide = width[h, s, a] if explore else 0.0
                bonus = bonus_of(moved, paid, moments, wide, horizon - h, centre)
                value = min(moments[REWARD] + mean + bonus, 1.0 + top)
                if np.isinf(bonus) and not explore:
                    value = 0.0
                if value > best + TIE or (value > best - TIE and tie[h, s, a] > luck):
                    best, luck = max(value, best), tie[h, s, a]
                    out.actions[h, s], out.bonus[h, s] = a, min(bonus, 1.0 + top)
                    for m in range(MOMENTS):
                        out.moments[h, s, m] = moments[m]
            out.values[h, s] = best


@kernel
def occupancy_of(model: ModelEstimate, actions: IntArray, known: bool, out: FloatArray) -> None:
    """``out[h, s]``: how likely the model is at s in step h under a deterministic policy.

    The first step is given, the others are zero. A row that nobody has visited leads anywhere; with
    ``known``, nobody comes out of a row that is not known.
    """
    horizon, states = actions.shape
    for h in range(horizon - 1):
        for s in range(states):
            if out[h, s] == 0.0:
                continue
            i, a = model.number[h, s, actions[h, s]], actions[h, s]
            moved, paid = model.transition_sums[h, s, a], model.reward_sums[h, s, a]
            seen = i >= 0 and moved[VISITS] > np.sqrt(moved[VISIT_VARIANCE])
            seen = seen and paid[VISITS] > np.sqrt(paid[VISIT_VARIANCE])
            if known and not seen:
                continue
            for j in range(states):
                chance = model.probabilities[i, j] if i >= 0 else 1.0 / states
                out[h + 1, j] += out[h, s] * chance


class ReleaseTerms(NamedTuple):
    """On what terms a batch is released: its noise, and how it enters the sums.

    ``noise`` and ``reward_noise`` are variances of one counter; ``per_visit`` and
    ``reward_per_visit`` the mechanism's `visit_variance` and `reward_visit_variance`; ``factors``
    and ``ease`` belong to `visit_noise_factors` and `weight_of`.
    """

    users: float
    noise: float
    reward_noise: float
    per_visit: float
    reward_per_visit: float
    factors: FloatArray
    ease: float
    last_transitions: bool


@kernel
def expected_row(h: int, visits: float, terms: ReleaseTerms, out: FloatArray) -> None:
    """What a batch adds to the sums ``out[2, COLUMNS]`` of a row of step h: `CountSums.add` ahead.

    What a visit adds to its counters is in the sampling of transitions, which varies with the next
    value, and in the noise of rewards, which is there whatever the reward is.
    """
    more = terms.per_visit
    for part in range(2):
        noise = terms.reward_noise if part else terms.noise
        w = 1.0 if noise == 0.0 else visits / (visits + noise / terms.ease)
        if part == 0 and h == terms.factors.size - 1 and not terms.last_transitions:
            w = 0.0
        out[part, VISITS] = w * visits
        out[part, SAMPLING] = w * w * visits * (1.0 if part else 1.0 + more)
        out[part, NOISE] = w * w * (noise + (visits * terms.reward_per_visit if part else 0.0))
        out[part, VISIT_VARIANCE] = w * w * (terms.noise * terms.factors[h] + more * visits / 2.0)
        out[part, BIAS] = 0.0 if part else w * np.sqrt(noise)


@kernel
def expected_batch(
    terms: ReleaseTerms, candidate: CandidatePolicy, choices: int
) -> tuple[FloatArray, FloatArray]:
    """What a batch adds: ``[H, S, 2, COLUMNS]`` by step and state, ``[S, A, ...]`` over steps."""
    horizon, states = candidate.actions.shape
    own = np.zeros((horizon, states, 2, COLUMNS))
    over_steps = np.zeros((states, choices, 2, COLUMNS))
    for h in range(horizon):
        for s in range(states):
            if candidate.occupancy[h, s] > 0.0:
                expected_row(h, terms.users * candidate.occupancy[h, s], terms, own[h, s])
                total = over_steps[s, candidate.actions[h, s]]
                for part in range(2):
                    for c in range(COLUMNS):
                        total[part, c] += own[h, s, part, c]
    return own, over_steps


@kernel
def unknown_after(
    model: ModelEstimate,
    terms: ReleaseTerms,
    candidate: CandidatePolicy,
    width: FloatArray,
    centre: float,
) -> float:
    """Expected bonus along the candidate once the users of ``terms`` have played it.

    Values and moments stay those of before the batch; no bonus is above the steps that remain. A
    reward that is unchecked stays so until it is seen: a check does not come back.
    """
    horizon, states, choices = model.number.shape
    own, over_steps = expected_batch(terms, candidate, choices)
    moved, paid, total = np.empty(COLUMNS), np.empty(COLUMNS), 0.0
    for h in range(horizon):
        for s in range(states):
            if candidate.occupancy[h, s] <= 0.0:
                continue
            a, remaining = candidate.actions[h, s], horizon - h
            moments = candidate.moments[h, s]
            added = over_steps[s, a] if model.pooled_transitions[h, s, a] else own[h, s]
            paying = over_steps[s, a] if model.pooled_rewards[h, s, a] else own[h, s]
            for c in range(COLUMNS):
                moved[c] = model.transition_sums[h, s, a, c] + added[0, c]
                paid[c] = model.reward_sums[h, s, a, c] + paying[1, c]
            bonus = bonus_of(moved, paid, moments, width[h, s, a], remaining, centre)
            unchecked = model.number[h, s, a] >= 0 and model.reward_sums[h, s, a, VISITS] == 0.0
            if unchecked and reward_variance(paid, moments[REWARD], centre) > SEEN**2:
                bonus = np.inf
            total += candidate.occupancy[h, s] * min(bonus, float(remaining))
    return total


def expecting(
    model: ModelEstimate, terms: ReleaseTerms, candidate: CandidatePolicy
) -> ModelEstimate:
    """The model as the users of ``terms`` will leave it if all goes as it expects."""
    own, over_steps = expected_batch(terms, candidate, model.number.shape[2])
    steps, states = np.indices(candidate.actions.shape)
    added = np.zeros((2, *model.reward_sums.shape))
    for part, pooled in enumerate((model.pooled_transitions, model.pooled_rewards)):
        added[part, steps, states, candidate.actions] = own[:, :, part]
        added[part] = np.where(pooled[..., None], over_steps[None, :, :, part], added[part])
    visits, total = model.reward_sums[..., VISITS], model.reward_sums[..., TOTAL]
    means = np.clip(total / np.where(visits > 0, visits, np.inf), 0.0, 1.0)
    added[1, ..., TOTAL] = added[1, ..., VISITS] * means
    return model._replace(
        transition_sums=model.transition_sums + added[0], reward_sums=model.reward_sums + added[1]
    )


@kernel
def largest_chances(model: ModelEstimate, out: FloatArray) -> None:
    """``out[h, s]``: the largest chance, over all policies, of being at s in step h.

    That of the first step is given. By chances above two standard deviations: where noise leads,
    nobody comes.
    """
    horizon, states, choices = model.number.shape
    certain = np.zeros((horizon, states, choices, states))
    for h in range(horizon):
        for s in range(states):
            for a in range(choices):
                i, moved = model.number[h, s, a], model.transition_sums[h, s, a]
                if i < 0 or moved[VISITS] <= np.sqrt(moved[VISIT_VARIANCE]):
                    continue
                for j in range(states):
                    chance = model.probabilities[i, j]
                    square = moved[NOISE] + moved[SAMPLING] * chance * (1.0 - chance)
                    if chance * moved[VISITS] > 2.0 * np.sqrt(square):
                        certain[h, s, a, j] = chance
    chance_to, before = np.empty(states), np.empty(states)
    for h in range(1, horizon):
        for target in range(states):
            chance_to[:] = 0.0
            chance_to[target] = 1.0
            for k in range(h - 1, -1, -1):
                for s in range(states):
                    most = 0.0
                    for a in range(choices):
                        mean = 0.0
                        for j in range(states):
                            mean += certain[k, s, a, j] * chance_to[j]
                        most = max(most, mean)
                    before[s] = most
                chance_to, before = before, chance_to
            total = 0.0
            for s in range(states):
                total += out[0, s] * chance_to[s]
            out[h, target] = total


UNCHECKED, OWN_REWARD, OWN_ROW = 1, 2, 3
"""The pooled reward counts as never seen; the own reward is used; transitions besides."""


@kernel
def examine(
    sums: CountSums,
    model: ModelEstimate,
    due: BoolArray,
    values: FloatArray,
    centre: float,
    out: IntArray,
) -> None:
    """``out[h, s, a]``: what becomes of pooled rows where a check is ``due[h, s]``.

    `UNCHECKED` while the step's own reward is not seen; then `OWN_REWARD` if it is better than the
    pooled one by its standard deviation, and `OWN_ROW` if its own next value is, by two.
    """
    horizon, states, choices = out.shape
    row, columns, moments = np.empty(states), np.empty(states, np.int64), np.empty(MOMENTS)
    for place in range(out.size):
        h, s, a = place // choices // states, place // choices % states, place % choices
        if not due[h, s] or not (
            model.pooled_rewards[h, s, a] or (model.pooled_transitions[h, s, a] and h < horizon - 1)
        ):
            continue
        moved, paid = sums.transition_sums[h, s, a], sums.reward_sums[h, s, a]
        reward = mean_reward(paid)
        variance = reward_variance(paid, reward, centre)
        if variance > SEEN**2:
            out[h, s, a] = UNCHECKED if model.pooled_rewards[h, s, a] else 0
            continue
        if reward - mean_reward(model.reward_sums[h, s, a]) > np.sqrt(variance):
            out[h, s, a] = OWN_REWARD
        i, pooled = sums.number[h, s, a], model.number[h, s, a]
        if i < 0 or h == horizon - 1:
            continue
        row_model(sums.transitions[i], moved[VISITS], row)
        elsewhere, entries = 0.0, 0
        for j in range(states):
            elsewhere += model.probabilities[pooled, j] * values[h + 1, j]
            if row[j] != 0.0:
                row[entries], columns[entries] = row[j], j
                entries += 1
        mean = next_value(columns[:entries], row[:entries], moved, values[h + 1], moments)
        variance = transition_variance(
            moved, moments[NEXT_VARIANCE], moments[DEVIATION], float(horizon - h)
        )
        if mean - elsewhere > 2.0 * np.sqrt(variance) + TIE:
            out[h, s, a] = OWN_ROW


def with_own(sums: CountSums, model: ModelEstimate, verdict: IntArray) -> ModelEstimate:
    """The model with a step's own counts where `examine` says so."""
    unpaid, rows = verdict > 0, (verdict == OWN_ROW) & (sums.number >= 0)
    reward_sums = np.where(unpaid[..., None], sums.reward_sums, model.reward_sums)
    reward_sums[verdict == UNCHECKED, VISITS] = 0.0
    own = np.empty((int(rows.sum()), model.probabilities.shape[1]))
    for row, place, moved in zip(own, sums.number[rows], sums.transition_sums[rows], strict=True):
        row_model(sums.transitions[place], moved[VISITS], row)
    number = model.number.copy()
    number[rows] = len(model.probabilities) + np.arange(len(own))
    return model._replace(
        number=number,
        probabilities=np.concatenate([model.probabilities, own]),
        transition_sums=np.where(rows[..., None], sums.transition_sums, model.transition_sums),
        reward_sums=reward_sums,
        pooled_transitions=model.pooled_transitions & ~rows,
        pooled_rewards=model.pooled_rewards & ~unpaid,
    )


class Planner:
    """Makes candidate policies; episodes start from ``initial[S]``, rewards are less ``centre``."""

    def __init__(self, shape: Shape, initial: FloatArray, centre: float) -> None:
        self.shape = shape
        self.initial = initial
        self.centre = centre

    def made(
        self,
        model: ModelEstimate,
        tie: FloatArray,
        width: FloatArray | None = None,
        hiding: float = 0.0,
    ) -> CandidatePolicy:
        """The policy of the largest value, with ``width`` standard deviations per row.

        Without a width it is the best policy of the model, which shuns what is not known.
        """
        horizon, states = self.shape.horizon, self.shape.states
        candidate = CandidatePolicy(
            np.zeros((horizon, states), np.int64),
            np.zeros((horizon + 1, states)),
            np.zeros((horizon, states)),
            np.zeros((horizon, states, MOMENTS)),
            np.zeros((horizon, states)),
        )
        wide = np.zeros(self.shape.visits) if width is None else width
        luck = np.where(self.shape.mask, tie, -1.0)
        rows, explore = sparse(model.probabilities), width is not None
        optimistic(model, rows, wide, hiding, explore, self.centre, luck, candidate)
        candidate.occupancy[0] = self.initial
        occupancy_of(model, candidate.actions, False, candidate.occupancy)
        return candidate

    def reachable(self, model: ModelEstimate, candidate: CandidatePolicy) -> CandidatePolicy:
        """With its occupancy as far as it leads through rows that are known."""
        occupancy = np.zeros_like(candidate.occupancy)
        occupancy[0] = self.initial
        occupancy_of(model, candidate.actions, True, occupancy)
        return candidate._replace(occupancy=occupancy)

    def value(self, candidate: CandidatePolicy) -> float:
        """Of a candidate policy, by its own account."""
        return float(self.initial @ candidate.values[0])

    def chances(self, model: ModelEstimate, otherwise: FloatArray) -> FloatArray:
        """`largest_chances`; ``otherwise`` where H²·S³·A/2 multiplications would take too long."""
        if self.shape.states**3 * self.shape.actions * self.shape.horizon**2 > 1e8:
            return otherwise
        out = np.zeros((self.shape.horizon, self.shape.states))
        out[0] = self.initial
        largest_chances(model, out)
        return out
