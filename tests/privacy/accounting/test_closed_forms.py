"""Formulas against numerical integration, sums and each other."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, special, stats

from discreet.errors import CalibrationError, InvalidInputError
from discreet.privacy.accounting import closed_forms
from discreet.privacy.accounting import closed_forms as cf
from helpers.properties import given, st


def test_log_phi_is_the_logarithm_of_the_normal_distribution_function():
    x = np.concatenate([np.linspace(-60, 10, 7001), [-35.0, -34.999, -1e4, -1e-9, 0.0, 1e-9]])
    found = [cf.log_phi(float(value)) for value in x]
    np.testing.assert_allclose(found, special.log_ndtr(x), rtol=1e-13)


@pytest.mark.parametrize(("sigma", "l2", "epsilon"), [(3.0, 1.0, 0.5), (1.0, 2.0, 1.0), (25, 6, 1)])
def test_gaussian_delta_is_the_hockey_stick_integral(sigma, l2, epsilon):
    p, q = stats.norm(0, sigma), stats.norm(l2, sigma)
    edge = l2 / 2 - epsilon * sigma**2 / l2  # P >= e^epsilon·Q to the left of it
    integral = integrate.quad(
        lambda x: p.pdf(x) - math.exp(epsilon) * q.pdf(x), edge - 14 * sigma, edge, epsabs=1e-15
    )[0]
    assert cf.gaussian_delta(sigma, l2, epsilon) == pytest.approx(integral, rel=1e-6)


@pytest.mark.core
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1, 5.0, 40.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.1])
def test_gaussian_sigma_is_the_least_that_delivers(epsilon, delta):
    sigma = cf.gaussian_sigma(6.0, epsilon, delta)
    assert cf.gaussian_delta(sigma, 6.0, epsilon) <= delta
    assert cf.gaussian_delta(sigma * 0.9999, 6.0, epsilon) > delta
    assert cf.gaussian_epsilon(sigma, 6.0, delta) == pytest.approx(epsilon, rel=1e-6)


def test_a_huge_gaussian_needs_no_epsilon():
    assert cf.gaussian_epsilon(1e9, 1.0, 1e-6) == 0.0


@pytest.mark.parametrize("scale", [0.3, 1.0, 36.0])
def test_laplace_variance(scale):
    x = np.arange(-3000, 3001)
    p = np.exp(-np.abs(x) / scale)
    assert cf.laplace_variance(scale) == pytest.approx((p * x**2).sum() / p.sum(), rel=1e-9)


@pytest.mark.parametrize("sigma", [0.1, 0.5, 1.0, 1.99, 2.0, 7.0])
def test_gaussian_variance(sigma):
    x = np.arange(-200, 201)
    p = np.exp(-0.5 * (x / sigma) ** 2)
    assert cf.gaussian_variance(sigma) == pytest.approx((p * x**2).sum() / p.sum(), rel=1e-9)


def test_variance_of_vanishing_noise():
    assert cf.laplace_variance(1e-4) == 0.0


def test_laplace_scale_and_epsilon_are_inverse():
    assert 36 / cf.laplace_scale(36, 1) == 1.0


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), True, "1", None])
def test_bad_epsilon(bad):
    with pytest.raises(InvalidInputError, match="epsilon"):
        cf.gaussian_sigma(6.0, bad, 1e-6)


@pytest.mark.parametrize("bad", [-1e-9, 1.0, 2.0, float("nan")])
def test_bad_delta(bad):
    with pytest.raises(InvalidInputError, match="delta"):
        cf.gaussian_sigma(6.0, 1.0, bad)


def test_gaussian_noise_needs_a_delta():
    with pytest.raises(CalibrationError, match="needs delta > 0"):
        cf.gaussian_sigma(6.0, 1.0, 0)


def test_least_epsilon_of_a_flat_curve_is_infinite():
    assert cf.least_epsilon(lambda _: 0.5, 1e-6) == math.inf


class TestFlipProbability:
    """The double itself keeps the guarantee, compared with e^x to 420 digits."""

    @staticmethod
    def exponential(epsilon, bits):
        with localcontext() as context:
            context.prec = 420
            return (min(Decimal(repr(epsilon)), Decimal(epsilon)) / bits).exp()

    @pytest.mark.core
    @pytest.mark.parametrize("epsilon", [1e-10, 1e-6, 0.1, 0.7, 1.0, 3, 40.0, 300.0, 699.5])
    @pytest.mark.parametrize("bits", [1, 4, 36])
    def test_the_guarantee_holds_exactly_and_hardly_anything_is_wasted(self, epsilon, bits):
        q = Fraction(cf.flip_probability(epsilon, bits))
        exponential = Fraction(self.exponential(epsilon, bits))
        assert (1 - q) / q <= exponential
        one_less = Fraction(math.nextafter(float(q), 0.0))
        assert (1 - one_less) / one_less > exponential

    @pytest.mark.parametrize("seed", range(50))
    def test_random_epsilons(self, seed):
        rng = np.random.default_rng(seed)
        epsilon, bits = float(10 ** rng.uniform(-9, 2.8)), int(rng.integers(1, 300))
        q = Fraction(cf.flip_probability(epsilon, bits))
        assert (1 - q) / q <= Fraction(self.exponential(epsilon, bits))
        assert q < Fraction(1, 2)

    @pytest.mark.parametrize(("epsilon", "bits"), [(1e-13, 1), (1e-13, 36), (1e-11, 36)])
    def test_what_no_double_represents_is_refused_in_one_sentence(self, epsilon, bits):
        with pytest.raises(CalibrationError, match=r"Expected epsilon >= .* got epsilon=.* use a"):
            cf.flip_probability(epsilon, bits)

    def test_a_huge_epsilon_still_flips(self):
        assert 0 < cf.flip_probability(1e6) == cf.flip_probability(700.0)


@given(st.integers(1, 10**6), st.floats(1e-3, 1e3))
def test_laplace_scales_keep_their_guarantee_as_fractions(l1, epsilon):
    """Whether a person means the decimal or the double: units over scale is at most epsilon."""
    scale = Fraction(cf.laplace_scale(l1, epsilon))
    guaranteed = min(Fraction(repr(epsilon)), Fraction(epsilon))
    assert l1 / scale <= guaranteed
    assert l1 / (scale * (1 - Fraction(1, 10**14))) > guaranteed


def test_laplace_scales_beyond_the_integers_are_refused():
    with pytest.raises(CalibrationError, match=r"scale 1e\+15 .* ask for a larger epsilon"):
        cf.laplace_scale(1.0, 1e-15)


@given(st.fractions(min_value=0, max_value=700, max_denominator=10**4))
def test_exponentials_from_below(x):
    with localcontext() as context:
        context.prec = 400
        truth = Fraction((Decimal(x.numerator) / Decimal(x.denominator)).exp())
    found = cf._exp_below(x)
    assert found <= truth * (1 + Fraction(1, 10**300))
    assert found >= truth * (1 - Fraction(1, 10**58))


@given(st.floats(0.05, 20.0), st.floats(1e-9, 0.4))
def test_the_least_epsilon_of_a_falling_curve(rate, delta):
    """delta(e) = exp(-rate·e)/2: the answer errs upwards, by a hair."""
    truth = max(0.0, -math.log(2 * delta) / rate)
    found = cf.least_epsilon(lambda e: math.exp(-rate * e) / 2, delta)
    assert truth <= found + 1e-12
    assert found <= truth + 1e-8 + 1e-9 * truth


def test_the_least_epsilon_at_the_ends():
    assert cf.least_epsilon(lambda _: 0.0, 0.0) == 0.0
    assert cf.least_epsilon(lambda e: max(0.0, 1 - e), 0.0, largest=1.0) == 1.0
    assert cf.least_epsilon(lambda e: 0.5 if e < 3 else 0.0, 0.1, largest=7.0) <= 7.0


def test_refusals_name_value_rule_and_remedy():
    with pytest.raises(
        CalibrationError, match=r"Laplace needs delta > 0, got delta=0; give a delta"
    ):
        cf.need_delta(0.0, "Laplace")
    with pytest.raises(CalibrationError, match=r"use local trust, .* shuffle has none\.$"):
        cf.need_delta(0.0, "Shuffle noise", cf.NOT_SHUFFLED)


# --- Bounds in decimals against a stable integral, at noise so wide that doubles cancel


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
def test_wide_noise_keeps_its_guarantee(epsilon, delta):
    """In doubles alone the first of these delivers 4% more than delta."""
    sigma = cf.gaussian_sigma(6.0, epsilon, delta)
    delivered = stable_delta(6.0 / sigma, epsilon) / delta
    assert 1 - 1e-6 < delivered <= 1 + 2e-12


def test_random_settings_keep_their_guarantee_and_waste_little():
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
