"""Evidence: rows get a place when they are first filled, and a resumed learner knows the same."""

import numpy as np
import pytest

from discreet.learners.estimate import (
    NOISE,
    SAMPLING,
    TOTAL,
    VISIT_VARIANCE,
    VISITS,
    CountSums,
    ReleasedRows,
)
from discreet.learners.flow_ucb.learner import accumulate
from discreet.learners.flow_ucb.planning import ReleaseTerms

pytestmark = pytest.mark.core


def released(rows, transitions):
    visits = np.asarray(transitions, float).sum(axis=1)
    return ReleasedRows(
        rows, np.asarray(transitions, float), visits, visits / 2, visits, visits, 1.0, 2.0, 3.0
    )


def test_rows_get_their_places_in_the_order_in_which_they_are_filled():
    sums = CountSums.empty(2, 3, 2)
    rows = (np.array([1, 0, 1]), np.array([2, 0, 0]), np.array([0, 1, 1]))
    filled = np.array([[1, 0, 2], [0, 0, 0], [0, 3, 0]])
    sums.add(released(rows, filled), 1.0, 1.0)
    assert sums.number[rows].tolist() == [1, -1, 0]
    assert sums.transitions[:3].tolist() == [[0, 3, 0], [1, 0, 2], [0, 0, 0]]
    sums.add(released(rows, np.ones((3, 3))), 0.5, 1.0)
    assert sums.number[rows].tolist() == [1, 2, 0]
    assert sums.transitions[:3].tolist() == [[0.5, 3.5, 0.5], [1.5, 0.5, 2.5], [0.5, 0.5, 0.5]]


def test_a_layer_has_sums_and_variances_with_weights_and_their_squares():
    sums = CountSums.empty(1, 2, 2)
    rows = (np.array([0, 1]), np.array([0, 0]), np.array([1, 1]))  # steps are one
    sums.add(released(rows, [[4, 0], [0, 2]]), 0.5, 0.5)
    layer = sums.layer(1)
    assert layer.transitions[0].tolist() == [[0, 0], [2, 1]]
    assert [float(part[0, 1]) for part in layer[1:]] == [3, 1.5, 1.5, 0.5, 1, 1.5]
    assert float(layer.certain(2)[0, 1]) == 3 - 2 * 1.5**0.5


def test_variances_are_of_the_visits_that_were_expected_where_noise_made_them_fewer():
    # Both actions were to have 16 visits, with weight 1/2; 6 and 20 were seen. Were variances of
    # the 6, a row that noise has emptied would look more certain than one that it has filled.
    sums = CountSums.empty(1, 2, 2)
    rows = (np.array([0, 0]), np.array([0, 0]), np.array([0, 1]))
    visits, expected = np.array([6.0, 20.0]), np.full(2, 16.0)
    flow, factors = np.column_stack([visits, 0 * visits]), np.array([0.5])
    terms = ReleaseTerms(32.0, 16.0, 16.0, 1.0, 0.25, factors, 1.0, True)
    accumulate(sums, rows, flow, visits, visits / 2, expected, terms)
    transition_sums, reward_sums = sums.transition_sums[0, 0].T, sums.reward_sums[0, 0].T
    assert transition_sums[VISITS].tolist() == reward_sums[VISITS].tolist() == [3.0, 10.0]
    assert transition_sums[SAMPLING].tolist() == [(1 + 1) * 16 / 4, (1 + 1) * 20 / 4]
    assert reward_sums[SAMPLING].tolist() == [16 / 4, 20 / 4]
    assert reward_sums[NOISE].tolist() == [(16 + 16 / 4) / 4, (16 + 20 / 4) / 4]
    visit_variance = [(16 / 2 + 16 / 2) / 4, (16 / 2 + 20 / 2) / 4]
    assert (
        transition_sums[VISIT_VARIANCE].tolist()
        == reward_sums[VISIT_VARIANCE].tolist()
        == visit_variance
    )


def test_plain_values_and_back():
    sums = CountSums.empty(1, 2, 2)
    rows = (np.array([0]), np.array([1]), np.array([0]))
    sums.add(released(rows, [[3.0, 4.0]]), 1.0, 1.0)
    assert sums.transition_sums[0, 1, 0, VISITS] == 7.0
    assert sums.reward_sums[0, 1, 0, TOTAL] == 3.5
    again = CountSums.from_dict(sums.to_dict())
    for one, other in zip(sums, again, strict=True):
        assert np.array_equal(one, other)
    assert len(sums.to_dict()["transitions"]) == 1  # rows that are not in use are left out


def test_nothing_and_back():
    nothing = CountSums.empty(1, 2, 3)
    assert (CountSums.from_dict(nothing.to_dict()).number == -1).all()
