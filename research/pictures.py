"""The picture of every learner's page: regret against users, one line per trust model.

    python -m research.pictures                   # run all learners, keep the curves, draw
    python -m research.pictures dp-ucbvi psrl     # some of them; the other curves stay
    python -m research.pictures --draw            # draw again from docs/data/learner-curves.csv

Pictures go to docs/figures/learners. Epsilon is 1; delta is 1e-6, and 0 under local trust. Learners
meet RiverSwim with 4 states and 6 steps, its actions renamed at random in every run. Continual
learners get ``stationary=True``. Adversarial learners meet the stochastic losses of
`research.adversarial`: those of RiverSwim with full information, a random layered MDP with bandit
feedback. Lines are means, shaded from the lowest run to the highest.
"""

import csv
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import discreet
from discreet.lab.plots import pyplot, spread
from discreet.lab.style import TRUST_COLOURS
from discreet.learners.registry import get_learner
from discreet.learners.result import Result
from discreet.mdp import evaluate, solve, uniform_policy
from research import parser
from research.adversarial import random_mdp, river

DOCS = Path(__file__).parents[1] / "docs"
CURVES = DOCS / "data" / "learner-curves.csv"
PICTURES = DOCS / "figures" / "learners"
HEADER = ("learner", "trust", "epsilon", "users", "runs", "regret", "low", "high")

RANDOM = "random"
FIRST = 10  # users before the first point: earlier, chance decides
EVERY = 4  # of the recorded points, so many per decade are enough for a picture
TRUSTS = {
    "none": discreet.NoPrivacy(),
    "central": discreet.Central(1, 1e-6),
    "shuffle": discreet.Shuffle(1, 1e-6),
    "local": discreet.Local(1),
}


class Case(NamedTuple):
    """What one picture shows."""

    users: int
    runs: int
    settings: dict
    adversary: Callable | None = None


CONTINUAL = Case(200_000, 5, {"stationary": True})
BATCHES = Case(1_000_000, 10, {})
CASES = {
    "dp-ucbvi": CONTINUAL,
    "explore-then-commit": BATCHES,
    "flow-ucb": BATCHES,
    "ldp-obi": CONTINUAL,
    "ldp-psrl": CONTINUAL,
    "private-uc-o-reps": Case(20_000, 5, {}, river),
    "private-ucb-po": CONTINUAL,
    "private-ucb-vi": CONTINUAL,
    "private-uob-lbps": Case(40_000, 5, {}, random_mdp),
    "psrl": CONTINUAL,
    "pucb": CONTINUAL,
    "sdp-pe": BATCHES,
    "trial": Case(50_000, 10, {}),
    "ucbvi": CONTINUAL,
}


def curves_of(name: str) -> list[list]:
    """The rows of one learner: mean, lowest and highest regret of its runs, and of random play."""
    case, rows = CASES[name], []
    for trust in get_learner(name).trusts:
        found = [run_of(name, case, trust, run) for run in range(case.runs)]
        points = found[0][0].regret.episodes
        values = np.array([result.regret.values for result, _ in found])
        rows += rows_of(name, trust, case.runs, points, values)
    lost = float(np.mean([uniform for _, uniform in found]))
    return rows + rows_of(name, RANDOM, case.runs, points, lost * points[None, :])


def run_of(name: str, case: Case, trust: str, run: int) -> tuple[Result, float]:
    """One run, and what random actions lose per user in its world."""
    how = {"learner": name, "trust": TRUSTS[trust], "episodes": case.users, **case.settings}
    if case.adversary is not None:
        mdp, losses = case.adversary("stochastic", case.users, 1000 + run)
        result = discreet.learn(mdp, losses=losses, seed=1000 + run, **how)
        return result, float(result.extras["uniform_regret_per_episode"])
    mdp = discreet.make("RiverSwim", states=4, horizon=6, relabel=run)
    lost = solve(mdp).value - evaluate(mdp, uniform_policy(mdp.shape))
    return discreet.learn(mdp, seed=0, run=run, **how), float(lost)


def rows_of(name: str, trust: str, runs: int, points, values) -> list[list]:
    """A row for each point that is drawn, the last one included."""
    kept = np.flatnonzero(points >= FIRST)[::-EVERY][::-1]
    epsilon = 1 if trust in ("central", "shuffle", "local") else ""
    return [
        [name, trust, epsilon, int(points[i]), runs]
        + [f"{number:.1f}" for number in (column.mean(), column.min(), column.max())]
        for i, column in zip(kept, values[:, kept].T, strict=True)
    ]


def kept_rows() -> list[list]:
    """What the file has."""
    if not CURVES.exists():
        return []
    with CURVES.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))[1:]


def write(rows: list[list]) -> None:
    """All rows, learners in alphabetical order."""
    with CURVES.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerows([HEADER, *sorted(rows, key=lambda row: row[0])])


def draw(name: str, rows: list[list]) -> None:
    """The picture of one learner."""
    plt = pyplot()
    style = {"svg.fonttype": "none", "svg.hashsalt": name, "font.size": 10}
    with plt.rc_context({**style, "font.family": "sans-serif"}):
        figure = plt.figure(figsize=(4.2, 3.0), layout="constrained")
        axes, ends = figure.subplots(), []
        for trust in dict.fromkeys(row[1] for row in rows):
            table = np.array(
                [[float(row[i]) for i in (3, 5, 6, 7)] for row in rows if row[1] == trust]
            )
            users, mean, low, high = table.T
            colour, label = TRUST_COLOURS.get(trust, "0.45"), words_of(trust)
            axes.plot(users, mean, color=colour, lw=1.8, ls=":" if trust == RANDOM else "-")
            axes.fill_between(users, low, high, color=colour, alpha=0.15, lw=0)
            ends.append((mean[-1], label, colour))
        axes.set(xscale="log", yscale="log", xlabel="users", ylabel="regret so far")
        axes.set(xlim=(users[0], users[-1]), title=name)
        axes.minorticks_off()
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: short(value))
        axes.spines[["top", "right"]].set_visible(False)
        bottom, top = np.log(axes.get_ylim())
        heights = spread([(np.log(y) - bottom) / (top - bottom) for y, _, _ in ends], 0.085)
        for height, (_, label, colour) in zip(heights, ends, strict=True):
            where = {"transform": axes.transAxes, "va": "center"}
            axes.text(1.02, height, label, color=colour, **where)
        figure.savefig(PICTURES / f"{name}.svg", metadata={"Date": None})
        plt.close(figure)


def words_of(trust: str) -> str:
    """The name of a line."""
    return {"none": "no privacy", RANDOM: "at random"}.get(trust, trust)


def short(number: float) -> str:
    """A power of ten for an axis: 100, 10k, 1M."""
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if number >= unit:
            return f"{number / unit:,.0f}{letter}"
    return f"{number:.3g}"


def main() -> None:
    """Read the command."""
    made = parser("research.pictures", __doc__)
    made.add_argument("learners", nargs="*", metavar="LEARNER", help="of these alone")
    made.add_argument("--draw", action="store_true", help="from the curves that are kept")
    options = made.parse_args()
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name in options.learners or CASES:
        if not options.draw:
            began = time.process_time()
            found = curves_of(name)
            write([row for row in kept_rows() if row[0] != name] + found)
            print(f"{name}: {time.process_time() - began:.0f} s", flush=True)
        draw(name, [row for row in kept_rows() if row[0] == name])


if __name__ == "__main__":
    main()
