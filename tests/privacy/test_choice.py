"""The law with the least noise is taken, and what is stamped is its own guarantee."""

import math
from dataclasses import replace

import pytest

from discreet import Central, Local, Shuffle
from discreet.errors import CalibrationError, InvalidInputError
from discreet.mdp.shape import Shape
from discreet.privacy.trust import least_noise


def shape(horizon):
    return Shape(states=4, actions=2, horizon=horizon)


@pytest.mark.core
@pytest.mark.parametrize(
    ("horizon", "epsilon", "delta", "name", "std"),
    [
        (1, 1, 1e-6, "laplace", 8.475),
        (2, 10, 1e-6, "laplace", 1.649),
        (6, 1, 1e-6, "gaussian", 25.35),
        (2, 1, 1e-6, "gaussian", 14.63),
        (2, 1, 0, "laplace", 16.97),
    ],
)
def test_the_law_with_the_least_noise(horizon, epsilon, delta, name, std):
    mechanism = Central(epsilon, delta).calibrate(shape(horizon))
    assert mechanism.name == name
    assert mechanism.guarantee.delta == (delta if name == "gaussian" else 0)
    assert mechanism.guarantee.epsilon == epsilon
    assert math.sqrt(mechanism.noise_variance(1)["visits"]) == pytest.approx(std, rel=1e-3)


def test_the_choice_follows_the_statistics():
    """One statistic moves a third of the units: Laplace is ahead up to a larger horizon."""
    trust = Central(1, 1e-6)
    assert trust.calibrate(shape(3), statistics=("visits",)).name == "laplace"
    assert trust.calibrate(shape(3)).name == "gaussian"


def test_explicit_choices_stay():
    for name in ("gaussian", "laplace"):
        assert Central(1, 1e-6, mechanism=name).calibrate(shape(1)).name == name
        assert Central(1, 1e-6, mechanism=name).calibrate(shape(6)).name == name


@pytest.mark.parametrize(
    ("delta", "episodes", "name"),
    [
        (1e-6, 1, "tree-laplace"),
        (1e-6, 1000, "toeplitz"),
        (0, 2, "tree-laplace"),
        (0, 1000, "tree-honaker"),
    ],
)
def test_streams_compare_their_worst_times(delta, episodes, name):
    trust = Central(1, delta)
    options = {"schedule": "continual", "episodes": episodes}
    mechanism = trust.calibrate(shape(1), **options)
    assert mechanism.name == name
    assert mechanism.guarantee.delta == (delta if name == "toeplitz" else 0)
    worst = max(mechanism.noise_variance(k)["visits"] for k in range(1, episodes + 1))
    assert mechanism.worst_noise(episodes)["visits"] == pytest.approx(math.sqrt(worst))
    for candidate in trust.candidates("continual"):
        other = candidate.calibrate(shape(1), **options)
        assert max(other.worst_noise(episodes).values()) >= math.sqrt(worst) * (1 - 1e-9)


def test_the_first_of_equals_and_the_least_of_others():
    mechanisms = [Central(e, mechanism="laplace").calibrate(shape(1)) for e in (1, 2, 2.0)]
    assert least_noise(mechanisms, 1) is mechanisms[1]
    assert least_noise(mechanisms[:1], 1) is mechanisms[0]


def test_other_trust_models_have_one_candidate():
    trust = Local(1)
    assert trust.candidates("batch") == (replace(trust, mechanism="split"),)
    assert Central(1, calibration="paper").candidates("continual")[0].mechanism == "tree-laplace"


def test_a_law_that_cannot_be_calibrated_leaves_the_others():
    """Gaussian tables end at two million integers; Laplace noise has a formula."""
    trust = Central(1e-5, 1e-9)
    with pytest.raises(CalibrationError, match="larger epsilon"):
        replace(trust, mechanism="gaussian").calibrate(shape(6))
    assert trust.calibrate(shape(6)).name == "laplace"


@pytest.mark.parametrize("epsilon", [1e-13, 1e-300, 5e-324])
def test_noise_beyond_exact_integers_is_refused_before_anything_is_released(epsilon):
    with pytest.raises(CalibrationError, match="larger epsilon"):
        Central(epsilon).calibrate(shape(2))
    for name in ("auto", "tree-laplace", "tree-honaker", "tree-iid"):
        with pytest.raises(CalibrationError, match="larger epsilon"):
            Central(epsilon, mechanism=name).calibrate(shape(2), schedule="continual", episodes=9)
    with pytest.raises(CalibrationError, match="larger epsilon"):
        Shuffle(epsilon, 1e-6, mechanism="bits").calibrate(shape(2)).bits(100)


def test_a_tree_too_wide_for_averages_leaves_the_plain_one():
    mechanism = Central(1e-10).calibrate(shape(2), schedule="continual", episodes=9)
    assert mechanism.name == "tree-laplace"


@pytest.mark.parametrize("honest", [0, -1, 1.5, math.nan])
def test_fractions_that_mean_nobody_are_refused(honest):
    with pytest.raises(InvalidInputError, match="honest"):
        Shuffle(1, 1e-6, honest=honest, mechanism="bits")


@pytest.mark.parametrize(("honest", "users"), [(1e-9, 100), (0.5, 1)])
def test_batches_with_nobody_honest_are_refused(honest, users):
    mechanism = Shuffle(10, 1e-6, honest=honest, mechanism="bits").calibrate(shape(2))
    with pytest.raises(InvalidInputError, match="at least one honest user"):
        mechanism.bits(users)


def test_very_large_epsilons_have_little_noise_and_no_surprises():
    assert (
        0
        < Shuffle(700, 1e-6, mechanism="bits").calibrate(shape(2)).noise_variance(100)["visits"]
        < 0.1
    )
    assert Central(700, 1e-6).calibrate(shape(2)).noise_variance(100)["visits"] < 1e-6
