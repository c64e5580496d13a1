"""Policy elimination end to end: both papers, both structures, all releases."""

import json

import numpy as np
import pytest

from discreet._seeds import RunSeeds
from discreet.errors import InvalidInputError, UnknownNameError, UnsupportedError
from discreet.learners.base import PublicFacts
from discreet.learners.elimination.learner import PolicyElimination
from discreet.learners.elimination.settings import EliminationSettings, PrintedConstants
from discreet.learners.learn import learn, make_batch_learner, public_facts
from discreet.learners.registry import get_learner
from discreet.mdp import RiverSwim, sample_counts
from discreet.mdp.shape import Shape
from discreet.privacy.sampling.samplers import SimulationSampler
from discreet.privacy.trust import Central, Local, NoPrivacy, Shuffle
from helpers.absorbing import is_active, is_listed

SMALL = RiverSwim(states=3, horizon=3, relabel=5)
RIVER = Shape(states=4, actions=2, horizon=6)


def make(mdp, episodes, trust=None, seed=0, **settings):
    rng = RunSeeds(seed).generator("policy")
    problem = public_facts(mdp, episodes)
    return make_batch_learner(get_learner("sdp-pe"), problem, trust or NoPrivacy(), rng, settings)


def play(learner, mdp, batches, seed=0):
    """Run some batches; returns the keys of the policies asked for."""
    keys = []
    for _ in range(batches):
        # A generator per position: a resumed learner meets the same users and the same noise.
        rng = np.random.default_rng((seed, learner._batches))
        batch = learner.ask()
        keys.append(batch.policy.key)
        counts = sample_counts(mdp, batch.policy, batch.users, rng)
        support = batch.policy.support(mdp.shape, learner.problem.start)
        learner.tell(
            learner.mechanism.release(counts, sampler=SimulationSampler(rng), support=support)
        )
    return keys


@pytest.mark.core
def test_non_private_learns_river_swim():
    mdp = RiverSwim(states=4, horizon=6, relabel=1)
    result = learn(mdp, learner="pe", episodes=20_000, seed=1)
    assert result.final_regret < 500  # a uniformly random policy: 8,884
    assert result.regret.episodes[-1] == 20_000
    assert all(d["value"] <= 1.01 * d["tuples"] for d in result.extras["designs"])


def test_private_learns_river_swim():
    mdp = RiverSwim(states=4, horizon=6, relabel=2)
    trust = Shuffle(epsilon=1, delta=1e-5)
    result = learn(mdp, learner="sdp-pe", trust=trust, episodes=200_000, seed=1)
    assert result.final_regret < 8_600  # a uniformly random policy: 88,839
    assert result.guarantee.notion == "SDP"
    assert (result.guarantee.epsilon, result.guarantee.delta) == (1.0, 1e-5)


@pytest.mark.parametrize(
    "trust", [NoPrivacy(), Central(1, 1e-5), Local(1), Shuffle(1, 1e-5)], ids=lambda t: t.notion
)
@pytest.mark.parametrize("structure", ["paper", "practical"])
def test_every_release_and_structure_runs_all_users(trust, structure):
    result = learn(
        SMALL, learner="sdp-pe", trust=trust, episodes=3_000, seed=2, structure=structure
    )
    assert sum(result.extras["batches"]) == 3_000
    assert np.isfinite(result.final_regret)


@pytest.mark.parametrize("fine", ["mixture", "coverage"])
@pytest.mark.parametrize("structure", ["paper", "practical"])
@pytest.mark.parametrize("forgetting", [True, False])
def test_every_version_learns_a_small_problem_without_noise(fine, structure, forgetting):
    options = {"fine": fine, "structure": structure, "forgetting": forgetting}
    result = learn(SMALL, learner="pe", episodes=30_000, seed=3, **options)
    uniform = learn(SMALL, learner="pe", episodes=30_000, seed=3, constants="theory")
    assert result.final_regret < 0.3 * uniform.final_regret


def test_paper_structure_keeps_the_best_policy_and_drops_others():
    learner = make(SMALL, 30_000, structure="paper")
    total = len(learner.explorer.active)
    play(learner, SMALL, len(learner.script))
    from discreet.mdp import solve

    assert 1 <= len(learner.explorer.active) < total
    best = solve(SMALL)
    values = learner.explorer.active.values(SMALL.transitions, SMALL.initial, SMALL.rewards)
    assert values.max() == pytest.approx(best.value)


def test_played_policies_of_the_paper_are_active():
    learner = make(SMALL, 5_000, Central(1, 1e-5), structure="paper")
    for _ in range(len(learner.script)):
        for component in learner.ask().policy.components:
            assert is_listed(learner.explorer.active, component.actions)
        play(learner, SMALL, 1)


def test_played_policies_satisfy_the_latest_constraint():
    """Whatever a component does where the model has no evidence, its upper value is active."""
    learner = make(SMALL, 20_000)
    while learner.script[learner._batches][0] != "tail":
        model = learner.explorer.model()
        active = learner.explorer.active_set(model, np.random.default_rng(0))
        for component in learner.ask().policy.components:
            assert is_active(active, component.probabilities.argmax(axis=-1))
        play(learner, SMALL, 1)


