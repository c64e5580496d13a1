"""Trust models: checked, frozen, resolved to mechanisms by name, calibrated to the least noise."""

import dataclasses
import math
from dataclasses import replace

import numpy as np
import pytest

import discreet
from discreet.errors import (
    CalibrationError,
    DiscreetError,
    InvalidInputError,
    UnknownNameError,
    UnsupportedError,
)
from discreet.mdp.shape import Shape
from discreet.mdp.trajectories import Trajectories
from discreet.privacy.mechanisms.base import Request
from discreet.privacy.mechanisms.registry import everything
from discreet.privacy.trust import (
    TRUST_MODELS,
    Central,
    Local,
    NoPrivacy,
    Shuffle,
    make_trust,
)
from helpers.calibrating import calibrated

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
    plan = calibrated(trust, SHAPE, **schedule)
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
        Local(1, mechanism="laplase").calibrate_stream(SHAPE, episodes=4)
    with pytest.raises(UnknownNameError, match="continual mechanism of Central"):
        Central(1, mechanism="gaussian").resolve("continual")


def test_a_mechanism_of_streams_is_no_batch_and_says_where_it_is():
    with pytest.raises(UnsupportedError, match="got 'toeplitz', which is for streams"):
        Central(1, 1e-6, mechanism="toeplitz").calibrate(SHAPE)


def test_a_shuffler_has_no_stream():
    with pytest.raises(UnsupportedError, match="Shuffle has no continual release"):
        Shuffle(1, 1e-6).calibrate_stream(SHAPE, episodes=4)


def test_the_length_of_a_stream_is_checked():
    with pytest.raises(InvalidInputError, match="episodes"):
        Central(1).calibrate_stream(SHAPE, episodes=0)


def test_without_delta_only_pure_mechanisms_are_taken():
    assert Central(1).calibrate(SHAPE).name == "laplace"
    assert Central(1).calibrate_stream(SHAPE, episodes=9).name == "tree-signed"
    with pytest.raises(CalibrationError, match="delta > 0"):
        Shuffle(1).calibrate(SHAPE)


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


# --- the least noise is taken, with its own guarantee


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
def test_the_distribution_with_the_least_noise(horizon, epsilon, delta, name, std):
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


@pytest.mark.parametrize("participations", [1, 4])
@pytest.mark.parametrize("horizon", [1, 2, 4, 20])
@pytest.mark.parametrize("delta", [1e-2, 1e-9])
def test_the_rule_is_the_competition_of_exact_calibrations(horizon, delta, participations):
    """Two closed forms, against both mechanisms calibrated exactly."""
    for epsilon in (0.1, 1, 2, 5, 10, 50):
        trust = Central(epsilon, delta, participations=participations)
        taken = trust.rule(Request(shape(horizon)), "batch").mechanism
        noise = {}
        for name in ("gaussian", "laplace"):
            loose = 0.0 if name == "laplace" and participations == 1 else delta
            one = replace(trust, mechanism=name, delta=loose).calibrate(shape(horizon))
            noise[name] = one.noise.variance
        assert noise[taken] == min(noise.values())


@pytest.mark.parametrize(("delta", "name"), [(1e-6, "toeplitz"), (0, "tree-signed")])
def test_a_stream_with_a_delta_is_toeplitz_and_without_a_tree(delta, name):
    mechanism = Central(1, delta).calibrate_stream(shape(1), episodes=300)
    assert mechanism.name == name
    assert mechanism.guarantee.delta == delta
    worst = max(mechanism.noise_variance(k)["visits"] for k in range(1, 301))
    assert mechanism.worst_noise(300)["visits"] == pytest.approx(math.sqrt(worst))


def test_other_choices_are_the_first_that_deliver():
    assert Local(1).calibrate(shape(2)).name == "split"
    assert Local(1).calibrate_stream(shape(2), episodes=4).name == "laplace"
    assert Shuffle(1, 1e-6).resolve("batch") == "histogram"
    assert Central(1, calibration="paper").resolve("continual") == "tree-laplace"


@pytest.mark.parametrize("epsilon", [1e-13, 1e-300, 5e-324])
def test_noise_beyond_exact_integers_is_refused_before_anything_is_released(epsilon):
    with pytest.raises(CalibrationError, match="larger epsilon"):
        Central(epsilon).calibrate(shape(2))
    for name in ("auto", "tree-laplace"):
        with pytest.raises(CalibrationError, match="larger epsilon"):
            Central(epsilon, mechanism=name).calibrate_stream(shape(2), episodes=9)
    with pytest.raises(CalibrationError, match="larger epsilon"):
        Shuffle(epsilon, 1e-6, mechanism="bits").calibrate(shape(2)).bits(100)


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
    bits = Shuffle(700, 1e-6, mechanism="bits").calibrate(shape(2)).noise_variance(100)
    assert 0 < bits["visits"] < 100 / 4  # fewer than a fair bit of every user
    assert Central(700, 1e-6).calibrate(shape(2)).noise_variance(100)["visits"] < 1e-6


