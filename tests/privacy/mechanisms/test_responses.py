"""Streams of randomised answers: blocks, single users and reports tell one story."""

import numpy as np
import pytest

from discreet.errors import InvalidInputError, UnsupportedError
from discreet.mdp.shape import Shape
from discreet.privacy.mechanisms.additive import episode_counts
from discreet.privacy.trust import Local
from helpers.sampling import sampler

SHAPE = Shape(states=2, actions=2, horizon=2)
EPISODE = (np.array([0, 1, 1]), np.array([1, 0]), np.array([1.0, 0.0]))
KINDS = [
    (name, stationary)
    for name in ("randomized-response", "one-step")
    for stationary in (False, True)
]


@pytest.fixture(params=KINDS, ids=lambda kind: f"{kind[0]}-{'pooled' if kind[1] else 'per step'}")
def plan(request):
    name, stationary = request.param
    trust = Local(3, mechanism=name)
    return trust.calibrate_stream(SHAPE, episodes=6, stationary=stationary)


def test_it_adds_no_noise_to_true_counts(plan):
    with pytest.raises(UnsupportedError, match="randomises the data"):
        plan.open(sampler()).noise_block(2)


def test_blocks_are_integers_and_any_cut_gives_the_same(plan):
    whole = plan.open(sampler()).block(6)
    run = plan.open(sampler())
    parts = [run.block(n) for n in (1, 2, 3)]
    for name in ("noise", "gains", "steps", "centres"):
        cut = np.concatenate([getattr(part, name) for part in parts])
        assert np.array_equal(getattr(whole, name), cut)
    assert np.array_equal(whole.noise, np.rint(whole.noise))
    assert set(np.unique(whole.gains)) <= {-1.0, 0.0, 1.0}


def test_a_stream_of_users_ends(plan):
    stream, user = plan.open(sampler()), episode_counts(SHAPE, *EPISODE, sampler())
    for _ in range(6):
        last = stream.add(user)
    assert last.users == 6
    with pytest.raises(InvalidInputError, match="calibrate a longer stream"):
        stream.add(user)
    assert stream.episode == 6


def test_users_have_the_mean_of_what_they_did(plan):
    user = episode_counts(SHAPE, *EPISODE, sampler())
    truth = user.visits.sum(axis=0, keepdims=True) if plan.stationary else user.visits
    noise = sampler(5)
    seen = [plan.open(noise).add(user).visits for _ in range(1500)]
    error = np.std(seen, axis=0) / np.sqrt(1500)
    assert (np.abs(np.mean(seen, axis=0) - truth) < 5 * error + 1e-9).all()


def test_bounds_grow_and_hold_one_by_one(plan):
    bounds = plan.error_bounds(0.05)
    assert (np.diff(bounds) > 0).all()
    assert bounds == pytest.approx([plan.error_bound(k, 0.05) for k in range(1, 7)], rel=1e-9)
    with pytest.raises(InvalidInputError, match="episode"):
        plan.error_bound(7, 0.05)
