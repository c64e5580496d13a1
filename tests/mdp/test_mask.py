"""Which actions are possible where: the one mask that planning and policies obey."""

import itertools
import pickle

import numpy as np
import pytest

from discreet.errors import InvalidInputError
from discreet.mdp import RandomMDP, Shape, evaluate, solve, uniform_policy
from discreet.mdp.policies import DeterministicPolicy, MixturePolicy
from discreet.mdp.tabular import relabel_actions

MASK = np.array(
    [
        [[True, False, True], [False, True, False]],
        [[False, True, True], [True, True, True]],
    ]
)
REWARDS = np.array([[0.5, 0.9, 0.1], [0.8, 0.3, 0.2]])
MDP = RandomMDP(states=2, actions=3, horizon=2, seed=3).replace(rewards=REWARDS, allowed=MASK)


def possible_policies():
    choices = [np.flatnonzero(MASK[h, s]) for h, s in np.ndindex(2, 2)]
    return [np.reshape(chosen, (2, 2)) for chosen in itertools.product(*choices)]


def test_the_optimum_is_that_of_the_possible_policies():
    values = [evaluate(MDP, policy) for policy in possible_policies()]
    found = solve(MDP)
    assert found.value == pytest.approx(max(values), abs=1e-12)
    assert evaluate(MDP, found.policy) == pytest.approx(found.value, abs=1e-12)
    assert solve(MDP.replace(allowed=None)).value > found.value + 0.05


def test_random_actions_are_possible_actions():
    found = uniform_policy(MDP.shape).probabilities
    assert np.array_equal(found, MASK / MASK.sum(axis=-1, keepdims=True))


def test_a_policy_that_plays_another_action_is_refused_with_its_place():
    bad = np.where(np.arange(2)[:, None] == 1, 0, MDP.shape.first)
    for policy in (bad, np.eye(3)[bad], MixturePolicy.uniform([DeterministicPolicy(bad)])):
        with pytest.raises(InvalidInputError, match="action 0 in state 0 at step 1"):
            evaluate(MDP, policy)
    evaluate(MDP.replace(allowed=None), bad)


def test_the_first_possible_action_is_the_default():
    assert MDP.shape.first.tolist() == [[0, 1], [1, 0]]
    assert Shape(2, 3, 2).first.tolist() == [[0, 0], [0, 0]]


def test_a_mask_of_everything_is_none_and_no_part_of_the_size():
    assert Shape(2, 3, 2, np.ones((2, 3), bool)).allowed is None
    assert Shape(2, 3, 2, MASK) == Shape(2, 3, 2) and Shape(2, 3, 2, MASK).mask.sum() == 8


@pytest.mark.parametrize(
    ("allowed", "said"),
    [
        (np.ones((3, 2), bool), r"bool\[2, 3\] or bool\[2, 2, 3\]"),
        (np.ones((2, 3)), "got float64"),
        (np.array([[True] * 3, [False] * 3]), "none in state 1 at step 0"),
    ],
)
def test_a_bad_mask_is_refused(allowed, said):
    with pytest.raises(InvalidInputError, match=said):
        Shape(2, 3, 2, allowed)


@pytest.mark.parametrize("mask", [MASK, MASK[0]], ids=["by step", "by state"])
def test_a_mask_is_kept_by_copies_and_follows_renamed_actions(mask):
    mdp = MDP.replace(allowed=mask)
    again = pickle.loads(pickle.dumps(mdp))
    assert np.array_equal(again.shape.mask, mdp.shape.mask)
    renamed = relabel_actions(mdp, 5)
    assert solve(renamed).value == pytest.approx(solve(mdp).value, abs=1e-12)
    assert not np.array_equal(renamed.shape.mask, mdp.shape.mask)
    assert np.array_equal(renamed.shape.mask.sum(axis=-1), mdp.shape.mask.sum(axis=-1))
