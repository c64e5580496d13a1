"""What both learners share: a run, with one that does not learn, and boxes from counts."""

import numpy as np
import pytest

from discreet._seeds import RunSeeds
from discreet.adversarial.learner import AdversarialLearner, run_adversarial, update_boxes
from discreet.adversarial.losses import stochastic_losses
from discreet.adversarial.occupancy import open_boxes
from discreet.adversarial.world import (
    AdversarialSettings,
    LayeredCounters,
    expected_loss,
    least_loss,
    make_world,
)
from discreet.errors import SolverError
from discreet.mdp import RiverSwim
from discreet.privacy.trust import NoPrivacy
from helpers.boxes import rolled
from helpers.layers import all_policies, random_layered

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
            episodes.paid[k] = expected_loss(mdp.transitions, self.policy, losses)
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
    paid = expected_loss(MDP.transitions, policy, total)
    best = least_loss(MDP.transitions, total)
    assert result.final_regret == pytest.approx(paid - best)
    uniform = np.full(MDP.shape.visits, 0.5)
    expected = expected_loss(MDP.transitions, uniform, total) - best
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


WIDTHS = (1, 3, 2, 1)


@pytest.fixture(params=range(3))
def problem(request):
    mdp, rng = random_layered(request.param, WIDTHS), np.random.default_rng(request.param)
    return mdp, rng.dirichlet(np.ones(2), mdp.shape.visits[:2]), rng.random(mdp.shape.visits)


def counts_of(mdp, users, seed=None, noise=0.0):
    """Exact mean counts of ``users`` users of every pair, and noise on all of them."""
    rng = np.random.default_rng(seed)
    visits = np.where(mdp.present[..., None], float(users), 0.0) * np.ones(mdp.shape.visits)
    transitions = visits[..., None] * mdp.transitions
    return LayeredCounters(
        transitions + noise * rng.normal(size=transitions.shape),
        visits + noise * rng.normal(size=visits.shape),
        np.zeros(mdp.shape.visits),
    )


def updated(mdp, counts, error=0.0, log_iota=2.0, confidence=1.0):
    boxes = open_boxes(mdp.widths, mdp.shape.transitions)
    update_boxes(counts, error, log_iota, confidence, boxes)
    return boxes


def existing(mdp):
    """``[H, W, A, W]``: which transitions are between states that exist."""
    return mdp.transitions > 0


def test_the_expected_loss_is_what_the_occupancy_pays(problem):
    mdp, policy, losses = problem
    reached = rolled(mdp.transitions, policy)
    found = expected_loss(mdp.transitions, policy, losses)
    assert found == pytest.approx((reached * losses)[mdp.present].sum())


def test_the_expected_loss_is_linear_and_a_constant_costs_one_per_step(problem):
    mdp, policy, losses = problem
    one = expected_loss(mdp.transitions, policy, losses)
    more = expected_loss(mdp.transitions, policy, 3 * losses + 0.5)
    assert more == pytest.approx(3 * one + 0.5 * mdp.horizon)


def test_the_least_loss_is_that_of_the_best_policy(problem):
    mdp, policy, losses = problem
    least = least_loss(mdp.transitions, losses)
    listed = [expected_loss(mdp.transitions, p, losses) for p in all_policies(mdp)]
    assert least == pytest.approx(min(listed))
    assert least <= expected_loss(mdp.transitions, policy, losses)


def test_padding_never_matters(problem):
    mdp, policy, losses = problem
    dirty = np.where(mdp.present[..., None], losses, 9.0)
    assert least_loss(mdp.transitions, dirty) == least_loss(mdp.transitions, losses)
    clean = expected_loss(mdp.transitions, policy, losses)
    assert expected_loss(mdp.transitions, policy, dirty) == clean


@pytest.mark.parametrize("users", [30, 3000])
def test_boxes_are_centred_at_the_frequencies_with_the_printed_width(users):
    mdp = random_layered(1, WIDTHS)
    boxes = updated(mdp, counts_of(mdp, users), log_iota=1.5)
    p, present = mdp.transitions, existing(mdp)
    radius = np.sqrt(2 * p * (1 - p) * 1.5 / users) + 7 * 1.5 / users
    np.testing.assert_allclose(boxes.lower[present], np.maximum(p - radius, 0.0)[present])
    np.testing.assert_allclose(boxes.upper[present], np.minimum(p + radius, 1.0)[present])


def test_the_width_shrinks_with_the_multiplier_and_grows_with_the_error():
    mdp = random_layered(2, WIDTHS)
    counts, present = counts_of(mdp, 500), existing(mdp)
    widths = {}
    for name, error, confidence in (("plain", 0.0, 1.0), ("tight", 0.0, 0.1), ("noisy", 6.0, 1.0)):
        boxes = updated(mdp, counts, error=error, confidence=confidence)
        widths[name] = (boxes.upper - boxes.lower)[present].sum()
    assert widths["tight"] < widths["plain"] < widths["noisy"]
    exact = updated(mdp, counts, confidence=1e-12)
    np.testing.assert_allclose(exact.lower[present], mdp.transitions[present], atol=1e-9)


def test_pairs_that_nobody_visited_exclude_nothing():
    mdp = random_layered(3, WIDTHS)
    boxes = updated(mdp, counts_of(mdp, 0))
    present = existing(mdp)
    assert (boxes.lower[present] == 0.0).all()
    assert (boxes.upper[present] == 1.0).all()


@pytest.mark.parametrize("seed", range(4))
def test_noisy_counts_leave_boxes_that_hold_the_truth_and_a_distribution(seed):
    """E = 4·(largest noise): the consistent counts are within E of the true ones."""
    mdp = random_layered(seed, WIDTHS)
    counts = counts_of(mdp, 400, seed=seed, noise=3.0)
    largest = max(np.abs(counts.visits - counts_of(mdp, 400).visits).max(), 12.0)
    boxes = updated(mdp, counts, error=4 * largest)
    present = existing(mdp)
    assert (boxes.lower[present] <= mdp.transitions[present]).all()
    assert (boxes.upper[present] >= mdp.transitions[present]).all()
    for h, here in enumerate(WIDTHS[:-1]):
        part = np.s_[h, :here, :, : WIDTHS[h + 1]]
        assert (boxes.lower[part].sum(axis=-1) <= 1.0 + 1e-9).all()
        assert (boxes.upper[part].sum(axis=-1) >= 1.0 - 1e-9).all()


def test_renamed_actions_give_renamed_boxes():
    mdp = random_layered(5, WIDTHS)
    counts = counts_of(mdp, 90, seed=5, noise=2.0)
    mirrored = LayeredCounters(*(np.flip(part, 2).copy() for part in counts))
    one, other = updated(mdp, counts, error=8.0), updated(mdp, mirrored, error=8.0)
    np.testing.assert_array_equal(np.flip(other.lower, 2), one.lower)
    np.testing.assert_array_equal(np.flip(other.upper, 2), one.upper)
