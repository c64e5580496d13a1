"""The gate on stationarity: steps are pooled where released counts do not contradict it.

Post-processing of releases: it costs no privacy. Every component of a row (s, a), the share of one
next state or the mean reward, has one value x_h per step with the information I_h = N²/V, where
V = F + M·max(p(1 - p), 0.01) with the pooled share p (rewards: F is G + D/4), of the steps whose
visits are certain (N > sqrt D). If the row is stationary, the sum of I_h·(x_h - mean)² over steps
and components is a chi-square; so is, for each step, its difference from all others together, which
finds a single odd step. Wilson and Hilferty make both a normal z; the larger is the row's.

Transitions of a row are pooled if z of all rows together is below 2g and its own below 4g, with
g = 1 + 0.15·ln+(t/1e4): small biases that many users make visible are tolerated. Rewards are pooled
if, besides, their own z are below the same limits. The gate cannot see a difference at a step where
hardly anybody was: that is what `own_step` is for.
"""

import math

import numpy as np

from discreet.learners.flow_ucb.belief import Shared
from discreet.learners.flow_ucb.evidence import TOTAL, Evidence

GLOBAL_LIMIT = 2.0
ROW_LIMIT = 4.0
TOLERANCE = 0.15


def nothing_shared(evidence: Evidence) -> Shared:
    """Every step for itself."""
    rows = evidence.number.shape[1:]
    return Shared(np.zeros(rows, np.bool_), np.zeros(rows, np.bool_))


def shared_rows(evidence: Evidence, users: int, centre: float) -> Shared:
    """The rows that steps may share, after ``users`` users."""
    from discreet.learners.flow_ucb import gate_kernels

    moves, gains = (np.empty(evidence.number.shape[1:]) for _ in range(2))
    all_moves = gate_kernels.move_scores(
        evidence.number, evidence.transitions, evidence.moves, moves
    )
    doubted = max(centre, 1 - centre) ** 2
    all_gains = gate_kernels.gain_scores(evidence.gains, doubted, TOTAL, gains)
    tolerance = 1 + TOLERANCE * max(0.0, math.log(max(users, 1) / 1e4))
    together = all_moves < GLOBAL_LIMIT * tolerance
    rewarded = together and all_gains < GLOBAL_LIMIT * tolerance
    limit = ROW_LIMIT * tolerance
    return Shared(np.asarray(together & (moves < limit)), np.asarray(rewarded & (gains < limit)))
