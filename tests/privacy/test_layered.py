"""Releases for adversarial learners: sensitivities, guarantees, noise."""

import itertools
import math

import numpy as np
import pytest

from discreet.errors import UnsupportedError
from discreet.mdp import RiverSwim
from discreet.mdp.layered import LayeredMDP
from discreet.privacy.calibration.closed_forms import gaussian_delta
from discreet.privacy.layered import (
    LOSS_UNITS,
    LayeredSize,
    calibrate_layered,
    in_loss_units,
    loss_reach,
    printed_epsilon,
)
from discreet.privacy.mechanisms.tree import tree_levels
from discreet.privacy.noise import SimulationSampler
from discreet.privacy.trust import Central, Local, NoPrivacy

SIZE = LayeredSize((1, 4, 4, 4, 4, 4, 1), 2)


def all_statistics(size, feedback, shift=0.0):
    """Every possible user of a tiny problem: trajectory counts, and losses in {0, 1}."""
    horizon, width, actions = size.padded
    users = []
    for path in itertools.product(*(range(w) for w in size.widths)):
        for choices in itertools.product(range(actions), repeat=horizon):
            transitions = np.zeros((horizon, width, actions, width))
            visits = np.zeros((horizon, width, actions))
            for h in range(horizon):
                transitions[h, path[h], choices[h], path[h + 1]] = 1
                visits[h, path[h], choices[h]] = 1
            pairs = [
                (h, x, a) for h in range(horizon) for x in range(size.widths[h]) for a in (0, 1)
            ]
            seen = (
                pairs
                if feedback == "full"
                else list(zip(range(horizon), path, choices, strict=False))
            )
            for bits in itertools.product((0, 1), repeat=len(seen)):
                losses = np.zeros(visits.shape)
                for where, bit in zip(seen, bits, strict=True):
                    losses[where] = bit - shift
                users.append(np.concatenate([a.ravel() for a in (transitions, visits, losses)]))
    return np.array(users)


@pytest.mark.core
@pytest.mark.parametrize("feedback", ["full", "bandit"])
def test_reach_is_the_largest_change_over_all_pairs_of_users(feedback):
    size = LayeredSize((1, 2, 1), 2)
    users = all_statistics(size, feedback)
    largest = max(np.abs(users - user).sum(axis=1).max() for user in users)
    squares = max(((users - user) ** 2).sum(axis=1).max() for user in users)
    reach = 4 * size.horizon + loss_reach(size, feedback, public=False)
    assert largest == squares == reach


@pytest.mark.core
def test_centred_observed_losses_have_half_the_reach():
    size = LayeredSize((1, 2, 1), 2)
    losses = all_statistics(size, "bandit", shift=0.5)[:, -8:]
    reach = loss_reach(size, "bandit", public=False, centred=True)
    assert max(np.abs(losses - user).sum(axis=1).max() for user in losses) == reach == 2
    assert max(((losses - user) ** 2).sum(axis=1).max() for user in losses) == reach


