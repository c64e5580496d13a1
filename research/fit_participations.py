"""`discreet.fit` on people with several episodes: the gain at m = 1, 2 and 4 participations.

    python -m research.fit_participations

Ten thousand people with one to four episodes each, Treatment, uniform behaviour, declared starts,
epsilon = 1, delta = 1e-6, 20 runs, the same people for every m. Gain is (V - V_b) / (V* - V_b) in
the true model. A minute. Writes docs/data/fit_participations.csv (docs/understand/learners/fit.md).
"""

import argparse
import csv
from pathlib import Path

import numpy as np

import discreet
from discreet.data import Vocabulary
from discreet.mdp import evaluate, sample_trajectories, solve, uniform_policy

PEOPLE, RUNS = 10_000, 20
FILE = Path(__file__).parents[1] / "docs" / "data" / "fit_participations.csv"


def gain(participations: int, run: int) -> float:
    """Of one draw of people and noise."""
    mdp = discreet.make("Treatment")
    sizes = Vocabulary(states=mdp.shape.states, actions=mdp.shape.actions, steps=mdp.shape.horizon)
    today = uniform_policy(mdp.shape)
    rng = np.random.default_rng(run)
    users = np.repeat(np.arange(PEOPLE), rng.integers(1, 5, PEOPLE))
    found = discreet.fit(
        sample_trajectories(mdp, today, len(users), rng),
        discreet.Central(1, 1e-6, participations=participations),
        vocabulary=sizes,
        start=mdp.start,
        users=users.tolist(),
        sampler="simulation",
        seed=run,
    )
    value = evaluate(mdp, found.policy.with_behaviour(today, mdp.shape.actions))
    worst = evaluate(mdp, today)
    return (value - worst) / (solve(mdp).value - worst)


def main() -> None:
    """All of them, into the file."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    with FILE.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(
            ["environment", "epsilon", "people", "participations", "runs", "gain", "error"]
        )
        for participations in (1, 2, 4):
            gains = [gain(participations, run) for run in range(RUNS)]
            error = np.std(gains, ddof=1) / np.sqrt(RUNS)
            found = (round(float(np.mean(gains)), 4), round(float(error), 4))
            rows.writerow(["Treatment", 1, PEOPLE, participations, RUNS, *found])


if __name__ == "__main__":
    main()
