"""What may be set of policy elimination, and the printed constants by hand."""

import math

import numpy as np
import pytest

from discreet.errors import InvalidInputError
from discreet.learners.base import PublicFacts
from discreet.learners.elimination.settings import EliminationSettings, PrintedConstants
from discreet.mdp.shape import Shape

pytestmark = pytest.mark.core

PROBLEM = PublicFacts(Shape(states=2, actions=3, horizon=4), 1000, np.array([True, False]))
"""X = 2, A = 3, H = 4, K = 1000: H·X·A = 24."""


def constants(**settings):
    return PrintedConstants(PROBLEM, EliminationSettings(**settings))


@pytest.mark.parametrize(
    ("structure", "forgetting", "forgets"),
    [
        ("paper", None, True),
        ("practical", None, False),
        ("paper", False, False),
        ("practical", True, True),
    ],
)
def test_the_structure_decides_about_forgetting_unless_somebody_does(
    structure, forgetting, forgets
):
    assert EliminationSettings(structure=structure, forgetting=forgetting).forgets is forgets


def test_the_auxiliary_share_belongs_to_fine_exploration_by_coverage():
    assert EliminationSettings().stage_shares == (1.0, 2.0)
    assert EliminationSettings(fine="mixture").stage_shares == (1.0, 1.0)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"confidence": 0.0}, "confidence"),
        ({"failure": 0.0}, "failure"),
        ({"fine": "rough"}, "fine"),
    ],
)
def test_a_wrong_setting_is_named_with_its_rule(wrong, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        EliminationSettings(**wrong)


def test_iota_is_the_logarithm_of_all_events():
    assert constants(failure=0.1).iota == pytest.approx(math.log(2 * 4 * 2 * 3 * 1000 / 0.1))
    assert constants(failure=0.01).iota > constants(failure=0.1).iota


def test_the_error_covers_every_counter_of_a_batch():
    """24 visits, each with two transition counters, a visit counter and a reward counter."""
    expected = 4 * 3.0 * math.sqrt(2 * math.log(2 * 24 * 4 / 0.1))
    assert constants(failure=0.1).count_error(3.0) == pytest.approx(expected)
    assert constants().count_error(0.0) == 0.0


def test_practical_thresholds_follow_the_noise_of_each_counter():
    variance = np.array([[0.0, 4.0], [9.0, 16.0]])
    found = constants().infrequent(variance)
    assert found.tolist() == [[0.0, 1.0], [1.5, 2.0]]


def test_the_printed_threshold_is_one_number_for_all():
    printed = constants(constants="theory")
    variance = np.array([0.0, 1.0, 25.0])
    expected = 6 * printed.count_error(5.0) * 16 * printed.iota
    np.testing.assert_allclose(printed.infrequent(variance), expected)
    quiet = printed.infrequent(np.zeros(2))
    np.testing.assert_allclose(quiet, 6 * 16 * printed.iota)


@pytest.mark.parametrize(
    ("fine", "statistical", "private"),
    [
        ("coverage", 2 * 3 * 4**3, 2**3 * 3 * 4**5),
        ("mixture", 2**2 * 3 * 4**5, 2**3 * 3**2 * 4**5),
    ],
)
def test_the_printed_width_by_hand(fine, statistical, private):
    printed = constants(constants="theory", fine=fine)
    iota, error = printed.iota, printed.count_error(2.0)
    expected = 2 * (math.sqrt(statistical * iota / 50) + private * error * iota / 50)
    assert printed.printed_width(50, 2.0) == pytest.approx(expected)
    longer = printed.printed_width(5000, 2.0)
    assert longer < printed.printed_width(50, 2.0)
    assert printed.printed_width(50, 0.0) == pytest.approx(
        2 * (math.sqrt(statistical * iota / 50) + private * iota / 50)
    )


def test_settings_survive_a_table():
    chosen = EliminationSettings(confidence=0.2, forgetting=True)
    assert EliminationSettings.choose(chosen.to_toml()) == chosen
    silent = EliminationSettings()
    assert "forgetting" not in silent.to_toml()
    assert EliminationSettings.choose(silent.to_toml()) == silent
