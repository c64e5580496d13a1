"""Numbers of the how-to pages for engineers."""

import numpy as np

import discreet
from discreet.mdp import DeterministicPolicy, Shape
from discreet.privacy import calibrate


def cost() -> list[list[object]]:
    """Noise on a counter of transitions, and what it counts (start/choose.md)."""
    rows: list[list[object]] = [
        ["trust", "epsilon", "states", "actions", "steps", "users", "noise", "count"]
    ]
    shape = Shape(states=12, actions=3, horizon=5)
    for trust in (
        discreet.Central(epsilon=1, delta=1e-6),
        discreet.Shuffle(epsilon=1, delta=1e-6),
        discreet.Local(epsilon=1),
    ):
        for users in (5_000, 50_000, 500_000):
            found = calibrate(trust, shape, users=users, statistics=("transitions", "rewards"))
            noise, count = found.noise_std["transitions"], found.expected_count["transitions"]
            rows.append([found.trust, 1, 12, 3, 5, users, round(noise, 2), round(count, 2)])
    return rows


def device_sizes() -> list[list[object]]:
    """What one user sends under shuffle, one action per state (how-to/engineer/device.md)."""
    rows: list[list[object]] = [["states", "steps", "users", "messages", "bytes"]]
    sizes = ((4, 2, 6, 20_000), (50, 5, 20, 10**6), (716, 2, 20, 10**6), (716, 2, 20, 10**8))
    for states, actions, steps, users in sizes:
        shape = Shape(states=states, actions=actions, horizon=steps)
        mechanism = discreet.Shuffle(1, 1e-6).calibrate(
            shape, statistics=("transitions", "rewards"), last_transitions=False
        )
        support = DeterministicPolicy(np.zeros((steps, states), int)).support(shape)
        traffic = mechanism.encoder(users, support=support).traffic
        rows.append([states, steps, users, traffic.messages, traffic.bytes])
    return rows


TABLES = {"device_sizes.csv": device_sizes, "engineer_cost.csv": cost}
