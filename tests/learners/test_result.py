"""What a run leaves behind, and that it says what it was."""

import math

import numpy as np
import pytest

from discreet import Central, Local, NoPrivacy, Shuffle, learn
from discreet.learners.result import RegretCurve, Result, noise_deviations
from discreet.mdp import RiverSwim, uniform_policy
from discreet.mdp.shape import Shape

SHAPE = Shape(states=2, actions=2, horizon=2)
MDP = RiverSwim(states=3, horizon=3)


def result(**changes):
    parts = {
        "learner": "x",
        "regret": RegretCurve(np.array([1, 10]), np.array([0.5, 2.25])),
        "guarantee": NoPrivacy().calibrate(SHAPE).guarantee,
        "policy": uniform_policy(SHAPE),
        "episodes": 10,
        "seed": 3,
    }
    return Result(**(parts | changes))


@pytest.mark.core
def test_noise_is_told_as_standard_deviations():
    assert noise_deviations({"visits": 9.0, "rewards": 0.0}) == {"visits": 3.0, "rewards": 0.0}
    assert noise_deviations({}) == {}


@pytest.mark.core
def test_the_final_regret_is_the_last_of_the_curve():
    assert result().final_regret == 2.25
    assert type(result().final_regret) is float


@pytest.mark.core
def test_results_are_not_restamped():
    made = result()
    with pytest.raises(AttributeError):
        made.learner = "y"
    assert made.settings is not result().settings
    assert (made.settings, made.extras, made.mechanism, made.noise) == ({}, {}, "", {})


@pytest.mark.parametrize("trust", [Shuffle(2, 1e-6), Central(2, 1e-6)])
def test_a_batch_run_says_which_mechanism_auto_stood_for(trust):
    made = learn(MDP, learner="pe", trust=trust, episodes=200)
    plan = trust.calibrate(MDP.shape, statistics=("transitions", "rewards"))
    assert trust.mechanism == "auto"
    assert made.mechanism == plan.name != "auto"
    variance = plan.noise_variance(200)
    assert made.noise == {name: math.sqrt(value) for name, value in variance.items()}
    assert min(made.noise.values()) > 0.0


def test_a_stream_run_says_the_noise_of_its_last_release():
    made = learn(MDP, learner="dp-ucbvi", trust=Local(2), episodes=40)
    plan = Local(2).calibrate(MDP.shape, schedule="continual", episodes=40)
    assert made.mechanism == plan.name
    assert made.noise["visits"] == pytest.approx(math.sqrt(plan.noise_variance(40)["visits"]))
    assert "mechanism" not in made.extras


@pytest.mark.parametrize("learner", ["pe", "ucbvi"])
def test_without_privacy_there_is_no_noise(learner):
    made = learn(MDP, learner=learner, episodes=40)
    assert made.mechanism == "none"
    assert set(made.noise.values()) == {0.0}


def test_the_seed_and_the_number_of_episodes_are_the_callers():
    made = learn(MDP, learner="psrl", episodes=30, seed=17)
    assert (made.seed, made.episodes, made.learner) == (17, 30, "psrl")
    assert made.regret.episodes[-1] == 30
    assert made.settings["prior"] == 1.0


def test_a_result_shows_itself_in_one_line():
    import discreet

    mdp = discreet.make("RiverSwim", states=3, horizon=3)
    result = discreet.learn(mdp, learner="flow-ucb", trust=discreet.Central(1, 1e-6), episodes=50)
    text = repr(result)
    assert "\n" not in text
    assert text.startswith("Result('flow-ucb', (1, ")
    assert f"final_regret={result.final_regret:,.1f}" in text
