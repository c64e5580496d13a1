"""Results and exact regret, recorded at log-spaced episodes."""

import math

import numpy as np
import pytest

from discreet import Central, Local, NoPrivacy, Shuffle, learn
from discreet.errors import DiscreetError
from discreet.learners.result import (
    RegretCurve,
    RegretRecorder,
    Result,
    noise_deviations,
    record_points,
)
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
    plan = Local(2).calibrate_stream(MDP.shape, episodes=40)
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


@pytest.mark.core
def test_points_are_increasing_and_end_at_the_last_episode():
    points = record_points(12_345)
    assert points[0] == 1
    assert points[-1] == 12_345
    assert (np.diff(points) > 0).all()
    assert len(points) < 100


@pytest.mark.core
def test_episodes_that_doubles_cannot_count_are_refused():
    with pytest.raises(DiscreetError, match="episodes <="):
        record_points(10**16)


@pytest.mark.core
def test_one_by_one_in_pieces_and_cumulative_are_one_curve():
    regrets = np.random.default_rng(0).random(1000)
    single, pieces, cumulative = (RegretRecorder(1000) for _ in range(3))
    for regret in regrets:
        single.add(1, regret)
    start = 0
    for part in np.split(regrets, [1, 7, 300, 999]):
        pieces.add_each(part)
        sums = [float(regrets[: start + n].sum()) for n in cumulative.ahead(len(part))]
        cumulative.record(sums, len(part))
        start += len(part)
    for other in (pieces, cumulative):
        assert np.array_equal(single.curve().episodes, other.curve().episodes)
        np.testing.assert_allclose(single.curve().values, other.curve().values)
        assert other.episode == 1000


@pytest.mark.core
def test_many_users_with_one_policy_are_a_straight_line():
    recorder = RegretRecorder(500)
    recorder.add(200, 0.5)
    recorder.add(300, 0.25)
    curve = recorder.curve()
    expected = np.minimum(curve.episodes, 200) * 0.5 + np.maximum(curve.episodes - 200, 0) * 0.25
    np.testing.assert_allclose(curve.values, expected)
    assert recorder.total == pytest.approx(175)


@pytest.mark.core
def test_points_ahead_are_counted_from_now():
    recorder = RegretRecorder(100)
    recorder.add(10, 1.0)
    assert recorder.ahead(5) == [int(p) - 10 for p in recorder.points if 10 < p <= 15]


@pytest.mark.core
def test_an_unfinished_run_has_an_unfinished_curve():
    recorder = RegretRecorder(1000)
    recorder.add(10, 1.0)
    assert recorder.curve().episodes[-1] <= 10
    assert len(recorder.curve().values) == len(recorder.curve().episodes)
