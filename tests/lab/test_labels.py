"""What people read in tables and legends."""

import pytest

from discreet.lab.labels import CAPTIONS, TITLES, label_of, name_of, noise_of, pair_of
from discreet.lab.plots import PLOTS
from helpers.experiments import series


def test_labels_say_mechanism_environment_and_printed_constants():
    paper = series("local", 2.0, requested="laplace", calibration="paper")
    assert label_of(paper) == "L (laplace), (2, 0)-LDP (paper's constants)"
    assert label_of(series(), environment=True) == "L on E, no privacy"


def test_a_mechanism_is_named_only_if_somebody_asked_for_it():
    assert name_of(series("local", 1.0, mechanism="one-step").facts) == "L"
    assert name_of(series("local", 1.0, requested="bounded").facts) == "L (bounded)"


def test_an_unbounded_epsilon_is_infinite():
    assert pair_of({"notion": "LDP", "epsilon": None, "delta": 0.0}) == "(inf, 0)-LDP"
    assert pair_of({"notion": "none"}) == "none"


def test_every_picture_has_a_title_and_a_caption():
    assert set(TITLES) == set(CAPTIONS) == set(PLOTS)
    assert all(caption.endswith(".") for caption in CAPTIONS.values())


@pytest.mark.parametrize(
    ("noise", "text"),
    [
        ({}, "unknown"),
        ({"transitions": 25.3654}, "transitions 25.37"),
        ({"other": 1.0, "losses": 0.25, "visits": 6209.4}, "visits 6,209, losses 0.25, other 1"),
    ],
)
def test_noise_names_every_statistic(noise, text):
    assert noise_of(noise) == text