@pytest.mark.parametrize("structure", ["paper", "practical"])
def test_resumed_learner_goes_on_as_if_nothing_had_happened(structure):
    whole = make(SMALL, 4_000, Central(1, 1e-5), structure=structure)
    steps = len(whole.script)
    keys = play(whole, SMALL, steps)
    for cut in (0, 1, steps // 2, steps - 1):
        before = make(SMALL, 4_000, Central(1, 1e-5), structure=structure)
        head = play(before, SMALL, cut)
        before.ask()
        saved = json.loads(json.dumps(before.state()))
        after = make(SMALL, 4_000, Central(1, 1e-5), seed=99, structure=structure)
        after.restore(saved)
        assert head + play(after, SMALL, steps - cut) == keys


def test_asking_twice_returns_the_same_batch_and_a_wrong_answer_is_refused():
    learner = make(SMALL, 1_000)
    batch = learner.ask()
    assert learner.ask() is batch
    counts = sample_counts(SMALL, batch.policy, batch.users + 1, np.random.default_rng(0))
    wrong = learner.mechanism.release(counts, sampler=SimulationSampler(np.random.default_rng(0)))
    with pytest.raises(InvalidInputError, match="nothing was counted"):
        learner.tell(wrong)
    assert learner.ask() is batch


def test_nobody_is_left_after_the_last_batch():
    learner = make(SMALL, 500)
    play(learner, SMALL, len(learner.script))
    with pytest.raises(InvalidInputError, match="All 500 users"):
        learner.ask()


def test_no_action_is_special():
    """Mean regret over runs is the same for actions as printed and relabelled."""
    plain = [learn(RiverSwim(), learner="pe", episodes=3_000, seed=s) for s in range(6)]
    relabelled = [
        learn(RiverSwim(relabel=s), learner="pe", episodes=3_000, seed=s) for s in range(6)
    ]
    first, second = (np.mean([r.final_regret for r in runs]) for runs in (plain, relabelled))
    assert abs(first - second) < 0.25 * first


@pytest.mark.parametrize("structure", ["paper", "practical"])
def test_printed_constants_are_inert_under_privacy(structure):
    """No transition is ever frequent."""
    learner = make(SMALL, 20_000, Central(1, 1e-5), structure=structure, constants="theory")
    play(learner, SMALL, len(learner.script))
    explorer = learner.explorer
    model = explorer.crude_model() if structure == "paper" else explorer.model()
    assert (model.transitions == 0).all()


def test_with_printed_constants_the_data_has_hardly_any_influence():
    """It only picks the policy of steps where there is nothing to explore."""
    regrets = [
        learn(
            SMALL,
            learner="sdp-pe",
            trust=Central(epsilon, 1e-5),
            episodes=5_000,
            structure="paper",
            constants="theory",
        ).final_regret
        for epsilon in (1, 0.1)
    ]
    assert regrets[0] == pytest.approx(regrets[1], rel=0.03)


def test_the_papers_have_visits_released_and_the_default_does_not():
    """Three statistics as printed, two where flows tell the visits."""
    for structure, statistics in (
        ("paper", ("transitions", "visits", "rewards")),
        ("practical", ("transitions", "rewards")),
    ):
        made = make(SMALL, 500, Central(1, 1e-5), structure=structure)
        assert made.mechanism.statistics == statistics
        assert PolicyElimination.released({"structure": structure}) == statistics


@pytest.mark.parametrize("trust", [NoPrivacy(), Central(1, 1e-5)], ids=lambda t: t.notion)
def test_printed_constants_drop_no_policy_even_without_noise(trust):
    learner = make(SMALL, 20_000, trust, structure="paper", constants="theory")
    play(learner, SMALL, len(learner.script))
    assert learner.explorer.active.complete


def test_printed_constants_at_the_setting_of_the_figure():
    """K = 2e4, epsilon = 1: threshold and width are beyond any number of episodes played."""
    problem = PublicFacts(RIVER, 20_000, np.array([True, False, False, False]))
    constants = PrintedConstants(problem, EliminationSettings(constants="theory"))
    printed = Shuffle(1, 1e-5, calibration="paper")
    with pytest.warns(UserWarning):
        plan = printed.calibrate(RIVER)
    variance = plan.noise_variance(3_333)["transitions"]
    threshold = float(constants.infrequent(np.full(RIVER.visits, variance)).max())
    assert 1e7 < threshold < 1e8
    assert constants.printed_width(3_333, variance**0.5) > 1e7
    quiet = float(constants.infrequent(np.zeros(RIVER.visits)).max())
    assert quiet == pytest.approx(6 * 36 * constants.iota)


def test_settings_are_checked():
    with pytest.raises(UnknownNameError, match="did you mean 'confidence'"):
        make(SMALL, 100, confidance=1.0)
    with pytest.raises(InvalidInputError, match="structure"):
        make(SMALL, 100, structure="book")
    with pytest.raises(UnsupportedError, match="too many to list"):
        make(RiverSwim(states=6, horizon=20), 100, structure="paper")
    with pytest.raises(UnsupportedError, match="use 'flow-ucb'"):
        make(RiverSwim(states=300, horizon=40), 100)


def test_settings_are_reported_in_full():
    result = learn(SMALL, learner="pe", episodes=300, confidence=0.2)
    assert result.settings["confidence"] == 0.2
    assert result.settings["forgetting"] is None
    assert result.settings["structure"] == "practical"
