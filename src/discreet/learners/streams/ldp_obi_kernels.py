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
    """``model[g,s,a]`` = p, then r + beta_r (infinite: unknown), then beta_p."""
    groups, states, choices = visits.shape
    for g in range(groups):
        for s in range(states):
            for a in range(choices):
                for_r = visits[g, s, a] + row[_SHIFT_R]
                for_p = 0.0
                for t in range(states):
                    for_p += transitions[g, s, a, t]
                for_p += row[_SHIFT_P]
                if for_r <= 0.0 or for_p <= 0.0:
                    model[g, s, a, :states] = 0.0
                    model[g, s, a, states] = np.inf
                    continue
                for t in range(states):
                    model[g, s, a, t] = transitions[g, s, a, t] / for_p
                beta_r = row[_ROOT_R] / np.sqrt(for_r) + row[_LINEAR_R] / for_r
                model[g, s, a, states] = rewards[g, s, a] / for_r + beta_r
                model[g, s, a, states + 1] = row[_ROOT_P] / np.sqrt(for_p) + row[_LINEAR_P] / for_p


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
