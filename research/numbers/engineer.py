"""Numbers of the how-to pages for engineers."""

import discreet
from discreet.mdp import Shape
from discreet.privacy import calibrate


def cost() -> list[list[object]]:
    """Noise on a counter of transitions, and what it counts (how-to/engineer/cost.md)."""
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


TABLES = {"engineer_cost.csv": cost}
