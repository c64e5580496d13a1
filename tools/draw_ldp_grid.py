"""Draw the curves that ``ldp_grid.py --curve`` wrote, in the colours of the lab.

Usage: ``python tools/draw_ldp_grid.py OUTPUT.svg CURVES.csv ...``: mean regret with the range from
the least to the largest run, one line per epsilon, and the uniform policy's regret.
"""

import csv
import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from discreet.lab.plots import COLOURS, STYLES
from discreet.mdp import RandomMDP, evaluate, plan, uniform_policy

mpl.use("Agg")
mpl.rcParams["svg.fonttype"] = "none"  # text stays text: a fifth of the size
mpl.rcParams["svg.hashsalt"] = "ldp-grid"


def read(paths: list[str]) -> dict[str, np.ndarray]:
    """Label -> episodes, mean, least, largest."""
    curves: dict[str, list[list[float]]] = {}
    for path in paths:
        with Path(path).open() as file:
            for constants, epsilon, *numbers in csv.reader(file):
                label = f"eps = {epsilon}, {constants} constants"
                curves.setdefault(label, []).append([float(number) for number in numbers])
    return {label: np.array(rows).T for label, rows in curves.items()}


def main(output: str, paths: list[str]) -> None:
    """Write the picture."""
    mdp = RandomMDP(states=2, actions=2, horizon=2)
    gap = plan(mdp).value - evaluate(mdp, uniform_policy(mdp.shape))
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for number, (label, (k, mean, low, high)) in enumerate(read(paths).items()):
        late = k >= 1000
        colour, style = COLOURS[number], STYLES[number]
        axes.plot(k[late], mean[late], color=colour, ls=style, lw=1.8, label=label)
        axes.fill_between(k[late], low[late], high[late], color=colour, alpha=0.15, lw=0)
    axes.plot(k[late], gap * k[late], color="0.6", lw=1, ls=":", label="uniform policy")
    axes.set(xscale="log", yscale="log", xlabel="episodes (users)", ylabel="cumulative regret")
    axes.legend(frameon=False)
    figure.savefig(output, metadata={"Date": None})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
