"""Every plot: axes in, axes out, with the lines, labels and scales that it promises."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from discreet.errors import UnknownNameError
from discreet.lab.plots import (
    PLOTS,
    action_colours,
    figure,
    plot_bounds,
    plot_by_episodes,
    plot_by_epsilon,
    plot_cost,
    plot_deviation,
    plot_noise,
    plot_per_episode,
    plot_policy,
    plot_range,
    plot_regret,
    plot_return,
)
from discreet.lab.spec import LearnerRow
from discreet.papers.bounds import BOUNDS
from helpers.experiments import series

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture
def axes():
    drawn, axes = plt.subplots()
    yield axes
    plt.close(drawn)


def labels(axes):
    return axes.get_legend_handles_labels()[1]


THREE = (series(), series("central", 1.0, scale=3), series("local", 1.0, scale=9))


@pytest.mark.parametrize("name", PLOTS)
def test_the_same_axes_come_back(axes, name):
    assert PLOTS[name].draw(axes, list(THREE)) is axes


def test_regret_has_a_line_and_a_band_each_and_the_uniform_policy(axes):
    plot_regret(axes, THREE)
    assert labels(axes) == ["no privacy", "central, ε = 1", "local, ε = 1", "playing at random"]
    assert len(axes.lines) == 4
    assert len(axes.collections) == 3
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    mean = axes.lines[1].get_ydata()
    assert mean[-1] == pytest.approx(3 * 1.5 * np.sqrt(1000))
    low, high = (f(axes.collections[1].get_paths()[0].vertices[:, 1]) for f in (np.min, np.max))
    assert 0 < low < mean[0]
    assert high > mean[-1]


def test_regret_leaves_out_where_all_lines_are_one(axes):
    plot_regret(axes, THREE)
    assert axes.lines[0].get_xdata().tolist() == [10, 100, 1000]  # from K^(1/3) on


def test_regret_per_episode_falls(axes):
    plot_per_episode(axes, THREE)
    y = axes.lines[0].get_ydata()
    assert (np.diff(y) < 0).all()
    assert y[-1] == pytest.approx(1.5 * np.sqrt(1000) / 1000)
    assert axes.lines[-1].get_ydata()[0] == pytest.approx(2.0)  # the uniform policy, per episode
    assert axes.get_ylabel() == "regret per episode"


def test_final_regret_against_k_joins_studies_of_one_guarantee(axes):
    plot_by_episodes(axes, [series(episodes=1000), series(episodes=10), series("local", 1.0)])
    assert labels(axes) == ["no privacy", "local, ε = 1", "playing at random"]
    assert list(axes.lines[0].get_xdata()) == [10, 1000]  # sorted by K
    assert list(axes.lines[0].get_ydata()) == pytest.approx([1.5 * 10**0.5, 1.5 * 1000**0.5])
    assert axes.get_xlabel() == "K, users in the study"


def test_final_regret_against_epsilon_has_the_twin_as_a_level(axes):
    group = [series("local", e, scale=1 / e) for e in (10.0, 0.1, 1.0)]
    plot_by_epsilon(axes, [*group, series(scale=0.01)])
    assert labels(axes) == ["local", "no privacy", "playing at random"]
    assert list(axes.lines[0].get_xdata()) == [0.1, 1.0, 10.0]
    assert list(axes.lines[1].get_ydata()) == pytest.approx([0.015 * 1000**0.5] * 2)
    assert axes.get_xscale() == "log"


def test_cost_is_sorted_and_privacy_is_coloured(axes):
    plot_cost(axes, THREE[::-1])
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    assert names == ["local, ε = 1", "central, ε = 1", "no privacy"]  # from below
    assert not axes.patches  # a bar on a logarithmic axis begins anywhere
    points = [line for line in axes.lines if line.get_marker() == "o"]
    means = [float(line.get_xdata()[0]) for line in points]
    assert means == sorted(means, reverse=True)
    assert len({line.get_color() for line in points}) == 3
    texts = [text.get_text() for text in axes.texts]
    assert texts == [f"{mean:,.0f}" for mean in means] + ["playing at random"]


@pytest.mark.parametrize("length", range(20, 43))
def test_a_folded_name_keeps_epsilon_and_its_value_together(axes, length):
    one = series("local", 1.0)
    plot_cost(axes, [replace(one, facts={**one.facts, "label": "x" * length}), THREE[0]])
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    assert any(name.replace("\n", " ").endswith(f"{'x' * length}, local, ε = 1") for name in names)
    assert all("ε = 1" in name for name in names if "ε" in name)


def test_noise_is_a_level_per_private_line(axes):
    plot_noise(axes, THREE)
    assert labels(axes) == ["visits", "noise, central, ε = 1", "noise, local, ε = 1"]
    assert axes.lines[1].get_ydata()[0] == 10.0
    assert axes.get_yscale() == "log"


def test_a_policy_is_a_map_of_steps_and_states(axes):
    plot_policy(axes, [[0, 1, 0], [1, 1, 0]], "title")
    assert axes.images[0].get_array().shape == (3, 2)  # states down, steps across
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()) == ("step", "state", "title")


def test_the_key_of_a_policy_has_the_colours_of_its_picture(axes):
    from matplotlib.colors import to_hex

    plot_policy(axes, [[0, 0], [0, 0]], count=3)
    image = axes.images[0]
    assert [to_hex(image.cmap(image.norm(a))) for a in range(3)] == action_colours(3)
    assert len(set(action_colours(20))) == 20


class Folder:
    """Results without files."""

    experiment = SimpleNamespace(environments=(), learners=())

    def __init__(self, *group):
        self.group = group

    def series(self):
        return list(self.group)


@pytest.mark.parametrize(("scale", "plain"), [(30, True), (0.3, False)])
def test_an_axis_without_powers_of_ten_has_round_numbers(scale, plain):
    alike = [series(scale=scale), series("central", 1.0, scale=1.2 * scale)]
    alike = [replace(one, regret=one.regret[[0] * len(one.regret)]) for one in alike]
    drawn = figure(Folder(*alike), "cost")
    drawn.canvas.draw()
    axes = drawn.axes[0]
    low, high = axes.get_xlim()
    ticks = zip(axes.get_xticklabels(), axes.get_xticks(), strict=True)
    names = [tick.get_text() for tick, place in ticks if low <= place <= high]
    assert len(names) >= 2
    assert all(name.replace(",", "").isdigit() for name in names) == plain


def test_a_figure_shows_the_largest_k_with_a_title():
    drawn = figure(Folder(series(episodes=10), *THREE), "regret")
    axes = drawn.axes[0]
    assert axes.get_title(loc="left") == "Regret against users\nE"
    assert len(axes.lines) == 4
    assert axes.get_legend() is None  # names stand where lines end
    texts = axes.texts
    names = [text.get_text() for text in texts]
    assert names == ["no privacy", "central, ε = 1", "local, ε = 1", "playing at random"]
    heights = sorted(text.get_position()[1] for text in texts)
    assert min(np.diff(heights)) > 0.06
    plt.close(drawn)


def test_a_learner_that_is_too_slow_for_the_largest_k_keeps_its_curve():
    short, long = series(label="slow", episodes=10), series(label="fast")
    drawn = figure(Folder(short, series(label="fast", episodes=10), long), "per-episode")
    ends = [float(line.get_xdata()[-1]) for line in drawn.axes[0].lines[:-1]]
    assert ends == [10, 1000]
    plt.close(drawn)
    drawn = figure(Folder(short, long), "cost")  # bars are compared at one K
    assert len(drawn.axes[0].get_yticks()) == 1
    plt.close(drawn)


def test_a_long_legend_stands_below_the_axes():
    group = [series("local", float(e), label=str(e)) for e in range(1, 9)]
    drawn = figure(Folder(*group), "regret")
    assert drawn.axes[0].get_legend() is None
    assert len(drawn.legends[0].get_texts()) == 9
    assert drawn.get_size_inches()[1] > 4.3  # there is room for it
    plt.close(drawn)


def test_an_environment_is_picked():
    drawn = figure(Folder(series(), series(environment="F", scale=5)), "regret", "F")
    assert drawn.axes[0].get_title(loc="left").endswith("\nF")
    plt.close(drawn)


def test_an_unknown_plot_is_named():
    with pytest.raises(UnknownNameError, match="did you mean 'regret'"):
        figure(Folder(series()), "regrets")


@pytest.mark.parametrize("name", sorted(PLOTS))
def test_dollars_and_underscores_are_drawn_as_they_are(name, tmp_path):
    """A label that is no mathematics would end the report after all runs."""
    odd = series("central", 1.0, label="_$\\frac{$"), series("local", 1.0, label="5 $")
    if name == "return":
        odd = tuple(replace(one, returns=one.regret, errors=one.regret / 9) for one in odd)
    for one in odd:
        one.facts["environment"] = "costs $\\bad{$"
    drawn = figure(Folder(*odd), name)
    drawn.savefig(tmp_path / "picture.svg", metadata={"Date": None})
    plt.close(drawn)
    with plt.rc_context({"svg.fonttype": "none"}):
        drawn.savefig(tmp_path / "picture.svg")
    text = (tmp_path / "picture.svg").read_text("utf-8")
    assert "costs $\\bad{$" in text
    assert "_$\\frac{$" in text


def test_bands_as_the_papers_draw_them(axes):
    """001: standard deviations; 002: from the least run to the worst; plain axes both."""
    one = THREE[1]
    plot_deviation(axes, [one])
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "linear")
    edges = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert edges.max() == pytest.approx((one.regret.mean(axis=0) + one.regret.std(axis=0)).max())
    axes.clear()
    plot_range(axes, [one])
    assert axes.collections[0].get_paths()[0].vertices[:, 1].max() == one.regret.max()
    assert labels(axes)[-1] == "playing at random"


@pytest.mark.parametrize(("times", "leaves"), [(1.5, False), (30.0, True)])
def test_playing_at_random_leaves_plain_axes_where_lines_would_be_flat(axes, times, leaves):
    one = THREE[1]
    far = replace(one, uniform=one.uniform * times * one.regret.max() / one.uniform[-1])
    plot_range(axes, [far])
    top = axes.get_ylim()[1]
    assert (top < far.uniform[-1]) == leaves
    assert top >= one.regret.max()


def test_slopes_of_bounds_end_where_the_lines_do(axes):
    known = [replace(s, facts={**s.facts, "learner": "dp-ucbvi"}) for s in THREE]
    plot_bounds(axes, known)
    dotted = axes.lines[4:]  # three lines and the uniform policy
    named = [name for name in labels(axes) if name.startswith("slope")]
    assert named[0] == "slope of its bound, sqrt(SAH²T)"
    assert named[-1] == "slope of the lower bound, H·sqrt(SAK)"
    assert len(named) == 4
    assert len(dotted) == len(known) + 1  # and what nobody can beat
    for line, one in zip(dotted, known, strict=False):
        assert line.get_ydata()[-1] == pytest.approx(one.final.mean())
    lowest = min(known, key=lambda s: s.final.mean())
    assert dotted[-1].get_ydata()[-1] == pytest.approx(lowest.final.mean())
    x, y = dotted[-1].get_xdata(), dotted[-1].get_ydata()
    assert y[-1] / y[0] == pytest.approx((x[-1] / x[0]) ** 0.5)  # H·sqrt(SAK)


def test_a_slope_takes_the_states_of_all_layers_and_the_version_of_its_run(axes):
    """X of 004 is 22 for RiverSwim S=4, H=6; `fine="mixture"` is 000, with a bound of its own."""
    one = series("central", 1.0, label="a", learner="private-uc-o-reps")
    plot_bounds(axes, [one])
    x, y = axes.lines[2].get_xdata(), axes.lines[2].get_ydata()
    bound = BOUNDS["private-uc-o-reps"]["central"]
    expected = bound(22, 2, 6, x[-1], 1.0) / bound(22, 2, 6, x[0], 1.0)
    assert y[-1] / y[0] == pytest.approx(expected)
    axes.clear()
    plot_bounds(axes, [series(learner="pe"), series(learner="pe", settings={"fine": "mixture"})])
    slopes = [name for name in labels(axes) if "its bound" in name]
    assert slopes == ["slope of its bound, sqrt(XAH³K)", "slope of its bound, sqrt(X²AH⁵K)"]


def test_axes_keep_their_width_beside_long_names():
    """A legend below as soon as a name is long: axes of a third of the picture show nothing."""
    words = "DP-UCBVI, paper 003-ldp (laplace, exact noise)"
    group = [series("local", e, label=f"{words} {e:g}") for e in (1.0, 2.0)]
    for name in ("deviation", "regret", "bounds"):
        drawn = figure(Folder(*group), name)
        drawn.canvas.draw()
        assert not drawn.axes[0].texts
        assert drawn.axes[0].get_position().width > 0.7
        plt.close(drawn)


@pytest.mark.parametrize("name", ["regret", "by-episodes", "cost"])
def test_an_endless_band_does_not_decide_the_limits(name):
    """Two runs that differ a thousandfold have intervals over fifty powers of ten."""
    one = series()
    apart = replace(one, regret=one.regret * np.array([[1.0], [1000.0]]))
    drawn = figure(Folder(apart), name)
    low, high = drawn.axes[0].get_xlim() if name == "cost" else drawn.axes[0].get_ylim()
    mean, uniform = apart.regret.mean(axis=0), apart.uniform
    assert low >= min(mean.min(), uniform.min()) / 4
    assert high <= 4 * max(mean.max(), uniform.max())
    plt.close(drawn)


def test_panels_share_axes_colours_and_one_legend():
    rows = [LearnerRow(name="psrl", label=f"{p}: A", panel=p.title()) for p in ("one", "two")]
    rows.append(LearnerRow(name="psrl", label="two: B", panel="Two"))
    group = [series("local", 1.0, label="one: A"), series("local", 1.0, label="two: A")]
    folder = Folder(*group, series(label="two: B"))
    folder.experiment = SimpleNamespace(environments=(), learners=rows)
    drawn = figure(folder, "deviation")
    assert [axes.get_title(loc="left") for axes in drawn.axes] == ["One", "Two"]
    first, second = drawn.axes
    assert first.lines[0].get_color() == second.lines[0].get_color()
    assert first.get_ylim() == second.get_ylim()
    names = [text.get_text() for text in drawn.legends[0].get_texts()]
    assert names == ["A, ε = 1", "playing at random", "B"]
    plt.close(drawn)
    drawn = figure(folder, "cost")  # points with names of their own need no panels
    assert len(drawn.axes) == 1
    plt.close(drawn)


@pytest.mark.parametrize("runs", [1, 2])
def test_returns_are_shaded_by_two_standard_errors(runs):
    """Of the mean over runs, as in the table; a single run has its own."""
    one = series()
    returns = np.array([[0.0, 0.1, 0.2, 0.4], [0.0, 0.1, 0.2, 0.8]])[:runs]
    errors = np.full((2, 4), 0.05)
    played = replace(one, returns=returns, errors=errors[:runs], uniform=np.full(4, 0.1))
    axes = plt.figure().subplots()
    plot_return(axes, [played])
    (shade,) = axes.collections
    high = shade.get_paths()[0].vertices[:, 1].max()
    mean, error = (0.4, 0.05) if runs == 1 else (0.6, 0.2)  # the last point is the widest
    assert high == pytest.approx(mean + 2 * error)
    assert axes.get_ylabel() == "return of an episode"
    plt.close("all")
