"""Evidence: rows get a place when they are first filled, and a resumed learner knows the same."""

import numpy as np
import pytest

from discreet.learners.flow_ucb.evidence import TOTAL, VISITS, Evidence

pytestmark = pytest.mark.core


def test_rows_get_their_places_in_the_order_in_which_they_are_filled():
    evidence = Evidence.empty(2, 3, 2)
    rows = (np.array([1, 0, 1]), np.array([2, 0, 0]), np.array([0, 1, 1]))
    assert evidence.places(rows, np.array([True, False, True])).tolist() == [1, -1, 0]
    assert evidence.places(rows, np.array([True, True, True])).tolist() == [1, 2, 0]
    assert len(evidence.filled) == 3


def test_plain_values_and_back():
    evidence = Evidence.empty(1, 2, 2)
    rows = (np.array([0]), np.array([1]), np.array([0]))
    place = evidence.places(rows, np.array([True]))
    evidence.transitions[place] = [3.0, 4.0]
    evidence.moves[0, 1, 0, VISITS] = 7.0
    evidence.gains[0, 1, 0, TOTAL] = 5.0
    again = Evidence.from_dict(evidence.to_dict())
    for one, other in zip(evidence, again, strict=True):
        assert np.array_equal(one, other)
    assert len(evidence.to_dict()["transitions"]) == 1  # rows that are not in use are left out


def test_nothing_and_back():
    nothing = Evidence.empty(1, 2, 3)
    assert len(Evidence.from_dict(nothing.to_dict()).filled) == 0
