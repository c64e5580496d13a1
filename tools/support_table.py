"""Regret against H·C_M·sqrt(K): the table and the picture of docs/papers/adversarial.md.

Usage: ``python -m tools.support_table RESULTS [PICTURE.svg]``, RESULTS the folder that
``discreet run effective-support`` wrote. C_M is that of each run's own MDP.
"""

import argparse
from dataclasses import dataclass

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import spearmanr

from discreet.lab.labels import trust_words
from discreet.lab.looks import COLOURS
from discreet.lab.plots import MARKERS
from discreet.lab.results import Results, load
from discreet.lab.tasks import build_environment
from discreet.mdp import effective_support
from discreet.papers.bounds import BOUNDS

mpl.use("Agg")
mpl.rcParams["svg.fonttype"] = "none"  # text stays text: a fifth of the size
mpl.rcParams["svg.hashsalt"] = "support"


@dataclass(frozen=True)
class Line:
    """One environment under one trust model, run by run."""

    environment: str
    trust: str
    support: np.ndarray
    bound: np.ndarray
    regret: np.ndarray


def lines_of(results: Results) -> list[Line]:
    """C_M, H·C_M·sqrt(K) (004, Theorem 3.3) and the final regret of every run."""
    experiment, bound = results.experiment, BOUNDS["private-uc-o-reps"]["none"]
    rows = {row.title: row for row in experiment.environments}
    found = []
    for one in results.series():
        row = rows[one.facts["environment"]]
        mdps = [build_environment(row, experiment.seed, run) for run in range(len(one.final))]
        support = np.array([effective_support(mdp).cumulative for mdp in mdps])
        S, A, H = mdps[0].shape.states, mdps[0].shape.actions, mdps[0].shape.horizon
        users = float(one.episodes[-1])
        bounds = np.array([bound(S, A, H, users, support=float(c)) for c in support])
        trust = trust_words(one.facts, one.guarantee)
        found.append(Line(row.title, trust, support, bounds, one.final))
    return found


def write(lines: list[Line], trusts: list[str]) -> None:
    """The table, and whether regret grows with C_M."""
    print("| transitions | mean C_M | H·C_M·sqrt(K) | " + " | ".join(trusts) + " |")
    print("|---|---|---|" + "---|" * len(trusts))
    for name in dict.fromkeys(line.environment for line in lines):
        group = [line for line in lines if line.environment == name]
        first = f"| {name} | {group[0].support.mean():.1f} | {group[0].bound.mean():,.0f} | "
        cells = [
            f"{line.regret.mean():,.0f} ± {np.std(line.regret, ddof=1):,.0f}" for line in group
        ]
        print(first + " | ".join(cells) + " |")
    for trust in trusts:
        bound, regret = together(lines, trust)
        rank = spearmanr(bound, regret)
        print(f"{trust}: rank correlation {rank.statistic:.2f} over {len(bound)} runs", end="")
        print(f", p = {rank.pvalue:.2g}; above the bound in {(regret > bound).sum()} runs", end="")
        print(f", at most {(regret / bound).max():,.2f} times")


def together(lines: list[Line], trust: str) -> tuple[np.ndarray, np.ndarray]:
    """Bounds and regrets of all environments under one trust model."""
    chosen = [line for line in lines if line.trust == trust]
    return np.concatenate([c.bound for c in chosen]), np.concatenate([c.regret for c in chosen])


def draw(lines: list[Line], trusts: list[str], path: str) -> None:
    """A point per run; regrets below one are drawn at one."""
    figure, axes = plt.subplots(figsize=(5.2, 3.9), layout="constrained")
    for trust, colour, marker in zip(trusts, ("0.2", COLOURS[0]), MARKERS, strict=False):
        bound, regret = together(lines, trust)
        style = {"color": colour, "marker": marker, "ls": "", "alpha": 0.65, "mec": "none"}
        axes.plot(bound, np.maximum(regret, 1.0), ms=5.5, label=trust, **style)
    lowest, highest = (f(line.bound.min() for line in lines) for f in (min, max))
    ends = [max(1.0, lowest), 1.5 * highest]
    axes.plot(ends, ends, color="0.6", lw=1, ls=":", label="regret = H·C_M·sqrt(K)")
    axes.set(xlabel="H·C_M·sqrt(K)", ylabel="final regret", xscale="log", yscale="log")
    axes.set_title("Regret and effective support, a point per run", loc="left", fontsize=10.5)
    axes.grid(True, which="major", color="0.9", lw=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.minorticks_off()
    figure.legend(frameon=False, loc="outside lower left", ncols=3, fontsize=8.5)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Print and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", metavar="RESULTS")
    parser.add_argument("picture", nargs="?", metavar="PICTURE.svg")
    options = parser.parse_args()
    lines = lines_of(load(options.results))
    trusts = list(dict.fromkeys(line.trust for line in lines))
    write(lines, trusts)
    if options.picture:
        draw(lines, trusts, options.picture)


if __name__ == "__main__":
    main()
