"""Policies: validation, what they can play."""

import numpy as np
import pytest

from discreet.errors import InvalidInputError
from discreet.mdp import DeterministicPolicy, MixturePolicy, Shape, StochasticPolicy
from discreet.mdp.policies import DEFER, DeferringPolicy, as_policy, uniform_policy

SHAPE = Shape(states=2, actions=3, horizon=2)
FIXED = DeterministicPolicy(np.array([[0, 2], [1, 1]]))


@pytest.mark.core
def test_played_marks_exactly_what_can_be_played():
    support = FIXED.support(SHAPE)
    assert support.sum() == 4
    assert support[0, 1, 2]
    started = FIXED.support(SHAPE, start=np.array([True, False]))
    assert started.sum() == 3
    assert not started[0, 1].any()
    assert uniform_policy(SHAPE).support(SHAPE).all()


def test_a_mixture_plays_what_its_weighted_components_play():
    other = DeterministicPolicy(np.array([[1, 1], [1, 1]]))
    both = MixturePolicy((FIXED, other), np.array([0.5, 0.5]))
    np.testing.assert_array_equal(both.support(SHAPE), FIXED.support(SHAPE) | other.support(SHAPE))
    one = MixturePolicy((FIXED, other), np.array([1.0, 0.0]))
    np.testing.assert_array_equal(one.support(SHAPE), FIXED.support(SHAPE))


def test_as_policy_reads_arrays():
    assert isinstance(as_policy([[0, 1], [2, 2]], SHAPE), DeterministicPolicy)
    assert isinstance(as_policy(np.full((2, 2, 3), 1 / 3), SHAPE), StochasticPolicy)
    assert as_policy(FIXED, SHAPE) is FIXED


def test_keys_tell_policies_apart():
    same = DeterministicPolicy(FIXED.actions.copy())
    assert FIXED.key == same.key
    keys = {
        FIXED.key,
        uniform_policy(SHAPE).key,
        MixturePolicy.uniform([FIXED]).key,
        StochasticPolicy(FIXED.distribution(SHAPE)).key,
    }
    assert len(keys) == 4


def test_arrays_are_copied_and_read_only():
    actions = np.array([[0, 1]])
    policy = DeterministicPolicy(actions)
    actions[0, 0] = 1
    assert policy.actions[0, 0] == 0
    with pytest.raises(ValueError, match="read-only"):
        policy.actions[0, 0] = 1


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: DeterministicPolicy(np.array([[0.5]])), "integer array"),
        (lambda: DeterministicPolicy(np.array([1, 2])), r"shape \(H, S\)"),
        (lambda: DeterministicPolicy(np.array([[-1]])), "actions >= 0, got -1"),
        (lambda: StochasticPolicy(np.ones((2, 2))), r"\(H, S, A\)"),
        (lambda: StochasticPolicy(np.full((1, 1, 2), 0.6)), "sum to 1, got 1.2"),
        (lambda: as_policy([[0, 3], [0, 0]], SHAPE), "actions below 3, got 3"),
        (lambda: as_policy([[0, 1]], SHAPE), r"shape \(2, 2\), got \(1, 2\)"),
        (lambda: as_policy(np.full((2, 2, 2), 0.5), SHAPE), r"shape \(2, 2, 3\)"),
        (lambda: MixturePolicy((), np.array([])), "one weight per component"),
        (lambda: MixturePolicy((FIXED,), np.array([0.5, 0.5])), "one weight per component"),
        (lambda: MixturePolicy((FIXED,), np.array([0.5])), "sum to 1, got 0.5"),
        (
            lambda: MixturePolicy((MixturePolicy.uniform([FIXED]),), np.array([1.0])),
            "flatten nested mixtures",
        ),
        (
            lambda: as_policy(
                MixturePolicy.uniform([FIXED]), Shape(states=2, actions=3, horizon=5)
            ),
            r"shape \(5, 2\)",
        ),
    ],
)
def test_bad_policies_get_one_sentence(build, message):
    with pytest.raises(InvalidInputError, match=message):
        build()


DEFERRING = DeferringPolicy(np.array([[1, DEFER], [DEFER, 0]]))


def test_a_deferring_policy_acts_or_hands_back_what_behaviour_does():
    assert DEFERRING.action(0, 0, behaviour=2) == 1
    assert DEFERRING.action(0, 1, behaviour=2) == 2
    assert DEFERRING.action(1, 1, behaviour=2) == 0
    assert DEFERRING.defers.tolist() == [[False, True], [True, False]]


def test_with_a_behaviour_it_is_a_stochastic_policy():
    behaviour = np.array([[[0.5, 0.5], [0.1, 0.9]], [[0.3, 0.7], [0.2, 0.8]]])
    merged = DEFERRING.with_behaviour(StochasticPolicy(behaviour), 2)
    assert merged.probabilities.tolist() == [[[0, 1], [0.1, 0.9]], [[0.3, 0.7], [1, 0]]]


def test_a_deterministic_behaviour_will_do():
    merged = DEFERRING.with_behaviour(np.array([[0, 1], [1, 1]]), 2)
    assert merged.probabilities.tolist() == [[[0, 1], [0, 1]], [[0, 1], [1, 0]]]


def test_a_mixture_is_no_behaviour():
    mixture = MixturePolicy.uniform([DeterministicPolicy(np.zeros((2, 2), int))])
    with pytest.raises(InvalidInputError, match="merge each of its components"):
        DEFERRING.with_behaviour(mixture, 2)


def test_a_deferring_policy_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        DEFERRING.actions[0, 0] = 0


@pytest.mark.parametrize(
    "actions", [np.zeros(3, int), np.zeros((2, 2)), np.array([[-2]]), np.zeros((0, 2), int)]
)
def test_what_is_no_deferring_policy_is_refused(actions):
    with pytest.raises(InvalidInputError, match="Expected actions as integers"):
        DeferringPolicy(actions)


@pytest.mark.parametrize(("step", "state"), [(2, 0), (0, 2), (-1, 0), (0, -1), (0.5, 0)])
def test_a_place_that_is_not_there_is_refused(step, state):
    with pytest.raises(InvalidInputError, match="Expected"):
        DEFERRING.action(step, state, behaviour=0)


def test_every_policy_says_its_likeliest_actions():
    one = StochasticPolicy(np.array([[[0.2, 0.8], [0.5, 0.5]]]))
    other = DeterministicPolicy(np.array([[0, 1]]))
    assert one.actions.tolist() == [[1, 0]]
    assert MixturePolicy((one, other), np.array([0.4, 0.6])).actions.tolist() == [[0, 1]]
