"""Compiled prediction of what a batch leaves unknown (rule in `sizing`)."""

import numpy as np

from discreet._jit import kernel
from discreet._types import FloatArray
from discreet.learners.flow_ucb.belief import Belief
from discreet.learners.flow_ucb.evidence import COLUMNS, DOUBT, NOISE, SAMPLING, TOTAL, VISITS
from discreet.learners.flow_ucb.own_step_kernels import reward_known
from discreet.learners.flow_ucb.plan import DEVIATION, NEXT_VARIANCE, REWARD, SHARE, Route
from discreet.learners.flow_ucb.plan_kernels import (
    gain_variance,
    mean_reward,
    move_variance,
)
from discreet.learners.flow_ucb.sizing import ReleaseTerms
from discreet.learners.flow_ucb.visit_noise import TIGHT


@kernel
def credit(expected: float, noise: float, ease: float) -> float:
    """Weight of a batch in one row (`sizing.credit` of one number)."""
    if noise == 0.0:
        return 1.0
    return expected / (expected + noise / ease)


@kernel
def expected_sums(
    expected: float, noise: float, doubt: float, per_visit: float, ease: float, out: FloatArray
) -> None:
    """What a batch adds to the columns that moves and gains have in common."""
    w = credit(expected, noise, ease)
    out[VISITS] += w * expected
    out[SAMPLING] += w * w * expected
    out[NOISE] += w * w * noise
    out[DOUBT] += w * w * (doubt + per_visit * expected / 2.0)


@kernel
def expected_row(
    h: int, expected: float, moving: bool, terms: ReleaseTerms, moves: FloatArray, gains: FloatArray
) -> None:
    """What a batch adds to the sums of a row of step h with ``expected`` visits.

    This is `Evidence.add` before the batch: as many visits as expected there, no lean (the release
    that would lean is still to come, and what is left unknown is predicted without it) and no
    rewards.
    What a visit adds to its counters is in the sampling of transitions, which varies with the next
    value, and in the noise of rewards, which is there whatever the reward is.
    """
    doubt, more = terms.noise * terms.factors[h], terms.per_visit
    if moving:
        before = moves[SAMPLING]
        expected_sums(expected, terms.noise, doubt, more, terms.ease, moves)
        moves[SAMPLING] = before + (moves[SAMPLING] - before) * (1.0 + more)
    expected_sums(expected, terms.reward_noise, doubt, more, terms.ease, gains)
    w = credit(expected, terms.reward_noise, terms.ease)
    gains[NOISE] += w * w * expected * terms.reward_per_visit


@kernel
def _added(one: FloatArray, other: FloatArray, out: FloatArray) -> None:
    """The sum of two rows, without an array of its own: there are many."""
    for column in range(COLUMNS):
        out[column] = one[column] + other[column]


@kernel
def expected_batch(
    terms: ReleaseTerms, route: Route, choices: int
) -> tuple[FloatArray, FloatArray]:
    """What a batch adds to moves and gains: by step and state, and summed over steps."""
    horizon, states = route.actions.shape
    own = np.zeros((horizon, states, 2, COLUMNS))
    over_steps = np.zeros((states, choices, 2, COLUMNS))
    for h in range(horizon):
        for s in range(states):
            expected = terms.users * route.occupancy[h, s]
            if expected <= 0.0:
                continue
            moving = h < horizon - 1 or terms.last_transitions
            expected_row(h, expected, moving, terms, own[h, s, 0], own[h, s, 1])
            for column in range(COLUMNS):
                over_steps[s, route.actions[h, s], 0, column] += own[h, s, 0, column]
                over_steps[s, route.actions[h, s], 1, column] += own[h, s, 1, column]
    return own, over_steps


@kernel
def uncertainty_after(
    belief: Belief,
    terms: ReleaseTerms,
    route: Route,
    width: FloatArray,
    centre: float,
    doubted: float,
) -> float:
    """Expected bonus along the route once the users of ``terms`` have played it.

    Values, moments and the share of the bonus stay those of before the batch.

    A reward that is unchecked (`own_step`) stays so until it is known: a check is as large as it
    needs to be, and does not come back.

    No bonus is above the steps that remain, H - h. `plan_kernels.optimistic` caps at 1 + max V,
    which is tighter, and the goal is a share of bonuses under that cap. V after the batch is not
    planned here; the looser cap lets what stays unknown count for more, so that a batch is rather
    too large than too small. What the tighter cap would be worth was not measured.
    """
    layers, states, choices = belief.number.shape
    actions, occupancy, moments = route.actions, route.occupancy, route.moments
    horizon = actions.shape[0]
    own, over_steps = expected_batch(terms, route, choices)
    total = 0.0
    gain, move = np.empty(COLUMNS), np.empty(COLUMNS)
    for h in range(horizon):
        layer = h if layers > 1 else 0
        remaining = float(horizon - h)
        for s in range(states):
            if occupancy[h, s] <= 0.0:
                continue
            a = actions[h, s]
            pooled = belief.pooled_gains[layer, s, a]
            _added(belief.gains[layer, s, a], over_steps[s, a, 1] if pooled else own[h, s, 1], gain)
            square = gain_variance(
                max(gain[VISITS], 1e-9),
                gain[SAMPLING],
                gain[NOISE],
                gain[DOUBT],
                moments[h, s, REWARD],
                centre,
            )
            if h < horizon - 1:
                pooled = belief.pooled_moves[layer, s, a]
                _added(
                    belief.moves[layer, s, a], over_steps[s, a, 0] if pooled else own[h, s, 0], move
                )
                square += move_variance(
                    max(move[VISITS], 1e-9),
                    move[SAMPLING],
                    move[NOISE],
                    move[DOUBT],
                    moments[h, s, NEXT_VARIANCE],
                    moments[h, s, DEVIATION],
                    remaining,
                )
            unchecked = belief.number[layer, s, a] >= 0 and belief.gains[layer, s, a, VISITS] == 0.0
            if unchecked and not reward_known(gain, doubted, TIGHT):
                square = np.inf
            extra = remaining
            if not np.isinf(square):
                extra = width[layer, s, a] * moments[h, s, SHARE] * np.sqrt(square)
            total += occupancy[h, s] * min(extra, remaining)
    return total


@kernel
def add_expected(belief: Belief, terms: ReleaseTerms, route: Route) -> None:
    """Add what the users of ``terms`` would add by playing the route, to the sums of a belief."""
    layers, states, _ = belief.number.shape
    horizon = route.actions.shape[0]
    sums = np.zeros((2, COLUMNS))
    for h in range(horizon):
        for s in range(states):
            expected = terms.users * route.occupancy[h, s]
            if expected <= 0.0:
                continue
            a = route.actions[h, s]
            sums[:] = 0.0
            moving = h < horizon - 1 or terms.last_transitions
            expected_row(h, expected, moving, terms, sums[0], sums[1])
            row = belief.gains[h if layers > 1 else 0, s, a]
            sums[1, TOTAL] = sums[1, VISITS] * mean_reward(row)
            for k in range(layers):
                here = k == h
                for i in range(COLUMNS):  # slices would be compiled for seconds
                    if here or belief.pooled_moves[k, s, a]:
                        belief.moves[k, s, a, i] += sums[0, i]
                    if here or belief.pooled_gains[k, s, a]:
                        belief.gains[k, s, a, i] += sums[1, i]
