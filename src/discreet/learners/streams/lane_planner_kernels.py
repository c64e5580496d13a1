"""What planners of many runs in lockstep share: their signature, backward induction, ties.

Every inner loop goes over the runs, so it vectorises. Users and their release are in
`privacy.streams.lane_users_kernels`. Arrays end with the axis of runs.
"""

from collections.abc import Callable

import numba

from discreet._jit import BORROWED, inlined
from discreet._types import Floats, Ints, WordArray
from discreet.learners.streams.planner_kernels import TIE
from discreet.privacy.streams.lane_kernels import draw_uniform
from discreet.privacy.streams.lane_users_kernels import LANE_PLANNER


def lane_planner(function: Callable[..., None]) -> Callable[..., None]:
    """Compile a planner: from the released counters of all runs to their next policies.

    Its arguments, all changed in place where they are outputs or scratch:

    - ``row``: the learner's coefficients for this release, the same for all runs;
    - ``public[cells, runs]``: the cumulative private counters;
    - ``scratch``: where it computes, its generators (generator w of run i at w·runs + i; the first
      of each run breaks its ties), and the next policies. A tuple, taken apart once for all runs.
    """
    made = numba.njit(LANE_PLANNER, cache=True, fastmath=False, error_model="numpy", **BORROWED)
    compiled: Callable[..., None] = made(function)
    return compiled


@inlined
def break_lane_ties(q: Floats, s: int, pick: Ints, state: WordArray) -> None:
    """A random one of the best actions where several are, from the generator of that run."""
    choices, runs = q.shape[1:]
    for j in range(runs):
        best = q[s, pick[j], j]
        ties = 0
        for a in range(choices):
            ties += int(q[s, a, j] >= best - TIE)
        if ties > 1:
            rank = int(ties * draw_uniform(state, j))
            for a in range(choices):
                if q[s, a, j] >= best - TIE:
                    if rank == 0:
                        pick[j] = a
                    rank -= 1


@inlined
def keep_better(a: int, out: Floats, value: Floats, pick: Ints) -> int:
    """Of every run: the better of the best action so far and the next one; how many are close?"""
    close = 0
    for j in range(out.size):
        # Not "at most TIE": infinity minus infinity must count as a tie.
        close += int(a > 0 and not abs(out[j] - value[j]) > TIE)
        better = a == 0 or out[j] > value[j]
        pick[j] = a if better else pick[j]
        value[j] = out[j] if better else value[j]
    return close


@inlined
def greedy_policies(
    model: Floats, q: Floats, values: Floats, actions: Ints, cap: float, state: WordArray
) -> None:
    """Greedy for Q = model·V ahead.

    ``model[pair]`` holds p (S rows), then r, then what every step ahead adds; values are at most
    ``cap`` times the number of steps ahead.
    """
    states, choices, runs = q.shape
    horizon = actions.shape[0]
    values[horizon] = 0.0
    for h in range(horizon - 1, -1, -1):
        ahead = float(horizon - h)
        for s in range(states):
            pick, value = actions[h, s], values[h, s]
            close = 0
            for a in range(choices):
                i = s * choices + a
                out, reward, more = q[s, a], model[i, states], model[i, states + 1]
                p, v = model[i, 0], values[h + 1, 0]
                for j in range(runs):
                    out[j] = reward[j] + ahead * more[j] + p[j] * v[j]
                for t in range(1, states):
                    p, v = model[i, t], values[h + 1, t]
                    for j in range(runs):
                        out[j] += p[j] * v[j]
                close += keep_better(a, out, value, pick)
            if close > 0:
                break_lane_ties(q, s, pick, state)
            most = cap * ahead
            for j in range(runs):
                value[j] = value[j] if value[j] < most else most
