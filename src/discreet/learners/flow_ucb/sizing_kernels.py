"""Compiled prediction of what a batch leaves unknown (rule in `sizing`)."""

import numpy as np

from discreet._jit import kernel
from discreet._types import FloatArray
from discreet.learners.flow_ucb.belief import Belief
from discreet.learners.flow_ucb.evidence import COLUMNS, DOUBT, NOISE, SAMPLING, TOTAL, VISITS
from discreet.learners.flow_ucb.own_step_kernels import known
from discreet.learners.flow_ucb.plan import Plan
from discreet.learners.flow_ucb.plan_kernels import (
    gain_variance,
    mean_reward,
    move_variance,
)
from discreet.learners.flow_ucb.sizing import Report
from discreet.learners.flow_ucb.visit_noise import TIGHT


@kernel
def credit(expected: float, noise: float, ease: float) -> float:
    """Weight of a batch in one cell: near 1 where the counts dwarf the noise, near 0 below it."""
    if noise == 0.0:
        return 1.0
    return expected / (expected + noise / ease)


@kernel
def promised_sums(
    expected: float, noise: float, doubt: float, per_visit: float, ease: float, out: FloatArray
) -> None:
    """What a batch adds to the columns that moves and gains have in common."""
    w = credit(expected, noise, ease)
    out[VISITS] += w * expected
    out[SAMPLING] += w * w * expected
    out[NOISE] += w * w * noise
    out[DOUBT] += w * w * (doubt + per_visit * expected / 2.0)


@kernel
def promised_row(
    h: int, expected: float, moving: bool, report: Report, moves: FloatArray, gains: FloatArray
) -> None:
    """What a batch adds to the sums of a row of step h with ``expected`` visits.

    What a visit adds to its counters is in the sampling of transitions, which varies with the next
    value, and in the noise of rewards, which is there whatever the reward is.
    """
    doubt, more = report.noise * report.factors[h], report.per_visit
    if moving:
        before = moves[SAMPLING]
        promised_sums(expected, report.noise, doubt, more, report.ease, moves)
        moves[SAMPLING] = before + (moves[SAMPLING] - before) * (1.0 + more)
    promised_sums(expected, report.reward_noise, doubt, more, report.ease, gains)
    w = credit(expected, report.reward_noise, report.ease)
    gains[NOISE] += w * w * expected * report.reward_per_visit


@kernel
def _added(one: FloatArray, other: FloatArray, out: FloatArray) -> None:
    """The sum of two rows, without an array of its own: there are many."""
    for column in range(COLUMNS):
        out[column] = one[column] + other[column]


@kernel
def uncertainty_after(
    belief: Belief, report: Report, plan: Plan, width: FloatArray, centre: float
) -> float:
    """Expected bonus along the plan once the users of ``report`` have played it.

    A reward that is hidden (`own_step`) stays so until it is known: a look is as large as it needs
    to be, and does not come back.
    """
    layers, states, choices = belief.number.shape
    actions, occupancy, moments = plan.actions, plan.occupancy, plan.moments
    horizon = actions.shape[0]
    own = np.zeros((horizon, states, 2, COLUMNS))
    common = np.zeros((states, choices, 2, COLUMNS))
    for h in range(horizon):
        for s in range(states):
            expected = report.users * occupancy[h, s]
            if expected <= 0.0:
                continue
            moving = h < horizon - 1 or report.last_transitions
            promised_row(h, expected, moving, report, own[h, s, 0], own[h, s, 1])
            for column in range(COLUMNS):
                common[s, actions[h, s], 0, column] += own[h, s, 0, column]
                common[s, actions[h, s], 1, column] += own[h, s, 1, column]
    total = 0.0
    gain, move = np.empty(COLUMNS), np.empty(COLUMNS)
    for h in range(horizon):
        layer = h if layers > 1 else 0
        ceiling = float(horizon - h)
        for s in range(states):
            if occupancy[h, s] <= 0.0:
                continue
            a = actions[h, s]
            pooled = layers == 1 or belief.pooled_gains[layer, s, a]
            _added(belief.gains[layer, s, a], common[s, a, 1] if pooled else own[h, s, 1], gain)
            square = gain_variance(
                max(gain[VISITS], 1e-9),
                gain[SAMPLING],
                gain[NOISE],
                gain[DOUBT],
                moments[h, s, 2],
                centre,
            )
            if h < horizon - 1:
                pooled = layers == 1 or belief.pooled_moves[layer, s, a]
                _added(belief.moves[layer, s, a], common[s, a, 0] if pooled else own[h, s, 0], move)
                square += move_variance(
                    max(move[VISITS], 1e-9),
                    move[SAMPLING],
                    move[NOISE],
                    move[DOUBT],
                    moments[h, s, 0],
                    moments[h, s, 1],
                    ceiling,
                )
            hidden = belief.number[layer, s, a] >= 0 and belief.gains[layer, s, a, VISITS] == 0.0
            if hidden and not known(gain, max(centre, 1.0 - centre) ** 2, TIGHT):
                square = np.inf
            extra = ceiling if np.isinf(square) else width[layer, s, a] * np.sqrt(square)
            total += occupancy[h, s] * min(extra, ceiling)
    return total


@kernel
def add_expected(belief: Belief, report: Report, plan: Plan) -> None:
    """Add what the users of ``report`` would add by playing the plan, to the sums of a belief."""
    layers, states, _ = belief.number.shape
    horizon = plan.actions.shape[0]
    sums = np.zeros((2, COLUMNS))
    for h in range(horizon):
        for s in range(states):
            expected = report.users * plan.occupancy[h, s]
            if expected <= 0.0:
                continue
            a = plan.actions[h, s]
            sums[:] = 0.0
            moving = h < horizon - 1 or report.last_transitions
            promised_row(h, expected, moving, report, sums[0], sums[1])
            row = belief.gains[h if layers > 1 else 0, s, a]
            sums[1, TOTAL] = sums[1, VISITS] * mean_reward(row)
            for k in range(layers):
                here = layers == 1 or k == h
                for i in range(COLUMNS):  # slices would be compiled for seconds
                    if here or belief.pooled_moves[k, s, a]:
                        belief.moves[k, s, a, i] += sums[0, i]
                    if here or belief.pooled_gains[k, s, a]:
                        belief.gains[k, s, a, i] += sums[1, i]
