"""The simulated batch loop checks itself: a wrong mask does not drop its users in silence."""

import numpy as np
import pytest

import discreet
from discreet._seeds import RunSeeds
from discreet.adversarial.uc_o_reps import UcORepsSettings
from discreet.errors import InvalidInputError, UnsupportedError
from discreet.learners import EliminationSettings, FlowSettings
from discreet.learners.base import PublicFacts
from discreet.learners.flow_ucb.learner import FlowUCB
from discreet.learners.learn import make_batch_learner, run_batches
from discreet.learners.optimists import DpUcbviSettings
from discreet.learners.registry import get_learner, learner_names
from discreet.learners.result import ReturnCurve
from discreet.learners.settings import OwnSettings
from discreet.privacy.trust import TrustModel
from helpers.registries import Uniform

RIVER = discreet.make("RiverSwim", states=3, horizon=4)


def learner(start):
    problem = PublicFacts(RIVER.shape, 100, np.array(start))
    rng = np.random.default_rng(0)
    trust = discreet.Central(1, 1e-6)
    return make_batch_learner(get_learner("flow-ucb"), problem, trust, rng, {})


def test_simulated_users_outside_the_mask_are_an_error():
    with pytest.raises(InvalidInputError, match="steps are outside"):
        run_batches(RIVER, learner([False, True, False]), RunSeeds(0))
    assert (
        sum(run_batches(RIVER, learner([True, True, False]), RunSeeds(0)).extras["batches"]) == 100
    )


@pytest.mark.parametrize(
    ("mdp", "changes", "sentence"),
    [
        (RIVER, {"trust": "shuffle"}, r"got trust='shuffle'; write trust=Shuffle\(epsilon=1"),
        (RIVER, {"trust": discreet.Central}, r"the class Central; write trust=Central\(epsilon=1"),
        (RIVER, {"trust": discreet.NoPrivacy}, r"write trust=NoPrivacy\(\)"),
        (RIVER, {"trust": TrustModel()}, "Expected a trust model, got trust=TrustModel"),
        ("RiverSwim", {}, r"Expected a TabularMDP .* got mdp='RiverSwim'; .*make\('RiverSwim'\)"),
        ("Chain", {"learner": "private-uc-o-reps"}, "Expected a TabularMDP or LayeredMDP"),
        (RIVER.shape, {}, "got mdp=Shape"),
        (RIVER, {"stationary": "yes"}, "Expected stationary to be True or False, got .*'yes'"),
        (RIVER, {"stationary": 1}, "Expected stationary to be True or False"),
    ],
)
def test_what_is_no_world_and_no_trust_model_is_one_sentence(mdp, changes, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        discreet.learn(mdp, **{"learner": "flow-ucb", "episodes": 100, **changes})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"learner": None}, "Expected learner='flow-ucb', for instance"),
        ({"learner": dict}, "got <class 'dict'>"),
        ({"learner": "pe", "paper": "001"}, r"write discreet\.run_paper\('001', mdp, epsilon=1"),
        ({"paper": "001", "epsilon": 1}, r"write discreet\.run_paper\('001', mdp, epsilon=1"),
        ({"trust": discreet.Central(1)}, "Expected learner='flow-ucb', for instance"),
        ({"learner": "pe", "epsilon": 1}, "epsilon in a trust model"),
        ({"learner": "pe", "delta": 1e-5}, "delta in a trust model"),
        ({"learner": OwnSettings()}, "settings of a registered learner, got a OwnSettings"),
    ],
)
def test_what_is_no_learner_is_one_sentence(given, words):
    with pytest.raises(InvalidInputError, match=words):
        discreet.learn(RIVER, episodes=10, **given)


