"""What may be set of flow-ucb, and its usual confidence."""

import numpy as np
import pytest

from discreet.errors import InvalidInputError
from discreet.learners.base import Problem
from discreet.learners.flow_ucb.settings import (
    FlowSettings,
    close_caution,
    hiding,
    users_per_unit,
    usual_confidence,
)
from discreet.mdp.shape import Shape

pytestmark = pytest.mark.core


@pytest.mark.parametrize(
    "given",
    [
        {"confidence": 0.0},
        {"shrink": 1.5},
        {"shrink": 1.0},
        {"ease": -1.0},
        {"shrink": float("nan")},
        {"pooling": "always"},
        {"constants": "theory"},
    ],
)
def test_bad_settings_are_refused(given):
    with pytest.raises(InvalidInputError):
        FlowSettings.choose(given)


def test_users_per_unit_of_noise_and_row():
    problem = Problem(Shape(4, 2, 6), 10**6, np.array([True, False, False, False]))
    assert users_per_unit(problem, 100.0) == pytest.approx(10**6 / (10 * 48))
    assert users_per_unit(problem, 0.0) == 10**6


def test_caution_grows_with_the_users():
    found = [usual_confidence(plenty) for plenty in (1.0, 10.0, 100.0, 1e3, 1e4, 1e6, 1e7, 1e9)]
    assert found == sorted(found)
    assert found[0] == found[1] == 0.035
    assert found[3] == pytest.approx(0.08)
    assert found[-3] == pytest.approx(0.12)
    assert found[-2] == found[-1] == pytest.approx(0.2)


def test_noise_hides_ways_once_there_were_users_to_find_them():
    found = [hiding(plenty) for plenty in (0.0, 1.0, 10.0, 10**1.5, 100.0, 1e6)]
    assert found == pytest.approx([0.0, 0.0, 0.0, 0.5, 1.0, 1.0])


def test_close_calls_are_looked_at_again_late():
    found = [close_caution(plenty) for plenty in (0.0, 1e3, 10**3.5, 1e4, 1e9)]
    assert found == pytest.approx([0.0, 0.0, 0.5, 1.0, 1.0])
