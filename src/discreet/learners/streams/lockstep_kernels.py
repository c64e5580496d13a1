"""LDP-OBI for many runs in lockstep: every inner loop goes over the runs, so it vectorises.

Equations in `ldp_obi`; users and their release in `privacy.streams.lane_users_kernels`. Arrays end
with the axis of runs.
"""

import numba
import numpy as np

from discreet._jit import inlined
from discreet._types import Floats, Ints, WordArray
from discreet.learners.streams.planner_kernels import TIE
from discreet.privacy.streams.lane_kernels import draw_uniform
from discreet.privacy.streams.lane_users_kernels import LANE_PLANNER

_SHIFT_R, _SHIFT_P, _ROOT_R, _LINEAR_R, _ROOT_P, _LINEAR_P = range(6)


@inlined
def _estimate(row: Floats, seen: Floats, model: Floats, pairs: int, states: int) -> bool:
    """``model[pair]`` = p (S rows), r + beta_r (infinite: unknown), beta_p; is any unknown?"""
    runs = seen.shape[1]
    least = np.inf
    for i in range(pairs):
        for_p, optimism = model[i, states + 1], model[i, states]
        visits, earned = seen[pairs * states + i], seen[pairs * (states + 1) + i]
        for_p[:] = row[_SHIFT_P]
        for t in range(states):
            moved = seen[i * states + t]
            for j in range(runs):
                for_p[j] += moved[j]
        for j in range(runs):
            for_r = visits[j] + row[_SHIFT_R]
            both = 1.0 / (for_r * for_p[j])  # one division for two reciprocals
            inverse = both * for_p[j]
            smaller = for_r if for_r < for_p[j] else for_p[j]
            beta_r = row[_ROOT_R] * np.sqrt(inverse) + row[_LINEAR_R] * inverse
            optimism[j] = earned[j] * inverse + beta_r if smaller > 0.0 else np.inf
            least = smaller if smaller < least else least
            for_p[j] = both * for_r
        for t in range(states):
            moved, out = seen[i * states + t], model[i, t]
            for j in range(runs):
                out[j] = moved[j] * for_p[j]
        for j in range(runs):
            for_p[j] = row[_ROOT_P] * np.sqrt(for_p[j]) + row[_LINEAR_P] * for_p[j]
    return least <= 0.0


@inlined
def _forget_unknown(model: Floats, pairs: int, states: int) -> None:
    """Where nothing is known, no transition and no bonus may turn infinity into not-a-number."""
    for i in range(pairs):
        for j in range(model.shape[2]):
            if model[i, states, j] == np.inf:
                for t in range(states):
                    model[i, t, j] = 0.0
                model[i, states + 1, j] = 0.0


@inlined
def _break_ties(q: Floats, s: int, pick: Ints, tie_state: WordArray) -> None:
    """A random one of the best actions where several are, from the generator of that run."""
    choices, runs = q.shape[1:]
    for j in range(runs):
        best = q[s, pick[j], j]
        ties = 0
        for a in range(choices):
            ties += int(q[s, a, j] >= best - TIE)
        if ties > 1:
            rank = int(ties * draw_uniform(tie_state, j))
            for a in range(choices):
                if q[s, a, j] >= best - TIE:
                    if rank == 0:
                        pick[j] = a
                    rank -= 1


@inlined
def _plan(
    model: Floats, q: Floats, values: Floats, actions: Ints, horizon: int, tie_state: WordArray
) -> None:
    """Equation 5 for all runs; ``actions[h, s, run]``."""
    states, choices, runs = q.shape
    values[horizon] = 0.0
    for h in range(horizon - 1, -1, -1):
        ahead = float(horizon - h)
        for s in range(states):
            pick, value = actions[h, s], values[h, s]
            close = 0
            for a in range(choices):
                i = s * choices + a
                out, optimism, beta_p = q[s, a], model[i, states], model[i, states + 1]
                p, v = model[i, 0], values[h + 1, 0]
                for j in range(runs):
                    out[j] = optimism[j] + ahead * beta_p[j] + p[j] * v[j]
                for t in range(1, states):
                    p, v = model[i, t], values[h + 1, t]
                    for j in range(runs):
                        out[j] += p[j] * v[j]
                if a == 0:
                    for j in range(runs):
                        value[j] = out[j]
                        pick[j] = 0
                    continue
                for j in range(runs):
                    # Not "at most TIE": infinity minus infinity must count as a tie.
                    close += int(not abs(out[j] - value[j]) > TIE)
                    better = out[j] > value[j]
                    pick[j] = a if better else pick[j]
                    value[j] = out[j] if better else value[j]
            if close > 0:
                _break_ties(q, s, pick, tie_state)
            for j in range(runs):
                value[j] = value[j] if value[j] < ahead else ahead


@numba.njit(LANE_PLANNER, cache=True, fastmath=False, error_model="numpy")
def plan_lanes(
    row: Floats,
    public: Floats,
    model: Floats,
    q: Floats,
    values: Floats,
    ties: WordArray,
    actions: Ints,
) -> None:
    """The next policy of every run from its public counters ``[cells, runs]``."""
    states, choices, _ = q.shape
    pairs = states * choices
    if _estimate(row, public, model, pairs, states):
        _forget_unknown(model, pairs, states)
    _plan(model, q, values, actions, actions.shape[0], ties)
