"""Exact composition on one integer, against brute-force convolution of all moved counters."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import CalibrationError, InvalidInputError
from discreet.privacy.accounting.distributions import discrete_gaussian_pmf, discrete_laplace_pmf
from discreet.privacy.accounting.lattice import (
    discrete_gaussian_delta,
    discrete_gaussian_epsilon,
    discrete_laplace_delta,
    discrete_laplace_epsilon,
    sum_of_gaussians,
)


def brute_force(pmf, moves, epsilon):
    """Delta of ``moves`` counters that move by one each, over all joint outcomes."""
    p = pmf.probabilities
    q = np.concatenate([[0.0], p[:-1]])  # moved up by one
    delta = 0.0
    for values in itertools.product(range(p.size), repeat=moves):
        index = list(values)
        delta += max(0.0, np.prod(p[index]) - math.exp(epsilon) * np.prod(q[index]))
    return delta


@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.5])
@pytest.mark.parametrize("moves", [1, 2])
def test_gaussian_delta_is_that_of_all_outcomes(moves, epsilon):
    expected = brute_force(discrete_gaussian_pmf(1.1), moves, epsilon)
    assert discrete_gaussian_delta(1.1, moves, epsilon) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.5])
@pytest.mark.parametrize("moves", [1, 2])
def test_laplace_delta_is_that_of_all_outcomes(moves, epsilon):
    expected = brute_force(discrete_laplace_pmf(0.5), moves, epsilon)
    assert discrete_laplace_delta(0.5, moves, epsilon) == pytest.approx(expected, rel=1e-6)


@given(st.floats(0.5, 50), st.integers(1, 40), st.floats(0.05, 4), st.floats(1.01, 2))
def test_less_noise_and_more_moves_lose_more(sigma, cells, epsilon, factor):
    delta = discrete_gaussian_delta(sigma, cells, epsilon)
    assert discrete_gaussian_delta(sigma * factor, cells, epsilon) <= delta * (1 + 1e-9)
    assert discrete_gaussian_delta(sigma, cells + 1, epsilon) >= delta * (1 - 1e-9)
    assert discrete_gaussian_delta(sigma, cells, epsilon * factor) <= delta * (1 + 1e-9)


@given(st.floats(0.5, 50), st.integers(1, 40))
def test_all_laplace_moves_together_are_the_pure_epsilon(scale, moves):
    pure = moves / scale
    assert discrete_laplace_delta(scale, moves, pure) == 0.0
    assert discrete_laplace_epsilon(scale, moves, 0.0) == pytest.approx(pure, rel=1e-9)
    assert discrete_laplace_epsilon(scale, moves, 0.01) < pure


@pytest.mark.parametrize("pile", [1, 4])
def test_epsilon_and_delta_are_inverse(pile):
    epsilon = discrete_gaussian_epsilon(20.0, 12, 1e-6, pile=pile)
    assert discrete_gaussian_delta(20.0, 12, epsilon, pile=pile) == pytest.approx(1e-6, rel=1e-4)


def test_a_pile_costs_more_than_as_many_single_units():
    assert discrete_gaussian_delta(10.0, 3, 1.0, pile=4) > discrete_gaussian_delta(10.0, 12, 1.0)


@pytest.mark.parametrize("sigma", [1.0, 3.0])
def test_sums_of_draws_are_a_distribution_of_the_right_variance(sigma):
    values, log = sum_of_gaussians(sigma, 5)
    mass = np.exp(log)
    assert mass.sum() == pytest.approx(1.0, rel=1e-9)
    assert mass @ values**2 == pytest.approx(5 * discrete_gaussian_pmf(sigma).variance, rel=1e-6)


def test_both_ways_of_summing_agree_where_they_meet():
    low, high = (discrete_gaussian_delta(s, 6, 1.0) for s in (2.5 - 1e-9, 2.5 + 1e-9))
    assert low == pytest.approx(high, rel=1e-6)


def test_refusals():
    with pytest.raises(CalibrationError, match="delta > 0"):
        discrete_gaussian_epsilon(1.0, 1, 0.0)
    with pytest.raises(CalibrationError, match="too many integers"):
        discrete_gaussian_delta(1e7, 1000, 1e-9)
    for wrong in ((0.0, 1), (1.0, 0)):
        with pytest.raises(InvalidInputError, match="got"):
            discrete_gaussian_delta(*wrong, 1.0)
        with pytest.raises(InvalidInputError, match="got"):
            discrete_laplace_delta(*wrong, 1.0)


def mixed_brute_force(sigma, cells, singles, epsilon):
    """Delta of ``cells`` counters that move by two and ``singles`` by one, over all outcomes."""
    p = discrete_gaussian_pmf(sigma).probabilities
    q = {by: np.concatenate([np.zeros(by), p[:-by]]) for by in (1, 2)}
    there, away = np.ones(1), np.ones(1)
    for by in [2] * cells + [1] * singles:
        there, away = np.outer(there, p).ravel(), np.outer(away, q[by]).ravel()
    return np.maximum(0.0, there - math.exp(epsilon) * away).sum()


@pytest.mark.parametrize("sigma", [0.6, 1.5, 2.6, 4.0])
@pytest.mark.parametrize(("cells", "singles"), [(1, 2), (2, 1), (1, 1)])
def test_moves_by_two_and_by_one_together(sigma, cells, singles):
    for epsilon in (0.3, 2.0):
        exact = mixed_brute_force(sigma, cells, singles, epsilon)
        found = discrete_gaussian_delta(sigma, cells, epsilon, pile=2, singles=singles)
        assert found == pytest.approx(exact, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_a_shift_by_two_covers_two_shifts_by_one(sigma, epsilon):
    """The step on which the worst move of centred releases rests (`privacy.sensitivity`)."""
    split = discrete_gaussian_delta(sigma, 2, epsilon, pile=2, singles=4)
    joined = discrete_gaussian_delta(sigma, 3, epsilon, pile=2, singles=2)
    assert split <= joined * (1 + 1e-12)
