"""Compiled posterior sampling; equations in `psrl`, draws in the same order."""

import numpy as np

from discreet._jit import inlined
from discreet._types import Floats, Ints
from discreet.learners.streams.planner_kernels import backward_induction, break_ties, planner


@inlined
def _draw_reward(n: float, total: float, rng: np.random.Generator) -> float:
    """Normal-Gamma posterior of n rewards that sum to ``total``."""
    mean = total / n if n > 0.0 else 0.5
    lam = 1 + n
    mu = (0.5 + total) / lam
    b = 1 + n * mean * (1 - mean) / 2 + n * (mean - 0.5) ** 2 / (2 * lam)
    tau = rng.standard_gamma(1 + n / 2) / b
    drawn: float = mu + rng.standard_normal() / np.sqrt(lam * tau)
    return drawn


@inlined
def _draw_model(
    row: Floats,
    transitions: Floats,
    visits: Floats,
    rewards: Floats,
    model: Floats,
    rng: np.random.Generator,
) -> None:
    """``model[:, g]`` = p, then r, then nothing that every step ahead would add."""
    groups, states, choices = visits.shape
    for g in range(groups):
        for s in range(states):
            for a in range(choices):
                x = s * choices + a
                n = max(0.0, visits[g, s, a])
                share = n / (n + row[1]) if n > 0.0 else 0.0
                total = 0.0
                for t in range(states):
                    count = transitions[g, s, a, t]
                    count = count if count > 0.0 else 0.0
                    model[t, g, x] = rng.standard_gamma(row[0] + share * count)
                    total += model[t, g, x]
                for t in range(states):
                    model[t, g, x] /= total
                earned = share * min(n, max(0.0, rewards[g, s, a]))
                model[states, g, x] = _draw_reward(share * n, earned, rng)
                model[states + 1, g, x] = 0.0


@planner
def sampled_values(
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
    """The optimal policy of one drawn model, whose rewards are not bounded."""
    _draw_model(row, transitions, visits, rewards, model, rng)
    if backward_induction(memory, model, values, actions, np.inf):
        break_ties(memory, actions, rng)
