"""The least noise: golden values, minimality, and the bits that each user adds."""

import math

import pytest

from discreet.errors import CalibrationError, InvalidInputError
from discreet.privacy.calibration.distributions import binomial_pmf
from discreet.privacy.calibration.lattice import discrete_gaussian_delta
from discreet.privacy.calibration.losses import delta_of_moves
from discreet.privacy.calibration.search import (
    binomial_trials,
    discrete_gaussian_sigma,
    noise_bits,
)

GOLDEN = [  # horizon, epsilon, std of exact shuffle noise, its bits, std of the central Gaussian
    (2, 0.1, 125.8, 63_338, 125.8),
    (2, 1, 14.65, 859, 14.63),
    (6, 0.1, 218.0, 190_027, 217.8),
    (6, 0.5, 48.4, 9_361, 48.4),
    (6, 1, 25.37, 2_574, 25.35),
    (6, 2, 13.4, 718, 13.4),
    (20, 1, 46.3, 8_578, 46.3),
]


@pytest.mark.core
@pytest.mark.parametrize(("horizon", "epsilon", "shuffle", "bits", "gaussian"), GOLDEN)
def test_golden_noise_levels(horizon, epsilon, shuffle, bits, gaussian):
    trials = binomial_trials(3 * horizon, 3 * horizon, epsilon, 1e-6)
    assert trials == pytest.approx(bits, rel=0.01)
    assert math.sqrt(trials) / 2 == pytest.approx(shuffle, rel=0.01)
    assert discrete_gaussian_sigma(6 * horizon, epsilon, 1e-6) == pytest.approx(gaussian, rel=0.01)


@pytest.mark.parametrize(("moves", "epsilon", "delta"), [(4, 0.7, 1e-5), (18, 3.0, 1e-9)])
def test_the_least_number_of_bits(moves, epsilon, delta):
    trials = binomial_trials(moves, moves, epsilon, delta)
    assert delta_of_moves(binomial_pmf(trials, 0.5), moves, moves, epsilon) <= delta
    assert delta_of_moves(binomial_pmf(trials - 1, 0.5), moves, moves, epsilon) > delta


@pytest.mark.parametrize("epsilon", [0.05, 1, 8.0, 60.0])
def test_the_least_discrete_gaussian(epsilon):
    sigma = discrete_gaussian_sigma(36, epsilon, 1e-6)
    assert discrete_gaussian_delta(sigma, 36, epsilon) <= 1e-6
    assert discrete_gaussian_delta(sigma * 0.98, 36, epsilon) > 1e-6


@pytest.mark.parametrize("users", [1, 7, 1_000, 2_571, 2_572, 20_000, 10**6, 10**9])
def test_users_add_enough_bits_together(users):
    each = noise_bits(users, 18, 18, 1, 1e-6)
    noise = binomial_pmf(users * each.bits, each.probability)
    assert delta_of_moves(noise, 18, 18, 1) <= 1e-6
    assert 0 < each.probability <= 0.5
    assert each.bits == max(1, math.ceil(2571 / users))
    assert each.variance(users) == pytest.approx(2571 / 4, rel=2e-3)


def test_what_cannot_be_delivered_is_refused():
    with pytest.raises(CalibrationError, match="delta > 0"):
        binomial_trials(6, 6, 1.0, 0.0)
    with pytest.raises(CalibrationError, match="delta > 0"):
        discrete_gaussian_sigma(36, 1.0, 0.0)
    with pytest.raises(CalibrationError, match="larger epsilon"):
        binomial_trials(6, 6, 1e-9, 1e-6)
    with pytest.raises(InvalidInputError, match="moves"):
        binomial_trials(0, 0, 1.0, 1e-6)
    with pytest.raises(InvalidInputError, match="users"):
        noise_bits(0, 6, 6, 1.0, 1e-6)
