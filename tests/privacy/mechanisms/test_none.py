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
    mechanism = NoPrivacy().calibrate(SHAPE)
    released = mechanism.release(one_user(), sampler=sampler())
    assert np.array_equal(released.transitions, one_user().transitions)
    assert mechanism.noise_variance(9) == dict.fromkeys(mechanism.statistics, 0.0)
    assert mechanism.traffic(9) is None


def test_unplayed_actions_are_zero_also_without_privacy():
    support = np.zeros(SHAPE.visits, np.bool_)
    support[:, :, 1] = True
    released = NoPrivacy().calibrate(SHAPE).release(one_user(), sampler=sampler(), support=support)
    assert not released.visits.any()


def test_it_takes_counts_and_has_no_encoder():
    assert NoPrivacy().calibrate(SHAPE).takes_counts
    assert not NoPrivacy().calibrate(SHAPE).takes_reports
    stream = NoPrivacy().calibrate_stream(SHAPE, episodes=3)
    assert not stream.takes_reports


@pytest.mark.parametrize("stationary", [False, True])
def test_a_stream_is_the_running_sum(stationary):
    mechanism = NoPrivacy().calibrate_stream(SHAPE, episodes=3, stationary=stationary)
    stream = mechanism.open(sampler())
    stream.add(one_user(0))
    seen = stream.add(one_user(1)).visits
    expected = one_user(0).visits + one_user(1).visits
    assert np.array_equal(seen, expected.sum(axis=0, keepdims=True) if stationary else expected)


def test_a_stream_says_that_it_has_no_noise_and_guarantees_nothing():
    mechanism = NoPrivacy().calibrate_stream(SHAPE, episodes=3)
    assert mechanism.name == "none" and mechanism.guarantee == NO_GUARANTEE
    assert mechanism.error_bound(3, 0.1) == 0.0
    assert not mechanism.error_bounds(0.1).any()
    block = mechanism.open(sampler()).noise_block(3)
    assert block.shape == (3, mechanism.cells) and not block.any()
