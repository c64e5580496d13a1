"""Exact composition on one integer, against brute-force convolution of all moved counters."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from discreet.errors import CalibrationError, InvalidInputError
from discreet.privacy.accounting.closed_forms import gaussian_delta
from discreet.privacy.accounting.distributions import discrete_gaussian_pmf
from discreet.privacy.accounting.lattice import (
    Moved,
    discrete_gaussian_delta,
    discrete_laplace_delta,
    gaussian_curve,
    sum_of_gaussians,
    two_lattice_delta,
)
from discreet.privacy.accounting.losses import Shift, delta_of_shifts
from helpers.lattices import (
    discrete_gaussian_epsilon,
    discrete_laplace_epsilon,
    discrete_laplace_pmf,
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
    with pytest.raises(CalibrationError, match="too many integers"):
        discrete_gaussian_delta(1e7, 1000, 1e-9)
    for wrong in ((0.0, 1), (1.0, 0)):
        with pytest.raises(InvalidInputError, match="got"):
            discrete_gaussian_delta(*wrong, 1.0)
        with pytest.raises(InvalidInputError, match="got"):
            discrete_laplace_delta(*wrong, 1.0)


# --- Counts and losses on two lattices: bounds against exact composition and brute force


@pytest.mark.parametrize(
    ("sigma", "horizon", "epsilon"), [(0.45, 1, 40), (0.64, 2, 40), (1.48, 6, 20), (25.35, 6, 1)]
)
def test_against_the_privacy_loss_distribution(sigma, horizon, epsilon):
    coarse, fine = Moved(sigma, 4 * horizon), Moved(1024 * sigma, 2 * horizon, by=1024)
    exact = delta_of_shifts(
        [
            Shift(discrete_gaussian_pmf(coarse.sigma), 1, coarse.cells),
            Shift(discrete_gaussian_pmf(fine.sigma), 1024, fine.cells),
        ],
        epsilon,
    )
    assert 0.9999 < two_lattice_delta(coarse, fine, epsilon) / exact < 1.02


def losses_of(sigma, shift):
    noise = discrete_gaussian_pmf(sigma)
    return noise.probabilities, (shift**2 - 2 * shift * noise.values) / (2 * sigma**2)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
@pytest.mark.parametrize("shifts", [(24,), (23,), (7, 5), (1,), (16, 8)])
def test_no_smaller_move_is_worse(epsilon, shifts):
    """Every move within the reach, composed by brute force, stays below the bound."""
    reach = max(1, math.ceil(sum(shifts) / 24))
    bound = two_lattice_delta(Moved(0.8, 1), Moved(20.0, reach, by=24), epsilon)
    parts = [losses_of(0.8, 1), *(losses_of(20.0, v) for v in shifts)]
    masses, total = np.ones(1), np.zeros(1)
    for mass, loss in parts:
        masses = np.multiply.outer(masses, mass).ravel()
        total = np.add.outer(total, loss).ravel()
        masses, total = masses[masses > 1e-15], total[masses > 1e-15]
    above = total > epsilon
    assert float(masses[above] @ -np.expm1(epsilon - total[above])) <= bound * (1 + 1e-9)


@pytest.mark.parametrize("sigma", [8.0, 50.0])
def test_a_draw_is_at_most_one_below_a_normal(sigma):
    noise = discrete_gaussian_pmf(sigma)
    below = np.cumsum(noise.probabilities)
    assert (below <= norm.cdf((noise.values + 1) / sigma) + 1e-15).all()
    assert (below > norm.cdf(noise.values / sigma) - 1e-15).all()


def test_wide_sums_take_the_short_cut():
    """Both branches agree where they meet: 24·sigma·sqrt(cells) about 400,000."""
    for sigma, epsilon in itertools.product((2770.0, 2780.0), (0.01, 0.02)):
        delta = two_lattice_delta(Moved(sigma, 36), Moved(sigma * 1024, 18, by=1024), epsilon)
        smooth = gaussian_delta(sigma, math.sqrt(54), epsilon)
        assert smooth <= delta < smooth * 1.001


def test_curve_of_any_epsilon():
    epsilons = np.array([-3.0, 0.0, 1.0, 5.0])
    wanted = [gaussian_delta(1.0, 0.8, e) for e in epsilons]
    assert np.allclose(gaussian_curve(0.8, epsilons), wanted, rtol=1e-12)
    assert gaussian_curve(0.8, np.array([-1e3]))[0] == pytest.approx(1.0)


def test_noise_too_narrow_for_the_proof_is_refused():
    with pytest.raises(CalibrationError, match="smaller epsilon"):
        two_lattice_delta(Moved(1.0, 4), Moved(3.0, 2, by=1024), 1.0)
