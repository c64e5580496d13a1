"""Pictures, drawn from result files. Axes in, axes out.

Lines carry their names where they end. Pictures are small and their text is large, so that a phone
shows them as they are. Colours and line styles are those of `discreet.lab.style`.
"""

import math
import textwrap
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

import numpy as np

from discreet._types import FloatArray
from discreet.errors import MissingExtraError, UnknownNameError
from discreet.lab.results import Results, Series
from discreet.lab.style import (
    COLOURS,
    STYLES,
    TRUST_COLOURS,
    Line,
    are_trust_models,
    label_of,
    labels_of,
    lines_by_claim,
    panels_of,
    styles_of,
    trust_words,
)
from discreet.lab.summary import band
from discreet.lab.tasks import build_environment
from discreet.privacy.guarantee import rounded_up

if TYPE_CHECKING:
    from types import ModuleType

    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from discreet.mdp.tabular import TabularMDP
    from discreet.papers.bounds import RegretBound
    from discreet.study.plan import PlanRow, StudyPlan

_DIRECT = 6  # more lines than this have a legend below
_SIZE = (5.4, 3.8)  # inches: as wide as a phone
_ROW = 0.2  # inches that a row of a legend takes
_TEXT = 9.5
_SMALL_TEXT = 8  # of pictures that are narrower
_FOLD = 44  # letters of a name beside an axis before it is folded
_BESIDE = 24  # letters of a name at the end of a line, folded; a longer one needs a legend
_BELOW = 70  # letters of a name in a legend before it is folded
_FAR = 3  # a band shows as far as this times the highest line, and its inverse below the lowest
_GAP = 0.062  # of the axes' height between two names at the end of lines
UNIFORM = "playing at random"
_INTERVAL = "_interval"  # no line: limits do not follow it
_CURVES = ("regret", "return", "per-episode", "deviation", "range", "bounds")
"""Lines along the episodes, which may end where they like."""
_PANELLED = ("regret", "return", "per-episode", "deviation", "range")
"""Pictures that are drawn in panels where the experiment asks for them."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


def pyplot() -> "ModuleType":
    """Matplotlib that needs no screen, or who brings it."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingExtraError("matplotlib", "lab") from None
    mpl.use("Agg", force=False)
    import matplotlib.pyplot as plt

    module: ModuleType = plt
    return module


def plot_regret(
    axes: "Axes", series: Sequence[Series], lines: Sequence[Line] | None = None
) -> "Axes":
    """Cumulative regret against episodes, log-log, with 95% simultaneous bands.

    Here and below ``lines`` are the series with names and styles, where other axes share them.
    """
    longest = max(series, key=lambda s: s.episodes[-1])
    late = longest.episodes >= longest.episodes[-1] ** (1 / 3)  # before, all lines are one
    shade = 0.15 if len(series) <= len(COLOURS) else 0.05
    for one, name, (colour, style) in lines or _lines(series):
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


def plot_return(
    axes: "Axes", series: Sequence[Series], lines: Sequence[Line] | None = None
) -> "Axes":
    """Without a model: the mean return so far, within two standard errors.

    Those of the mean over runs; of a single run, its own.
    """
    for one, name, (colour, style) in lines or _lines(series):
        if one.returns is None or one.errors is None:
            continue
        late = one.episodes >= one.episodes[-1] ** (1 / 3)  # before, chance decides
        x, mean, runs = one.episodes[late], one.returns.mean(axis=0)[late], len(one.returns)
        error = one.returns.std(axis=0, ddof=1) / np.sqrt(runs) if runs > 1 else one.errors[0]
        reach = 2 * error[late]
        axes.plot(x, mean, color=colour, ls=style, lw=1.8, label=name)
        axes.fill_between(x, mean - reach, mean + reach, color=colour, alpha=0.15, lw=0)
    axes.axhline(series[0].uniform[-1], color="0.6", lw=1, ls=":", label=UNIFORM)
    axes.set(xscale="log", xlabel="episodes (users)", ylabel="return of an episode")
    return axes


