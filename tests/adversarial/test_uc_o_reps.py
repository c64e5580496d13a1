"""Private-UC-O-REPS: rate, settings, its loop step by step, and that it follows the losses."""

import math

import numpy as np
import pytest

from discreet._seeds import RunSeeds
from discreet.adversarial.learner import update_boxes
from discreet.adversarial.losses import stochastic_losses
from discreet.adversarial.occupancy import open_boxes
from discreet.adversarial.uc_o_reps import (
    SPECS,
    UcOReps,
    UcORepsSettings,
    learning_rate,
    run,
    run_block,
)
from discreet.adversarial.world import add_layered_user, expected_loss, make_world
from discreet.errors import UnknownNameError
from discreet.privacy.trust import Central, NoPrivacy
from helpers.boxes import entropy_ftrl
from helpers.layers import one_block, random_layered

MDP = random_layered(0, (1, 3, 2, 1))
"""Six states that act, two actions: XA = 12, H = 3."""


def world(episodes=100, **settings):
    chosen = UcORepsSettings.choose(settings)
    return make_world(
        MDP, NoPrivacy(), episodes, RunSeeds(0), chosen, feedback="full", losses="stochastic"
    )


def test_the_rate_is_that_of_the_theorem():
    assert learning_rate(world(100)) == pytest.approx(math.sqrt(math.log(12 / 3) / 100))
    assert learning_rate(world(400)) == pytest.approx(learning_rate(world(100)) / 2)


def test_one_pair_per_layer_still_has_a_rate():
    """ln(XA/H) would be zero."""
    single = random_layered(1, (1, 1, 1), 1)
    made = make_world(
        single, NoPrivacy(), 50, RunSeeds(0), UcORepsSettings(), feedback="full",
        losses="stochastic",
    )  # fmt: skip
    assert learning_rate(made) == pytest.approx(math.sqrt(1e-3 / 50))


@pytest.mark.core
def test_practical_constants_unless_asked_otherwise():
    assert UcORepsSettings.choose({}).to_dict()["constants"] == "practical"
    assert UcORepsSettings.choose({}).rate == 2.0
    assert UcORepsSettings.theory().rate == 1.0
    practical = UcORepsSettings.practical()
    assert (practical.confidence, practical.rate, practical.error) == (0.01, 2.0, 1.0)
    assert UcORepsSettings.practical(rate=5.0).rate == 5.0
    assert UcORepsSettings().release_options() == {"public_losses": False, "padded_losses": False}
    with pytest.raises(UnknownNameError, match="loss_share"):
        UcORepsSettings.choose({"loss_share": 0.5})


def test_a_learner_starts_uniform_with_open_boxes():
    learner = UcOReps(world(), UcORepsSettings(rate=3.0))
    assert (learner.policy == 0.5).all()
    assert not learner.boxes.lower.any()
    assert learner.rate == pytest.approx(3.0 * learning_rate(world()))
    assert learner.shown_settings()["learning_rate"] == learner.rate


def test_the_roster_runs_it_by_its_name():
    spec = SPECS["private-uc-o-reps"]
    assert spec.name == UcOReps.name
    assert spec.schedule == "adversarial"
    assert spec.settings_type is UcORepsSettings
    result = spec.run(MDP, NoPrivacy(), 60, RunSeeds(1))
    assert result.learner == UcOReps.name
    assert result.settings["constants"] == "practical"
    bound = spec.bounds["central"]
    assert bound(4, 2, 3, 100.0, 1.0) > bound(4, 2, 3, 100.0, 2.0) > 0


def test_the_policy_ends_where_the_losses_are_small():
    """Action 1 costs nothing, action 0 everything: it is played nearly always in the end."""
    means = np.zeros(MDP.shape.visits)
    means[..., 0] = 1.0
    losses = stochastic_losses(MDP, 600, means=means, seed=2)
    result = run(MDP, NoPrivacy(), 600, RunSeeds(2), losses=losses, constants="practical")
    assert (result.policy.probabilities[..., 1][MDP.present] > 0.95).all()
    assert result.final_regret < 0.2 * result.extras["uniform_regret"]


def test_padding_of_the_last_policy_is_uniform():
    result = run(MDP, NoPrivacy(), 60, RunSeeds(3))
    probabilities = np.asarray(result.policy.probabilities)
    np.testing.assert_allclose(probabilities[~MDP.present], 0.5)
    np.testing.assert_allclose(probabilities.sum(axis=-1), 1.0)


def test_a_private_run_says_its_mechanism_and_noise():
    result = run(MDP, Central(1.0, 1e-6), 60, RunSeeds(4))
    assert result.mechanism not in ("", "auto")
    assert result.noise
    assert min(result.noise.values()) > 0.0
    assert result.extras["newton_steps_per_episode"] > 0


EPISODES = 40


def fresh(trust=None, **settings):
    chosen = UcORepsSettings.choose({"confidence": 0.05, **settings})
    return one_block(UcOReps, chosen, EPISODES, trust)


@pytest.mark.parametrize("literal", [False, True])
@pytest.mark.parametrize("trust", [NoPrivacy(), Central(20.0, 1e-6)])
def test_a_block_is_pay_play_release_boxes_solve(trust, literal):
    learner, episodes = fresh(trust, literal=literal)
    run_block(episodes, learner.boxes, learner.state, False)
    again, plain = fresh(trust, literal=literal)
    mdp, users = again.world.mdp, plain.users
    policy = np.full(mdp.shape.visits, 1 / mdp.shape.actions)
    boxes = open_boxes(mdp.widths, mdp.shape.transitions)
    for k in range(EPISODES):
        paid = expected_loss(mdp.transitions, policy, plain.losses[k])
        assert episodes.paid[k] == pytest.approx(paid, abs=1e-5)
        add_layered_user(users, k, learner_policy(policy))
        width = (plain.errors[k], plain.log_iota, plain.confidence)
        update_boxes(users.public, *width, boxes, literal)
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
