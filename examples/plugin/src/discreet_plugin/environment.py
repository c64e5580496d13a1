"""An environment: a function that returns a `TabularMDP`."""

import numpy as np

from discreet import TabularMDP


def Corridor(*, length: int = 3, horizon: int = 4, slip: float = 0.1) -> TabularMDP:  # noqa: N802
    """A corridor: forward is right, and the last room pays.

    Args:
        length: rooms.
        horizon: steps per episode.
        slip: probability to stay where one is.
    """
    transitions = np.zeros((length, 2, length))
    for room in range(length):
        for action, target in ((0, max(room - 1, 0)), (1, min(room + 1, length - 1))):
            transitions[room, action, target] += 1 - slip
            transitions[room, action, room] += slip
    rewards = np.zeros((length, 2))
    rewards[-1] = 1
    return TabularMDP(transitions=transitions, rewards=rewards, horizon=horizon, name="Corridor")
