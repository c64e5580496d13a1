"""Descriptions, episodes and sources of bytes for tests of devices."""

import random


def classes(**changes):
    """Four states, two actions, three steps; rewards are paid for the right action."""
    plain = {
        "version": 1,
        "encoder": "classes",
        "states": 4,
        "actions": 2,
        "horizon": 3,
        "policy": [[0, 1, 0, 1], [1, 1, 1, 1], [0, 0, 0, 0]],
        "statistics": ["transitions", "rewards"],
        "last_transitions": False,
        "users": 2000,
        "lambda": [39371, 100],
    }
    return {key: value for key, value in (plain | changes).items() if value is not None}


FOLLOWS = {"states": [0, 1, 2, 3], "actions": [0, 1, 0], "rewards": [1.0, 0.25, 0.0]}
LEAVES = {"states": [0, 1, 2, 3], "actions": [0, 0, 0], "rewards": [0.0, 1.0, 1.0]}
"""Off the policy at the second step."""


class Bytes:
    """Seeded bytes; remembers how many were asked for, call by call."""

    def __init__(self, seed=0):
        self._random = random.Random(seed)
        self.asked = []

    def __call__(self, length):
        self.asked.append(length)
        return self._random.randbytes(length)
