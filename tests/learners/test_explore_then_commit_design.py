"""How explore-then-commit explores: lengths from public facts, policies that come everywhere."""

import numpy as np
import pytest

from discreet.errors import UnsupportedError
from discreet.learners.base import Problem
from discreet.learners.explore_then_commit import (
    ExploreThenCommit,
    designed_policy,
    exploration_users,
)
from discreet.mdp.environments.synthetic import RiverSwim
from discreet.mdp.planning import occupancy
from discreet.mdp.policies import uniform_policy
from discreet.mdp.shape import Shape
from discreet.privacy.trust import Central, Local, NoPrivacy, Shuffle

MDP = RiverSwim(states=5, horizon=8)


def problem(episodes=10**6, shape=MDP.shape):
    start = np.zeros(shape.states, np.bool_)
    start[0] = True
    return Problem(shape, episodes, start)


def release(trust, shape=MDP.shape):
    return trust.calibrate(shape, statistics=("transitions", "rewards"), last_transitions=False)


def users(trust, episodes):
    return exploration_users(problem(episodes), release(trust))


def test_more_users_and_more_noise_explore_longer_and_a_smaller_share():
    for trust in (NoPrivacy(), Central(1, 1e-6)):
        lengths = [users(trust, k) for k in (10**4, 10**6, 10**8)]
        assert lengths == sorted(lengths) and lengths[0] > 1
        shares = [n / k for n, k in zip(lengths, (10**4, 10**6, 10**8), strict=True)]
        assert shares == sorted(shares, reverse=True)
    assert users(NoPrivacy(), 10**6) < users(Central(1, 1e-6), 10**6) < users(Local(1), 10**6)
    assert users(Central(1, 1e-6), 10**6) < users(Central(0.1, 1e-6), 10**6)


@pytest.mark.parametrize("episodes", [1, 2, 3, 100])
def test_at_least_one_and_at_most_half_of_the_users_explore(episodes):
    assert 1 <= users(Central(1, 1e-6), episodes) <= max(1, episodes // 2)


def test_a_design_comes_where_random_actions_hardly_ever_do():
    rng = np.random.default_rng(0)
    chosen = designed_policy(problem(), MDP.transitions, MDP.initial, 1e-4, rng)
    random, designed = occupancy(MDP, uniform_policy(MDP.shape)), occupancy(MDP, chosen)
    reached = random > 0
    assert (designed[reached] > 0).all()
    assert designed[reached].min() > 5 * random[reached].min()
    assert (designed[-1, -1] > 5 * random[-1, -1]).all()  # the far end of the river


def test_what_is_out_of_reach_is_not_covered():
    rng = np.random.default_rng(0)
    easy = designed_policy(problem(), MDP.transitions, MDP.initial, 0.2, rng)
    hard = designed_policy(problem(), MDP.transitions, MDP.initial, 1e-4, rng)
    assert occupancy(MDP, easy)[-1, -1].sum() < occupancy(MDP, hard)[-1, -1].sum()
    nothing = designed_policy(problem(), MDP.transitions, MDP.initial, 2.0, rng)
    assert np.array_equal(nothing.probabilities, uniform_policy(MDP.shape).probabilities)


def test_designs_that_would_not_fit_are_refused():
    shape, rng = Shape(states=716, actions=25, horizon=20), np.random.default_rng(0)
    with pytest.raises(UnsupportedError, match="exploration='uniform'"):
        ExploreThenCommit(problem(shape=shape), release(NoPrivacy(), shape), rng)


def test_a_length_is_a_batch_that_can_be_released():
    """Under shuffle nobody is hidden alone, and one of the users has to be honest."""
    plan = release(Shuffle(2, 1e-6, honest=0.5))
    assert plan.min_users == 2
    for episodes in (2, 3, 3000):
        assert 2 <= exploration_users(problem(episodes), plan) <= max(2, episodes // 2)
