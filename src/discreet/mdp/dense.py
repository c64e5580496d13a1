"""Values and occupancies where transitions lie dense, ``[H, S, A, S]``, for one step after another.

For models that are not a `TabularMDP`: those that a learner estimates, whose missing mass is
absorbed and worth nothing, and those of layers, padded to the widest, where no mass comes to what
is padded. The last step has no successor that is worth anything.
"""

import numpy as np

from discreet._jit import kernel
from discreet._types import FloatArray


@kernel
def occupancy(transitions: FloatArray, initial: FloatArray, policy: FloatArray) -> FloatArray:
    """Probability ``[H, S, A]`` of being at (h, s) and playing a, under ``policy[H, S, A]``."""
    horizon, states, actions = policy.shape
    visited = np.zeros((horizon, states, actions))
    here = initial.copy()
    for h in range(horizon):
        ahead = np.zeros(states)
        for s in range(states):
            if here[s] > 0.0:
                for a in range(actions):
                    mass = here[s] * policy[h, s, a]
                    visited[h, s, a] = mass
                    if mass > 0.0 and h + 1 < horizon:
                        for t in range(states):
                            ahead[t] += mass * transitions[h, s, a, t]
        here = ahead
    return visited


@kernel
def optimal_values(transitions: FloatArray, rewards: FloatArray) -> FloatArray:
    """``[H + 1, S]``, the best value from each step and state on."""
    horizon, states, actions = rewards.shape
    values = np.zeros((horizon + 1, states))
    for h in range(horizon - 1, -1, -1):
        for s in range(states):
            best = -np.inf
            for a in range(actions):
                value = rewards[h, s, a]
                if h + 1 < horizon:
                    for t in range(states):
                        value += transitions[h, s, a, t] * values[h + 1, t]
                best = max(best, value)
            values[h, s] = best
    return values
