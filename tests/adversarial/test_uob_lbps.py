"""Private-UOB-LBPS: rates, limits, loop and estimators, by exact enumeration too."""

import itertools
import math

import numpy as np
import pytest

from discreet._seeds import RunSeeds
from discreet.adversarial import uc_o_reps, uob_lbps
from discreet.adversarial.barrier import barrier_state, barrier_step
from discreet.adversarial.learner import update_boxes
from discreet.adversarial.losses import stochastic_losses
from discreet.adversarial.occupancy import open_boxes, upper_occupancy
from discreet.adversarial.uob_lbps import (
    LEAST_BOUND,
    SPECS,
    UobLbps,
    UobLbpsSettings,
    estimate_losses,
    learning_rate,
    run,
    run_block,
)
from discreet.adversarial.world import (
    LayeredCounters,
    World,
    add_layered_user,
    expected_loss,
    make_world,
    no_layered_counts,
)
from discreet.errors import InvalidInputError
from discreet.mdp.layered import LayeredMDP
from discreet.privacy.trust import Central, Local, NoPrivacy
from helpers.boxes import confidence_boxes, rolled, upper_occupancy_bounds
from helpers.layers import one_block, random_layered

MDP = random_layered(0, (1, 3, 2, 1))
"""Six states that act, two actions."""
EPISODES = 150


def world(trust=None, **settings):
    chosen = UobLbpsSettings.theory(**settings)
    made = make_world(
        MDP, trust or NoPrivacy(), EPISODES, RunSeeds(0), chosen,
        feedback="bandit", losses="stochastic",
    )  # fmt: skip
    return made, chosen


def test_the_printed_rate_is_that_of_the_theorem():
    made, chosen = world(loss_estimator="paper")
    assert learning_rate(made, chosen, 7.0) == pytest.approx(math.sqrt(6 / EPISODES))
    made, chosen = world(loss_estimator="paper", rate=2.5)
    assert learning_rate(made, chosen, 7.0) == pytest.approx(2.5 * math.sqrt(6 / EPISODES))


def test_the_centred_rate_keeps_every_step_positive():
    """eta <= 1/(2E' + 1), whatever the multiplier."""
    made, chosen = world(rate=1e6)
    assert learning_rate(made, chosen, 2.0) == pytest.approx(1 / 5)
    made, chosen = world()
    assert learning_rate(made, chosen, 0.0) == pytest.approx(math.sqrt(6 / EPISODES))


def test_noise_on_the_losses_slows_the_centred_learner():
    made, chosen = world(Central(0.5, 1e-6))
    assert made.mechanism.loss_std > 1.0
    slow = learning_rate(made, chosen, 1e-9)
    assert slow == pytest.approx(math.sqrt(6 / EPISODES) / made.mechanism.loss_std)


@pytest.mark.core
def test_settings_say_how_losses_are_released():
    assert UobLbpsSettings().release_options()["centred_losses"]
    assert not UobLbpsSettings(loss_estimator="paper").release_options()["centred_losses"]
    assert UobLbpsSettings(loss_share=0.6).release_options()["loss_share"] == 0.6
    practical = UobLbpsSettings.practical()
    assert (practical.limit, practical.loss_share, practical.rate) == (0.5, 0.8, 3.0)
    with pytest.raises(InvalidInputError, match=r"loss_share < 1, got 1\.5"):
        UobLbpsSettings(loss_share=1.5)


def test_more_budget_for_the_losses_is_less_noise_on_them():
    little, _ = world(Central(1.0, 1e-6), loss_share=0.2)
    much, _ = world(Central(1.0, 1e-6), loss_share=0.8)
    assert much.mechanism.loss_std < little.mechanism.loss_std


def test_a_learner_starts_uniform_and_clips_where_noise_hardly_reaches():
    made, chosen = world(Central(1.0, 1e-6), limit=2.0)
    learner = UobLbps(made, chosen)
    assert (learner.policy == 0.5).all()
    failure = made.failure / (made.mechanism.size.pairs * EPISODES)
    assert learner.limit == pytest.approx(2.0 * made.mechanism.loss_bound(failure))
    shown = learner.shown_settings()
    assert shown["loss_limit"] == learner.limit
    assert shown["learning_rate"] == learner.rate


