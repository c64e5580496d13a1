"""Regret against the bound H C_M sqrt(K) of every run of the experiment effective-support.

Both come from the results that `research.experiments` has: rows below its table, and its picture.
"""

import numpy as np
from scipy.stats import spearmanr

from discreet.lab import Results, compare
from discreet.lab.plots import pyplot
from discreet.lab.tasks import build_environment
from discreet.mdp import effective_support


def parts_of(results: Results):
    """For each problem: its name, C_M and bound of every run, regret without privacy and with."""
    spec = results.experiment
    for world in spec.environments:
        mdps = [build_environment(world, spec.seed, run) for run in range(spec.runs)]
        support = np.array([effective_support(mdp).cumulative for mdp in mdps])
        lines = {
            one.facts["trust"]: one.final
            for one in results.series()
            if one.facts["environment"] == world.title
        }
        bound = mdps[0].horizon * support * np.sqrt(spec.episodes[0])
        yield world.title, support, bound, lines["none"], lines["central"]


def rows_of(results: Results) -> list[list]:
    """What the page quotes, the value in the column of regret."""
    rows, parts = [], list(parts_of(results))
    for title, support, bound, none, central in parts:
        values = {
            "mean effective support": f"{support.mean():.2f}",
            "mean bound": f"{bound.mean():.1f}",
            "cost of privacy": f"{(central - none).mean():.1f}",
            "p of the cost": f"{compare('', central, '', none).p_value:.1g}",
            "runs above the bound": f"{(none > bound).sum()}",
            "largest share of the bound": f"{(none / bound).max():.4g}",
        }
        rows += [[title, name, *[""] * 4, len(none), v, *[""] * 3] for name, v in values.items()]
    support = np.concatenate([part[1] for part in parts])
    for trust, place in (("none", 3), ("central", 4)):
        found = spearmanr(support, np.concatenate([part[place] for part in parts]))
        for name, value in (("rank correlation with support", found[0]), ("p of it", found[1])):
            rows.append(["", name, trust, "", "", "", len(support), f"{value:.2g}", *[""] * 3])
    return rows


def drawn(results: Results):
    """A point for every run."""
    parts, plt = list(parts_of(results)), pyplot()
    bound, none, central = (np.concatenate([part[i] for part in parts]) for i in (2, 3, 4))
    with plt.rc_context({"font.family": "sans-serif"}):
        figure = plt.figure(figsize=(5.2, 3.9), layout="constrained")
        axes = figure.subplots()
        axes.grid(True, color="0.9", lw=0.6)
        axes.set_axisbelow(True)
        for regret, label, look in (
            (none, "no privacy", {"color": "0.15", "marker": "o"}),
            (central, "central, ε = 10", {"color": "#0072b2", "marker": "s"}),
        ):
            axes.scatter(bound, np.maximum(regret, 1), s=22, alpha=0.6, lw=0, label=label, **look)
        ends = [1, bound.max() * 1.4]
        axes.plot(ends, ends, ":", color="0.5", lw=1, label="regret = H·C_M·sqrt(K)")
        axes.set(xscale="log", yscale="log", xlabel="H·C_M·sqrt(K)", ylabel="final regret")
        axes.set_title("Regret and effective support, a point per run", loc="left", fontsize=10.5)
        axes.minorticks_off()
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside lower left", ncols=3, frameon=False, fontsize=8)
    return figure
