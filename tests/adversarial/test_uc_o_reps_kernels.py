"""The compiled loop of Private-UC-O-REPS: one episode after the other, step by step."""

import numpy as np
import pytest

from discreet.adversarial.entropy import entropy_ftrl
from discreet.adversarial.learner import update_boxes
from discreet.adversarial.occupancy import open_boxes
from discreet.adversarial.uc_o_reps import UcOReps, UcORepsSettings, run_block
from discreet.adversarial.world import add_layered_user, expected_loss
from discreet.privacy.trust import Central, NoPrivacy
from helpers.layers import one_block

EPISODES = 40


def fresh(trust=None, **settings):
    chosen = UcORepsSettings.choose({"confidence": 0.05, **settings})
    return one_block(UcOReps, chosen, EPISODES, trust)


@pytest.mark.parametrize("trust", [NoPrivacy(), Central(20.0, 1e-6)])
def test_a_block_is_pay_play_release_boxes_solve(trust):
    learner, episodes = fresh(trust)
    run_block(episodes, learner.boxes, learner.state, False)
    again, plain = fresh(trust)
    mdp, users = again.world.mdp, plain.users
    policy = np.full(mdp.shape.visits, 1 / mdp.shape.actions)
    boxes = open_boxes(mdp.widths, mdp.shape.transitions)
    for k in range(EPISODES):
        paid = expected_loss(mdp.transitions, mdp.widths, policy, plain.losses[k])
        assert episodes.paid[k] == pytest.approx(paid, abs=1e-5)
        add_layered_user(users, k, learner_policy(policy))
        update_boxes(users.public, plain.errors[k], plain.log_iota, plain.confidence, boxes)
        solution = entropy_ftrl(plain.rate * users.public.losses, boxes)
        policy = solution.policy
        if k == 5:
            break  # later episodes may be drawn differently where the two solvers round


def learner_policy(policy):
    return np.ascontiguousarray(policy)


def test_certificates_are_small_and_steps_are_counted():
    learner, episodes = fresh()
    steps = run_block(episodes, learner.boxes, learner.state, False)
    assert steps > 0
    assert (episodes.gaps >= 0).all()
    assert episodes.gaps.max() < 1e-6


def test_the_policy_left_is_a_policy_and_has_moved():
    learner, episodes = fresh(rate=20.0)
    run_block(episodes, learner.boxes, learner.state, False)
    present = learner.world.mdp.present
    policy = learner.policy[present]
    np.testing.assert_allclose(policy.sum(axis=-1), 1.0)
    assert np.abs(policy - 0.5).max() > 0.05


def test_a_rate_of_nearly_zero_minds_no_losses():
    """Only the entropy counts: the same policy whatever the losses are."""
    found = []
    for flip in (False, True):
        learner, episodes = fresh(rate=1e-9)
        if flip:
            episodes.users.reported[:] = 1.0 - episodes.users.reported
        run_block(episodes, learner.boxes, learner.state, False)
        found.append(learner.policy[learner.world.mdp.present])
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)


def test_two_blocks_are_one():
    whole, episodes = fresh()
    run_block(episodes, whole.boxes, whole.state, False)
    parts, pieces = fresh()
    half = EPISODES // 2
    for first, last in ((0, half), (half, EPISODES)):
        users = pieces.users._replace(
            reported=pieces.users.reported[first:last],
            uniforms=pieces.users.uniforms[first:last],
            noise=type(pieces.users.noise)(*(n[first:last] for n in pieces.users.noise)),
        )
        part = pieces._replace(
            losses=pieces.losses[first:last],
            users=users,
            errors=pieces.errors[first:last],
            paid=pieces.paid[first:last],
            gaps=pieces.gaps[first:last],
        )
        run_block(part, parts.boxes, parts.state, first > 0)
    np.testing.assert_allclose(pieces.paid, episodes.paid, atol=1e-9)
    np.testing.assert_allclose(parts.policy, whole.policy, atol=1e-9)
