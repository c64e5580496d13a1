"""Passes over a sorted list of policies against one policy at a time, in plain NumPy."""

import numpy as np
import pytest

from discreet.learners.elimination import active_set as kernels
from helpers.absorbing import random_model, visits_of

H, X, A = 3, 2, 2
POINTS = np.array([(h, x) for h in range(H) for x in range(X)])
"""All decision points, the earliest step first."""


def decoded(index, points=POINTS, actions=A, shape=(H, X)):
    policy = np.zeros(shape, np.int64)
    kernels.decode(index, actions, points, policy)
    return policy


def test_a_policy_is_a_number_whose_digits_are_its_actions():
    assert decoded(0b100110).tolist() == [[1, 0], [0, 1], [1, 0]]
    points = np.array([(0, 1), (1, 0), (1, 1)])
    ternary = 2 * 9 + 0 * 3 + 1
    assert decoded(ternary, points, 3, (2, 2)).tolist() == [[0, 2], [0, 1]]


def test_only_decision_points_are_written():
    policy = np.full((H, X), 7, np.int64)
    kernels.decode(1, A, np.array([(2, 0)]), policy)
    assert policy.tolist() == [[7, 7], [7, 7], [1, 7]]


def test_the_first_step_that_changed_is_known_for_every_pair_of_policies():
    everyone = [decoded(index) for index in range(A ** len(POINTS))]
    for before in everyone[::3]:
        for index, after in enumerate(everyone):
            policy = before.copy()
            differ = np.flatnonzero((before != after).any(axis=1))
            first = differ[0] if len(differ) else H
            assert kernels.decode(index, A, POINTS, policy) == first
            assert np.array_equal(policy, after)


def test_one_step_forward_moves_the_mass_of_the_chosen_actions():
    transitions, initial, _, _ = random_model(0)
    policy, mass = np.array([[1, 0], [0, 0], [0, 0]]), np.full((H + 1, X), 9.0)
    mass[0] = initial
    kernels._advance(transitions, policy, 0, mass)
    expected = initial[0] * transitions[0, 0, 1] + initial[1] * transitions[0, 1, 0]
    np.testing.assert_allclose(mass[1], expected)
    assert (mass[2:] == 9.0).all()


def test_an_empty_list_has_no_values():
    transitions, initial, rewards, _ = random_model(1)
    none = np.zeros(0, np.int64)
    assert kernels.policy_values(none, POINTS, transitions, initial, rewards).shape == (0,)
    best, winner = kernels.best_visits(none, POINTS, transitions, initial, 0, 1)
    assert not best.any()
    assert (winner == -1).all()


@pytest.mark.parametrize("step", range(H))
@pytest.mark.parametrize("seed", range(2))
def test_the_winner_is_the_policy_most_likely_to_be_there(seed, step):
    transitions, initial, _, _ = random_model(seed)
    rng = np.random.default_rng(seed)
    indices = np.flatnonzero(rng.random(A ** len(POINTS)) < 0.4)
    best, winner = kernels.best_visits(indices, POINTS, transitions, initial, step, 3)
    visits = np.stack([visits_of(transitions, initial, decoded(int(i)))[step] for i in indices])
    np.testing.assert_allclose(best, visits.max(axis=0), atol=1e-15)
    for place in np.ndindex(X, A):
        if best[place] > 0:
            chosen = visits_of(transitions, initial, decoded(int(winner[place])))[step]
            assert chosen[place] == pytest.approx(best[place])
            assert winner[place] in indices


def test_where_no_policy_gets_there_is_no_winner():
    transitions, _, _, _ = random_model(2)
    here = np.array([1.0, 0.0])
    always_zero = np.zeros(1, np.int64)
    best, winner = kernels.best_visits(always_zero, POINTS, transitions, here, 0, 1)
    assert best.tolist() == [[1.0, 0.0], [0.0, 0.0]]
    assert winner.tolist() == [[0, -1], [-1, -1]]


def test_the_salt_decides_between_equals_and_favours_none():
    """At the first step all policies that agree there are equal: each of them wins now and then."""
    transitions, _, _, _ = random_model(3)
    here, indices = np.array([1.0, 0.0]), np.arange(8)  # differ at the last steps only
    wins = np.zeros(8, int)
    for salt in range(400):
        _, winner = kernels.best_visits(indices, POINTS, transitions, here, 0, salt)
        wins[winner[0, 0]] += 1
    expected = 400 / 8
    assert wins.sum() == 400
    assert abs(wins - expected).max() < 5 * np.sqrt(expected)
    again = [kernels.best_visits(indices, POINTS, transitions, here, 0, 7)[1] for _ in range(2)]
    assert np.array_equal(*again)
