"""Trust models: checked, frozen, resolved to mechanisms by name, calibrated to the least noise."""

import dataclasses
import math

import pytest

from discreet.errors import (
    CalibrationError,
    InvalidInputError,
    UnknownNameError,
    UnsupportedError,
)
from discreet.mdp.shape import Shape
from discreet.privacy.mechanisms.registry import everything
from discreet.privacy.trust import (
    TRUST_MODELS,
    Central,
    Local,
    NoPrivacy,
    Shuffle,
    make_trust,
)

SHAPE = Shape(states=2, actions=2, horizon=2)
PRIVATE = [Central, Local, Shuffle]


@pytest.mark.parametrize("kind", PRIVATE)
@pytest.mark.parametrize("epsilon", [0, -1, math.inf, math.nan])
def test_an_epsilon_is_positive_and_finite(kind, epsilon):
    with pytest.raises(InvalidInputError, match="epsilon"):
        kind(epsilon)


@pytest.mark.parametrize("kind", PRIVATE)
@pytest.mark.parametrize("delta", [-1e-9, 1.0, 2, math.nan])
def test_a_delta_is_below_one(kind, delta):
    with pytest.raises(InvalidInputError, match="delta"):
        kind(1, delta)


@pytest.mark.parametrize("honest", [0, -0.5, 1.5, math.nan])
def test_an_honest_share_is_a_share(honest):
    with pytest.raises(InvalidInputError, match="honest"):
        Shuffle(1, 1e-6, honest=honest)


def test_a_calibration_is_exact_or_printed():
    with pytest.raises(InvalidInputError, match="calibration"):
        Central(1, calibration="loose")


def test_trust_models_are_frozen_and_compare_by_value():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Central(1).epsilon = 2
    assert Central(1, 1e-6) == Central(1, 1e-6) != Local(1, 1e-6)


@pytest.mark.parametrize(
    "mechanism", everything(), ids=lambda m: f"{m.trust}-{m.schedule}-{m.name}"
)
def test_every_mechanism_can_be_asked_for_by_name(mechanism):
    options = {} if mechanism.trust == "none" else {"epsilon": 2, "delta": 1e-6}
    if options:
        options["mechanism"] = mechanism.name
    trust = make_trust(mechanism.trust, **options)
    assert trust.resolve(mechanism.schedule) == mechanism.name
    schedule = {"schedule": "continual", "episodes": 4} if mechanism.schedule == "continual" else {}
    plan = trust.calibrate(SHAPE, **schedule)
    assert plan.spec == mechanism
    assert plan.name == mechanism.name
    assert plan.guarantee.notion == trust.notion
    if mechanism.pure:
        assert plan.guarantee.delta == 0
    elif trust.notion != "none" and not mechanism.name.startswith("tree"):
        assert plan.guarantee.delta == 1e-6
    if trust.notion != "none":
        assert plan.guarantee.epsilon == 2


def test_a_misspelt_mechanism_is_answered_with_the_right_one():
    with pytest.raises(UnknownNameError, match="did you mean 'laplace'"):
        Local(1, mechanism="laplase").calibrate(SHAPE)
    with pytest.raises(UnknownNameError, match="continual mechanism of Central"):
        Central(1, mechanism="gaussian").resolve("continual")


def test_a_shuffler_has_no_stream():
    with pytest.raises(UnsupportedError, match="Shuffle has no continual release"):
        Shuffle(1, 1e-6).calibrate(SHAPE, schedule="continual", episodes=4)


def test_schedules_and_lengths_are_checked():
    with pytest.raises(InvalidInputError, match="schedule"):
        Central(1).calibrate(SHAPE, schedule="waltz")
    with pytest.raises(InvalidInputError, match="episodes"):
        Central(1).calibrate(SHAPE, schedule="continual")


def test_without_delta_only_pure_mechanisms_are_candidates():
    assert [c.mechanism for c in Central(1).candidates("batch")] == ["laplace"]
    assert "toeplitz" not in [c.mechanism for c in Central(1).candidates("continual")]
    with pytest.raises(CalibrationError, match="delta > 0"):
        Shuffle(1).calibrate(SHAPE)


@pytest.mark.parametrize("epsilon", [0.1, 1, 50])
def test_auto_takes_the_least_noise_of_its_candidates(epsilon):
    trust = Central(epsilon, 1e-6)
    taken = trust.calibrate(SHAPE).noise_variance(1)["visits"]
    each = [c.calibrate(SHAPE).noise_variance(1)["visits"] for c in trust.candidates("batch")]
    assert taken == min(each) and len(each) == 2


@pytest.mark.parametrize("name", TRUST_MODELS)
def test_short_names_go_both_ways(name):
    options = {} if name == "none" else {"epsilon": 1, "delta": 1e-6}
    assert make_trust(name, **options).name == name


def test_an_unknown_trust_model_is_answered_with_the_right_one():
    with pytest.raises(UnknownNameError, match="did you mean 'central'"):
        make_trust("centrall", epsilon=1)


@pytest.mark.parametrize("options", [{"epsilon": 3}, {"delta": 0}, {"bogus": 1}])
def test_no_privacy_takes_no_option(options):
    ((name, value),) = options.items()
    with pytest.raises(InvalidInputError, match=f"got {name}={value}; leave it out, or choose"):
        make_trust("none", **options)
    assert make_trust("none") == NoPrivacy()


def test_a_misspelt_option_is_answered_with_the_right_one():
    with pytest.raises(UnknownNameError, match=r"option of Shuffle.*did you mean 'honest'"):
        make_trust("shuffle", epsilon=1, delta=1e-6, honnest=0.5)


@pytest.mark.parametrize("trust", [Central, Local, Shuffle])
def test_numbers_that_no_mechanism_can_compute_with_are_refused(trust):
    with pytest.raises(InvalidInputError, match=r"epsilon <= 1e\+09, got epsilon=1e\+308.*smaller"):
        trust(1e308, 1e-6)
    with pytest.raises(InvalidInputError, match=r"delta >= 1e-300, got delta=1e-320.*use delta=0"):
        trust(1, 1e-320)
    assert trust(1e9, 1e-300).epsilon == 1e9
