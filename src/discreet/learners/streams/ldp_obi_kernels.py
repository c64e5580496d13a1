"""Compiled LDP-OBI; equations in `ldp_obi`."""

import numpy as np

from discreet._jit import inlined
from discreet._types import Floats, Ints
from discreet.learners.streams.planner_kernels import backward_induction, break_ties, planner

_SHIFT_R, _SHIFT_P, _ROOT_R, _LINEAR_R, _ROOT_P, _LINEAR_P = range(6)


@inlined
def _estimate(
    row: Floats, transitions: Floats, visits: Floats, rewards: Floats, model: Floats
) -> None:
    """``model[:, g]`` = p, then r + beta_r (infinite: unknown), then beta_p."""
    groups, states, choices = visits.shape
    root_r, linear_r, root_p, linear_p = row[_ROOT_R], row[_LINEAR_R], row[_ROOT_P], row[_LINEAR_P]
    for g in range(groups):
        for s in range(states):
            for a in range(choices):
                x = s * choices + a
                for_p = 0.0
                for t in range(states):
                    for_p += transitions[g, s, a, t]
                    model[t, g, x] = transitions[g, s, a, t]
                model[states, g, x] = rewards[g, s, a]
                model[states + 2, g, x] = visits[g, s, a] + row[_SHIFT_R]
                model[states + 3, g, x] = for_p + row[_SHIFT_P]
    for g in range(groups):
        for x in range(states * choices):  # all pairs alike: it vectorises
            for_r, for_p = model[states + 2, g, x], model[states + 3, g, x]
            known = min(for_r, for_p) > 0.0
            beta_r = root_r / np.sqrt(for_r) + linear_r / for_r
            beta_p = root_p / np.sqrt(for_p) + linear_p / for_p
            model[states, g, x] = model[states, g, x] / for_r + beta_r if known else np.inf
            model[states + 1, g, x] = beta_p if known else 0.0
            model[states + 2, g, x] = 1.0 if known else 0.0
    for t in range(states):
        for g in range(groups):
            for x in range(states * choices):
                share = model[t, g, x] / model[states + 3, g, x]
                model[t, g, x] = share if model[states + 2, g, x] > 0.0 else 0.0


@planner
def signed_values(
    row: Floats,
    transitions: Floats,
    visits: Floats,
    rewards: Floats,
    memory: Floats,
    model: Floats,
    values: Floats,
    actions: Ints,
    probabilities: Floats,
    rng: np.random.Generator,
) -> None:
    """Optimistic backward induction with signed estimates; no step is worth more than one."""
    _estimate(row, transitions, visits, rewards, model)
    if backward_induction(memory, model, values, actions, 1.0):
        break_ties(memory, actions, rng)
