"""No privacy: the same interfaces, the exact counts, and a guarantee that says none."""

import numpy as np
import pytest

from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy.guarantee import NO_GUARANTEE
from discreet.privacy.trust import NoPrivacy
from helpers.sampling import sampler

SHAPE = Shape(states=2, actions=2, horizon=2)


def one_user(state=0):
    transitions, rewards = np.zeros(SHAPE.transitions, np.int64), np.zeros(SHAPE.visits, np.int64)
    transitions[:, state, 0, state] = rewards[:, state, 0] = 1
    return Counts(1, transitions, rewards)


def test_a_batch_is_released_as_it_is():
    plan = NoPrivacy().calibrate(SHAPE)
    released = plan.release(one_user(), sampler=sampler())
    assert np.array_equal(released.transitions, one_user().transitions)
    assert plan.noise_variance(9) == dict.fromkeys(plan.statistics, 0.0)
    assert plan.traffic(9) is None and plan.accountings(9) == []


def test_unplayed_actions_are_zero_also_without_privacy():
    support = np.zeros(SHAPE.visits, np.bool_)
    support[:, :, 1] = True
    released = NoPrivacy().calibrate(SHAPE).release(one_user(), sampler=sampler(), support=support)
    assert not released.visits.any()


def test_it_takes_counts_and_has_no_encoder():
    assert NoPrivacy().calibrate(SHAPE).takes_counts
    assert not NoPrivacy().calibrate(SHAPE).takes_reports
    stream = NoPrivacy().calibrate(SHAPE, schedule="continual", episodes=3)
    assert not stream.takes_reports


@pytest.mark.parametrize("stationary", [False, True])
def test_a_stream_is_the_running_sum(stationary):
    plan = NoPrivacy().calibrate(SHAPE, schedule="continual", episodes=3, stationary=stationary)
    stream = plan.open(sampler())
    stream.add(one_user(0))
    seen = stream.add(one_user(1)).visits
    expected = one_user(0).visits + one_user(1).visits
    assert np.array_equal(seen, expected.sum(axis=0, keepdims=True) if stationary else expected)


def test_a_stream_says_that_it_has_no_noise_and_promises_nothing():
    plan = NoPrivacy().calibrate(SHAPE, schedule="continual", episodes=3)
    assert plan.name == "none" and plan.guarantee == NO_GUARANTEE
    assert plan.error_bound(3, 0.1) == 0.0
    assert not plan.error_bounds(0.1).any()
    block = plan.open(sampler()).noise_block(3)
    assert block.shape == (3, plan.cells) and not block.any()
