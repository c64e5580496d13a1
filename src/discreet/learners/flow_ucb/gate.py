"""Compiled chi-squares over steps (equations in `gate`)."""

import math

import numpy as np

from discreet._jit import kernel
from discreet._types import FloatArray, IntArray
from discreet.learners.flow_ucb.belief import Pooled
from discreet.learners.flow_ucb.evidence import (
    BIAS,
    COLUMNS,
    DOUBT,
    NOISE,
    SAMPLING,
    TOTAL,
    VISITS,
    Evidence,
)

LEAST_SPREAD = 0.01
"""Of p(1 - p), so that what never happened is not taken for certain. Inherited."""


@kernel
def normal(square: float, freedom: float) -> float:
    """The standard normal that is as unlikely as this chi-square (Wilson and Hilferty, 1931)."""
    part = 2.0 / (9.0 * freedom)
    return float((np.cbrt(square / freedom) - (1.0 - part)) / np.sqrt(part))


@kernel
def component(counts: FloatArray, sums: FloatArray, steps: int, alone: FloatArray) -> float:
    """Chi-square of one component over ``steps`` steps; adds each step against the others."""
    visits, sampling, noise = sums[VISITS], sums[SAMPLING], sums[NOISE]
    total, all_visits = 0.0, 0.0
    for k in range(steps):
        total += counts[k]
        all_visits += visits[k]
    share = min(max(total / all_visits, 0.0), 1.0)
    spread = max(share * (1.0 - share), LEAST_SPREAD)
    information, weighted = 0.0, 0.0
    for k in range(steps):
        each = visits[k] ** 2 / (noise[k] + sampling[k] * spread)
        information += each
        weighted += each * counts[k] / visits[k]
    mean, square = weighted / information, 0.0
    for k in range(steps):
        each = visits[k] ** 2 / (noise[k] + sampling[k] * spread)
        value = counts[k] / visits[k]
        square += each * (value - mean) ** 2
        others = information - each
        if others > 1e-9 * each:
            mean_others = (weighted - each * value) / others
            alone[k] += each * others / information * (value - mean_others) ** 2
    return square


@kernel
def row_chi_square(
    counts: FloatArray, sums: FloatArray, steps: int, alone: FloatArray
) -> tuple[float, float, float]:
    """Of ``counts[component, step]``: the chi-square, its degrees of freedom and the worst z.

    ``sums[column, step]`` has the columns of the evidence.
    """
    if steps < 2:
        return 0.0, 0.0, -np.inf
    components = counts.shape[0]
    alone[:steps] = 0.0
    square = 0.0
    for j in range(components):
        square += component(counts[j], sums, steps, alone)
    freedom = float(components * (steps - 1))
    worst = normal(square, freedom)
    for k in range(steps):
        worst = max(worst, normal(alone[k], float(components)))
    return square, freedom, worst


@kernel
def row_score(counts: FloatArray, sums: FloatArray, steps: int, out: FloatArray) -> None:
    """Chi-square, degrees of freedom and worst z of a row with ``sums[column, step]``."""
    out[0], out[1], out[2] = row_chi_square(counts, sums, steps, np.empty(counts.shape[1]))


@kernel
def _put(row: FloatArray, step: int, out: FloatArray) -> None:
    """``out[:, step] = row``, without the comparison of shapes that is compiled for seconds."""
    for i in range(row.size):
        out[i, step] = row[i]


@kernel
def move_scores(
    number: IntArray, transitions: FloatArray, moves: FloatArray, out: FloatArray
) -> None:
    """``out[s, a]``: chi-square, degrees of freedom and worst z of transitions."""
    layers, states, actions = number.shape
    counts, sums = np.empty((states, layers)), np.empty((COLUMNS, layers))
    for s, a in np.ndindex(states, actions):
        steps = 0
        for h in range(layers):
            row = moves[h, s, a]
            if number[h, s, a] >= 0 and row[VISITS] > np.sqrt(row[DOUBT]):
                _put(transitions[number[h, s, a]], steps, counts)
                _put(row, steps, sums)
                steps += 1
        row_score(counts, sums, steps, out[s, a])


@kernel
def possible_total(total: float, visits: float, lost: float) -> float:
    """A sum of rewards, nearer to what its visits could have paid by up to ``lost``."""
    if total < 0.0:
        return min(total + lost, 0.0)
    if total > visits:
        return max(total - lost, visits)
    return total


@kernel
def gain_scores(gains: FloatArray, lost: FloatArray, doubted: float, out: FloatArray) -> None:
    """``out[s, a]``: chi-square, degrees of freedom and worst z of rewards.

    Args:
        gains: of every step.
        lost: ``[H, S, A]``, by how much sums may be off because visits are missing behind them.
        doubted: how much of the variance of visits is in that of rewards.
        out: to be filled.
    """
    layers, states, actions = gains.shape[:3]
    counts, sums = np.empty((1, layers)), np.empty((COLUMNS, layers))
    for s, a in np.ndindex(states, actions):
        steps = 0
        for h in range(layers):
            row = gains[h, s, a]
            if row[VISITS] > np.sqrt(row[DOUBT]):
                counts[0, steps] = possible_total(row[TOTAL], row[VISITS], lost[h, s, a])
                _put(row, steps, sums)
                sums[NOISE, steps] += doubted * row[DOUBT]
                steps += 1
        row_score(counts, sums, steps, out[s, a])


