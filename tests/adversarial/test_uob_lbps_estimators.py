"""Estimates, expected losses and relabelling of the adversarial learners, by exact enumeration."""

import itertools

import numpy as np
import pytest

from discreet._seeds import RunSeeds
from discreet.adversarial import uc_o_reps, uob_lbps
from discreet.adversarial.losses import stochastic_losses
from discreet.adversarial.occupancy import (
    confidence_boxes,
    state_action_occupancy,
    upper_occupancy_bounds,
)
from discreet.adversarial.uob_lbps import estimate_losses
from discreet.adversarial.world import (
    LayeredCounters,
    World,
    expected_loss,
    make_world,
    no_layered_counts,
)
from discreet.errors import InvalidInputError
from discreet.mdp.layered import LayeredMDP
from discreet.privacy.trust import Central, Local, NoPrivacy
from helpers.layers import random_layered

WIDTHS = (1, 3, 2, 1)


def small_mdp(seed, actions=2, widths=WIDTHS):
    return random_layered(seed, widths, actions)


def trajectories(mdp, policy):
    """Every path with its probability."""
    for states in itertools.product(*(range(w) for w in mdp.widths)):
        for actions in itertools.product(range(mdp.shape.actions), repeat=mdp.horizon):
            chance = 1.0
            for h in range(mdp.horizon):
                x, a, y = states[h], actions[h], states[h + 1]
                chance *= policy[h, x, a] * mdp.transitions[h, x, a, y]
            yield np.array(list(zip(states[:-1], actions, strict=True))), chance


@pytest.fixture
def setting():
    mdp, rng = small_mdp(0), np.random.default_rng(1)
    policy = rng.dirichlet(np.ones(2), mdp.shape.visits[:2])
    losses = rng.random(mdp.shape.visits)
    reached = np.zeros(mdp.shape.visits)
    state_action_occupancy(mdp.transitions, policy, mdp.widths, reached)
    return mdp, policy, losses, reached


def mean_estimate(setting, bounds, centred, limit, size=0.75):
    """Expectation over all paths and over noise +size or -size on every pair."""
    mdp, policy, losses, _ = setting
    mean, out = np.zeros(losses.shape), np.zeros(losses.shape)
    for path, chance in trajectories(mdp, policy):
        for sign in (-1.0, 1.0):
            released = np.full(losses.shape, sign * size)
            for h, (x, a) in enumerate(path):
                released[h, x, a] += losses[h, x, a] - (0.5 if centred else 0.0)
            estimate_losses(released, bounds, mdp.widths, limit, centred, out)
            mean += 0.5 * chance * out
    return mean


@pytest.mark.core
def test_expected_loss_is_the_mean_over_all_paths(setting):
    mdp, policy, losses, _ = setting
    steps = range(mdp.horizon)
    mean = sum(
        chance * losses[steps, path[:, 0], path[:, 1]].sum()
        for path, chance in trajectories(mdp, policy)
    )
    assert expected_loss(mdp.transitions, mdp.widths, policy, losses) == pytest.approx(mean)


@pytest.mark.core
def test_the_centred_estimate_is_unbiased_where_the_bounds_are_exact(setting):
    mdp, policy, losses, reached = setting
    exact = confidence_boxes(mdp.widths, mdp.transitions, mdp.transitions)
    bounds = upper_occupancy_bounds(policy, exact)
    present = mdp.present
    np.testing.assert_allclose(bounds[present], reached[present], atol=1e-12)
    mean = mean_estimate(setting, bounds, centred=True, limit=1.0)
    np.testing.assert_allclose(mean[present], (losses - 0.5)[present], atol=1e-12)


@pytest.mark.core
def test_optimistic_bounds_shrink_the_centred_estimate(setting):
    mdp, policy, losses, reached = setting
    wide = confidence_boxes(
        mdp.widths, np.maximum(mdp.transitions - 0.2, 0), np.minimum(mdp.transitions + 0.2, 1)
    )
    bounds, present = upper_occupancy_bounds(policy, wide), mdp.present
    assert (bounds[present] >= reached[present] - 1e-12).all()
    mean = mean_estimate(setting, bounds, centred=True, limit=1.0)
    expected = (losses - 0.5) * reached / np.maximum(bounds, 1e-12)
    np.testing.assert_allclose(mean[present], expected[present], atol=1e-12)


@pytest.mark.core
def test_the_printed_estimate_adds_a_bias_to_every_pair(setting):
    """(q·l + E')/((2E' + 1)·u): with no loss at all, E'/((2E' + 1)·u), larger where u is small."""
    mdp, _, losses, reached = setting
    bounds, limit, present = np.maximum(reached, 1e-12), 2.0, mdp.present
    mean = mean_estimate(setting, bounds, centred=False, limit=limit)
    expected = (reached * losses + limit) / ((2 * limit + 1) * bounds)
    np.testing.assert_allclose(mean[present], expected[present], atol=1e-12)


