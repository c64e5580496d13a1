"""The run that both adversarial learners share, with a learner that does not learn."""

import numpy as np
import pytest

from discreet._seeds import RunSeeds
from discreet.adversarial.learner import AdversarialLearner, run_adversarial
from discreet.adversarial.losses import stochastic_losses
from discreet.adversarial.world import AdversarialSettings, expected_loss, least_loss, make_world
from discreet.errors import SolverError
from discreet.mdp import RiverSwim
from discreet.privacy.trust import NoPrivacy
from helpers.layers import random_layered

MDP = random_layered(0, (1, 3, 2, 1))
EPISODES = 90


class Still(AdversarialLearner):
    """Plays one policy for ever."""

    name = "still"
    feedback = "full"
    settings_type = AdversarialSettings
    gap = 0.0

    def __init__(self, world, settings):
        super().__init__(world, settings)
        shape = world.mdp.shape
        self.policy = np.random.default_rng(5).dirichlet(np.ones(shape.actions), shape.visits[:2])
        self.rate = 0.25
        self.firsts = []

    def play_block(self, episodes, first):
        mdp = self.world.mdp
        self.firsts.append(first)
        for k, losses in enumerate(episodes.losses):
            episodes.paid[k] = expected_loss(mdp.transitions, mdp.widths, self.policy, losses)
            episodes.gaps[k] = self.gap
        episodes.gaps[-1] *= 2
        return 3 * len(episodes.losses)


class Gappy(Still):
    gap = 1e9


def test_the_regret_of_a_fixed_policy_is_its_loss_minus_the_best():
    losses = stochastic_losses(MDP, EPISODES, seed=1)
    result = run_adversarial(Still, MDP, NoPrivacy(), EPISODES, RunSeeds(0), losses=losses)
    world = make_world(
        MDP, NoPrivacy(), EPISODES, RunSeeds(0), AdversarialSettings(), feedback="full",
        losses=losses,
    )  # fmt: skip
    policy, total = Still(world, AdversarialSettings()).policy, losses.total()
    paid = expected_loss(MDP.transitions, MDP.widths, policy, total)
    best = least_loss(MDP.transitions, MDP.widths, total)
    assert result.final_regret == pytest.approx(paid - best)
    uniform = np.full(MDP.shape.visits, 0.5)
    expected = expected_loss(MDP.transitions, MDP.widths, uniform, total) - best
    assert result.extras["uniform_regret"] == pytest.approx(expected)
    assert result.extras["uniform_regret_per_episode"] == pytest.approx(expected / EPISODES)


def test_what_a_run_reports():
    result = run_adversarial(Still, MDP, NoPrivacy(), EPISODES, RunSeeds(4), confidence=0.5)
    assert result.learner == "still"
    assert result.seed == 4
    assert result.episodes == EPISODES
    assert result.settings["confidence"] == 0.5
    assert result.settings["learning_rate"] == 0.25
    assert result.extras["newton_steps_per_episode"] == 3.0
    assert result.extras["largest_gap"] == 0.0
    assert result.mechanism == "none"


def test_a_missed_certificate_ends_the_run_and_names_the_episode():
    with pytest.raises(SolverError, match=f"in episode {EPISODES} with a duality gap of 2e\\+09"):
        run_adversarial(Gappy, MDP, NoPrivacy(), EPISODES, RunSeeds(0))


def test_a_tabular_problem_is_played_by_stages():
    mdp = RiverSwim(states=3, horizon=3)
    result = run_adversarial(Still, mdp, NoPrivacy(), 60, RunSeeds(0), losses="switching")
    assert result.policy.probabilities.shape[0] == 3
    assert np.isfinite(result.final_regret)


def test_blocks_go_on_where_the_last_one_ended(monkeypatch):
    monkeypatch.setattr("discreet.adversarial.world._BLOCK_VALUES", 1)
    world = make_world(
        MDP, NoPrivacy(), EPISODES, RunSeeds(0), AdversarialSettings(), feedback="full",
        losses="stochastic",
    )  # fmt: skip
    learner = Still(world, AdversarialSettings())
    cut = learner.run()
    assert learner.firsts == list(range(0, EPISODES, 16))
    monkeypatch.undo()
    whole = run_adversarial(Still, MDP, NoPrivacy(), EPISODES, RunSeeds(0))
    np.testing.assert_allclose(cut.regret.values, whole.regret.values, rtol=1e-9)


@pytest.mark.core
def test_a_learner_that_cannot_play_is_none():
    with pytest.raises(TypeError, match="play_block"):
        AdversarialLearner(None, None)
