"""What people read in tables and legends, and how lines are told apart."""

import pytest

from discreet.lab.plots import PLOTS
from discreet.lab.spec import LearnerRow
from discreet.lab.style import (
    label_of,
    labels_of,
    lines_by_claim,
    name_of,
    noise_of,
    pair_of,
    panels_of,
    styles_of,
)
from helpers.experiments import series


def test_labels_say_mechanism_environment_and_printed_constants():
    paper = series("local", 2.0, requested="laplace", calibration="paper")
    assert label_of(paper) == "L (laplace), local, ε = 2 (paper's constants), δ = 0"
    assert label_of(series()) == "L, no privacy"


def test_a_picture_names_only_what_differs_in_it():
    one = [series(), series("central", 1.0), series("local", 0.5)]
    assert labels_of(one) == ["no privacy", "central, ε = 1", "local, ε = 0.5"]
    two = [series(), series("local", 1.0, label="M")]
    assert labels_of(two) == ["L, no privacy", "M, local, ε = 1"]
    deltas = [series("central", 1.0, delta=1e-6), series("central", 1.0), series("local", 1.0)]
    assert labels_of(deltas) == [
        "central, ε = 1, δ = 1e-06",
        "central, ε = 1, δ = 0",
        "local, ε = 1",
    ]


def test_a_picture_names_mechanisms_only_where_a_learner_has_several():
    laplace, bounded = (series("local", 1.0, requested=name) for name in ("laplace", "bounded"))
    assert labels_of([laplace, series("central", 1.0)]) == ["local, ε = 1", "central, ε = 1"]
    other = series("local", 1.0, requested="bounded", label="M")
    assert labels_of([laplace, other]) == ["L, local, ε = 1", "M, local, ε = 1"]
    both = ["L (laplace), local, ε = 1", "L (bounded), local, ε = 1"]
    assert labels_of([laplace, bounded]) == both


def test_a_mechanism_is_named_only_if_somebody_asked_for_it():
    assert name_of(series("local", 1.0, mechanism="one-step").facts) == "L"
    assert name_of(series("local", 1.0, requested="bounded").facts) == "L (bounded)"


def test_an_unbounded_epsilon_is_infinite():
    assert pair_of({"notion": "LDP", "epsilon": None, "delta": 0.0}) == "(inf, 0)-LDP"
    assert pair_of({"notion": "none"}) == "none"


def test_lines_that_deliver_nothing_are_told_apart_by_their_claims():
    both = [series("local", epsilon, calibration="paper-001") for epsilon in (0.1, 1.0)]
    for one in both:
        one.facts["guarantee"]["epsilon"] = None
    claims = ["local, no ε (claimed 0.1)", "local, no ε (claimed 1)"]
    assert labels_of(both) == claims


def test_every_picture_has_a_title_and_a_caption():
    assert all(plot.title and plot.caption.endswith(".") for plot in PLOTS.values())


@pytest.mark.parametrize(
    ("noise", "text"),
    [
        ({}, "unknown"),
        ({"transitions": 25.3654}, "transitions 25.36"),
        ({"other": 1.0, "losses": 0.25, "visits": 6209.4}, "visits 6,209, losses 0.25, other 1"),
    ],
)
def test_noise_names_every_statistic(noise, text):
    assert noise_of(noise) == text


def test_trust_models_keep_their_colours_from_picture_to_picture():
    both = dict(zip("ab", styles_of([series("local", 1.0), series("central", 1.0)]), strict=True))
    alone = styles_of([series("central", 1.0)])[0]
    assert both["b"][0] == alone[0] != both["a"][0]


def test_colour_is_the_family_and_style_the_strength():
    looks = styles_of([series(), series("central", 1.0), series("central", 0.1)])
    assert looks[1][0] == looks[2][0] != looks[0][0]
    assert looks[1][1] != looks[2][1]


def test_single_strengths_differ_in_style_too():
    looks = styles_of([series(), series("central", 1.0), series("local", 1.0)])
    assert len({str(style) for _, style in looks}) == 3


def test_ten_lines_are_ten_looks():
    lines = [series("local", e, requested=m) for m in "abcde" for e in (2.0, 20.0)]
    lines += [series("local", 2.0, requested="a", delta=0.1)]
    assert len({str(look) for look in styles_of(lines)}) == 11


def test_learners_without_a_panel_are_one_picture():
    rows = [LearnerRow(name="psrl", label="a"), LearnerRow(name="psrl", label="b", panel="P")]
    a, b = series(label="a"), series(label="b")
    assert panels_of(rows[:1], [a]) == {"": [a]}
    assert panels_of(rows, [a, b]) == {"": [a], "P": [b]}


def test_panels_have_one_colour_per_algorithm_and_one_style_per_claim():
    group = [
        series("central", 0.1, label="printed: A", calibration="paper-003"),
        series("central", 1.0, label="printed: A", calibration="paper-003"),
        series("local", 1.0, label="exact: A"),
        series(label="B"),
    ]
    lines = lines_by_claim(group)
    assert [name for _, name, _ in lines] == [
        "A, claimed ε = 0.1",
        "A, claimed ε = 1",
        "A, claimed ε = 1",
        "B",
    ]
    looks = [look for _, _, look in lines]
    assert looks[1] == looks[2] and looks[0] != looks[1]
    assert looks[0][0] == looks[1][0] != looks[3][0]


def test_a_claim_that_every_line_keeps_is_called_epsilon():
    group = [series("central", 1.0, label="JDP: A"), series("local", 10.0, label="LDP: A")]
    assert [name for _, name, _ in lines_by_claim(group)] == ["A, ε = 1", "A, ε = 10"]


def test_with_one_epsilon_per_line_algorithms_differ_in_style_too():
    group = [
        series("central", 1.0, label="JDP: A"),
        series("central", 1.0, label="JDP: B"),
        series("local", 10.0, label="LDP: B"),
    ]
    first, second, third = (look for _, _, look in lines_by_claim(group))
    assert second == third
    assert first[0] != second[0] and first[1] != second[1]