def reports(size, feedback, centred):
    """Every user of a tiny problem whose losses are 0, 1 or between, rounded to integer units."""
    count = size.pairs if feedback == "full" else size.horizon
    levels = (0.0, 1.0) if feedback == "full" else (0.0, 0.3337, 1.0)
    for path in itertools.product(*(range(w) for w in size.widths[:-1])):
        for choices in itertools.product(range(size.actions), repeat=size.horizon):
            counts = np.zeros((2, *size.padded))
            for h in range(size.horizon):
                counts[:, h, path[h], choices[h]] = 1  # the successor is part of the path
            for values in itertools.product(levels, repeat=count):
                units = np.rint(np.array(values) * LOSS_UNITS) - (LOSS_UNITS // 2 if centred else 0)
                losses = np.zeros(size.padded)
                if feedback == "full":
                    losses[0, 0], losses[1] = units[:2], units[2:].reshape(2, 2)
                else:
                    losses[range(size.horizon), path, choices] = units
                yield np.concatenate([counts.ravel(), losses.ravel()])


@pytest.mark.core
@pytest.mark.parametrize(("feedback", "centred"), [("full", 0), ("bandit", 0), ("bandit", 1)])
@pytest.mark.parametrize("trust", [Local(1.0), Central(1.0, mechanism="tree-laplace")])
def test_no_two_users_can_be_told_apart_by_more_than_epsilon(trust, feedback, centred):
    """Laplace noise: the sum of |change|/scale over all released numbers, over all pairs."""
    size = LayeredSize((1, 2, 1) if feedback == "full" else (1, 3, 1), 2)
    plan = calibrate_layered(
        trust, size, 1000, feedback=feedback, centred_losses=bool(centred), loss_share=0.5
    )
    users = np.array(list(reports(size, feedback, bool(centred))))
    levels = tree_levels(1000) if isinstance(trust, Central) else 1
    per_count = per_loss = levels / plan.noise.law.scale
    if feedback == "bandit":
        per_loss = LOSS_UNITS / plan.loss_law.scale
    counts = 2 * math.prod(size.padded)
    weight = np.full(users.shape[1], per_loss / LOSS_UNITS)
    weight[:counts] = per_count
    spent = max((np.abs(users - user) @ weight).max() for user in users)
    assert spent == pytest.approx(1.0, rel=1e-9)


@pytest.mark.core
def test_golden_values_of_the_printed_constants():
    assert (4 * 6 + 24 * 2) / (3 * 6) == 4.0  # width 4 throughout, X = 24
    assert printed_epsilon(LayeredSize((4,) * 6 + (1,), 2), 1.0, "full") == pytest.approx(4.0)
    assert printed_epsilon(SIZE, 0.5, "bandit") == pytest.approx(1.0)
    ratio = printed_epsilon(SIZE, 1.0, "bandit", episodes=20_000)
    assert ratio == pytest.approx((4 * 15 / math.log2(20_000) + 2) / 3)


@pytest.mark.parametrize(
    "trust", [Central(1.0, calibration="paper"), Local(1.0, calibration="paper")]
)
@pytest.mark.parametrize("feedback", ["full", "bandit"])
def test_printed_constants_say_what_they_deliver(trust, feedback):
    with pytest.warns(UserWarning, match="deliver epsilon"):
        plan = calibrate_layered(trust, SIZE, 20_000, feedback=feedback)
    episodes = 20_000 if isinstance(trust, Central) else None
    expected = printed_epsilon(SIZE, 1.0, feedback, episodes=episodes)
    assert plan.guarantee.epsilon == pytest.approx(expected)
    assert plan.guarantee.claimed is not None


def test_exact_laplace_spends_exactly_epsilon():
    plan = calibrate_layered(Central(1.0), SIZE, 20_000, feedback="full")
    assert plan.noise.law.scale == pytest.approx((24 + 42) * tree_levels(20_000))
    bandit = calibrate_layered(Central(1.0), SIZE, 20_000, feedback="bandit")
    counts = 24 * tree_levels(20_000) / bandit.noise.law.scale
    losses = 12 * LOSS_UNITS / bandit.loss_law.scale
    assert counts + losses == pytest.approx(1.0)
    local = calibrate_layered(Local(2.0), SIZE, 20_000, feedback="bandit")
    assert 24 / local.noise.law.scale + 12 * LOSS_UNITS / local.loss_law.scale == pytest.approx(2.0)


@pytest.mark.parametrize("mechanism", ["tree-gaussian", "toeplitz"])
def test_gaussian_noise_composes_to_the_promise(mechanism):
    trust = Central(1.0, 1e-6, mechanism=mechanism)
    plan = calibrate_layered(trust, SIZE, 20_000, feedback="bandit")
    if mechanism == "toeplitz":
        counts = 24 * plan.noise.factors.squares / plan.noise.sigma**2
    else:
        counts = 24 * tree_levels(20_000) / plan.noise.law.sigma**2
    ratio = math.sqrt(counts + 12 * (LOSS_UNITS / plan.loss_law.sigma) ** 2)
    delta = gaussian_delta(1.0, ratio, 1.0)
    assert 0.95e-6 < delta <= 1e-6 * (1 + 1e-6)
    assert plan.guarantee.epsilon == 1.0


@pytest.mark.parametrize(
    "trust",
    [
        Central(10.0, 1e-6),
        Central(1.0, 1e-6),
        Central(1.0, 1e-6, mechanism="tree-gaussian"),
        Central(1.0, mechanism="tree-iid"),
        Local(1.0),
    ],
)
def test_losses_in_units_carry_the_same_noise(trust):
    plan = calibrate_layered(trust, SIZE, 1000, feedback="full")
    units = in_loss_units(plan.noise)
    for episode in (1, 7, 1000):
        wanted = plan.noise.variance(episode) * LOSS_UNITS**2
        assert units.variance(episode) == pytest.approx(wanted, rel=2e-3)


def test_noise_blocks_have_the_stated_spread_and_leave_padding_alone():
    plan = calibrate_layered(Central(1.0, 1e-6), SIZE, 2000, feedback="full")
    stream = plan.open(SimulationSampler(np.random.default_rng(0)))
    transitions, visits, losses = (
        np.concatenate(parts) for parts in zip(*(stream.block(n) for n in (700, 1300)), strict=True)
    )
    assert transitions.shape == (2000, 6, 4, 2, 4)
    assert not transitions[:, 0, 1:].any() and not losses[:, 0, 1:].any()
    assert not transitions[:, 5, :, :, 1:].any()
    std = math.sqrt(plan.noise.variance(2000))
    for values in (transitions[-1], visits[-1], losses[-1]):
        present = values[values != 0]
        # chi-square with at least 40 degrees of freedom: a factor 2 has probability < 1e-6
        assert 0.5 < present.std() / std < 1.6


def test_public_losses_protect_trajectories_only():
    public = calibrate_layered(Central(1.0), SIZE, 1000, feedback="full", public_losses=True)
    assert public.noise.law.scale == pytest.approx(24 * tree_levels(1000))
    assert "losses are public" in public.guarantee.assumptions[-1]
    _, _, losses = public.open(SimulationSampler(np.random.default_rng(0))).block(10)
    assert not losses.any()
    bandit = calibrate_layered(Local(1.0), SIZE, 1000, feedback="bandit", public_losses=True)
    assert bandit.loss_law is None and bandit.loss_std == 0 and bandit.loss_bound(0.1) == 0


@pytest.mark.core
def test_no_privacy_is_silent():
    size = LayeredSize.of(LayeredMDP.from_tabular(RiverSwim(states=4, horizon=6)))
    assert size == SIZE and size.pairs == 42
    plan = calibrate_layered(NoPrivacy(), size, 100, feedback="full")
    assert not plan.error_bounds(0.01).any() and not plan.rounds_losses
    assert not any(a.any() for a in plan.open(SimulationSampler(np.random.default_rng(0))).block(5))


def test_mechanisms_without_additive_noise_are_refused():
    with pytest.raises(UnsupportedError, match="additive noise"):
        calibrate_layered(Local(1.0, mechanism="one-step"), SIZE, 100, feedback="full")


@pytest.mark.parametrize("share", [0.2, 0.8])
def test_any_share_of_the_budget_spends_all_of_it(share):
    plan = calibrate_layered(Local(1.0), SIZE, 1000, feedback="bandit", loss_share=share)
    spent = 24 / plan.noise.law.scale + 12 * LOSS_UNITS / plan.loss_law.scale
    assert 1 - 0.05 < spent <= 1 + 1e-9
    gaussian = calibrate_layered(
        Central(1.0, 1e-6), SIZE, 1000, feedback="bandit", loss_share=share
    )
    noise = gaussian.noise
    counts = 24 * noise.factors.squares / noise.sigma**2
    ratio = math.sqrt(counts + 12 * (LOSS_UNITS / gaussian.loss_law.sigma) ** 2)
    assert gaussian_delta(1.0, ratio, 1.0) <= 1e-6 * (1 + 1e-6)
