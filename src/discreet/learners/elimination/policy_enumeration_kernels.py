"""Compiled passes over an explicit list of deterministic policies.

A policy is a number in base A: one digit per decision point (h, x), the earliest step first. In
a sorted list neighbours share long prefixes, so each pass recomputes only the steps that changed.
"""

import numpy as np

from discreet._jit import kernel
from discreet._types import FloatArray, IntArray


@kernel
def _decode(index: int, actions: int, points: IntArray, policy: IntArray) -> int:
    """Write one policy over the previous one; returns the first step that changed (H if none)."""
    changed: int = policy.shape[0]
    for k in range(points.shape[0] - 1, -1, -1):
        h, x = points[k, 0], points[k, 1]
        digit = index % actions
        index //= actions
        if policy[h, x] != digit:
            policy[h, x] = digit
            changed = h
    return changed


@kernel
def _advance(transitions: FloatArray, policy: IntArray, h: int, mass: FloatArray) -> None:
    """State probabilities of step h + 1 from those of step h."""
    X = policy.shape[1]
    mass[h + 1] = 0.0
    for x in range(X):
        if mass[h, x] > 0.0:
            a = policy[h, x]
            for y in range(X):
                mass[h + 1, y] += mass[h, x] * transitions[h, x, a, y]


@kernel
def policy_values(
    indices: IntArray,
    points: IntArray,
    transitions: FloatArray,
    initial: FloatArray,
    rewards: FloatArray,
) -> FloatArray:
    """Value of every listed policy (sorted indices) for one reward."""
    H, X, A, _ = transitions.shape
    policy = np.zeros((H, X), np.int64)
    mass = np.zeros((H + 1, X))
    for x in range(X):
        mass[0, x] = initial[x]
    earned = np.zeros(H + 1)
    values = np.zeros(indices.shape[0])
    for j in range(indices.shape[0]):
        changed = _decode(indices[j], A, points, policy)
        for h in range(0 if j == 0 else changed, H):
            total = earned[h]
            for x in range(X):
                total += mass[h, x] * rewards[h, x, policy[h, x]]
            earned[h + 1] = total
            if h < H - 1:
                _advance(transitions, policy, h, mass)
        values[j] = earned[H]
    return values


@kernel
def _tie_key(index: int, salt: int) -> np.uint64:
    """A pseudo-random rank of a policy (splitmix64), so that ties favour no action."""
    z = np.uint64(index) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def best_visits(
    indices: IntArray,
    points: IntArray,
    transitions: FloatArray,
    initial: FloatArray,
    step: int,
    salt: int,
) -> tuple[FloatArray, IntArray]:
    """For every (x, a): the listed policy most likely to play it at ``step``, ties at random.

    Returns the probabilities ``[X, A]`` and the policies' numbers (-1 where no policy gets there).
    """
    H, X, A, _ = transitions.shape
    policy = np.zeros((H, X), np.int64)
    mass = np.zeros((H + 1, X))
    for x in range(X):
        mass[0, x] = initial[x]
    best = np.zeros((X, A))
    winner = np.full((X, A), -1)
    keys = np.zeros((X, A), np.uint64)
    for j in range(indices.shape[0]):
        changed = _decode(indices[j], A, points, policy)
        for h in range(0 if j == 0 else changed, step):
            _advance(transitions, policy, h, mass)
        key = _tie_key(indices[j], salt)
        for x in range(X):
            p, a = mass[step, x], policy[step, x]
            better = p > best[x, a] + 1e-12
            tied = p > 0.0 and p >= best[x, a] - 1e-12 and key >= keys[x, a]
            if better or tied:
                best[x, a], winner[x, a], keys[x, a] = max(p, best[x, a]), indices[j], key
    return best, winner


@kernel
def decode_policy(index: int, points: IntArray, policy: IntArray, actions: int) -> None:
    """Write the policy with this number into ``policy`` at the decision points."""
    _decode(index, actions, points, policy)
