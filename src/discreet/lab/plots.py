"""Pictures, drawn from result files. Axes in, axes out.

Colours are those of Okabe and Ito (2008), distinguishable with any common colour blindness; lines
also differ in style, so the pictures survive a black-and-white printer. Lines carry their names
where they end. Pictures are small and their text is large, so that a phone shows them as they are.
"""

import math
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import numpy as np

from discreet._types import FloatArray
from discreet.errors import MissingExtraError, UnknownNameError
from discreet.lab.labels import TITLES, label_of, labels_of, trust_words
from discreet.lab.results import Results, Series
from discreet.lab.statistics import band

if TYPE_CHECKING:
    from types import ModuleType

    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from discreet.mdp.shape import Shape
    from discreet.papers.bounds import RegretBound

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
_DIRECT = 6  # more lines than this have a legend below
_SIZE = (5.4, 3.8)  # inches: as wide as a phone
_ROW = 0.2  # inches that a row of a legend takes
_TEXT = 9.5
_FOLD = 44  # letters of a name beside an axis before it is folded
_GAP = 0.062  # of the axes' height between two names at the end of lines
UNIFORM = "playing at random"
_CURVES = ("regret", "per-episode", "deviation", "range", "bounds")
"""Lines along the episodes, which may end where they like."""
_TRUST_COLOURS = {
    "none": "#444444",
    "central": COLOURS[0],
    "shuffle": COLOURS[2],
    "local": COLOURS[1],
}
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

    With one learner, each trust model has its colour in every picture. With at most one epsilon per
    family every line has a style of its own as well, for printers without colours.
    """
    families: dict[tuple[str, ...], list[tuple[float | str, ...]]] = {}
    keys = [(_family(s), _strength(s)) for s in series]
    for family, strength in keys:
        families.setdefault(family, []).append(strength)
    single = all(len(strengths) == 1 for strengths in families.values())
    names = list(families)
    trusts = _are_trust_models(series)
    looks = []
    for family, strength in keys:
        number = names.index(family)
        style = number if single else families[family].index(strength)
        colour = _TRUST_COLOURS[family[2]] if trusts else COLOURS[number % 8]
        looks.append((colour, STYLES[style % 8]))
    return looks


def _are_trust_models(series: Sequence[Series]) -> bool:
    """True if lines differ in their trust model (and epsilon) alone."""
    return len({_family(one)[:2] for one in series if one.facts["trust"] != "none"}) <= 1


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
    for one, name, (colour, style) in _lines(series):
        limits, shown = band(one.regret, positive=True), one.episodes >= longest.episodes[late][0]
        x, mean, low, high = (
            values[shown] for values in (one.episodes, limits.mean, limits.low, limits.high)
        )
        axes.plot(x, mean, color=colour, ls=style, lw=1.8, label=name)
        axes.fill_between(x, low, high, color=colour, alpha=shade, lw=0)
    x, uniform = longest.episodes[late], longest.uniform[late]
    axes.plot(x, uniform, color="0.6", lw=1, ls=":", label=UNIFORM)
    axes.set(xscale="log", yscale="log", xlabel="episodes (users)", ylabel="cumulative regret")
    return axes


def plot_per_episode(axes: "Axes", series: Sequence[Series]) -> "Axes":
    """Mean regret per episode so far: a line that falls is a learner that learns."""
    for one, name, (colour, style) in _lines(series):
        mean = one.regret.mean(axis=0) / one.episodes
        axes.plot(one.episodes, mean, color=colour, ls=style, lw=1.8, label=name)
    level = series[0].uniform[-1] / series[0].episodes[-1]
    axes.axhline(level, color="0.6", lw=1, ls=":", label=UNIFORM)
    axes.set(xscale="log", yscale="log", xlabel="episodes (users)", ylabel="regret per episode")
    return axes


def plot_deviation(axes: "Axes", series: Sequence[Series]) -> "Axes":
    """Cumulative regret on plain axes with standard deviations (figure 4 of paper 001)."""
    return _plain_axes(axes, series, lambda runs: runs.mean(axis=0) + _sides(runs.std(axis=0)))


def plot_range(axes: "Axes", series: Sequence[Series]) -> "Axes":
    """Cumulative regret on plain axes from the least run to the worst (figures of paper 002)."""
    return _plain_axes(axes, series, lambda runs: np.stack([runs.min(axis=0), runs.max(axis=0)]))


def _sides(width: FloatArray) -> FloatArray:
    return np.stack([-width, width])


def _plain_axes(
    axes: "Axes", series: Sequence[Series], shade: Callable[[FloatArray], FloatArray]
) -> "Axes":
    """Mean regret of every line; ``shade`` gives the lower and the upper edge of its band."""
    for one, name, (colour, style) in _lines(series):
        low, high = shade(one.regret)
        axes.plot(one.episodes, one.regret.mean(axis=0), color=colour, ls=style, lw=1.8, label=name)
        axes.fill_between(one.episodes, low, high, color=colour, alpha=0.12, lw=0)
    longest = max(series, key=lambda s: s.episodes[-1])
    axes.plot(longest.episodes, longest.uniform, color="0.6", lw=1, ls=":", label=UNIFORM)
    axes.set(xlabel="episodes (users)", ylabel="cumulative regret")
    return axes


def plot_bounds(axes: "Axes", series: Sequence[Series], shape: "Shape | None" = None) -> "Axes":
    """Cumulative regret, and the slope of every line's printed bound, dotted.

    Args:
        axes: where to draw.
        series: the lines.
        shape: of the environment; None is that of RiverSwim, S=4, A=2, H=6.
    """
    from discreet.papers.bounds import LOWER, bounds_of

    plot_regret(axes, series)
    size = (4, 2, 6) if shape is None else (shape.states, shape.actions, shape.horizon)
    for one, (colour, _) in zip(series, looks_of(series), strict=True):
        bound = bounds_of(one.facts["learner"]).get(one.facts["trust"])
        if bound is not None:
            _slope(axes, one, bound, size, colour)
    least = min(series, key=lambda s: float(s.final.mean()) / s.episodes[-1])
    _slope(axes, least, LOWER[least.facts["trust"]], size, "black")
    return axes


def _slope(
    axes: "Axes", one: Series, bound: "RegretBound", size: tuple[int, int, int], colour: str
) -> None:
    """A bound, moved so that it meets the end of a line."""
    late = one.episodes >= one.episodes[-1] ** (1 / 2)
    values = np.array([bound(*size, float(k), one.facts["epsilon"]) for k in one.episodes[late]])
    scale = float(one.final.mean()) / values[-1]
    axes.plot(one.episodes[late], scale * values, color=colour, ls=":", lw=1.2)


def plot_by_episodes(axes: "Axes", series: Sequence[Series]) -> "Axes":
    """Final regret against K, one line per learner and guarantee; each K is a run of its own."""
    _final_lines(axes, series, "episodes")
    uniform = sorted({(int(s.episodes[-1]), float(s.uniform[-1])) for s in series})
    axes.plot(*zip(*uniform, strict=True), color="0.6", lw=1, ls=":", label=UNIFORM)
    axes.set(xscale="log", yscale="log", xlabel="K, users in the study", ylabel="final regret")
    return axes


def plot_by_epsilon(axes: "Axes", series: Sequence[Series]) -> "Axes":
    """Final regret against epsilon; the non-private twin is a horizontal line."""
    private = [s for s in series if s.guarantee["notion"] != "none"]
    names = {id(one): name for one, name in zip(series, names_of(series), strict=True)}
    _final_lines(axes, private, "epsilon")
    for one in series:
        if one.guarantee["notion"] == "none":
            axes.axhline(one.final.mean(), color="black", lw=1.4, label=names[id(one)])
    level = float(np.mean([s.uniform[-1] for s in series]))
    axes.axhline(level, color="0.6", lw=1, ls=":", label=UNIFORM)
    axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="final regret")
    return axes


def plot_cost(axes: "Axes", series: Sequence[Series]) -> "Axes":
    """What privacy costs: final regret of each guarantee beside its non-private twin.

    Points, not bars: on a logarithmic axis a bar would begin anywhere.
    """
    ordered = sorted(series, key=lambda s: float(s.final.mean()), reverse=True)
    for place, (one, name) in enumerate(zip(ordered, names_of(ordered), strict=True)):
        limits = band(one.final[:, None], positive=True)
        mean, low, high = (float(v[0]) for v in (limits.mean, limits.low, limits.high))
        colour = _TRUST_COLOURS[one.facts["trust"]]
        axes.plot([low, high], [place, place], color=colour, lw=2.5, solid_capstyle="butt")
        axes.plot([mean], [place], "o", color=colour, ms=7, label=name)
        axes.annotate(
            f"{mean:,.0f}",
            (high, place),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            fontsize=_TEXT,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},  # over lines, legible
        )
    axes.axvline(ordered[0].uniform[-1], color="0.5", lw=1, ls=":")
    axes.annotate(
        UNIFORM,
        (ordered[0].uniform[-1], len(ordered) - 0.1),
        xytext=(-4, 0),
        textcoords="offset points",
        ha="right",
        va="top",
        color="0.4",
        fontsize=8.5,
    )
    folded = [_folded(name) for name in names_of(ordered)]
    axes.set_yticks(range(len(ordered)), folded, linespacing=0.95)
    axes.set(xscale="log", xlabel="final regret", ylim=(-0.6, len(ordered)))
    axes.margins(x=0.16)
    return axes


def _folded(name: str) -> str:
    """A long name in several lines; ``ε = 1`` stays together."""
    together = name.replace(" = ", "\u00a0=\u00a0")  # which no line ends in
    return textwrap.fill(together, _FOLD).replace("\u00a0", " ")


def plot_noise(axes: "Axes", series: Sequence[Series]) -> "Axes":
    """Noise against signal: expected visits of every counter, and the noise on one of them."""
    signal = series[0].signal
    axes.step(np.arange(1, len(signal) + 1), signal, where="mid", color="black", label="visits")
    for one, name, (colour, style) in _lines(series):
        if one.count_noise > 0:
            axes.axhline(one.count_noise, color=colour, ls=style, lw=1.8, label=f"noise, {name}")
    axes.set(yscale="log", xlabel="counter (step, state, action), by rank", ylabel="users")
    axes.locator_params(axis="x", integer=True)
    return axes


def plot_policy(
    axes: "Axes", actions: Sequence[Sequence[int]], title: str = "", count: int | None = None
) -> "Axes":
    """A deterministic policy as a heat map: step across, state down, colour is the action.

    Args:
        axes: where to draw.
        actions: ``[H][S]``.
        title: above it.
        count: how many actions there are; colours of a row of pictures then mean the same.
    """
    grid = np.asarray(actions).T
    number = max(int(grid.max()) + 1 if count is None else count, 2)
    colours = _action_colours(number)
    axes.imshow(grid, aspect="auto", cmap=colours, vmin=-0.5, vmax=number - 0.5, origin="lower")
    axes.set(xlabel="step", ylabel="state", title=title)
    axes.locator_params(integer=True)
    return axes


def _action_colours(count: int) -> "Colormap":
    """One colour per action, ours while they last."""
    plt = _pyplot()
    from matplotlib.colors import ListedColormap

    return ListedColormap(COLOURS[:count]) if count <= 8 else plt.get_cmap("cividis", count)


def action_colours(count: int) -> list[str]:
    """The colours of a heat map's actions, for its key."""
    from matplotlib.colors import to_hex

    colours = _action_colours(max(count, 2))
    return [to_hex(colours(number)) for number in range(count)]


