"""The experiments behind the pages: tables in docs/data, pictures in docs/figures.

    python -m research.experiments price-of-trust lower-bound   # these
    python -m research.experiments                              # lists what there is

Each runs as `discreet run NAME` does, into results/NAME, and what is finished there is not run
again. Table and pictures come from that one folder. A row of the table is one line of the
experiment for one problem and number of users: mean, standard deviation and median of regret, and
the share of the regret of random actions. Below stand the comparisons that the pages quote.
"""

import csv
import re
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from discreet.lab import Results, compare, figure, load_experiment, run_experiment
from discreet.lab.report import svg_of
from research import parser, support

ROOT = Path(__file__).parents[1]
DATA, FIGURES = ROOT / "docs" / "data", ROOT / "docs" / "figures"
LINE = ("environment", "learner", "trust", "epsilon", "delta", "users", "runs")
HEADER = (*LINE, "regret", "sd", "median", "share")


class Page(NamedTuple):
    """What an experiment writes."""

    table: str
    figures: tuple[tuple[str, str, int], ...] = ()  # file, kind of plot, number of the environment
    users: tuple[int, ...] = ()  # points of a curve, beside its end
    runs: int = 0  # if other than shipped
    compared: tuple[tuple[str, str, int], ...] = ()  # two lines, at epsilon 0.1 and 1, and users


ICU = (100_000, 1_000_000, 10_000_000, 30_000_000, 100_000_000, 300_000_000)
RIVER = (("adversarial-riverswim", "cost", 0), ("adversarial-random", "regret", 1))
BEYOND = (("beyond-gridworld", "by-episodes", 1), ("beyond-treatment", "by-episodes", 2))
DP_UCBVI = (("dp-ucbvi", "regret", 0), ("dp-ucbvi-epsilon", "by-epsilon", 0))
WAYS = (("practical: SDP-PE", "practical: UCBVI-JDP", 20_000),)
SDP_PE = (("SDP-PE", "DP-UCBVI", 20_000), ("SDP-PE", "DP-UCBVI", 200_000))
PAGES = {
    "adversarial": Page("paper-adversarial", RIVER),
    "beyond-riverswim": Page("gallery_problems", BEYOND, runs=10),
    "dp-ucbvi": Page("paper-dp-ucbvi", DP_UCBVI),
    "effective-support": Page("paper-effective-support"),
    "figure-4-three-ways": Page(
        "paper-figure-4", (("figure-4-three-ways", "deviation", 0),), compared=WAYS
    ),
    "icu-sepsis": Page("gallery_icu_sepsis", (("icu-sepsis", "per-episode", 0),), ICU),
    "lower-bound": Page("paper-lower-bound"),
    "lower-bound-jdp": Page("paper-lower-bound-jdp"),
    "price-of-epsilon": Page("gallery_epsilon", (("price-of-epsilon", "by-epsilon", 0),)),
    "price-of-trust": Page("price-of-trust", (("price-of-trust", "by-episodes", 0),)),
    "shuffle-riverswim": Page(
        "paper-shuffle", (("shuffle-riverswim", "regret", 0),), compared=SDP_PE
    ),
}


def rows_of(results: Results, users: tuple[int, ...]) -> list[list]:
    """A row of random actions for each problem and size, then one for each line."""
    chance, rows = {}, []
    for one in results.series():
        facts = one.facts
        private = np.isfinite(facts["epsilon"])
        pair = [f"{facts['epsilon']:g}", f"{facts['delta']:g}"] if private else ["", ""]
        for k in (*users, facts["episodes"]):
            at = int(np.abs(one.episodes - k).argmin())  # the recorded point nearest to k
            known, lost = one.regret[:, at], float(one.uniform[at])
            chance[facts["environment"], k] = lost
            sd = known.std(ddof=1) if len(known) > 1 else 0.0
            numbers = [f"{value:.2f}" for value in (known.mean(), sd, np.median(known))]
            line = [facts["environment"], facts["label"], facts["trust"], *pair, k, len(known)]
            rows.append([*line, *numbers, f"{known.mean() / lost:.4g}"])
    random = ["random actions", "", "", ""]
    return [
        [at, *random, k, "", f"{lost:.2f}", "", "", 1] for (at, k), lost in chance.items()
    ] + rows


def final(results: Results, label: str, epsilon: float, users: int) -> np.ndarray:
    """The final regret of each run of a line; the first one, under central before local trust."""
    wanted = {"label": label, "epsilon": epsilon, "episodes": users}
    lines = [s for s in results.series() if all(s.facts[n] == v for n, v in wanted.items())]
    return min(lines, key=lambda one: one.facts["trust"]).final


def comparisons(results: Results, pairs: tuple[tuple[str, str, int], ...]) -> list[list]:
    """A paired test for two lines at one epsilon, the p-value in the column of regret."""
    rows = []
    for (one, other, users), epsilon in ((pair, e) for pair in pairs for e in (0.1, 1.0)):
        finals = [final(results, label, epsilon, users) for label in (one, other)]
        p = f"{compare(one, finals[0], other, finals[1]).p_value:.2g}"
        rows.append(["", f"p of {one} against {other}", "", f"{epsilon:g}", "", users, 20, p])
    if len(pairs) > 1:
        few, many = (final(results, one, 1.0, users).mean() for one, _, users in pairs)
        rows.append(["", f"{one}, over a tenth of the users", "", 1, "", users, 20, many / few])
    return [[*row, "", "", ""] for row in rows]


def write(name: str, rows: list[list]) -> None:
    """A table of docs/data."""
    with (DATA / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([HEADER, *rows])


def keep(name: str, drawn) -> None:
    """A picture, its coordinates to a hundredth of a point."""
    short = re.sub(r"(\d\.\d\d)\d+", r"\1", svg_of(drawn))
    (FIGURES / f"{name}.svg").write_text(short.rstrip() + "\n", encoding="utf-8")


def make(name: str, folder: Path) -> None:
    """Run what is missing; then the table and the pictures."""
    page, spec = PAGES[name], load_experiment(name)
    results = run_experiment(replace(spec, runs=page.runs or spec.runs), folder).results
    rows = rows_of(results, page.users) + comparisons(results, page.compared)
    if name == "effective-support":
        rows += support.rows_of(results)
        keep(name, support.drawn(results))
    write(page.table, rows)
    for picture, plot, number in page.figures:
        keep(picture, figure(results, plot, spec.environments[number].title))


def main() -> None:
    """Read the command."""
    made = parser("research.experiments", __doc__)
    made.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PAGES))
    made.add_argument("--results", type=Path, default=Path("results"), help="folder of results")
    options = made.parse_args()
    if not options.names:
        print("\n".join(PAGES))
    for name in options.names:
        make(name, options.results / name)


if __name__ == "__main__":
    main()