def test_without_noise_nothing_is_clipped_beyond_the_range_of_losses():
    made, chosen = world()
    assert UobLbps(made, chosen).limit == 0.0


def test_the_roster_claims_no_bound():
    spec = SPECS["private-uob-lbps"]
    assert not any(bound.proven for bound in spec.bounds.values())
    assert "printed: H·C_M·sqrt(K)" in spec.bound
    assert spec.run(MDP, NoPrivacy(), 60, RunSeeds(1)).learner == UobLbps.name


@pytest.mark.parametrize("estimator", ["centred", "paper"])
def test_the_policy_ends_where_the_losses_are_small(estimator):
    means = np.zeros(MDP.shape.visits)
    means[..., 0] = 1.0
    losses = stochastic_losses(MDP, 600, means=means, seed=2)
    result = run(
        MDP, NoPrivacy(), 600, RunSeeds(2), losses=losses, constants="practical",
        loss_estimator=estimator,
    )  # fmt: skip
    best = result.policy.probabilities[0, 0, 1]
    assert best > 0.9
    assert result.final_regret < 0.4 * result.extras["uniform_regret"]


BLOCK = 40
LAYERS = np.array([1, 2, 1])


def estimated(released, bounds, limit, centred):
    out = np.full(released.shape, np.nan)
    estimate_losses(released, bounds, LAYERS, limit, centred, out)
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


def fresh_block(trust=None, **settings):
    chosen = UobLbpsSettings.theory(**{"confidence": 0.05, **settings})
    return one_block(UobLbps, chosen, BLOCK, trust)


@pytest.mark.parametrize(("estimator", "literal"), [("centred", False), ("paper", True)])
@pytest.mark.parametrize("trust", [NoPrivacy(), Central(20.0, 1e-6)])
def test_a_block_is_pay_play_bound_estimate_boxes_step(trust, estimator, literal):
    learner, episodes = fresh_block(trust, loss_estimator=estimator, literal=literal)
    centred = estimator == "centred"
    run_block(episodes, learner.limit, centred, learner.boxes, learner.state)
    again, plain = fresh_block(trust, loss_estimator=estimator, literal=literal)
    mdp, users = again.world.mdp, plain.users
    boxes = open_boxes(mdp.widths, mdp.shape.transitions)
    state = barrier_state(mdp.widths, mdp.shape.actions)
    bounds, estimate = np.zeros(mdp.shape.visits), np.zeros(mdp.shape.visits)
    costs = np.zeros(boxes.lower.shape)
    for k in range(BLOCK):
        paid = expected_loss(mdp.transitions, state.policy, plain.losses[k])
        assert episodes.paid[k] == pytest.approx(paid, rel=1e-12)
        add_layered_user(users, k, state.policy)
        upper_occupancy(boxes, state.policy, bounds)
        estimate_losses(users.public.losses, bounds, users.widths, again.limit, centred, estimate)
        width = (plain.errors[k], plain.log_iota, plain.confidence)
        update_boxes(users.public, *width, boxes, literal)
        gap, _ = barrier_step(estimate, plain.rate, boxes, state, costs)
        assert episodes.gaps[k] == pytest.approx(gap, rel=1e-12, abs=1e-300)
    np.testing.assert_array_equal(state.policy, learner.policy)


def test_certificates_are_small_and_the_policy_stays_one():
    learner, episodes = fresh_block(rate=5.0)
    steps = run_block(episodes, learner.limit, True, learner.boxes, learner.state)
    assert steps >= BLOCK
    assert episodes.gaps.max() < 1e-6
    present = learner.world.mdp.present
    np.testing.assert_allclose(learner.policy[present].sum(axis=-1), 1.0)
    assert (learner.policy[present] > 0).all()


def test_the_loss_of_a_visited_pair_is_centred_before_it_is_reported():
    """No privacy: what is public of an episode is l - 1/2 on its path and nothing elsewhere."""
    learner, episodes = fresh_block()
    run_block(episodes, learner.limit, True, learner.boxes, learner.state)
    public = episodes.users.public.losses
    visited = public != 0
    assert visited.sum() <= 3
    last = episodes.users.reported[-1] - 0.5
    np.testing.assert_allclose(public[visited], last[visited])


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
    reached = rolled(mdp.transitions, policy)
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
    assert expected_loss(mdp.transitions, policy, losses) == pytest.approx(mean)


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
