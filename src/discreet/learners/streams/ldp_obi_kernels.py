"""Compiled LDP-OBI; equations in `ldp_obi`."""

import numpy as np

from discreet._jit import inlined, kernel
from discreet._types import Floats, Ints
from discreet.learners.streams.planner_kernels import backward_induction, break_ties, planner

_SHIFT_R, _SHIFT_P, _ROOT_R, _LINEAR_R, _ROOT_P, _LINEAR_P = range(6)


@kernel
def bonus_rows(
    counts: Ints,
    bounds: tuple[Ints, Floats, Floats],
    states: int,
    factor: float,
    scales: tuple[float, float, float],
) -> Floats:
    """Coefficients before each release: see `LdpObi.coefficients`.

    Args:
        counts: of users released before; quick if in order.
        bounds: times in order, none before the last of ``counts``; c and c3 up to each.
        states: S.
        factor: what k³ is multiplied with in the logarithm.
        scales: alpha, and the multipliers of bonus and privacy.
    """
    grid, one, many = bounds
    alpha, bonus, privacy = scales
    rows = np.empty((counts.size, 6))
    at = 0
    for i in range(counts.size):
        if i == 0 or counts[i] < counts[i - 1]:
            at = np.searchsorted(grid, counts[i])
        while grid[at] < counts[i]:  # rounded up: a bound at a later time is one now
            at += 1
        c, c3, k = one[at], many[at], counts[i] + 1.0
        log = np.log(factor * (k * k * k))
        rows[i, _SHIFT_R] = alpha * c
        rows[i, _SHIFT_P] = alpha * c3
        rows[i, _ROOT_R] = bonus * np.sqrt(2 * log)
        rows[i, _LINEAR_R] = alpha * c + privacy * (c + c)
        rows[i, _ROOT_P] = bonus * np.sqrt(14 * states * log)
        rows[i, _LINEAR_P] = alpha * c3 + privacy * (states * c + c3)
    return rows


@inlined
def _estimate(
    row: Floats, transitions: Floats, visits: Floats, rewards: Floats, model: Floats
) -> None:
    """``model[:, g]`` = p, then r + beta_r (infinite: unknown), then beta_p.

    In one pass: for the few pairs of local privacy, several that vectorise take longer.
    """
    groups, states, choices = visits.shape
    shift_r, root_r, linear_r = row[_SHIFT_R], row[_ROOT_R], row[_LINEAR_R]
    shift_p, root_p, linear_p = row[_SHIFT_P], row[_ROOT_P], row[_LINEAR_P]
    for g in range(groups):
        for s in range(states):
            for a in range(choices):
                x = s * choices + a
                for_r, for_p = visits[g, s, a] + shift_r, shift_p
                for t in range(states):
                    for_p += transitions[g, s, a, t]
                known = min(for_r, for_p) > 0.0
                both = 1.0 / (for_r * for_p)  # one division for two reciprocals
                of_r, of_p = both * for_p, both * for_r
                reward = rewards[g, s, a] * of_r + (root_r * np.sqrt(of_r) + linear_r * of_r)
                beta_p = root_p * np.sqrt(of_p) + linear_p * of_p
                model[states, g, x] = reward if known else np.inf
                model[states + 1, g, x] = beta_p if known else 0.0
                share = of_p if known else 0.0
                for t in range(states):
                    model[t, g, x] = transitions[g, s, a, t] * share


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
