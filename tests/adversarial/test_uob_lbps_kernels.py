"""The compiled loop of Private-UOB-LBPS, and its loss estimators."""

import numpy as np
import pytest

from discreet.adversarial.barrier import barrier_state, barrier_step
from discreet.adversarial.learner import update_boxes
from discreet.adversarial.occupancy import open_boxes, upper_occupancy
from discreet.adversarial.uob_lbps import (
    LEAST_BOUND,
    UobLbps,
    UobLbpsSettings,
    estimate_losses,
    run_block,
)
from discreet.adversarial.world import add_layered_user, expected_loss
from discreet.privacy.trust import Central, NoPrivacy
from helpers.layers import one_block

EPISODES = 40
WIDTHS = np.array([1, 2, 1])


def estimated(released, bounds, limit, centred):
    out = np.full(released.shape, np.nan)
    estimate_losses(released, bounds, WIDTHS, limit, centred, out)
    return out


@pytest.mark.parametrize("limit", [0.0, 1.5])
def test_centred_losses_are_clipped_and_weighted(limit):
    rng = np.random.default_rng(1)
    released, bounds = 4 * rng.normal(size=(2, 2, 3)), rng.random((2, 2, 3)) + 0.1
    out = estimated(released, bounds, limit, True)
    expected = np.clip(released, -0.5 - limit, 0.5 + limit) / bounds
    np.testing.assert_allclose(out[0, 0], expected[0, 0])
    np.testing.assert_allclose(out[1], expected[1])
    assert np.isnan(out[0, 1]).all()  # no such state in the first layer


def test_printed_losses_are_scaled_into_the_unit_interval():
    released = np.array([[[-9.0, 9.0, 0.25]], [[-1.0, 1.0, 0.0]]]).repeat(2, axis=1)
    out = estimated(released, np.ones((2, 2, 3)), 1.0, False)
    assert out[0, 0].tolist() == pytest.approx([0.0, 1.0, 1.25 / 3])
    assert out[1, 1].tolist() == pytest.approx([0.0, 2 / 3, 1 / 3])


def test_bounds_of_zero_do_not_divide():
    out = estimated(np.full((2, 2, 3), 0.5), np.zeros((2, 2, 3)), 0.0, True)
    np.testing.assert_allclose(out[1], 0.5 / LEAST_BOUND)


def fresh(trust=None, **settings):
    chosen = UobLbpsSettings.theory(**{"confidence": 0.05, **settings})
    return one_block(UobLbps, chosen, EPISODES, trust)


@pytest.mark.parametrize("estimator", ["centred", "paper"])
@pytest.mark.parametrize("trust", [NoPrivacy(), Central(20.0, 1e-6)])
def test_a_block_is_pay_play_bound_estimate_boxes_step(trust, estimator):
    learner, episodes = fresh(trust, loss_estimator=estimator)
    centred = estimator == "centred"
    run_block(episodes, learner.limit, centred, learner.boxes, learner.state)
    again, plain = fresh(trust, loss_estimator=estimator)
    mdp, users = again.world.mdp, plain.users
    boxes = open_boxes(mdp.widths, mdp.shape.transitions)
    state = barrier_state(mdp.widths, mdp.shape.actions)
    bounds, estimate = np.zeros(mdp.shape.visits), np.zeros(mdp.shape.visits)
    costs = np.zeros(boxes.lower.shape)
    for k in range(EPISODES):
        paid = expected_loss(mdp.transitions, mdp.widths, state.policy, plain.losses[k])
        assert episodes.paid[k] == pytest.approx(paid, rel=1e-12)
        add_layered_user(users, k, state.policy)
        upper_occupancy(boxes, state.policy, bounds)
        estimate_losses(users.public.losses, bounds, users.widths, again.limit, centred, estimate)
        update_boxes(users.public, plain.errors[k], plain.log_iota, plain.confidence, boxes)
        gap, _ = barrier_step(estimate, plain.rate, boxes, state, costs)
        assert episodes.gaps[k] == pytest.approx(gap, rel=1e-12, abs=1e-300)
    np.testing.assert_array_equal(state.policy, learner.policy)


def test_certificates_are_small_and_the_policy_stays_one():
    learner, episodes = fresh(rate=5.0)
    steps = run_block(episodes, learner.limit, True, learner.boxes, learner.state)
    assert steps >= EPISODES
    assert episodes.gaps.max() < 1e-6
    present = learner.world.mdp.present
    np.testing.assert_allclose(learner.policy[present].sum(axis=-1), 1.0)
    assert (learner.policy[present] > 0).all()


def test_the_loss_of_a_visited_pair_is_centred_before_it_is_reported():
    """No privacy: what is public of an episode is l - 1/2 on its path and nothing elsewhere."""
    learner, episodes = fresh()
    run_block(episodes, learner.limit, True, learner.boxes, learner.state)
    public = episodes.users.public.losses
    visited = public != 0
    assert visited.sum() <= 3
    last = episodes.users.reported[-1] - 0.5
    np.testing.assert_allclose(public[visited], last[visited])
