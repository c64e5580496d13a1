"""The explicit list of policies against the planner, one policy at a time."""

import numpy as np
import pytest

from discreet.errors import UnsupportedError
from discreet.learners.elimination.active_set import enumerate_policies
from discreet.mdp import RandomMDP, RiverSwim, evaluate, occupancy
from discreet.mdp.shape import Shape
from helpers.absorbing import is_listed


def arrays(mdp):
    return np.array(mdp.transitions), np.array(mdp.initial)


@pytest.mark.parametrize(
    "mdp",
    [
        RiverSwim(states=3, horizon=3),
        RandomMDP(states=2, actions=3, horizon=3, concentration=0.5, stationary=False, seed=1),
    ],
)
def test_values_are_those_of_the_planner(mdp):
    everyone = enumerate_policies(mdp.shape, mdp.initial > 0)
    values = everyone.values(*arrays(mdp), np.array(mdp.rewards))
    for index, value in zip(everyone.indices, values, strict=True):
        assert value == pytest.approx(evaluate(mdp, everyone.policy(int(index))), abs=1e-12)


def test_values_of_a_sparse_list_do_not_depend_on_the_others():
    mdp = RiverSwim(states=4, horizon=4)
    everyone = enumerate_policies(mdp.shape, mdp.initial > 0)
    rewards = np.random.default_rng(0).random(mdp.shape.visits)
    values = everyone.values(*arrays(mdp), rewards)
    some = np.random.default_rng(1).random(len(everyone)) < 0.01
    assert everyone.keep(some).values(*arrays(mdp), rewards) == pytest.approx(values[some])


@pytest.mark.parametrize("complete", [True, False])
def test_most_visiting_policies(complete):
    mdp = RandomMDP(states=3, actions=2, horizon=3, concentration=0.5, stationary=False, seed=3)
    listed = enumerate_policies(mdp.shape, mdp.initial > 0)
    if not complete:
        listed = listed.keep(np.random.default_rng(0).random(len(listed)) < 0.3)
    occupancies = np.stack([occupancy(mdp, listed.policy(int(i))) for i in listed.indices])
    for step in range(3):
        policies, visits = listed.visiting(*arrays(mdp), step, salt=5)
        assert visits == pytest.approx(occupancies[:, step].max(axis=0))
        for x, a in np.argwhere(visits > 0):
            assert is_listed(listed, policies[x, a])
            assert occupancy(mdp, policies[x, a])[step, x, a] == pytest.approx(visits[x, a])


def test_ties_between_policies_are_broken_at_random():
    shape = Shape(states=2, actions=2, horizon=3)
    transitions = np.zeros(shape.transitions)
    transitions[..., 0] = 1.0
    listed = enumerate_policies(shape, np.array([True, False]))
    listed = listed.keep(np.arange(len(listed)) != 0)
    later = [
        listed.visiting(transitions, np.array([1.0, 0.0]), 0, salt)[0][0, 0, 2, 0]
        for salt in range(40)
    ]
    assert 5 < sum(later) < 35


def test_a_list_survives_as_text():
    everyone = enumerate_policies(Shape(states=3, actions=2, horizon=3), np.ones(3, bool))
    some = everyone.keep(np.random.default_rng(0).random(len(everyone)) < 0.5)
    assert (everyone.unpacked(some.packed()).indices == some.indices).all()
    assert everyone.unpacked(everyone.packed()).complete


def test_limit_is_two_to_the_twenty_five():
    start = np.array([True, False, False, False])
    assert len(enumerate_policies(Shape(states=4, actions=2, horizon=6), start)) == 2**21
    with pytest.raises(UnsupportedError, match=r"2\^29 policies.*structure='practical'"):
        enumerate_policies(Shape(states=4, actions=2, horizon=8), start)