class TestRho:
    """A budget of zero-concentrated privacy."""

    SHAPE = Shape(states=3, actions=2, horizon=4)

    @pytest.mark.parametrize("rho", [1e-4, 0.1, 0.5, 10])
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"statistics": ("transitions", "rewards")},
            {"schedule": "continual", "episodes": 50},
            {"schedule": "continual", "episodes": 50, "stationary": True},
        ],
    )
    def test_the_noise_keeps_to_the_budget_and_hardly_below(self, rho, options):
        mechanism = calibrated(Central(rho=rho), self.SHAPE, **options)
        assert 0.99 * rho < mechanism.concentrated() <= rho
        assert mechanism.guarantee.rho == rho

    @pytest.mark.parametrize("name", ["gaussian", "toeplitz"])
    def test_every_gaussian_mechanism_has_one(self, name):
        schedule = {} if name == "gaussian" else {"schedule": "continual", "episodes": 50}
        mechanism = calibrated(Central(rho=0.1, mechanism=name), self.SHAPE, **schedule)
        assert mechanism.name == name and mechanism.concentrated() <= 0.1

    def test_the_sigma_is_that_of_the_moves(self):
        """Two units move for each of 2 statistics at each of 4 steps: 16 in all."""
        mechanism = Central(rho=0.1).calibrate(self.SHAPE, statistics=("transitions", "rewards"))
        assert mechanism.noise.sigma == pytest.approx((16 / (2 * 0.1)) ** 0.5, rel=1e-4)

    def test_somebody_who_comes_three_times_is_in_the_rho_that_is_printed(self):
        trust = Central(rho=0.1, participations=3)
        mechanism = trust.calibrate_stream(self.SHAPE, episodes=64)
        assert 0.08 < mechanism.concentrated() <= 0.1

    def test_the_conversion_is_shown_and_better_than_that_of_every_such_mechanism(self):
        for rho in (0.01, 0.1, 1.0):
            trust = Central(rho=rho, delta=1e-5)
            assert trust.epsilon < rho + 2 * (rho * np.log(1e5)) ** 0.5
            assert trust.delta == 1e-5
        guarantee = Central(rho=0.1).calibrate(self.SHAPE).guarantee
        assert str(guarantee).startswith("(1.995, 1e-06)-JDP by 0.1-zCDP, one user")
        assert guarantee.to_dict()["rho"] == 0.1
        assert "rho" not in Central(1, 1e-6).calibrate(self.SHAPE).guarantee.to_dict()

    def test_it_can_be_replaced_and_is_read_by_name(self):
        trust = Central(rho=0.1)
        assert replace(trust, mechanism="gaussian").epsilon == trust.epsilon
        assert make_trust("central", rho=0.1) == trust

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"mechanism": "laplace"}, "has no Gaussian noise"),
            ({"epsilon": 1.0}, "Expected epsilon or rho, got epsilon=1.0 and rho=0.1"),
            ({"calibration": "paper"}, "No paper prints constants for rho"),
            ({"rho": 0.0}, "Expected rho > 0"),
            ({"delta": 2.0}, "delta"),
        ],
    )
    def test_a_budget_is_refused_where_it_means_nothing(self, options, said):
        with pytest.raises(DiscreetError, match=said):
            Central(**{"rho": 0.1, **options}).calibrate(self.SHAPE)

    def test_a_calibrator_that_spends_more_is_refused(self, monkeypatch):
        from discreet.privacy.mechanisms.noise import Gaussian

        usual = Gaussian.concentrated
        monkeypatch.setattr(Gaussian, "concentrated", lambda *given: 1.1 * usual(*given))
        with pytest.raises(InvalidInputError, match=r"Expected rho <= 0\.1 of 'gaussian'"):
            Central(rho=0.1).calibrate(self.SHAPE)

    def test_a_fit_has_it(self):
        """And its ledger is charged with the epsilon at delta."""
        people = Trajectories(np.zeros((3, 5), int), np.zeros((3, 4), int), np.zeros((3, 4)))
        found = discreet.fit(people, Central(rho=0.1), shape=self.SHAPE, sampler="simulation")
        assert "by 0.1-zCDP" in str(found)
