"""Bounds in decimals against a stable integral, at noise so wide that doubles cancel."""

import math
from decimal import Decimal

import numpy as np
import pytest
from scipy import integrate

from discreet.privacy.accounting import closed_forms
from discreet.privacy.accounting import closed_forms as cf


def stable_delta(ratio, epsilon):
    """density(x) times the integral of exp(-x·s - s²/2)·(1 - e^(-ratio·s)): nothing cancels."""
    x = epsilon / ratio - ratio / 2
    value = integrate.quad(
        lambda s: math.exp(-x * s - s * s / 2) * -math.expm1(-ratio * s) / ratio,
        0,
        max(0.0, -x) + 12,
        epsabs=0,
        epsrel=1e-12,
        limit=500,
        points=[0.01, 0.1, 1.0],
    )[0]
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi) * ratio * value


RATIOS = (1e-30, 1e-12, 1e-3, 0.2, 3.0, 40.0)
POINTS = (-6.0, -1.0, 0.0, 0.5, 1.99, 2.0, 5.0, 11.0, 30.0)


@pytest.mark.parametrize(("x", "ratio"), [(x, r) for r in RATIOS for x in POINTS if x >= -r / 2])
def test_the_bound_is_the_delta_and_not_below_it(x, ratio):
    epsilon = ratio * (x + ratio / 2)
    expected = stable_delta(ratio, epsilon)
    bound = float(closed_forms.gaussian_delta_above(Decimal(ratio), Decimal(epsilon)))
    # x comes from epsilon by one subtraction in doubles.
    rounding = 1e-11 + 4e-16 * abs(x) * (epsilon / ratio + ratio)
    assert bound == pytest.approx(expected, rel=rounding)


def test_the_ratio_of_mills_is_enclosed():
    for t, known in ((Decimal(0), math.sqrt(math.pi / 2)), (Decimal(2), 0.42136922928805447)):
        for low, high in (closed_forms._mills(t), closed_forms._mills(t - Decimal("1e-20"))):
            assert low <= high
            assert float(low) == pytest.approx(known, rel=1e-14)
            assert high - low <= Decimal("1e-15")


def test_rounding_to_doubles_goes_up():
    third = Decimal(1) / 3
    assert Decimal(closed_forms.in_doubles(third)) >= third
    assert closed_forms.in_doubles(third) - 1 / 3 <= 1e-16
    assert closed_forms.in_doubles(Decimal("0.5")) == 0.5


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(1.8e-11, 9e-33), (4.6e-8, 1e-20), (1e-9, 1e-15), (1e-3, 1e-40), (1e-11, 0.3)],
)
def test_wide_noise_keeps_its_promise(epsilon, delta):
    """In doubles alone the first of these delivers 4% more than delta."""
    sigma = cf.gaussian_sigma(6.0, epsilon, delta)
    delivered = stable_delta(6.0 / sigma, epsilon) / delta
    assert 1 - 1e-6 < delivered <= 1 + 2e-12


def test_random_settings_keep_their_promise_and_waste_little():
    rng = np.random.default_rng(1)
    for log_epsilon, log_delta in rng.uniform((-11, -40), (0, -0.3), (60, 2)):
        epsilon, delta = 10**log_epsilon, 10**log_delta
        sigma = cf.gaussian_sigma(1.0, epsilon, delta)
        assert 1 - 1e-6 < stable_delta(1 / sigma, epsilon) / delta <= 1 + 2e-12
        assert cf.gaussian_delta(sigma, 1.0, epsilon) <= delta


def test_deltas_of_negative_epsilons_are_those_of_the_other_side():
    for ratio, epsilon in ((1e-3, 0.002), (1e-9, 1e-8), (1.0, 0.5)):
        low = cf.gaussian_delta(1 / ratio, 1.0, -epsilon)
        high = cf.gaussian_delta(1 / ratio, 1.0, epsilon)
        assert low == pytest.approx(-math.expm1(-epsilon) + math.exp(-epsilon) * high, rel=1e-12)
    assert cf.gaussian_delta(1e9, 1.0, -1e-30) == pytest.approx(
        math.erf(1e-9 / math.sqrt(8)), rel=1e-12
    )
