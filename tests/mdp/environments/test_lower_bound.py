"""LowerBound: a complete tree, fair coins, one better arm."""

import numpy as np
import pytest

from discreet.mdp import evaluate, make, plan, uniform_policy


@pytest.mark.parametrize(("depth", "actions"), [(1, 2), (2, 3), (3, 2)])
def test_lower_bound_by_hand(depth, actions):
    mdp = make("LowerBound", depth=depth, actions=actions, horizon=9, advantage=0.3)
    assert mdp.shape.states == sum(actions**level for level in range(depth)) + 2
    paid = 9 - depth
    assert plan(mdp).value == pytest.approx(0.8 * paid)
    leaves = actions ** (depth - 1)
    chance = 0.5 + 0.3 / (leaves * actions)
    assert evaluate(mdp, uniform_policy(mdp.shape)) == pytest.approx(chance * paid)


def test_inner_nodes_lead_to_their_own_children():
    moves = make("LowerBound", depth=3, actions=2).transitions[0]
    children = [moves[node, action].argmax() for node in range(3) for action in range(2)]
    assert children == [1, 2, 3, 4, 5, 6]


def test_exactly_one_arm_is_better():
    mdp = make("LowerBound", depth=2, actions=3, advantage=0.1)
    good = mdp.shape.states - 2
    chance = mdp.transitions[0, 1:good, :, good]
    assert chance.shape == (3, 3)
    assert np.sort(chance.ravel()).tolist() == [0.5] * 8 + [0.6]


def test_without_an_advantage_nothing_is_to_be_learned():
    mdp = make("LowerBound", advantage=0.0)
    assert plan(mdp).value == pytest.approx(evaluate(mdp, uniform_policy(mdp.shape)))
