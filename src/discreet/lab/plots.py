"""Pictures, drawn from result files. Axes in, axes out.

Colours are those of Okabe and Ito (2008), distinguishable with any common colour blindness; lines
also differ in style, so the pictures survive a black-and-white printer.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from discreet.errors import MissingExtraError, UnknownNameError
from discreet.lab.labels import TITLES, label_of
from discreet.lab.results import Results, Series
from discreet.lab.statistics import band
from discreet.privacy.guarantee import rounded_up

if TYPE_CHECKING:
    from types import ModuleType

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Style: TypeAlias = str | tuple[int, tuple[int, ...]]
"""A line style as Matplotlib names it, or as dashes."""
Varied: TypeAlias = Literal["episodes", "epsilon"]
"""What changes along a line of final regrets."""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999933")
STYLES: tuple[Style, ...] = (
    "-",
    "--",
    "-.",
    ":",
    (0, (5, 1)),
    (0, (3, 1, 1, 1)),
    (0, (1, 1)),
    (0, (7, 2)),
)
_INSIDE = 6  # a longer legend stands beside the axes
_CURVES = ("regret", "per-episode")  # lines along the episodes may end where they like
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


def _pyplot() -> "ModuleType":
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingExtraError("matplotlib", "lab") from None
    mpl.use("Agg", force=False)
    import matplotlib.pyplot as plt

    pyplot: ModuleType = plt
    return pyplot


def looks_of(series: Sequence[Series]) -> list[tuple[str, Style]]:
    """Colour and line style of each line: colour by learner and mechanism, style by epsilon.

    With at most one epsilon per family every line has a style of its own as well, for printers
    without colours.
    """
    families: dict[tuple[str, ...], list[tuple[float | str, ...]]] = {}
    keys = [(_family(s), _strength(s)) for s in series]
    for family, strength in keys:
        families.setdefault(family, []).append(strength)
    single = all(len(strengths) == 1 for strengths in families.values())
    names = list(families)
    looks = []
    for family, strength in keys:
        number = names.index(family)
        style = number if single else families[family].index(strength)
        looks.append((COLOURS[number % 8], STYLES[style % 8]))
    return looks


def _family(series: Series) -> tuple[str, ...]:
    facts = series.facts
    return facts["label"], facts["requested"], facts["trust"]


def _strength(series: Series) -> tuple[float | str, ...]:
    facts = series.facts
    return facts["epsilon"], facts["delta"], facts["calibration"]


def plot_regret(axes: "Axes", series: Sequence[Series]) -> "Axes":
    """Cumulative regret against episodes, log-log, with 95% simultaneous bands."""
    longest = max(series, key=lambda s: s.episodes[-1])
    late = longest.episodes >= longest.episodes[-1] ** (1 / 3)  # before, all lines are one
    shade = 0.15 if len(series) <= len(COLOURS) else 0.05
    for one, (colour, style) in zip(series, looks_of(series), strict=True):
        limits, shown = band(one.regret, positive=True), one.episodes >= longest.episodes[late][0]
        x, mean, low, high = (
            values[shown] for values in (one.episodes, limits.mean, limits.low, limits.high)
        )
        axes.plot(x, mean, color=colour, ls=style, lw=1.8, label=label_of(one))
        axes.fill_between(x, low, high, color=colour, alpha=shade, lw=0)
    x, uniform = longest.episodes[late], longest.uniform[late]
    axes.plot(x, uniform, color="0.6", lw=1, ls=":", label="uniform policy")
    axes.set(xscale="log", yscale="log", xlabel="episodes (users)", ylabel="cumulative regret")
    return axes


def plot_per_episode(axes: "Axes", series: Sequence[Series]) -> "Axes":
    """Mean regret per episode so far: a line that falls is a learner that learns."""
    for one, (colour, style) in zip(series, looks_of(series), strict=True):
        mean = one.regret.mean(axis=0) / one.episodes
        axes.plot(one.episodes, mean, color=colour, ls=style, label=label_of(one))
    level = series[0].uniform[-1] / series[0].episodes[-1]
    axes.axhline(level, color="0.6", lw=1, ls=":", label="uniform policy")
    axes.set(xscale="log", yscale="log", xlabel="episodes (users)", ylabel="regret per episode")
    return axes


def plot_by_episodes(axes: "Axes", series: Sequence[Series]) -> "Axes":
    """Final regret against K, one line per learner and guarantee; each K is a run of its own."""
    for index, (label, group) in enumerate(_groups(series, "episodes").items()):
        _final_line(axes, index, label, group, "episodes")
    uniform = sorted({(int(s.episodes[-1]), float(s.uniform[-1])) for s in series})
    axes.plot(*zip(*uniform, strict=True), color="0.6", lw=1, ls=":", label="uniform policy")
    axes.set(xscale="log", yscale="log", xlabel="K, users in the study", ylabel="final regret")
    return axes


def plot_by_epsilon(axes: "Axes", series: Sequence[Series]) -> "Axes":
    """Final regret against epsilon; the non-private twin is a horizontal line."""
    private = [s for s in series if s.guarantee["notion"] != "none"]
    for index, (label, group) in enumerate(_groups(private, "epsilon").items()):
        _final_line(axes, index, label, group, "epsilon")
    for one in series:
        if one.guarantee["notion"] == "none":
            axes.axhline(one.final.mean(), color="black", lw=1, label=label_of(one))
    level = float(np.mean([s.uniform[-1] for s in series]))
    axes.axhline(level, color="0.6", lw=1, ls=":", label="uniform policy")
    axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="final regret")
    return axes


def plot_cost(axes: "Axes", series: Sequence[Series]) -> "Axes":
    """What privacy costs: final regret of each guarantee beside its non-private twin."""
    ordered = sorted(series, key=lambda s: float(s.final.mean()))
    positions = np.arange(len(ordered))
    means = [s.final.mean() for s in ordered]
    limits = [band(s.final[:, None], positive=True) for s in ordered]
    below = [m - float(b.low[0]) for m, b in zip(means, limits, strict=True)]
    above = [float(b.high[0]) - m for m, b in zip(means, limits, strict=True)]
    colours = ["0.55" if s.guarantee["notion"] == "none" else COLOURS[0] for s in ordered]
    axes.barh(positions, means, color=colours, xerr=[below, above], ecolor="0.3", capsize=3)
    axes.axvline(ordered[0].uniform[-1], color="0.5", lw=1, ls=":")
    axes.set_yticks(positions, [label_of(s) for s in ordered])
    axes.set(xscale="log", xlabel="final regret (dotted: uniform policy)")
    return axes


def plot_noise(axes: "Axes", series: Sequence[Series]) -> "Axes":
    """Noise against signal: expected visits of every counter, and the noise on one of them."""
    signal = series[0].signal
    axes.step(np.arange(1, len(signal) + 1), signal, where="mid", color="black", label="visits")
    for one, (colour, style) in zip(series, looks_of(series), strict=True):
        if one.count_noise > 0:
            axes.axhline(one.count_noise, color=colour, ls=style, label=f"noise, {label_of(one)}")
    axes.set(yscale="log", xlabel="counter (h, s, a), by rank", ylabel="visits, noise std")
    axes.locator_params(axis="x", integer=True)
    return axes


def plot_policy(axes: "Axes", actions: Sequence[Sequence[int]], title: str = "") -> "Axes":
    """A deterministic policy as a heat map: step across, state down, colour is the action."""
    grid = np.asarray(actions).T
    plt = _pyplot()
    count = int(grid.max()) + 1
    axes.imshow(grid, aspect="auto", cmap=plt.get_cmap("cividis", max(count, 2)), origin="lower")
    axes.set(xlabel="step", ylabel="state", title=title)
    return axes


PLOTS: dict[str, Callable[["Axes", Sequence[Series]], "Axes"]] = {
    "regret": plot_regret,
    "per-episode": plot_per_episode,
    "by-episodes": plot_by_episodes,
    "by-epsilon": plot_by_epsilon,
    "cost": plot_cost,
    "noise": plot_noise,
}


def figure(results: Results, name: str, environment: str | None = None) -> "Figure":
    """A ready figure of one kind; ``environment`` picks one of several."""
    if name not in PLOTS:
        raise UnknownNameError("plot", name, PLOTS)
    plt = _pyplot()
    series = [s for s in results.series() if environment in (None, s.facts["environment"])]
    if name != "by-episodes":
        series = _longest(series, per_line=name in _CURVES)
    drawn: Figure = plt.figure(figsize=(7.2, 4.4), layout="constrained")
    axes = drawn.subplots()
    PLOTS[name](axes, series)
    entries = len(axes.get_legend_handles_labels()[1])
    axes.set_axisbelow(True)
    axes.grid(True, which="major", color="0.9", lw=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(f"{TITLES[name]}: {series[0].facts['environment']}", loc="left", fontsize=11)
    if entries > _INSIDE:
        drawn.set_size_inches(9.6, 4.4)
        drawn.legend(fontsize=7.5, frameon=False, loc="outside right upper")
    elif name != "cost":
        axes.legend(fontsize=7.5, framealpha=0.9, edgecolor="none")
    return drawn


def _longest(series: Sequence[Series], *, per_line: bool) -> list[Series]:
    """The largest studies of all, or of each line (a learner may be too slow for the largest)."""
    names = [label_of(one) if per_line else "" for one in series]
    largest: dict[str, int] = {}
    for name, one in zip(names, series, strict=True):
        largest[name] = max(largest.get(name, 0), one.facts["episodes"])
    return [
        one
        for name, one in zip(names, series, strict=True)
        if one.facts["episodes"] == largest[name]
    ]


def _groups(series: Sequence[Series], but: Varied) -> dict[str, list[Series]]:
    """Series that differ only in ``but``, under a common legend entry."""
    groups: dict[str, list[Series]] = {}
    for one in series:
        label = label_of(one)
        if but == "epsilon":
            promise = one.guarantee
            delta = rounded_up(promise["delta"], 3)
            label = f"{one.facts['label']}, {promise['notion']}, delta {delta}"
        groups.setdefault(label, []).append(one)
    return groups


def _final_line(axes: "Axes", index: int, label: str, group: list[Series], by: Varied) -> None:
    group = sorted(group, key=lambda s: float(s.facts[by]))
    x = [s.facts[by] for s in group]
    limits = [band(s.final[:, None], positive=True) for s in group]
    mean, low, high = ([float(getattr(b, k)[0]) for b in limits] for k in ("mean", "low", "high"))
    colour, style = COLOURS[index % 8], STYLES[index % 8]
    axes.plot(x, mean, color=colour, ls=style, marker=MARKERS[index % 8], ms=5, label=label)
    axes.fill_between(x, low, high, color=colour, alpha=0.15, lw=0)
