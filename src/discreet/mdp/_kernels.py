"""Compiled dynamic programming over sparse transition rows (see `tabular.SparseRows`).

Every kernel does O(entries) work per step, at most O(H S^2 A) in all.
"""

import numpy as np
from numpy.typing import NDArray

from discreet._jit import kernel
from discreet.mdp.tabular import SparseRows

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@kernel
def _expected(rows: SparseRows, row: int, values: Floats) -> float:
    """The mean of ``values`` at the next state."""
    total = 0.0
    for i in range(rows.pointers[row], rows.pointers[row + 1]):
        total += rows.entries[i] * values[rows.columns[i]]
    return total


@kernel
def maximise(rows: SparseRows, rewards: Floats) -> tuple[Floats, Ints]:
    """Value iteration: optimal values ``[H + 1, S]``, the first maximising actions ``[H, S]``."""
    horizon, states, actions = rewards.shape
    values = np.zeros((horizon + 1, states))
    best = np.zeros((horizon, states), np.int64)
    for h in range(horizon - 1, -1, -1):
        for s in range(states):
            top = -np.inf
            for a in range(actions):
                row = h * rows.stride + s * actions + a
                q = rewards[h, s, a] + _expected(rows, row, values[h + 1])
                if q > top:
                    top = q
                    best[h, s] = a
            values[h, s] = top
    return values, best


@kernel
def evaluate_actions(rows: SparseRows, rewards: Floats, chosen: Ints) -> Floats:
    """Values ``[H + 1, S]`` of a deterministic policy ``chosen[H, S]``."""
    horizon, states, actions = rewards.shape
    values = np.zeros((horizon + 1, states))
    for h in range(horizon - 1, -1, -1):
        for s in range(states):
            a = chosen[h, s]
            row = h * rows.stride + s * actions + a
            values[h, s] = rewards[h, s, a] + _expected(rows, row, values[h + 1])
    return values


@kernel
def evaluate_probabilities(rows: SparseRows, rewards: Floats, chosen: Floats) -> Floats:
    """Values ``[H + 1, S]`` of a stochastic policy ``chosen[H, S, A]``."""
    horizon, states, actions = rewards.shape
    values = np.zeros((horizon + 1, states))
    for h in range(horizon - 1, -1, -1):
        for s in range(states):
            for a in range(actions):
                weight = chosen[h, s, a]
                if weight > 0:
                    row = h * rows.stride + s * actions + a
                    q = rewards[h, s, a] + _expected(rows, row, values[h + 1])
                    values[h, s] += weight * q
    return values


@kernel
def occupancies(rows: SparseRows, initial: Floats, chosen: Floats) -> Floats:
    """Probability ``[H, S, A]`` that step h of an episode is at (s, a)."""
    horizon, states, actions = chosen.shape
    occupied = np.zeros((horizon, states, actions))
    here = initial.copy()
    for h in range(horizon):
        ahead = np.zeros(states)
        for s in range(states):
            for a in range(actions):
                mass = here[s] * chosen[h, s, a]
                if mass > 0:
                    occupied[h, s, a] = mass
                    row = h * rows.stride + s * actions + a
                    for i in range(rows.pointers[row], rows.pointers[row + 1]):
                        ahead[rows.columns[i]] += mass * rows.entries[i]
        here = ahead
    return occupied
