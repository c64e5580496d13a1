"""The simulated batch loop checks itself: a wrong mask does not drop its users in silence."""

import numpy as np
import pytest

import discreet
from discreet._seeds import RunSeeds
from discreet.errors import InvalidInputError, UnsupportedError
from discreet.learners.base import Problem
from discreet.learners.learn import make_batch_learner, run_batches
from discreet.learners.registry import get_learner
from discreet.learners.result import ReturnCurve
from discreet.privacy.trust import TrustModel

RIVER = discreet.make("RiverSwim", states=3, horizon=4)


def learner(start):
    problem = Problem(RIVER.shape, 100, np.array(start))
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
        ({}, "got neither"),
        ({"paper": "001"}, "Expected an epsilon for paper '001'"),
        ({"paper": "001", "learner": "pe", "epsilon": 1}, "paper='001' or learner="),
        ({"paper": "001", "trust": discreet.NoPrivacy(), "epsilon": 1}, "paper='001' or trust="),
        ({"learner": "pe", "epsilon": 1}, "epsilon in a trust model"),
        ({"learner": "pe", "delta": 1e-5}, "delta in a trust model"),
    ],
)
def test_a_learner_or_a_paper(given, words):
    with pytest.raises(InvalidInputError, match=words):
        discreet.learn(RIVER, episodes=10, **given)


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