@pytest.mark.core
def test_clipping_keeps_the_barrier_step_positive(setting):
    """Estimates are at least -(1/2 + E')/u, so eta <= 1/(2E' + 1) keeps eta·l + 1/q > 0."""
    mdp, _, losses, reached = setting
    bounds, out, limit = np.maximum(reached, 1e-12), np.zeros(losses.shape), 1.5
    estimate_losses(np.full(losses.shape, -100.0), bounds, mdp.widths, limit, True, out)
    rate = 1 / (2 * limit + 1)
    assert (rate * out + 1 / bounds)[mdp.present].min() > 0


def reversed_labels(values, widths, first_axis, next_states=False):
    """Reverse the order of actions and of the states of every layer, in ``[..., H, W, A(, W)]``."""
    out = values.copy()
    for h, here in enumerate(widths[:-1]):
        place, axes = (*[slice(None)] * first_axis, h, slice(0, here)), (first_axis, first_axis + 1)
        if next_states:
            place, axes = (*place, slice(None), slice(0, widths[h + 1])), (*axes, first_axis + 2)
        out[place] = np.flip(values[place], axes)
    return out


def reversed_block(episodes, model, raw):
    """The same episodes with all labels reversed, in ``model``: draws u become 1 - u."""
    users, widths = episodes.users, model.widths
    noise = LayeredCounters(
        reversed_labels(users.noise.transitions, widths, 1, next_states=True),
        reversed_labels(users.noise.visits, widths, 1),
        reversed_labels(users.noise.losses, widths, 1),
    )
    reversed_users = users._replace(
        transitions=model.transitions,
        reported=reversed_labels(users.reported, widths, 1),
        uniforms=1 - users.uniforms,
        noise=noise,
        raw=raw,
    )
    losses = reversed_labels(episodes.losses, widths, 1)
    return episodes._replace(losses=losses, users=reversed_users)


LEARNERS = {"full": uc_o_reps.UcOReps, "bandit": uob_lbps.UobLbps}
KINDS = {"full": uc_o_reps.UcORepsSettings, "bandit": uob_lbps.UobLbpsSettings}


@pytest.mark.parametrize("module", [uc_o_reps, uob_lbps])
@pytest.mark.parametrize("trust", [NoPrivacy(), Central(20.0, 1e-6), Local(50.0)])
def test_reversed_labels_give_exactly_the_reversed_policy(monkeypatch, module, trust):
    """No state and no action is special: every draw, noise value and loss is relabelled too."""
    mdp, episodes = small_mdp(3, actions=3, widths=(1, 3, 4, 2, 1)), 150
    other = LayeredMDP(
        transitions=reversed_labels(mdp.transitions, mdp.widths, 0, next_states=True),
        widths=mdp.widths,
    )
    feedback = "full" if module is uc_o_reps else "bandit"
    losses = stochastic_losses(mdp, episodes, seed=1)
    chosen = KINDS[feedback].theory(confidence=0.05)
    world = make_world(mdp, trust, episodes, RunSeeds(0), chosen, feedback=feedback, losses=losses)
    learner = LEARNERS[feedback](world, chosen)
    blocks, raw = list(world.blocks(chosen, learner.rate)), no_layered_counts(mdp.shape.transitions)
    mirrored = [(first, reversed_block(block, other, raw)) for first, block in blocks]
    results = []
    for model, played in ((mdp, blocks), (other, mirrored)):
        monkeypatch.setattr(World, "blocks", lambda *_, played=played: iter(played))
        results.append(
            module.run(
                model,
                trust,
                episodes,
                RunSeeds(0),
                losses="stochastic",
                constants="theory",
                confidence=0.05,
            )
        )
    one, two = results
    np.testing.assert_allclose(two.regret.values, one.regret.values, rtol=1e-6, atol=1e-6)
    probabilities = np.asarray(two.policy.probabilities)
    expected = reversed_labels(np.asarray(one.policy.probabilities), mdp.widths, 0)
    np.testing.assert_allclose(probabilities, expected, atol=1e-4)
    assert np.abs(probabilities[mdp.present] - 1 / 3).max() > 0.02


@pytest.mark.core
@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"loss_estimator": "plain"}, "loss_estimator"),
        ({"loss_share": 1.0}, "loss_share < 1"),
        ({"loss_share": 0.0}, "loss_share > 0"),
        ({"limit": -1.0}, "limit > 0"),
        ({"constants": "best"}, "constants"),
        ({"confidence": float("nan")}, "confidence to be a finite number"),
    ],
)
def test_bad_settings_name_the_setting_and_the_rule(wrong, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        uob_lbps.run(small_mdp(0), NoPrivacy(), 100, RunSeeds(0), **wrong)