def plot_per_episode(
    axes: "Axes", series: Sequence[Series], lines: Sequence[Line] | None = None
) -> "Axes":
    """Mean regret per episode so far: a line that falls is a learner that learns."""
    for one, name, (colour, style) in lines or _lines(series):
        mean = one.regret.mean(axis=0) / one.episodes
        axes.plot(one.episodes, mean, color=colour, ls=style, lw=1.8, label=name)
    level = series[0].uniform[-1] / series[0].episodes[-1]
    axes.axhline(level, color="0.6", lw=1, ls=":", label=UNIFORM)
    axes.set(xscale="log", yscale="log", xlabel="episodes (users)", ylabel="regret per episode")
    return axes


def plot_deviation(
    axes: "Axes", series: Sequence[Series], lines: Sequence[Line] | None = None
) -> "Axes":
    """Cumulative regret on plain axes with standard deviations (figure 4 of paper 001)."""
    spread = np.array([[-1.0], [1.0]])
    return _plain_axes(
        axes, lines or _lines(series), lambda runs: runs.mean(axis=0) + spread * runs.std(axis=0)
    )


def plot_range(
    axes: "Axes", series: Sequence[Series], lines: Sequence[Line] | None = None
) -> "Axes":
    """Cumulative regret on plain axes from the least run to the worst (figures of paper 002)."""
    return _plain_axes(
        axes, lines or _lines(series), lambda runs: np.stack([runs.min(axis=0), runs.max(axis=0)])
    )


def _plain_axes(
    axes: "Axes", lines: Sequence[Line], shade: Callable[[FloatArray], FloatArray]
) -> "Axes":
    """Mean regret of every line; ``shade`` gives the lower and the upper edge of its band.

    Bands decide the limits where playing at random is far above them: it leaves the picture.
    """
    top = 0.0
    for one, name, (colour, style) in lines:
        low, high = shade(one.regret)
        top = max(top, float(high.max()))
        axes.plot(one.episodes, one.regret.mean(axis=0), color=colour, ls=style, lw=1.8, label=name)
        axes.fill_between(one.episodes, low, high, color=colour, alpha=0.12, lw=0)
    longest = max((one for one, _, _ in lines), key=lambda s: s.episodes[-1])
    axes.plot(longest.episodes, longest.uniform, color="0.6", lw=1, ls=":", label=UNIFORM)
    axes.set(xlabel="episodes (users)", ylabel="cumulative regret")
    if 0 < 2 * top < longest.uniform[-1]:
        axes.set_ylim(-0.02 * top, 1.05 * top)
    return axes


def plot_bounds(axes: "Axes", series: Sequence[Series], mdp: "TabularMDP | None" = None) -> "Axes":
    """Cumulative regret, and the slope of every line's printed bound, dotted.

    Bounds are for the size of the environment; left out, it is RiverSwim's, S=4, A=2, H=6.
    """
    from discreet.mdp.environments.registry import make
    from discreet.mdp.layered import LayeredMDP
    from discreet.papers.bounds import LOWER, bounds_of

    mdp = make("RiverSwim") if mdp is None else mdp
    layered = mdp if isinstance(mdp, LayeredMDP) else LayeredMDP.from_tabular(mdp)

    def slope(one: Series, bound: "RegretBound", colour: str, name: str) -> None:
        late = one.episodes >= one.episodes[-1] ** (1 / 2)
        states = layered.states + 1 if bound.layered else mdp.shape.states  # X with x_H, or S
        size = states, mdp.shape.actions, mdp.shape.horizon
        delta = one.facts["delta"] or 1e-6
        values = np.array(
            [bound(*size, k, one.facts["epsilon"], delta=delta) for k in one.episodes[late]]
        )
        values *= float(one.final.mean()) / values[-1]
        axes.plot(one.episodes[late], values, color=colour, ls=":", lw=1.2, label=name)

    plot_regret(axes, series)
    named = set[str]()
    for one, (colour, _) in zip(series, styles_of(series), strict=True):
        known = bounds_of(
            one.facts["learner"],
            one.facts["settings"].get("fine"),
            mechanism=one.facts["mechanism"],
            stationary=one.facts["settings"].get("stationary", False),
        )
        bound = known.get(one.facts["trust"])
        if bound is not None:
            new = bound.text not in named  # else without a name of its own in the legend
            slope(one, bound, colour, f"slope of its bound, {bound.text}" if new else "_")
            named.add(bound.text)
    least = min(series, key=lambda s: float(s.final.mean()) / s.episodes[-1])
    lower = LOWER[least.facts["trust"]]
    slope(least, lower, "black", f"slope of the lower bound, {lower.text}")
    return axes


