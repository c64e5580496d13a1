"""What people read in tables and legends."""

import pytest

from discreet.lab.plots import PLOTS
from discreet.lab.style import CAPTIONS, TITLES, label_of, labels_of, name_of, noise_of, pair_of
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
        one.guarantee["epsilon"] = None
    claims = ["local, no ε (claimed 0.1)", "local, no ε (claimed 1)"]
    assert labels_of(both) == claims


def test_every_picture_has_a_title_and_a_caption():
    assert set(TITLES) == set(CAPTIONS) == set(PLOTS)
    assert all(caption.endswith(".") for caption in CAPTIONS.values())


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