# The gate on stationarity: steps are pooled where released counts do not contradict it.
#
# Post-processing of releases: it costs no privacy. Every component of a row (s, a), the share of
# one
# next state or the mean reward, has one value x_h per step with the information I_h = N²/V, where
# V = F + M·max(p(1 - p), 0.01) with the pooled share p, of the steps whose visits are certain
# (N > sqrt D). Of rewards, F is G + D·max(c, 1 - c)² (`Planner.doubted`): G + D/4 where they are
# centred, and G + D where they are not. If the row is stationary, the sum of I_h·(x_h - mean)² over
# steps and components is a chi-square; so is, for each step, its difference from all others
# together,
# which finds a single odd step. Wilson and Hilferty make both a normal z; the larger is the row's.
#
# Transitions of a row are pooled if z of all rows together is below 2g and its own below 4g, with
# g = 1 + 0.15·ln+(t/1e4): small biases that many users make visible are tolerated. Rows above 4g
# are odd and stand alone; they say nothing about the others, so that they are not counted among all
# rows
# together. More than a tenth of the rows, or two of the first few, are no exception any more: then
# nothing is pooled. In a problem of fewer than ten rows, none may be odd.
# Rewards are pooled if, besides, their own z are below the same limits. A mean reward is at least
# zero and at most one. Of a row that few visit the projection takes visits away, up to a standard
# deviation in every batch (`settings.hiding`), and what the others were paid is left to those who
# remain: a mean outside of [0, 1] is taken nearer to it, by as much as that explains. (On a grid of
# 48 states means of 1.05 to 2 made a stationary problem look odd, for good.)
#
# The gate cannot see a difference at a step where hardly anybody was: that is what `own_step` is
# for.


GLOBAL_LIMIT = 2.0
"""Of z of all rows that are not odd, in units of g. Inherited."""
ROW_LIMIT = 4.0
"""Of z of one row, in units of g: larger, since there are many rows. Inherited."""
TOLERANCE = 0.15
"""By how much g grows as users grow by a factor e, from `TOLERATED_FROM` on. Inherited."""
TOLERATED_FROM = 1e4
"""Users up to whom the limits are those of chance. Inherited."""
ODD_ROWS = 0.1
"""Share of rows that may be odd in a problem that is stationary else. A tenth and a quarter were
compared; the figures were not kept."""


def nothing_pooled(evidence: Evidence) -> Pooled:
    rows = evidence.number.shape[1:]
    return Pooled(np.zeros(rows, np.bool_), np.zeros(rows, np.bool_))


def everything_pooled(evidence: Evidence) -> Pooled:
    """All steps alike: declared, not found."""
    rows = evidence.number.shape[1:]
    return Pooled(np.ones(rows, np.bool_), np.ones(rows, np.bool_))


def pooled_rows(evidence: Evidence, users: int, doubted: float, hiding: float) -> Pooled:
    """The rows that may be pooled.

    Args:
        evidence: of every step.
        users: who told it.
        doubted: `Planner.doubted`.
        hiding: standard deviations of visits that the projection may have taken in every batch.
    """
    moves, gains = (np.empty((*evidence.number.shape[1:], 3)) for _ in range(2))
    move_scores(evidence.number, evidence.transitions, evidence.moves, moves)
    gain_scores(evidence.gains, _lost(evidence, doubted, hiding), doubted, gains)
    tolerance = 1 + TOLERANCE * max(0.0, math.log(max(users, 1) / TOLERATED_FROM))
    limit = ROW_LIMIT * tolerance
    moved = _all_rows(moves, limit) < GLOBAL_LIMIT * tolerance
    rewarded = moved and _all_rows(gains, limit) < GLOBAL_LIMIT * tolerance
    return Pooled(moved & (moves[..., 2] < limit), rewarded & (gains[..., 2] < limit))


def _lost(evidence: Evidence, doubted: float, hiding: float) -> FloatArray:
    """``[H, S, A]``: what sums of rewards may be off by, since visits are missing behind them.

    At the last step, which releases no transitions, as much as one step before.
    """
    visits: FloatArray = hiding * evidence.moves[..., BIAS]
    visits[-1] = visits[max(len(visits) - 2, 0)]
    return math.sqrt(doubted) * visits


def _all_rows(scores: FloatArray, limit: float) -> float:
    """The z of all rows that are not odd; infinite if too many are."""
    compared, odd = scores[..., 1] > 0, scores[..., 2] >= limit
    few = ODD_ROWS * odd.size < 1
    if odd.sum() > (0.0 if few else max(1.0, ODD_ROWS * compared.sum())):
        return math.inf
    square, freedom, _ = scores[compared & ~odd].sum(axis=0)
    return float(normal(square, freedom)) if freedom > 0 else -math.inf
