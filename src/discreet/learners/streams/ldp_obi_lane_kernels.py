"""LDP-OBI for many runs in lockstep; equations in `ldp_obi`."""

import numpy as np

from discreet._jit import inlined
from discreet._types import Floats
from discreet.learners.streams.lane_planner_kernels import greedy_policies, lane_planner
from discreet.privacy.streams.lane_users_kernels import LaneScratch

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


@lane_planner
def signed_lanes(row: Floats, public: Floats, scratch: LaneScratch) -> None:
    """The next policy of every run: optimism on signed estimates, no step worth more than one."""
    model, q, values, _, state, actions = scratch
    states, choices, _ = q.shape
    pairs = states * choices
    if _estimate(row, public, model, pairs, states):
        _forget_unknown(model, pairs, states)
    greedy_policies(model, q, values, actions, 1.0, state)
