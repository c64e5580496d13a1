"""When the printed bonuses of continual learners begin to say something (RiverSwim, S=4, H=6)."""

import numpy as np

import discreet
from discreet.learners.continual import make_learner
from discreet.learners.optimists import Column
from discreet.learners.registry import get_learner

USERS = 20_000


def start():
    """Visits of one pair before its printed bonus is below H, after all users."""
    yield "learner", "counts", "epsilon", "users", "horizon", "noise_bound", "iota", "visits"
    mdp = discreet.make("RiverSwim", states=4, horizon=6)
    for name in ("dp-ucbvi", "private-ucb-vi", "private-ucb-po", "pucb"):
        for stationary in (True, False):
            for epsilon in (1, 10):
                kind, trust = get_learner(name).make, discreet.Central(epsilon, 1e-6)
                how = {"constants": "theory", "stationary": stationary}
                rng = np.random.default_rng(0)
                learner = make_learner(kind, mdp, trust, USERS, rng, how)
                row = learner.coefficients(np.array([USERS]))[0]
                iota = learner.log(30 * mdp.horizon) if name == "dp-ucbvi" else ""
                yield (
                    name,
                    "pooled" if stationary else "per step",
                    epsilon,
                    USERS,
                    mdp.horizon,
                    f"{row[Column.ERROR] or row[Column.SHIFT]:.0f}",
                    iota and f"{iota:.1f}",
                    f"{visits_of(row, mdp.horizon):.3g}",
                )


def visits_of(row, horizon):
    """The least N with a bonus of at most H where the values ahead do not vary."""
    grid = np.geomspace(max(1.0, 1.0001 * row[Column.MINIMUM]), 1e9, 200_001)
    bonus = row[Column.ROOT] / np.sqrt(grid - row[Column.SHIFT])
    bonus += (row[Column.LINEAR] + row[Column.SQUARE] / grid) / grid
    return float(grid[np.argmax(bonus <= horizon)])


TABLES = {"continual-start.csv": start}