PLOTS: dict[str, Callable[["Axes", Sequence[Series]], "Axes"]] = {
    "regret": plot_regret,
    "per-episode": plot_per_episode,
    "deviation": plot_deviation,
    "range": plot_range,
    "bounds": plot_bounds,
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
    with plt.rc_context({"font.size": _TEXT, "font.family": "sans-serif"}), _regret_may_be_zero():
        drawn: Figure = plt.figure(figsize=_SIZE, layout="constrained")
        axes = drawn.subplots()
        if name == "bounds":
            plot_bounds(axes, series, _shape_of(results, series[0].facts["environment"]))
        else:
            PLOTS[name](axes, series)
        axes.set_axisbelow(True)
        axes.grid(True, which="major", color="0.9", lw=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.minorticks_off()
        _number_short_axes(axes)
        axes.set_title(
            f"{TITLES[name]}\n{_literal(series[0].facts['environment'])}",
            loc="left",
            fontsize=10.5,
        )
        if name != "cost":
            _name_lines(drawn, axes)
        else:
            lines = sum(1 + tick.get_text().count("\n") for tick in axes.get_yticklabels())
            drawn.set_size_inches(_SIZE[0], 1.5 + 0.15 * (len(series) + lines))
    return drawn


def _number_short_axes(axes: "Axes") -> None:
    """Round numbers on a logarithmic axis that shows less than two powers of ten."""
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        if axis.get_scale() == "log" and 0 < low < high:
            powers = math.floor(math.log10(high)) - math.ceil(math.log10(low)) + 1
            if powers < 2:
                axis.set_major_locator(MaxNLocator(4))
                axis.set_major_formatter(StrMethodFormatter("{x:,.6g}"))


def _shape_of(results: Results, environment: str) -> "Shape | None":
    """The size of an environment of the experiment; None if it is none of them."""
    from discreet.lab.tasks import build_environment

    rows = [row for row in results.experiment.environments if row.title == environment]
    return build_environment(rows[0], results.experiment.seed, 0).shape if rows else None


@contextmanager
def _regret_may_be_zero() -> Iterator[None]:
    """A problem in which every policy is the best one has nothing to draw, which is no mistake."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Data has no positive values")
        yield


def _name_lines(drawn: "Figure", axes: "Axes") -> None:
    """Names where lines end; a legend below if there are too many."""
    found, names = axes.get_legend_handles_labels()
    handles = cast("list[Line2D]", found)
    if len(names) > _DIRECT:
        columns = 1 if max(map(len, names)) > 28 else 2
        rows = -(-len(names) // columns)
        drawn.set_size_inches(_SIZE[0], _SIZE[1] + _ROW * rows)
        drawn.legend(
            handles, names, ncols=columns, frameon=False, loc="outside lower left", fontsize=8.5
        )
        return
    top, bottom = axes.transAxes.transform([(0, 1), (0, 0)])[:, 1]
    ends = []
    for line, name in zip(handles, names, strict=True):
        y = float(np.ravel(line.get_ydata())[-1])
        pixel = axes.transData.transform((axes.get_xlim()[1], y))[1]
        height = float(np.clip(np.nan_to_num((pixel - bottom) / (top - bottom)), 0, 1))
        ends.append((height, name, line.get_color()))
    heights = spread([height for height, _, _ in ends], _GAP)
    for height, (_, name, colour) in zip(heights, ends, strict=True):
        axes.text(
            1.015,
            height,
            name.replace(", ", "\n", 1) if len(name) > 22 else name,
            transform=axes.transAxes,
            color="0.4" if name == UNIFORM else colour,
            va="center",
            linespacing=0.95,
        )


def spread(heights: Sequence[float], gap: float) -> list[float]:
    """The same heights, moved as little as makes them ``gap`` apart.

    >>> [round(h, 2) for h in spread([0.5, 0.52, 0.9], 0.1)]
    [0.46, 0.56, 0.9]
    """
    order = np.argsort(heights, kind="stable")
    moved = np.asarray(heights, float)[order]
    for _ in range(200):
        short = gap - np.diff(moved)
        if not (short > 1e-9).any():
            break
        push = np.maximum(short, 0) / 2
        moved[:-1] -= push
        moved[1:] += push
    answer = np.empty(len(moved))
    answer[order] = moved
    return [float(height) for height in answer]


def names_of(series: Sequence[Series]) -> list[str]:
    """The names of lines, as they are to be drawn."""
    return [_literal(name) for name in labels_of(series)]


def _literal(text: str) -> str:
    """Matplotlib reads dollars as mathematics and leaves out names that begin with `_`."""
    shown = text.replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def _lines(series: Sequence[Series]) -> "Iterator[tuple[Series, str, tuple[str, Style]]]":
    """Every line with its name and its looks."""
    return zip(series, names_of(series), looks_of(series), strict=True)


def _longest(series: Sequence[Series], *, per_line: bool) -> list[Series]:
    """The largest K of all, or of each line (a learner may be too slow for the largest)."""
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
    """Series that differ only in ``but``, under a common name."""
    groups: dict[str, list[Series]] = {}
    names = names_of(series)
    if but == "epsilon":
        several = len({(s.facts["label"], s.facts["requested"]) for s in series}) > 1
        names = [
            _without_epsilon(one, name, several) for one, name in zip(series, names, strict=True)
        ]
    for one, name in zip(series, names, strict=True):
        groups.setdefault(name, []).append(one)
    return groups


def _without_epsilon(one: Series, name: str, several: bool) -> str:
    """The name of all epsilons of a learner and trust model."""
    said = trust_words(one.facts, one.guarantee)
    short = one.facts["trust"] + (" (paper's constants)" if "(paper" in said else "")
    return name.partition(", ε")[0] if several else short


def _final_lines(axes: "Axes", series: Sequence[Series], by: Varied) -> None:
    trusts = _are_trust_models(series)
    for index, (label, group) in enumerate(_groups(series, by).items()):
        colour = _TRUST_COLOURS[group[0].facts["trust"]] if trusts else COLOURS[index % 8]
        _final_line(axes, (colour, index), label, group, by)


def _final_line(
    axes: "Axes", looks: tuple[str, int], label: str, group: list[Series], by: Varied
) -> None:
    (colour, index), group = looks, sorted(group, key=lambda s: float(s.facts[by]))
    x = [s.facts[by] for s in group]
    limits = [band(s.final[:, None], positive=True) for s in group]
    mean, low, high = ([float(getattr(b, k)[0]) for b in limits] for k in ("mean", "low", "high"))
    style, marker = STYLES[index % 8], MARKERS[index % 8]
    axes.plot(x, mean, color=colour, ls=style, marker=marker, ms=5, lw=1.8, label=label)
    axes.fill_between(x, low, high, color=colour, alpha=0.15, lw=0)
