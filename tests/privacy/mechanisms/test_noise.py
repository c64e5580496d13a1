"""Distributions of noise: moments against exact tables, bounds against real draws."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidInputError, UnsupportedError
from discreet.privacy.accounting.distributions import (
    discrete_gaussian_pmf,
    table_pmf,
)
from discreet.privacy.mechanisms.noise import (
    Bounded,
    Gaussian,
    Laplace,
    bit_log_mgf,
    lower_envelope,
)
from discreet.privacy.mechanisms.randomized_response import FlipTail
from helpers.lattices import discrete_laplace_pmf
from helpers.sampling import sampler

LAWS = [Laplace(0.3), Laplace(7.5), Gaussian(0.4), Gaussian(6.0), Bounded(40)]
SCALES = st.floats(0.2, 200.0)


def table(distribution):
    match distribution:
        case Laplace():
            return discrete_laplace_pmf(distribution.scale)
        case Gaussian():
            return discrete_gaussian_pmf(distribution.sigma)
    return table_pmf(distribution.weights, -distribution.largest)


@pytest.mark.parametrize("distribution", LAWS, ids=str)
def test_the_variance_is_that_of_the_exact_table(distribution):
    assert distribution.variance == pytest.approx(table(distribution).variance, rel=1e-9)


@pytest.mark.parametrize("distribution", LAWS, ids=str)
def test_the_moment_function_is_never_below_the_exact_one(distribution):
    exact = table(distribution)
    t = np.array([0.01, 0.2, 0.6]) * min(
        distribution.mgf_limit, 3 / math.sqrt(distribution.variance)
    )
    expected = np.log(np.exp(np.outer(t, exact.values)) @ exact.probabilities)
    assert (distribution.log_mgf(t) >= expected * (1 - 1e-9)).all()
    if not isinstance(distribution, Gaussian):  # whose bound is sub-Gaussian, not exact
        assert distribution.log_mgf(t) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("distribution", LAWS, ids=str)
@pytest.mark.parametrize("failure", [0.2, 0.01])
def test_bounds_fail_no_more_often_than_they_say(distribution, failure):
    sums = distribution.draw_sum(sampler(1), 12, 20_000)
    exceeded = (np.abs(sums) > distribution.bound({1.0: 12.0}, failure)).mean()
    assert exceeded <= failure


@pytest.mark.parametrize("distribution", LAWS, ids=str)
def test_many_bounds_at_once_are_the_bounds_one_by_one(distribution):
    counts = np.array([1, 2, 17, 400])
    each = [distribution.bound({1.0: float(n)}, 0.05) for n in counts]
    assert distribution.sum_bounds(counts, 0.05) == pytest.approx(each, rel=1e-9)


@pytest.mark.parametrize("distribution", LAWS, ids=str)
def test_bounds_grow_with_weights_and_certainty(distribution):
    assert distribution.bound({2.0: 5.0}, 0.05) == pytest.approx(
        2 * distribution.bound({1.0: 5.0}, 0.05), rel=1e-6
    )
    assert distribution.bound({1.0: 5.0}, 0.001) > distribution.bound({1.0: 5.0}, 0.1)


@pytest.mark.parametrize("failure", [0.0, 1.0, -0.1, math.nan])
def test_a_failure_is_a_probability(failure):
    with pytest.raises(InvalidInputError, match="failure"):
        Laplace(1.0).bound({1.0: 1.0}, failure)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
@pytest.mark.parametrize("kind", [Laplace, Gaussian])
def test_a_scale_is_positive_and_finite(kind, bad):
    with pytest.raises(InvalidInputError, match="got"):
        kind(bad)


@given(SCALES, st.floats(0.1, 50.0))
def test_a_distribution_scales_itself(scale, factor):
    assert Laplace(scale).scaled(factor) == Laplace(scale * factor)
    assert Gaussian(scale).scaled(factor) == Gaussian(scale * factor)


def test_bounded_noise_has_no_scale():
    with pytest.raises(UnsupportedError, match="use Laplace or Gaussian"):
        Bounded(9).scaled(2.0)


@pytest.mark.parametrize("terms", [3, 32, 33, 200])
def test_sums_of_bounded_noise_stay_within_reach_and_have_its_variance(terms):
    distribution = Bounded(12)
    sums = distribution.draw_sum(sampler(2), terms, 4000)
    assert np.abs(sums).max() <= terms * distribution.largest
    assert sums.var() == pytest.approx(terms * distribution.variance, rel=0.15)


def test_bounded_weights_are_symmetric_positive_and_sum_to_about_2_to_the_60():
    weights = Bounded(50).weights
    assert (weights > 0).all() and np.array_equal(weights, weights[::-1])
    assert int(weights.sum()) == pytest.approx(2**60, rel=1e-12)


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0, 10)), min_size=1, max_size=9))
def test_the_lower_envelope_is_the_least_line_everywhere(lines):
    slopes, offsets = (np.array(part) for part in zip(*lines, strict=True))
    best, starts = lower_envelope(slopes, offsets)
    x = np.linspace(0, 30, 61)
    taken = best[np.searchsorted(starts, x, "right") - 1]
    least = (slopes[:, None] * x + offsets[:, None]).min(axis=0)
    assert slopes[taken] * x + offsets[taken] == pytest.approx(least, abs=1e-9)


@given(st.floats(0.01, 0.99), st.floats(-20, 20))
def test_a_centred_bit_has_a_moment_function_of_at_least_one(probability, t):
    value = bit_log_mgf(probability, np.array([t]))[0]
    expected = math.log(1 - probability + probability * math.exp(t)) - probability * t
    assert value == pytest.approx(expected, abs=1e-9)
    assert value >= -1e-12


def test_the_error_of_a_flipped_bit():
    tail = FlipTail(0.2)
    assert tail.variance == pytest.approx(0.16 / 0.36)
    flips = np.random.default_rng(0).binomial(1, 0.2, (20_000, 30))
    errors = ((flips - 0.2) / 0.6).sum(axis=1)
    assert (np.abs(errors) > tail.bound({1.0: 30.0}, 0.05)).mean() <= 0.05
