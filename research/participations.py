"""What coming back costs: noise and regret at m = 1, 2, 4 and 8 participations.

    python -m research.participations [--users 100000] [--runs 60] [--seed 7001]

Noise: standard deviation on one counter of transitions, four states, two actions, six steps,
epsilon = 1, delta = 1e-6, of what learners release (`fit`: all episodes in one release); under
local trust of one report. Regret: flow-ucb on Treatment with relabelled actions, exact, mean and
standard error. A few minutes. Writes research/tables/participations.csv and
docs/figures/participations.svg (docs/understand/participations.md).
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import discreet
from discreet.lab.plots import pyplot
from discreet.lab.style import STYLES, TRUST_COLOURS
from discreet.mdp import Shape
from research import parser

TIMES = (1, 2, 4, 8)
SHAPE = Shape(states=4, actions=2, horizon=6)
USUAL = ("transitions", "rewards")
RELEASES: dict[str, tuple[Any, float, str]] = {
    "central": (discreet.Central, 1e-6, "auto"),
    "central, fit": (discreet.Central, 1e-6, "auto"),
    "shuffle": (discreet.Shuffle, 1e-6, "auto"),
    "local": (discreet.Local, 1e-6, "auto"),
    "local, pure": (discreet.Local, 0.0, "auto"),
}


def noise(name: str, times: int) -> tuple[str, float, int | str, int | str]:
    """The mechanism, its noise on a counter of transitions, messages and bytes of one user."""
    trust, delta, mechanism = RELEASES[name]
    made = trust(1, delta, mechanism=mechanism, participations=times).calibrate(
        SHAPE, statistics=USUAL, last_transitions=False, together=name.endswith("fit")
    )
    users = 1 if trust is discreet.Local else 100_000
    found = float(np.sqrt(made.noise_variance(users)["transitions"]))
    if not made.takes_reports:
        return made.name, found, "", ""
    traffic = made.encoder(users).traffic
    return made.name, found, traffic.messages, traffic.bytes


def regret(name: str, times: int, users: int, runs: int, seed: int) -> tuple[float, float]:
    """Mean and standard error over runs, each with its own names of actions."""
    trust, delta, _ = RELEASES[name]
    found = [
        discreet.learn(
            discreet.make("Treatment", relabel=seed + run),
            learner="flow-ucb",
            trust=trust(1, delta, participations=times),
            episodes=users,
            seed=seed,
            run=run,
        ).regret.values[-1]
        for run in range(runs)
    ]
    return float(np.mean(found)), float(np.std(found, ddof=1) / np.sqrt(runs))


def rows(users: int, runs: int, seed: int) -> Iterator[dict[str, Any]]:
    """One for every release and m."""
    for name in RELEASES:
        first = noise(name, 1)[1]
        for times in TIMES:
            mechanism, found, messages, size = noise(name, times)
            row = {"release": name, "participations": times, "mechanism": mechanism}
            row |= {"noise": round(found, 3), "times": round(found / first, 3)}
            row |= {"messages": messages, "bytes": size, "users": "", "regret": "", "error": ""}
            if "," not in name:
                mean, error = regret(name, times, users, runs, seed)
                row |= {"users": users, "regret": round(mean), "error": round(error)}
            yield row


def draw(found: list[dict[str, Any]], path: Path) -> None:
    """Noise over that of one participation, and regret."""
    figure, (left, right) = pyplot().subplots(1, 2, figsize=(8, 3.4), layout="constrained")
    named = {"central": "studies, central and shuffle", "central, fit": "fit", "local": "local"}
    for style, name in zip(STYLES, RELEASES, strict=False):
        mine = [row for row in found if row["release"] == name]
        line = {"color": TRUST_COLOURS[name.split(",")[0]], "linestyle": style, "marker": "o"}
        if name in named:
            left.plot(TIMES, [float(row["times"]) for row in mine], label=named[name], **line)
        if mine[0]["users"]:
            heights = [float(row["regret"]) for row in mine]
            errors = [2 * float(row["error"]) for row in mine]
            right.errorbar(TIMES, heights, errors, label=name, **line)
    for axes, text in ((left, "noise, over that of one"), (right, "regret")):
        axes.set(xscale="log", yscale="log", xlabel="participations m", ylabel=text)
        axes.set_xticks(TIMES, [str(m) for m in TIMES])
        axes.minorticks_off()
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
    left.set_yticks(TIMES, [str(m) for m in TIMES])
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Table and picture."""
    command = parser("research.participations", __doc__)
    command.add_argument("--users", type=int, default=100_000, help="episodes of a run")
    command.add_argument("--runs", type=int, default=60, help="of each cell, at least 2")
    command.add_argument("--seed", type=int, default=7001)
    command.add_argument("--draw", action="store_true", help="the table on file, nothing else")
    given, here = command.parse_args(), Path(__file__).parent
    place, found = here / "tables" / "participations.csv", list[dict[str, Any]]()
    if given.draw:
        found = list(csv.DictReader(place.read_text().splitlines()))
    else:
        for row in rows(given.users, given.runs, given.seed):
            found.append(row)
            print(*row.values(), sep="\t", flush=True)
        with place.open("w", newline="") as file:
            table = csv.DictWriter(file, found[0])
            table.writeheader()
            table.writerows(found)
    draw(found, here.parent / "docs" / "figures" / "participations.svg")


if __name__ == "__main__":
    main()