def plot_by_episodes(axes: "Axes", series: Sequence[Series]) -> "Axes":
    """Final regret against K, one line per learner and guarantee; each K is a run of its own."""
    _final_lines(axes, series, "episodes")
    uniform = sorted({(int(s.episodes[-1]), float(s.uniform[-1])) for s in series})
    axes.plot(*zip(*uniform, strict=True), color="0.6", lw=1, ls=":", label=UNIFORM)
    axes.set(xscale="log", yscale="log", xlabel="K, users in the study", ylabel="final regret")
    return axes


def plot_by_epsilon(axes: "Axes", series: Sequence[Series]) -> "Axes":
    """Final regret against epsilon; the non-private twin is a horizontal line."""
    private = [s for s in series if s.facts["guarantee"]["notion"] != "none"]
    names = {id(one): name for one, name in zip(series, names_of(series), strict=True)}
    _final_lines(axes, private, "epsilon")
    for one in series:
        if one.facts["guarantee"]["notion"] == "none":
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
    worst = max(float(s.uniform[-1]) for s in series)
    worst = max(worst, float(ordered[0].final.mean()))
    for place, (one, name) in enumerate(zip(ordered, names_of(ordered), strict=True)):
        limits = band(one.final[:, None], positive=True)
        mean, low, high = (float(v[0]) for v in (limits.mean, limits.low, limits.high))
        colour = TRUST_COLOURS[one.facts["trust"]]
        axes.plot(
            [low, high], [place] * 2, color=colour, lw=2.5, solid_capstyle="butt", label=_INTERVAL
        )
        axes.plot([mean], [place], "o", color=colour, ms=7, label=name)
        axes.annotate(
            f"{mean:,.0f}",
            (min(high, _FAR * worst), place),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            fontsize="medium",
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


def _folded(name: str, width: int = _FOLD) -> str:
    """A long name in several lines; ``ε = 1`` stays together."""
    together = name.replace(" = ", "\u00a0=\u00a0")  # which no line ends in
    return textwrap.fill(together, width).replace("\u00a0", " ")


def plot_noise(axes: "Axes", series: Sequence[Series]) -> "Axes":
    """Noise against signal: expected visits of every counter, and the noise on one of them."""
    signal = series[0].facts["signal"]
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
    """A deterministic policy ``[H][S]`` as a heat map: step across, state down, colour the action.

    With the same ``count`` of actions, colours of several pictures mean the same.
    """
    grid = np.asarray(actions).T
    number = max(int(grid.max()) + 1 if count is None else count, 2)
    colours = _action_colours(number)
    axes.imshow(grid, aspect="auto", cmap=colours, vmin=-0.5, vmax=number - 0.5, origin="lower")
    axes.set(xlabel="step", ylabel="state", title=title)
    axes.locator_params(integer=True)
    return axes


def _action_colours(count: int) -> "Colormap":
    plt = pyplot()
    from matplotlib.colors import ListedColormap

    return ListedColormap(COLOURS[:count]) if count <= 8 else plt.get_cmap("cividis", count)


def action_colours(count: int) -> list[str]:
    """The colours of a heat map's actions, for its key."""
    from matplotlib.colors import to_hex

    colours = _action_colours(max(count, 2))
    return [to_hex(colours(number)) for number in range(count)]


class Plot(NamedTuple):
    """A kind of picture: what it is called, how it is read, and who draws it."""

    title: str
    caption: str
    draw: Callable[..., "Axes"]


PLOTS = {
    "regret": Plot(
        "Regret against users",
        "Exact expected regret, mean over runs; shaded: 95% band that holds at all points at "
        "once. Dotted grey: always playing at random.",
        plot_regret,
    ),
    "return": Plot(
        "Return of an episode",
        "What an episode earned, mean over all so far and over runs; shaded: two standard "
        "errors. Dotted grey: playing at random. There is no model, so nobody knows the regret.",
        plot_return,
    ),
    "per-episode": Plot(
        "Regret per user so far",
        "A falling line is a learner that learns; dotted grey: playing at random.",
        plot_per_episode,
    ),
    "deviation": Plot(
        "Regret against users, with standard deviations",
        "Mean over runs, shaded: one standard deviation on either side; dotted grey: playing at "
        "random. Axes and bands as in paper 001.",
        plot_deviation,
    ),
    "range": Plot(
        "Regret against users, from the least run to the worst",
        "Mean over runs, shaded: from the least run to the worst; dotted grey: playing at "
        "random. Axes and bands as in paper 002.",
        plot_range,
    ),
    "bounds": Plot(
        "Regret and the slopes of its bounds",
        "Dotted: how the printed bound of each learner under its trust model grows, through the "
        "end of its line (bounds hold up to constants); black: the same of what no learner can "
        "beat, through the end of the lowest line. X of paper 004 counts the states of all "
        "layers.",
        plot_bounds,
    ),
    "by-episodes": Plot(
        "Final regret against the size of the study",
        "Every point is a separate study of that size; shaded: 95% intervals. Dotted grey: "
        "playing at random.",
        plot_by_episodes,
    ),
    "by-epsilon": Plot(
        "Final regret against epsilon",
        "Smaller epsilon, stronger privacy; dotted grey: playing at random.",
        plot_by_epsilon,
    ),
    "cost": Plot(
        "What privacy costs",
        "Final regret at the largest K, with 95% intervals; dotted grey: playing at random.",
        plot_cost,
    ),
    "noise": Plot(
        "Noise against signal",
        "Black: expected visits of each counter if all users followed the best policy. A "
        "counter below a line drowns in that trust model's noise.",
        plot_noise,
    ),
}


def figure(
    results: Results,
    name: str,
    environment: str | None = None,
    *,
    width: float = _SIZE[0],
    titled: bool = True,
) -> "Figure":
    """A ready figure of one kind; ``environment`` picks one of several.

    For a paper: ``width`` in inches (3.3 is a column), and no title above it.
    """
    if name not in PLOTS:
        raise UnknownNameError("plot", name, PLOTS)
    plt = pyplot()
    series = [s for s in results.series() if environment in (None, s.facts["environment"])]
    if name != "by-episodes":  # the largest K of all, or of each line: some are too slow for it
        lines = [label_of(one) if name in _CURVES else "" for one in series]
        pairs = list(zip(lines, series, strict=True))
        largest = {line: max(s.facts["episodes"] for k, s in pairs if k == line) for line in lines}
        series = [one for line, one in pairs if one.facts["episodes"] == largest[line]]
    narrow = width < _SIZE[0]
    style = {"font.size": _SMALL_TEXT if narrow else _TEXT, "font.family": "sans-serif"}
    with plt.rc_context(style), warnings.catch_warnings():
        # A problem in which every policy is the best one has nothing to draw, which is no mistake.
        warnings.filterwarnings("ignore", "Data has no positive values")
        drawn: Figure = plt.figure(
            figsize=(width, _SIZE[1] * width / _SIZE[0]), layout="constrained"
        )
        title = f"{PLOTS[name].title}\n{_literal(series[0].facts['environment'])}" * titled
        panels = panels_of(results.experiment.learners, series)
        if name in _PANELLED and len(panels) > 1:
            _draw_panels(drawn, PLOTS[name].draw, panels, title)
            return drawn
        axes = drawn.subplots()
        if name == "bounds":
            known = {row.title: row for row in results.experiment.environments}
            row = known.get(series[0].facts["environment"])
            mdp = None if row is None else build_environment(row, results.experiment.seed, 0)
            plot_bounds(axes, series, cast("TabularMDP | None", mdp))  # returns have no bounds
        else:
            PLOTS[name].draw(axes, series)
        _finish(axes, title)
        if name != "cost":
            _name_lines(drawn, axes, below=narrow or name == "bounds")
        else:
            rows = sum(1 + tick.get_text().count("\n") for tick in axes.get_yticklabels())
            drawn.set_size_inches(width, 1.5 + 0.15 * (len(series) + rows))
    return drawn


def plan_figure(plan: "StudyPlan") -> "Figure":
    """Smallest difference, and what a study does with it, against people (`plan_study`)."""
    plt = pyplot()
    groups: dict[tuple[str, float | None], list[PlanRow]] = {}
    for row in plan.rows:
        groups.setdefault((row.trust, row.epsilon), []).append(row)
    epsilons = sorted({epsilon for _, epsilon in groups if epsilon is not None})
    with plt.rc_context({"font.size": _TEXT, "font.family": "sans-serif"}):
        drawn: Figure = plt.figure(figsize=_SIZE, layout="constrained")
        upper, lower = drawn.subplots(2, sharex=True)
        for (trust, epsilon), rows in groups.items():
            kind = 0 if epsilon is None else 1 + epsilons.index(epsilon)
            style, marker = STYLES[kind % len(STYLES)], MARKERS[kind % len(MARKERS)]
            name = "no privacy" if epsilon is None else f"{trust}, ε = {rounded_up(epsilon)}"
            least = [
                math.nan if row.smallest_difference is None else row.smallest_difference
                for row in rows
            ]
            shares = [row.null_error if row.right is None else row.right for row in rows]
            people = [row.people for row in rows]
            look = {"color": TRUST_COLOURS[trust], "ls": style, "marker": marker, "lw": 1.8}
            upper.plot(people, least, **look)
            lower.plot(people, shares, label=name, **look)
        lower.set_xscale("log")
        some = any(row.smallest_difference is not None for row in plan.rows)
        upper.set(ylabel="smallest difference", yscale="log" if some else "linear")
        lower.set(xlabel="people", ylim=(-0.03, 1.03))
        _finish(upper, "What a study finds with probability 0.8")
        if plan.effect is None:
            lower.set_ylabel("null error")
            _finish(lower, "Studies that recommend anything where nothing is better")
        else:
            lower.set_ylabel("right action")
            _finish(lower, f"Probability of the right action, if it earns {plan.effect:.3g} more")
        sizes = sorted({row.people for row in plan.rows})
        lower.set_xticks(sizes, [f"{size:,}" for size in sizes])
        found, names = lower.get_legend_handles_labels()
        _legend_below(drawn, cast("list[Line2D]", found), names, 5.0)
    return drawn


def _draw_panels(
    drawn: "Figure",
    plot: Callable[..., "Axes"],
    panels: dict[str, list[Series]],
    title: str,
) -> None:
    rows: list[Axes] = list(drawn.subplots(len(panels), sharex=True, sharey=True))
    lines = lines_by_claim([one for group in panels.values() for one in group])
    for axes, (panel, group) in zip(rows, panels.items(), strict=True):
        members = {id(one) for one in group}
        mine = [(one, _literal(n), look) for one, n, look in lines if id(one) in members]
        plot(axes, group, mine)
        _finish(axes, _folded(_literal(panel), _BELOW))
        axes.label_outer()
    if title:
        drawn.suptitle(title, x=0.01, ha="left", fontsize=10.5)
    named: dict[str, Line2D] = {}
    for axes in rows:
        handles, names = axes.get_legend_handles_labels()
        named |= dict(zip(names, cast("list[Line2D]", handles), strict=True))
    scale = drawn.get_figwidth() / _SIZE[0]
    _legend_below(drawn, list(named.values()), list(named), (2.3 * len(rows) + 0.4) * scale)


def _finish(axes: "Axes", title: str) -> None:
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    axes.set_axisbelow(True)
    axes.grid(True, which="major", color="0.9", lw=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.minorticks_off()
    axes.set_title(title, loc="left", fontsize=10.5)
    lines = [line for line in axes.lines if line.get_label() != _INTERVAL]
    for axis, limits, move, column in (
        (axes.xaxis, axes.get_xlim, axes.set_xlim, 0),
        (axes.yaxis, axes.get_ylim, axes.set_ylim, 1),
    ):
        if axis.get_scale() != "log":
            continue
        # Lines decide the limits: the interval of two runs may be endless.
        drawn = np.concatenate([np.asarray(line.get_xydata())[:, column] for line in lines])
        shown = drawn[drawn > 0]
        if shown.size:
            low, high = float(shown.min()) / _FAR, float(shown.max()) * _FAR
            move(max(limits()[0], low), min(limits()[1], high))
        low, high = limits()
        if 0 < low < high:  # round numbers where less than two powers of ten are shown
            powers = math.floor(math.log10(high)) - math.ceil(math.log10(low)) + 1
            if powers < 2:
                axis.set_major_locator(MaxNLocator(4))
                axis.set_major_formatter(StrMethodFormatter("{x:,.6g}"))


def _legend_below(
    drawn: "Figure", handles: "Sequence[Line2D]", names: Sequence[str], height: float
) -> None:
    """A legend under axes that are ``height`` inches high; long names are folded."""
    scale = drawn.get_figwidth() / _SIZE[0]
    columns = 1 if max(map(len, names)) > 28 * scale else 2
    folded = [_folded(name, round(_BELOW * scale)) for name in names]
    rows = sum(1 + name.count("\n") for name in folded) / columns
    drawn.set_size_inches(drawn.get_figwidth(), height + _ROW * math.ceil(rows))
    drawn.legend(
        handles,
        folded,
        ncols=columns,
        frameon=False,
        loc="outside lower left",
        fontsize=8.5 if scale >= 1 else 7.5,
    )


def _name_lines(drawn: "Figure", axes: "Axes", *, below: bool) -> None:
    """Names where lines end; a legend below if asked for, or if they are too many or too long."""
    found, names = axes.get_legend_handles_labels()
    handles = cast("list[Line2D]", found)
    beside = [name.replace(", ", "\n", 1) if len(name) > 22 else name for name in names]
    widest = max((len(part) for name in beside for part in name.split("\n")), default=0)
    if below or len(names) > _DIRECT or widest > _BESIDE:
        _legend_below(drawn, handles, names, drawn.get_figheight())
        return
    top, bottom = axes.transAxes.transform([(0, 1), (0, 0)])[:, 1]
    ends = []
    for line, name in zip(handles, beside, strict=True):
        y = float(np.ravel(line.get_ydata())[-1])
        pixel = axes.transData.transform((axes.get_xlim()[1], y))[1]
        height = float(np.clip(np.nan_to_num((pixel - bottom) / (top - bottom)), 0, 1))
        ends.append((height, name, line.get_color()))
    heights = spread([height for height, _, _ in ends], _GAP)
    for height, (_, name, colour) in zip(heights, ends, strict=True):
        axes.text(
            1.015,
            height,
            name,
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


def _lines(series: Sequence[Series]) -> list[Line]:
    return list(zip(series, names_of(series), styles_of(series), strict=True))


def _final_lines(
    axes: "Axes", series: Sequence[Series], by: Literal["episodes", "epsilon"]
) -> None:
    """Final regrets along ``by``, a line for each group that differs in nothing else."""
    names, groups = names_of(series), dict[str, list[Series]]()
    several = len({(s.facts["label"], s.facts["requested"]) for s in series}) > 1
    for one, name in zip(series, names, strict=True):
        if by == "epsilon" and several:
            label = name.partition(", ε")[0]
        elif by == "epsilon":
            printed = "(paper" in trust_words(one.facts)
            label = one.facts["trust"] + " (paper's constants)" * printed
        else:
            label = name
        groups.setdefault(label, []).append(one)
    trusts = are_trust_models(series)
    for index, (label, found) in enumerate(groups.items()):
        group = sorted(found, key=lambda s: float(s.facts[by]))
        colour = TRUST_COLOURS[group[0].facts["trust"]] if trusts else COLOURS[index % 8]
        style, marker = STYLES[index % 8], MARKERS[index % 8]
        x = [s.facts[by] for s in group]
        limits = [band(s.final[:, None], positive=True) for s in group]
        mean, low, high = (
            [float(getattr(b, k)[0]) for b in limits] for k in ("mean", "low", "high")
        )
        axes.plot(x, mean, color=colour, ls=style, marker=marker, ms=5, lw=1.8, label=label)
        axes.fill_between(x, low, high, color=colour, alpha=0.15, lw=0)
