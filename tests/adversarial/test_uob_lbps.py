"""Private-UOB-LBPS: its rates and limits, its settings, and that it follows the losses."""

import math

import numpy as np
import pytest

from discreet._seeds import RunSeeds
from discreet.adversarial.losses import stochastic_losses
from discreet.adversarial.uob_lbps import (
    SPECS,
    UobLbps,
    UobLbpsSettings,
    learning_rate,
    run,
)
from discreet.adversarial.world import make_world
from discreet.errors import InvalidInputError
from discreet.privacy.trust import Central, NoPrivacy
from helpers.layers import random_layered

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
    assert UobLbpsSettings().release()["centred_losses"]
    assert not UobLbpsSettings(loss_estimator="paper").release()["centred_losses"]
    assert UobLbpsSettings(loss_share=0.6).release()["loss_share"] == 0.6
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
