"""UCBVI for many runs in lockstep, on exact counts; equations in `ucbvi`.

The factors are those of `ucbvi_kernels`. Exact counts are valid as they are: no post-processing.
Neither clipping nor the correction term: `Ucbvi.lane_planner` refuses them.
"""

import numpy as np

from discreet._jit import inlined
from discreet._types import Floats
from discreet.learners.streams.lane_planner_kernels import (
    break_lane_ties,
    keep_better,
    lane_planner,
)
from discreet.privacy.streams.lane_users_kernels import LaneScratch

_VARIANCE, _ROOT, _LINEAR, _REMAINING = 0, 1, 2, 11  # of `ucbvi_kernels.Column`


@inlined
def _estimate(row: Floats, seen: Floats, model: Floats, pairs: int, states: int) -> None:
    """``model[pair]`` = p (S rows), r and the bonus that needs no values, factor of the rest."""
    runs = seen.shape[1]
    for i in range(pairs):
        inverse, optimism = model[i, states + 1], model[i, states]
        visits, earned = seen[pairs * states + i], seen[pairs * (states + 1) + i]
        for j in range(runs):
            known = visits[j] > 0.0
            inverse[j] = 1.0 / visits[j] if known else 0.0
            bonus = row[_ROOT] * np.sqrt(inverse[j]) + row[_LINEAR] * inverse[j]
            optimism[j] = earned[j] * inverse[j] + bonus if known else np.inf
        for t in range(states):
            moved, out = seen[i * states + t], model[i, t]
            for j in range(runs):
                out[j] = moved[j] * inverse[j]
        for j in range(runs):
            inverse[j] = row[_VARIANCE] * np.sqrt(inverse[j])


@inlined
def _fill_q(model: Floats, i: int, ahead: Floats, cap: float, out: Floats) -> None:
    """Q = min(cap, r + P·V + b) of one pair: never below zero, since nothing in it is."""
    states = ahead.shape[0]
    optimism, factor = model[i, states], model[i, states + 1]
    for j in range(out.size):
        mean, square = 0.0, 0.0
        for t in range(states):
            part = model[i, t, j] * ahead[t, j]
            mean += part
            square += part * ahead[t, j]
        spread = square - mean * mean
        spread = spread if spread > 0.0 else 0.0
        q = optimism[j] + mean + factor[j] * np.sqrt(spread)
        out[j] = q if q < cap else cap


@lane_planner
def optimistic_lanes(row: Floats, public: Floats, scratch: LaneScratch) -> None:
    """The next policy of every run: greedy for optimistic Q values."""
    model, q, values, _, state, actions = scratch
    states, choices, _ = q.shape
    horizon = actions.shape[0]
    _estimate(row, public, model, states * choices, states)
    values[horizon] = 0.0
    for h in range(horizon - 1, -1, -1):
        cap = float(horizon - h) if row[_REMAINING] == 1.0 else float(horizon)
        for s in range(states):
            pick, value = actions[h, s], values[h, s]
            close = 0
            for a in range(choices):
                _fill_q(model, s * choices + a, values[h + 1], cap, q[s, a])
                close += keep_better(a, q[s, a], value, pick)
            if close > 0:
                break_lane_ties(q, s, pick, state)
