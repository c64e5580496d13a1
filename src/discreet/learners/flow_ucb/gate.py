"""The gate on stationarity: steps are pooled where released counts do not contradict it.

Post-processing of releases: it costs no privacy. Every component of a row (s, a), the share of one
next state or the mean reward, has one value x_h per step with the information I_h = N²/V, where
V = F + M·max(p(1 - p), 0.01) with the pooled share p, of the steps whose visits are certain
(N > sqrt D). Of rewards, F is G + D·max(c, 1 - c)² (`Planner.doubted`): G + D/4 where they are
centred, and G + D where they are not. If the row is stationary, the sum of I_h·(x_h - mean)² over
steps and components is a chi-square; so is, for each step, its difference from all others together,
which finds a single odd step. Wilson and Hilferty make both a normal z; the larger is the row's.

Transitions of a row are pooled if z of all rows together is below 2g and its own below 4g, with
g = 1 + 0.15·ln+(t/1e4): small biases that many users make visible are tolerated. Rows above 4g are
odd and stand alone; they say nothing about the others, so that they are not counted among all rows
together. More than a tenth of the rows, or two of the first few, are no exception any more: then
nothing is pooled. In a problem of fewer than ten rows, none may be odd.
Rewards are pooled if, besides, their own z are below the same limits. A mean reward is at least
zero and at most one. Of a row that few visit the projection takes visits away, up to a standard
deviation in every batch (`settings.hiding`), and what the others were paid is left to those who
remain: a mean outside of [0, 1] is taken nearer to it, by as much as that explains. (On a grid of
48 states means of 1.05 to 2 made a stationary problem look odd, for good.)

The gate cannot see a difference at a step where hardly anybody was: that is what `own_step` is for.
"""

import math

import numpy as np

from discreet._types import FloatArray
from discreet.learners.flow_ucb.belief import Pooled
from discreet.learners.flow_ucb.evidence import BIAS, Evidence

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
    from discreet.learners.flow_ucb import gate_kernels

    moves, gains = (np.empty((*evidence.number.shape[1:], 3)) for _ in range(2))
    gate_kernels.move_scores(evidence.number, evidence.transitions, evidence.moves, moves)
    gate_kernels.gain_scores(evidence.gains, _lost(evidence, doubted, hiding), doubted, gains)
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
    from discreet.learners.flow_ucb import gate_kernels

    compared, odd = scores[..., 1] > 0, scores[..., 2] >= limit
    few = ODD_ROWS * odd.size < 1
    if odd.sum() > (0.0 if few else max(1.0, ODD_ROWS * compared.sum())):
        return math.inf
    square, freedom, _ = scores[compared & ~odd].sum(axis=0)
    return float(gate_kernels.normal(square, freedom)) if freedom > 0 else -math.inf