@pytest.mark.parametrize(
    ("learner", "plain"),
    [
        (FlowSettings(batches=5), {"learner": "flow-ucb", "batches": 5}),
        (get_learner("flow-ucb"), {"learner": "flow-ucb"}),
        (FlowUCB, {"learner": "flow-ucb"}),
        (EliminationSettings(confidence=0.2), {"learner": "sdp-pe", "confidence": 0.2}),
        (DpUcbviSettings.practical(clip=True), {"learner": "dp-ucbvi", "clip": True}),
        (UcORepsSettings.practical(rate=0.5), {"learner": "private-uc-o-reps", "rate": 0.5}),
    ],
    ids=str,
)
def test_a_learner_is_a_name_or_settings_or_a_specification_or_a_class(learner, plain):
    how = {"trust": discreet.Central(1, 1e-6), "episodes": 400, "seed": 3}
    one, other = (
        discreet.learn(RIVER, learner=learner, **how),
        discreet.learn(RIVER, **plain, **how),
    )
    assert (one.learner, one.settings) == (other.learner, other.settings)
    np.testing.assert_array_equal(one.regret.values, other.regret.values)


def test_a_class_of_ones_own_needs_no_registry():
    found = discreet.learn(RIVER, learner=Uniform, trust=discreet.Shuffle(1, 1e-6), episodes=50)
    assert (found.learner, found.extras["batches"]) == ("Uniform", [50])
    assert "Uniform" not in learner_names()


@pytest.mark.parametrize(
    ("name", "trust", "sentence"),
    [
        (
            "dp-ucbvi",
            discreet.Shuffle(1, 1e-6),
            "Learner 'dp-ucbvi' releases after every user; it takes: none, central, local. "
            "Under shuffle use 'flow-ucb'.",
        ),
        (
            "ucbvi",
            discreet.Central(1),
            "Learner 'ucbvi' does not run under trust model 'central'; it takes: none.",
        ),
    ],
)
def test_a_learner_names_the_trust_models_that_it_takes(name, trust, sentence):
    with pytest.raises(UnsupportedError) as error:
        discreet.learn(RIVER, learner=name, trust=trust, episodes=10)
    assert str(error.value) == sentence


PLAYED = discreet.mdp.simulator(
    discreet.to_gymnasium(RIVER), horizon=4, reward_range=(0, 1), stationary=True
)


@pytest.mark.parametrize(
    ("name", "trust", "episodes"),
    [
        ("flow-ucb", discreet.Central(2, 1e-6), 3000),
        ("flow-ucb", discreet.Shuffle(2, 1e-6), 3000),
        ("dp-ucbvi", discreet.Central(5), 60),
        ("ucbvi", None, 60),
    ],
)
def test_what_has_no_model_is_played_and_has_returns_instead_of_regret(name, trust, episodes):
    first, same, other = (
        discreet.learn(PLAYED, learner=name, trust=trust, episodes=episodes, seed=seed)
        for seed in (0, 0, 1)
    )
    curve = first.returns
    assert curve.episodes[-1] == episodes
    np.testing.assert_array_equal(curve.values, same.returns.values)
    assert (curve.values != other.returns.values).any()
    # Everybody's return lies between the worst and the best policy's, up to chance.
    best = discreet.mdp.solve(RIVER).value
    assert -3 * curve.errors[-1] <= curve.values[-1] <= best + 4 * curve.errors[-1]
    assert (
        first.guarantee
        == discreet.learn(RIVER, learner=name, trust=trust, episodes=episodes).guarantee
    )
    with pytest.raises(UnsupportedError, match="estimate_model"):
        _ = first.final_regret
    assert "return=" in repr(first)


def test_the_errors_of_returns_are_those_of_their_mean():
    returns = np.random.default_rng(0).normal(1e6, 2.0, 500)
    curve = ReturnCurve.of(returns)
    for n, value, error in zip(curve.episodes, curve.values, curve.errors, strict=True):
        assert value == pytest.approx(returns[:n].mean(), rel=1e-12)
        assert error == pytest.approx(returns[:n].std(ddof=1) / np.sqrt(n), rel=1e-6)


def test_an_adversary_needs_a_model():
    with pytest.raises(InvalidInputError, match="Expected a TabularMDP or LayeredMDP"):
        discreet.learn(PLAYED, learner="private-uc-o-reps", episodes=10)
