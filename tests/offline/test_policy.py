"""A policy that may defer."""

import numpy as np
import pytest

from discreet.errors import InvalidInputError
from discreet.mdp import MixturePolicy, StochasticPolicy
from discreet.mdp.policies import DeterministicPolicy
from discreet.offline.fit import DEFER, DeferringPolicy

pytestmark = pytest.mark.core

POLICY = DeferringPolicy(np.array([[1, DEFER], [DEFER, 0]]))


def test_it_acts_or_hands_back_what_behaviour_does():
    assert POLICY.action(0, 0, behaviour=2) == 1
    assert POLICY.action(0, 1, behaviour=2) == 2
    assert POLICY.action(1, 1, behaviour=2) == 0
    assert POLICY.defers.tolist() == [[False, True], [True, False]]


def test_with_a_behaviour_it_is_a_stochastic_policy():
    behaviour = np.array([[[0.5, 0.5], [0.1, 0.9]], [[0.3, 0.7], [0.2, 0.8]]])
    merged = POLICY.with_behaviour(StochasticPolicy(behaviour), 2)
    assert merged.probabilities.tolist() == [[[0, 1], [0.1, 0.9]], [[0.3, 0.7], [1, 0]]]


def test_a_deterministic_behaviour_will_do():
    merged = POLICY.with_behaviour(np.array([[0, 1], [1, 1]]), 2)
    assert merged.probabilities.tolist() == [[[0, 1], [0, 1]], [[0, 1], [1, 0]]]


def test_a_mixture_is_refused():
    mixture = MixturePolicy.uniform([DeterministicPolicy(np.zeros((2, 2), int))])
    with pytest.raises(InvalidInputError, match="merge each of its components"):
        POLICY.with_behaviour(mixture, 2)


def test_it_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        POLICY.actions[0, 0] = 0


@pytest.mark.parametrize(
    "actions", [np.zeros(3, int), np.zeros((2, 2)), np.array([[-2]]), np.zeros((0, 2), int)]
)
def test_what_is_no_policy_is_refused(actions):
    with pytest.raises(InvalidInputError, match="Expected actions as integers"):
        DeferringPolicy(actions)


@pytest.mark.parametrize(("step", "state"), [(2, 0), (0, 2), (-1, 0), (0, -1), (0.5, 0)])
def test_a_place_that_is_not_there_is_refused(step, state):
    with pytest.raises(InvalidInputError, match="Expected"):
        POLICY.action(step, state, behaviour=0)
