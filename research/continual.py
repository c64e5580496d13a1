"""The regret of the continual learners on RiverSwim: docs/data/continual-riverswim.csv.

    python -m research.continual             # what the file lacks; about ten minutes for all of it
    python -m research.continual --seconds 100

Four states, six steps, actions renamed at random in every run; central at delta 1e-6, local with
the Laplace or the one-step mechanism. ``random`` is the uniformly random policy.
"""

import csv
import itertools
import time
from pathlib import Path

import numpy as np

import discreet
from discreet.mdp import evaluate, solve, uniform_policy
from research import parser

FILE = Path(__file__).parents[1] / "docs" / "data" / "continual-riverswim.csv"
HEADER = (
    *("learner", "bonus", "trust", "mechanism", "counts", "constants"),
    *("users", "epsilon", "runs", "regret", "sd", "states", "horizon"),
)
SIZE = {"states": 4, "horizon": 6}
RUNS = 20
SIZES = (20_000, 200_000)
CENTRAL = ("dp-ucbvi", "private-ucb-vi", "private-ucb-po", "pucb")
LOCAL = ("dp-ucbvi", "private-ucb-vi", "private-ucb-po", "ldp-obi", "ldp-psrl")
ONE_STEP = ("dp-ucbvi", "ldp-obi", "ldp-psrl")


def cells():
    """Everything but users, regret and its spread."""
    for constants, users in itertools.product(("practical", "theory"), SIZES):
        for counts in ("pooled", "per step"):
            yield "ucbvi", "bernstein", "none", "", counts, constants, users, ""
            yield "psrl", "", "none", "", counts, constants, users, ""
        yield "ucbvi", "hoeffding", "none", "", "per step", constants, users, ""
        for epsilon in (0.1, 1, 10):
            for name in CENTRAL:
                yield name, "", "central", "toeplitz", "pooled", constants, users, epsilon
            yield "dp-ucbvi", "", "central", "toeplitz", "per step", constants, users, epsilon
            for name in LOCAL:
                yield name, "", "local", "laplace", "pooled", constants, users, epsilon
    for name, epsilon in itertools.product(ONE_STEP, (1, 10)):
        yield name, "", "local", "one-step", "pooled", "practical", SIZES[0], epsilon


def trust_of(trust, mechanism, epsilon):
    """The trust model of a cell."""
    if trust == "none":
        return discreet.NoPrivacy()
    if trust == "central":
        return discreet.Central(epsilon, 1e-6, mechanism=mechanism)
    return discreet.Local(epsilon, mechanism=mechanism)


def row_of(cell):
    """The row of a cell, after its runs."""
    name, bonus, trust, mechanism, counts, constants, users, epsilon = cell
    settings = {"stationary": counts == "pooled", "constants": constants}
    if bonus:
        settings["bonus"] = bonus
    found = [
        discreet.learn(
            discreet.make("RiverSwim", relabel=run, **SIZE),
            learner=name,
            trust=trust_of(trust, mechanism, epsilon),
            episodes=users,
            seed=7001,
            run=run,
            **settings,
        ).final_regret
        for run in range(RUNS)
    ]
    spread = f"{np.std(found, ddof=1):.1f}"
    return [*cell, RUNS, f"{np.mean(found):.1f}", spread, *SIZE.values()]


def random_rows():
    """What the uniformly random policy loses."""
    mdp = discreet.make("RiverSwim", **SIZE)
    lost = solve(mdp).value - evaluate(mdp, uniform_policy(mdp.shape))
    for users in SIZES:
        found = f"{lost * users:.1f}"
        yield ["random", "", "none", "", "", "", users, "", "", found, "", *SIZE.values()]


def main():
    """Read the command; a run that is stopped goes on where it was."""
    made = parser("research.continual", __doc__)
    made.add_argument("--seconds", type=float, default=np.inf, help="stop after so many")
    options = made.parse_args()
    rows = []
    if FILE.exists():
        with FILE.open(encoding="utf-8", newline="") as file:
            rows = [row for row in list(csv.reader(file))[1:] if row[0] != "random"]
    done, began = {tuple(row[:8]) for row in rows}, time.monotonic()
    for cell in cells():
        if tuple(map(str, cell)) in done or time.monotonic() - began > options.seconds:
            continue
        rows.append(row_of(cell))
        with FILE.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([HEADER, *rows, *random_rows()])
    print(f"{len(rows)} of {len(list(cells()))} cells")


if __name__ == "__main__":
    main()
