"""Tables of noise: probabilities, tails set aside, and refusals of tables that are too large."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from discreet.errors import CalibrationError, InvalidInputError
from discreet.privacy.accounting.distributions import (
    binomial_pmf,
    discrete_gaussian_pmf,
    table_pmf,
)

SCALES = st.floats(0.2, 60.0)


@given(SCALES)
def test_gaussian_probabilities(sigma):
    pmf = discrete_gaussian_pmf(sigma)
    assert pmf.probabilities.sum() == pytest.approx(1.0, rel=1e-12)
    assert np.array_equal(pmf.probabilities, pmf.probabilities[::-1])
    middle = pmf.log_probabilities.size // 2
    ratio = pmf.log_probabilities[middle + 1] - pmf.log_probabilities[middle]
    assert ratio == pytest.approx(-0.5 / sigma**2, rel=1e-6, abs=1e-12)
    assert 0 < pmf.outside < 1e-30


@given(st.integers(1, 3000), st.floats(0.001, 0.999))
def test_binomial_probabilities(trials, probability):
    pmf = binomial_pmf(trials, probability)
    expected = stats.binom(trials, probability)
    assert pmf.log_probabilities == pytest.approx(expected.logpmf(pmf.values), rel=1e-7, abs=1e-9)
    assert pmf.variance == pytest.approx(trials * probability * (1 - probability), rel=1e-6)


def test_a_small_binomial_leaves_nothing_outside_and_a_large_one_says_so():
    assert binomial_pmf(50, 0.3).outside == 0.0
    large = binomial_pmf(10**6, 0.5)
    assert 0 < large.outside < 1e-30
    assert large.log_probabilities.size < 20_000


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=9), st.integers(-20, 20))
def test_a_table_is_its_weights(weights, first):
    pmf = table_pmf(np.array(weights), first)
    assert pmf.values.tolist() == list(range(first, first + len(weights)))
    assert pmf.probabilities == pytest.approx(np.array(weights) / sum(weights))
    assert pmf.outside == 0.0


def test_a_weight_of_zero_is_an_impossible_value():
    assert table_pmf(np.array([1, 0, 1]), 0).log_probabilities[1] == -math.inf


@pytest.mark.parametrize("weights", [[], [0, 0], [-1, 2]])
def test_weights_that_are_no_table_are_refused(weights):
    with pytest.raises(InvalidInputError, match="weights"):
        table_pmf(np.array(weights, np.int64), 0)


@pytest.mark.parametrize("probability", [0, 1])
def test_certain_bits_are_no_noise(probability):
    with pytest.raises(InvalidInputError, match="certain bits are no noise"):
        binomial_pmf(10, probability)


def test_tables_have_a_largest_size():
    with pytest.raises(CalibrationError, match="ask for a larger epsilon"):
        discrete_gaussian_pmf(1e6)
    with pytest.raises(InvalidInputError, match="got"):
        discrete_gaussian_pmf(0.0)
