"""Neighbours on MDPs so small that all episodes can be listed."""

import itertools

import numpy as np
import pytest

from discreet.auditing.neighbours import (
    EVERYTHING,
    LAST_STEP,
    ONE_STEP,
    REWARDS,
    Episode,
    everything,
    neighbours,
    opposites,
    total,
    vector,
)
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy import Central, SimulationSampler
from discreet.privacy.sensitivity import STATISTICS
from helpers.auditing import batch_of

pytestmark = pytest.mark.core
SHAPES = [Shape(1, 2, 1), Shape(2, 1, 2), Shape(2, 2, 1), Shape(1, 2, 2), Shape(2, 2, 2)]
SHAPE = Shape(states=2, actions=3, horizon=2)


def episodes(shape):
    """All that can happen to a user."""
    steps = shape.horizon
    for states in itertools.product(range(shape.states), repeat=steps + 1):
        for actions in itertools.product(range(shape.actions), repeat=steps):
            for rewards in itertools.product((0.0, 1.0), repeat=steps):
                yield Episode(np.array(states), np.array(actions), np.array(rewards))


def counters(episode, shape, pooled=False):
    """All three statistics, one after the other."""
    counts = episode.counts(shape)
    parts = [getattr(counts, name) for name in STATISTICS]
    return np.concatenate([(p.sum(axis=0) if pooled else p).ravel() for p in parts])


def furthest(shape, order, pooled):
    """The largest distance between any two users."""
    seen = np.unique([counters(e, shape, pooled) for e in episodes(shape)], axis=0)
    gaps = np.abs(seen[:, None] - seen[None]).astype(float)
    return (gaps**order).sum(axis=2).max()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("order", [1, 2])
def test_no_two_users_are_further_apart_than_the_opposites(shape, pooled, order):
    one, other = (counters(u, shape, pooled) for u in opposites(shape))
    assert (np.abs(one - other).astype(float) ** order).sum() == furthest(shape, order, pooled)


def test_where_only_rewards_can_differ_they_do():
    shape = Shape(1, 1, 3)
    one, other = opposites(shape)
    assert np.array_equal(one.rewards, [1, 1, 1]) and not other.rewards.any()
    assert np.abs(counters(one, shape) - counters(other, shape)).sum() == 3


def test_counts_of_an_episode_by_hand():
    user = Episode(np.array([0, 1, 1]), np.array([2, 0]), np.array([1.0, 0.0]))
    counts = user.counts(SHAPE)
    assert counts.users == 1
    assert counts.transitions.sum() == 2 and counts.rewards.sum() == 1
    assert counts.transitions[0, 0, 2, 1] == counts.transitions[1, 1, 0, 1] == 1
    assert counts.rewards[0, 0, 2] == 1
    assert counts.visits[0, 0, 2] == counts.visits[1, 1, 0] == 1


def test_the_policy_of_an_episode_plays_it_in_every_state():
    user = Episode(np.array([0, 1, 1]), np.array([2, 0]), np.zeros(2))
    support = user.policy(SHAPE)
    assert support.dtype == np.bool_ and support.shape == SHAPE.visits
    assert support[0, :, 2].all() and support[1, :, 0].all()
    assert support.sum() == SHAPE.horizon * SHAPE.states


def test_the_other_opposite_leaves_the_policy_at_every_step():
    usual, other = opposites(SHAPE)
    support = usual.policy(SHAPE)
    assert not any(support[h, other.states[h], other.actions[h]] for h in range(SHAPE.horizon))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_neighbours_differ_in_what_their_names_say(shape):
    usual, other = opposites(shape)
    found = neighbours(shape)
    assert list(found) == [EVERYTHING, REWARDS, ONE_STEP, LAST_STEP]
    assert np.array_equal(found[EVERYTHING].states, other.states)
    rewards = found[REWARDS]
    assert np.array_equal(rewards.states, usual.states)
    assert np.array_equal(rewards.actions, usual.actions)
    assert not rewards.rewards.any()
    for label, step in ((ONE_STEP, 0), (LAST_STEP, shape.horizon - 1)):
        changed = found[label]
        differs = (changed.actions != usual.actions) | (changed.rewards != usual.rewards)
        assert np.flatnonzero(differs).tolist() == [step]
        same = usual.states[:-1] == changed.states[:-1]
        assert same.all()


def test_the_last_step_ends_elsewhere():
    shape = Shape(3, 2, 2)
    assert neighbours(shape)[LAST_STEP].states.tolist() == [0, 0, 2]
    assert neighbours(shape)[ONE_STEP].states.tolist() == [0, 0, 0]


def test_making_neighbours_leaves_the_usual_user_alone():
    shape = Shape(2, 2, 2)
    usual, _ = opposites(shape)
    neighbours(shape)
    again, _ = opposites(shape)
    assert np.array_equal(usual.actions, again.actions)
    assert np.array_equal(usual.rewards, [1, 1])


def same(one, other):
    assert one.users == other.users
    assert np.array_equal(one.transitions, other.transitions)
    assert np.array_equal(one.rewards, other.rewards)


def test_a_batch_is_the_sum_of_its_users():
    usual, other = opposites(SHAPE)
    users = [other, usual, other, usual, usual]
    by_hand = Counts.zeros(SHAPE)
    for user in users:
        by_hand = by_hand + user.counts(SHAPE)
    same(total(users, SHAPE), by_hand)
    assert total(users, SHAPE).users == 5
    same(total([], SHAPE), Counts.zeros(SHAPE))


def test_equal_users_are_told_apart_from_alike_ones():
    """Two objects of the same content are two users; one object twice is two users as well."""
    usual, _ = opposites(SHAPE)
    twin = Episode(usual.states.copy(), usual.actions.copy(), usual.rewards.copy())
    same(total([usual, twin], SHAPE), total([usual, usual], SHAPE))


@pytest.mark.parametrize("users", [1, 2, 1000])
def test_a_user_in_a_crowd(users):
    usual, other = opposites(SHAPE)
    same(batch_of(other, users, SHAPE), total([other] + [usual] * (users - 1), SHAPE))


@pytest.fixture(scope="module")
def released():
    plan = Central(epsilon=1).calibrate(SHAPE, statistics=("visits", "rewards"))
    counts = opposites(SHAPE)[0].counts(SHAPE)
    return plan.release(counts, sampler=SimulationSampler(np.random.default_rng(0)))


def test_a_release_as_one_vector(released):
    pairs = np.prod(SHAPE.visits)
    found = vector(released)
    assert found.shape == (2 * pairs,)
    assert np.array_equal(found[:pairs].reshape(SHAPE.visits), released.visits)
    assert np.array_equal(found[pairs:].reshape(SHAPE.visits), released.rewards)


def test_everything_that_a_release_says(released):
    found = everything(released)
    more = found[vector(released).size :]
    stated = [released.noise_variance[name] for name in ("rewards", "visits")]
    assert np.array_equal(found[: vector(released).size], vector(released))
    assert more[0] == 1  # users
    assert np.array_equal(more[1:3], stated)
    assert np.array_equal(more[3:], released.support.ravel())
