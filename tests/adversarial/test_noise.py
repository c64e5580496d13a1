"""Losses beside counts: unknown noise is refused, units are finer, guarantees hold for both."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.adversarial.noise import LOSS_UNITS, Shares, in_loss_units, least_factor
from discreet.adversarial.noise import together as both
from discreet.errors import CalibrationError, UnsupportedError
from discreet.privacy.mechanisms.noise import (
    Bounded,
    Gaussian,
    IndependentNoise,
    Laplace,
    NoCumulativeNoise,
)
from discreet.privacy.mechanisms.toeplitz import square_root
from discreet.privacy.mechanisms.tree import TreeNoise, signed_shape
from discreet.privacy.sensitivity import Sensitivity
from discreet.privacy.trust import Central, Local

COUNTS, LOSSES, EPISODES = 12, 6, 16


def independent(distribution):
    return IndependentNoise(episodes=EPISODES, distribution=distribution)


@pytest.mark.parametrize("noise", [independent(Laplace(3.0)), independent(Gaussian(3.0))])
def test_more_noise_is_more_of_the_same_distribution(noise):
    doubled = noise.scaled(2.0)
    assert type(doubled.distribution) is type(noise.distribution)
    assert doubled.distribution == noise.distribution.scaled(2.0) and doubled.episodes == EPISODES


def test_losses_are_counted_in_finer_units():
    assert in_loss_units(independent(Laplace(3.0))).distribution == Laplace(3.0 * LOSS_UNITS)
    noise, _ = square_root(Central(1, 1e-6), Sensitivity(units=COUNTS), EPISODES)
    finer = in_loss_units(noise)
    assert finer.sigma == pytest.approx(LOSS_UNITS * noise.sigma, rel=1e-9)


def test_noise_that_nothing_is_known_about_is_refused():
    nothing = NoCumulativeNoise(episodes=EPISODES)
    for function in (lambda n: n.scaled(2.0), in_loss_units, lambda n: both(n, Central(1), None)):
        with pytest.raises(UnsupportedError, match="NoCumulativeNoise"):
            function(nothing)
    shares = Shares(COUNTS, LOSSES, COUNTS + LOSSES, 0.0)
    with pytest.raises(UnsupportedError, match="bounded noise"):
        both(independent(Bounded(20)), Local(1), shares)


@pytest.mark.parametrize("once", [0.0, 18.0])
def test_pure_noise_spends_exactly_the_guarantee(once):
    trust, shape = Central(1), signed_shape(EPISODES)
    levels = shape.levels
    units = COUNTS + LOSSES if once == 0 else 2 * COUNTS
    distribution = Laplace(float(units * levels))
    noise, losses = both(
        TreeNoise(episodes=EPISODES, distribution=distribution, shape=shape),
        trust,
        Shares(COUNTS, LOSSES, units, once),
    )
    spent = COUNTS * levels / noise.distribution.scale
    if once == 0:
        assert losses is None
        spent += LOSSES * levels / noise.distribution.scale
    else:
        spent += LOSSES * LOSS_UNITS / losses.scale
    assert spent == pytest.approx(1.0)


def test_nothing_is_left_for_losses_when_counts_spend_it_all():
    noise = independent(Laplace(float(COUNTS)))
    with pytest.raises(CalibrationError, match="use a larger loss_share"):
        both(noise, Local(1), Shares(COUNTS, LOSSES, COUNTS, 18.0))


def test_gaussian_noise_is_raised_until_both_fit():
    trust = Local(1, 1e-6)
    shares = Shares(COUNTS, LOSSES, COUNTS, 18.0)
    small = independent(Gaussian(17.0))  # hardly enough for the counts alone
    noise, losses = both(small, trust, shares)
    assert noise.distribution.sigma >= 17.0 and isinstance(losses, Gaussian)
    assert noise.distribution.sigma / 17.0 == pytest.approx(
        losses.sigma / both(independent(Gaussian(1e3)), trust, shares)[1].sigma, rel=1e-5
    )


@given(st.floats(1.0, 9.0))
def test_theleast_factor_is_least_and_enough(needed):
    found = least_factor(lambda factor: factor >= needed)
    assert needed <= found <= needed + 2e-6


def test_a_factor_that_never_suffices_is_said():
    with pytest.raises(CalibrationError, match="use a smaller epsilon"):
        least_factor(lambda _: False)


def test_shares_know_whether_losses_are_released_continually():
    assert Shares(1, 1, 2, 0.0).continual and not Shares(1, 1, 2, 3.0).continual
