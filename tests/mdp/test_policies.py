"""Policies: validation, what they can play."""

import numpy as np
import pytest

from discreet.errors import InvalidInputError
from discreet.mdp import DeterministicPolicy, MixturePolicy, Shape, StochasticPolicy
from discreet.mdp.policies import as_policy, uniform_policy

SHAPE = Shape(states=2, actions=3, horizon=2)
LONGER = Shape(states=2, actions=3, horizon=5)
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
