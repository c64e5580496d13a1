"""Greedy actions and ties of the compiled planners."""

import numba
import numpy as np
import pytest

from discreet.learners.continual import TIE, break_ties, choose, greedy


@numba.njit
def pick(q, actions, values):
    close = False
    for h in range(q.shape[1]):
        for s in range(q.shape[2]):
            close |= greedy(q, h, s, actions, values)
    return close


def picked(rows):
    """Actions, values and the warning of a tie, for Q values ``[H, S, A]``."""
    q = np.array(rows, float)[None]
    actions, values = np.zeros(q.shape[1:3], np.int64), np.zeros(q.shape[1:3])
    return actions, values, pick(q, actions, values)


def test_the_largest_value_wins():
    actions, values, close = picked([[[1.0, 3.0, 2.0], [5.0, -1.0, 4.0]]])
    assert actions.tolist() == [[1, 0]]
    assert values.tolist() == [[3.0, 5.0]]
    assert not close


@pytest.mark.parametrize("best", [2.0, np.inf])
def test_equal_values_are_noticed_also_when_infinite(best):
    _, values, close = picked([[[0.0, best, best]]])
    assert close
    assert values[0, 0] == best


def test_ties_are_broken_uniformly_and_only_where_they_are():
    q = np.array([[[[2.0, 2.0 - TIE / 2, 1.0, 2.0], [0.0, 0.0, 7.0, 0.0]]]])
    rng, counts = np.random.default_rng(4), np.zeros((2, 4), int)
    rounds = 9000
    for _ in range(rounds):
        actions = np.array([[0, 2]])
        break_ties(q, actions, rng)
        counts[[0, 1], actions[0]] += 1
    assert counts[1].tolist() == [0, 0, rounds, 0]
    assert counts[0, 2] == 0
    assert abs(counts[0, [0, 1, 3]] - rounds / 3).max() < 5.5 * np.sqrt(rounds * 2 / 9)


def test_ties_take_the_numbers_that_the_reference_takes():
    """From the last step to the first, one number per tie, none elsewhere."""
    rng = np.random.default_rng(6)
    q = rng.integers(0, 2, size=(1, 5, 4, 3)).astype(float)
    actions = q[0].argmax(axis=-1)
    one, other = np.random.default_rng(9), np.random.default_rng(9)
    break_ties(q, actions, one)
    expected = np.zeros((5, 4), int)
    for h in reversed(range(5)):
        for s in range(4):
            expected[h, s] = choose(q[0, h, s], other)
    assert np.array_equal(actions, expected)
    assert one.random() == other.random()
