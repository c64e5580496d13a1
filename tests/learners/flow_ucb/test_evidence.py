"""Evidence: rows get a place when they are first filled, and a resumed learner knows the same."""

import numpy as np
import pytest

from discreet.learners.flow_ucb.evidence import (
    DOUBT,
    NOISE,
    SAMPLING,
    TOTAL,
    VISITS,
    Evidence,
    Observed,
)
from discreet.learners.flow_ucb.sizing import ReleaseTerms

pytestmark = pytest.mark.core


def test_rows_get_their_places_in_the_order_in_which_they_are_filled():
    evidence = Evidence.empty(2, 3, 2)
    rows = (np.array([1, 0, 1]), np.array([2, 0, 0]), np.array([0, 1, 1]))
    assert evidence.places(rows, np.array([True, False, True])).tolist() == [1, -1, 0]
    assert evidence.places(rows, np.array([True, True, True])).tolist() == [1, 2, 0]
    assert len(evidence.filled) == 3


def test_variances_are_of_the_visits_that_were_expected_where_noise_made_them_fewer():
    # Both actions were to have 16 visits, with credit 1/2; 6 and 20 were seen. Were variances of
    # the 6, a row that noise has emptied would look more certain than one that it has filled.
    evidence = Evidence.empty(1, 2, 2)
    rows = (np.array([0, 0]), np.array([0, 0]), np.array([0, 1]))
    visits, expected = np.array([6.0, 20.0]), np.full(2, 16.0)
    batch = Observed(rows, np.column_stack([visits, 0 * visits]), visits, visits / 2, expected)
    factors = np.array([0.5])
    evidence.add(batch, ReleaseTerms(32.0, 16.0, 16.0, 1.0, 0.25, factors, 1.0, True))
    moves, gains = evidence.moves[0, 0].T, evidence.gains[0, 0].T
    assert moves[VISITS].tolist() == gains[VISITS].tolist() == [3.0, 10.0]
    assert moves[SAMPLING].tolist() == [(1 + 1) * 16 / 4, (1 + 1) * 20 / 4]
    assert gains[SAMPLING].tolist() == [16 / 4, 20 / 4]
    assert gains[NOISE].tolist() == [(16 + 16 / 4) / 4, (16 + 20 / 4) / 4]
    doubt = [(16 / 2 + 16 / 2) / 4, (16 / 2 + 20 / 2) / 4]
    assert moves[DOUBT].tolist() == gains[DOUBT].tolist() == doubt


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
