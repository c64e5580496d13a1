"""How many users a batch of flow-ucb has.

The expected bonus along a candidate policy, or half the candidate policy's value if that is less,
is what is not known about it. A batch is the smallest that is predicted to leave ``shrink`` of it,
and no larger than all batches before it together. Where noise grows with the users (local reports)
it leaves sqrt(``shrink``) of the whole bonus, however large. Only users who came through rows that
are known count: what lies behind an action that nobody knows cannot be planned for, and a batch
that was sized for it would pay for the whole map at once. The first batch shows one reward above
its noise.

A batch is a recruitment: there are at most `MOST_BATCHES`. From half of them on, after b batches of
t users together, a batch has at least t·((K/t)^(1/(`MOST_BATCHES` - `SPARED` - b)) - 1), so that
batches of that growth end at K in time; what its candidate policy does not need is for further
candidate policies (`mixture`), and then for the greedy one. With ``mixing=False`` all of it plays
the one candidate policy.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from discreet._jit import kernel
from discreet._types import FloatArray
from discreet.learners.estimate import (
    COLUMNS,
    NOISE,
    SAMPLING,
    TOTAL,
    VISIT_VARIANCE,
    VISITS,
    ModelEstimate,
)
from discreet.learners.flow_ucb.own_step import TIGHT, reward_known
from discreet.learners.flow_ucb.planning import (
    DEVIATION,
    NEXT_VARIANCE,
    REWARD,
    SHARE,
    CandidatePolicy,
    mean_reward,
    reward_variance,
    transition_variance,
)
from discreet.privacy.mechanisms.base import BatchMechanism

VALUE_SHARE = 0.5
"""A candidate policy cannot hide more than a part of its value: the goal of a batch is measured
against this share of it, not against bonuses that add up to many times what can be earned. From the
first generation; what it is worth is the variant ``bonus-goal`` of the ablation."""
MOST_BATCHES = 300
"""A decision about recruitment, not about regret. That least sizes begin at half of them was
measured with an early version: a least size throughout cost up to four times the regret at K = 1e7
(later, over several families, 1.02 and 1.13)."""
SPARED = 10
"""Batches that the least size keeps in reserve for rounding and for a last one. Not varied."""
ENDING = 0.5
"""The users left join the last batch if they are fewer than this share of it. From the first
generation."""


class ReleaseTerms(NamedTuple):
    """On what terms a batch is released, now or next: its noise, and how it enters the evidence.

    Attributes:
        users: of the batch.
        noise: variance of one counter of transitions.
        reward_noise: of rewards.
        per_visit: `BatchMechanism.visit_variance`.
        reward_per_visit: `BatchMechanism.reward_visit_variance`.
        factors: ``[H]``, `visit_noise_factors`.
        ease: of `row_weight`.
        last_transitions: whether the transitions of the last step are released.
    """

    users: float
    noise: float
    reward_noise: float
    per_visit: float
    reward_per_visit: float
    factors: FloatArray
    ease: float
    last_transitions: bool


class Noise:
    """Noise variances of a plan by batch size, interpolated between powers of two.

    Exact for noise that is constant (central, shuffle) or proportional to the users (local); a plan
    may need milliseconds for each size, and sizing a batch asks for many.
    """

    def __init__(self, mechanism: BatchMechanism) -> None:
        self._mechanism = mechanism
        self._table: dict[int, tuple[float, float]] = {}

    def __call__(self, users: float) -> tuple[float, float]:
        power = max(0, math.floor(math.log2(users)))
        low, high = self._at(power), self._at(power + 1)
        share = users / 2**power - 1
        transitions, rewards = ((1 - share) * a + share * b for a, b in zip(low, high, strict=True))
        return transitions, rewards

    @property
    def growth(self) -> float:
        """0 where noise is the same for every batch, 1 where its variance grows with the users."""
        one, two = self._at(10)[0], self._at(11)[0]
        return min(max(math.log2(two / one), 0.0), 1.0) if one > 0 else 0.0

    @property
    def renewed(self) -> float:
        """1 where every batch pays the same noise anew, 0 where splitting a batch costs nothing."""
        return 1 - self.growth if self._at(10)[0] > 0 else 0.0

    def _at(self, power: int) -> tuple[float, float]:
        if power not in self._table:
            noise = self._mechanism.noise_variance(max(2**power, self._mechanism.min_users))
            self._table[power] = noise["transitions"], noise["rewards"]
        return self._table[power]


def goal(unknown: float, value: float, shrink: float, growth: float) -> float:
    """What a batch may leave unknown.

    With noise per batch, small batches waste users: all above `VALUE_SHARE` of the candidate
    policy's value is one batch's work. Where noise grows with the batch (local) they waste nothing,
    and steps are half as large.
    """
    excess = max(1.0, unknown / (VALUE_SHARE * value)) if value > 0 else 1.0
    return float(shrink ** (1 - growth / 2) * unknown / excess ** (1 - growth))


def most_users(told: int, left: int) -> int:
    """No more than all before together; the first batch may take a tenth of all users."""
    return max(1, min(left, told or left // 10))


def min_users(told: int, episodes: int, batches: int) -> int:
    """So many that `MOST_BATCHES` suffice for all ``episodes``."""
    if batches < MOST_BATCHES / 2:
        return 1
    remaining = max(1, MOST_BATCHES - SPARED - batches)
    growth = float((episodes / told) ** (1 / remaining))
    return math.ceil(told * (growth - 1))


def smallest(enough: Callable[[int], bool], most: int) -> int:
    """The smallest number, within a percent, that is ``enough``; ``most`` if none is."""
    low, high = 1, most
    if not enough(high):
        return high
    while high - low > max(1, low // 100):
        middle = math.isqrt(low * high) if high > 4 * low else (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def rounded(users: int, left: int) -> int:
    """Up to two significant digits: round numbers are easier to recruit and to calibrate for."""
    unit = int(10 ** max(0, len(str(users)) - 2))
    return min(left, -(-users // unit) * unit)


@kernel
def row_weight(expected: float, noise: float, ease: float) -> float:
    """Weight of a batch in one row (`sizing.row_weight` of one number)."""
    if noise == 0.0:
        return 1.0
    return expected / (expected + noise / ease)


@kernel
def expected_sums(
    expected: float,
    noise: float,
    visit_variance: float,
    per_visit: float,
    ease: float,
    out: FloatArray,
) -> None:
    """What a batch adds to the columns that moves and gains have in common."""
    w = row_weight(expected, noise, ease)
    out[VISITS] += w * expected
    out[SAMPLING] += w * w * expected
    out[NOISE] += w * w * noise
    out[VISIT_VARIANCE] += w * w * (visit_variance + per_visit * expected / 2.0)


@kernel
def expected_row(
    h: int,
    expected: float,
    moving: bool,
    terms: ReleaseTerms,
    transition_sums: FloatArray,
    reward_sums: FloatArray,
) -> None:
    """What a batch adds to the sums of a row of step h with ``expected`` visits.

    This is `CountSums.add` before the batch: as many visits as expected there, no bias (the release
    that would bias is still to come, and what is left unknown is predicted without it) and no
    rewards.
    What a visit adds to its counters is in the sampling of transitions, which varies with the next
    value, and in the noise of rewards, which is there whatever the reward is.
    """
    visit_variance, more = terms.noise * terms.factors[h], terms.per_visit
    if moving:
        before = transition_sums[SAMPLING]
        expected_sums(expected, terms.noise, visit_variance, more, terms.ease, transition_sums)
        transition_sums[SAMPLING] = before + (transition_sums[SAMPLING] - before) * (1.0 + more)
    expected_sums(expected, terms.reward_noise, visit_variance, more, terms.ease, reward_sums)
    w = row_weight(expected, terms.reward_noise, terms.ease)
    reward_sums[NOISE] += w * w * expected * terms.reward_per_visit


@kernel
def _added(one: FloatArray, other: FloatArray, out: FloatArray) -> None:
    for column in range(COLUMNS):
        out[column] = one[column] + other[column]


@kernel
def expected_batch(
    terms: ReleaseTerms, candidate: CandidatePolicy, choices: int
) -> tuple[FloatArray, FloatArray]:
    """What a batch adds to moves and gains: by step and state, and summed over steps."""
    horizon, states = candidate.actions.shape
    own = np.zeros((horizon, states, 2, COLUMNS))
    over_steps = np.zeros((states, choices, 2, COLUMNS))
    for h in range(horizon):
        for s in range(states):
            expected = terms.users * candidate.occupancy[h, s]
            if expected <= 0.0:
                continue
            moving = h < horizon - 1 or terms.last_transitions
            expected_row(h, expected, moving, terms, own[h, s, 0], own[h, s, 1])
            for column in range(COLUMNS):
                over_steps[s, candidate.actions[h, s], 0, column] += own[h, s, 0, column]
                over_steps[s, candidate.actions[h, s], 1, column] += own[h, s, 1, column]
    return own, over_steps


@kernel
def uncertainty_after(
    model: ModelEstimate,
    terms: ReleaseTerms,
    candidate: CandidatePolicy,
    width: FloatArray,
    centre: float,
    reward_share: float,
) -> float:
    """Expected bonus along the candidate policy once the users of ``terms`` have played it.

    Values, moments and the share of the bonus stay those of before the batch.

    A reward that is unchecked (`own_step`) stays so until it is known: a check is as large as it
    needs to be, and does not come back.

    No bonus is above the steps that remain, H - h. `planning.optimistic` caps at 1 + max V,
    which is tighter, and the goal is a share of bonuses under that cap. V after the batch is not
    planned here; the looser cap lets what stays unknown count for more, so that a batch is rather
    too large than too small. What the tighter cap would be worth was not measured.
    """
    layers, states, choices = model.number.shape
    actions, occupancy, moments = candidate.actions, candidate.occupancy, candidate.moments
    horizon = actions.shape[0]
    own, over_steps = expected_batch(terms, candidate, choices)
    total = 0.0
    paid, moved = np.empty(COLUMNS), np.empty(COLUMNS)
    for h in range(horizon):
        layer = h if layers > 1 else 0
        remaining = float(horizon - h)
        for s in range(states):
            if occupancy[h, s] <= 0.0:
                continue
            a = actions[h, s]
            pooled = model.pooled_rewards[layer, s, a]
            _added(
                model.reward_sums[layer, s, a],
                over_steps[s, a, 1] if pooled else own[h, s, 1],
                paid,
            )
            square = reward_variance(
                max(paid[VISITS], 1e-9),
                paid[SAMPLING],
                paid[NOISE],
                paid[VISIT_VARIANCE],
                moments[h, s, REWARD],
                centre,
            )
            if h < horizon - 1:
                pooled = model.pooled_transitions[layer, s, a]
                _added(
                    model.transition_sums[layer, s, a],
                    over_steps[s, a, 0] if pooled else own[h, s, 0],
                    moved,
                )
                square += transition_variance(
                    max(moved[VISITS], 1e-9),
                    moved[SAMPLING],
                    moved[NOISE],
                    moved[VISIT_VARIANCE],
                    moments[h, s, NEXT_VARIANCE],
                    moments[h, s, DEVIATION],
                    remaining,
                )
            unchecked = (
                model.number[layer, s, a] >= 0 and model.reward_sums[layer, s, a, VISITS] == 0.0
            )
            if unchecked and not reward_known(paid, reward_share, TIGHT):
                square = np.inf
            extra = remaining
            if not np.isinf(square):
                extra = width[layer, s, a] * moments[h, s, SHARE] * np.sqrt(square)
            total += occupancy[h, s] * min(extra, remaining)
    return total


@kernel
def add_expected(model: ModelEstimate, terms: ReleaseTerms, candidate: CandidatePolicy) -> None:
    """Add to the sums what the users of ``terms`` would add by playing the candidate."""
    layers, states, _ = model.number.shape
    horizon = candidate.actions.shape[0]
    sums = np.zeros((2, COLUMNS))
    for h in range(horizon):
        for s in range(states):
            expected = terms.users * candidate.occupancy[h, s]
            if expected <= 0.0:
                continue
            a = candidate.actions[h, s]
            sums[:] = 0.0
            moving = h < horizon - 1 or terms.last_transitions
            expected_row(h, expected, moving, terms, sums[0], sums[1])
            row = model.reward_sums[h if layers > 1 else 0, s, a]
            sums[1, TOTAL] = sums[1, VISITS] * mean_reward(row)
            for k in range(layers):
                here = k == h
                for i in range(COLUMNS):  # slices would be compiled for seconds
                    if here or model.pooled_transitions[k, s, a]:
                        model.transition_sums[k, s, a, i] += sums[0, i]
                    if here or model.pooled_rewards[k, s, a]:
                        model.reward_sums[k, s, a, i] += sums[1, i]
