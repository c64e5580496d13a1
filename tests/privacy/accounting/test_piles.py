"""Every move of a pooled user, one by one, against the bound on all of them."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import InvalidInputError
from discreet.privacy.accounting.closed_forms import gaussian_delta, zcdp_epsilon
from discreet.privacy.accounting.distributions import discrete_gaussian_pmf
from discreet.privacy.accounting.lattice import discrete_gaussian_delta
from discreet.privacy.accounting.piles import (
    _theta_excess,
    honest_users,
    least_crowd,
    mean_of_all,
    other_moves_delta,
    uneven_piles_delta,
    worst_gaussian_delta,
    zcdp_delta,
)
from discreet.privacy.accounting.search import discrete_gaussian_sigma
from helpers.properties import given, st


def moves(units, pile):
    """How many counters move by 1, 2, ..., pile: all ways to spend at most ``units``."""
    ranges = [range(units // size + 1) for size in range(1, pile + 1)]
    for counts in itertools.product(*ranges):
        spent = sum(n * size for size, n in enumerate(counts, 1))
        if 0 < spent <= units:
            yield counts


def total(sigma, counts):
    """Values and probabilities of v·Z, by convolution."""
    noise = discrete_gaussian_pmf(sigma)
    reach = math.ceil(9 * sigma)
    one = noise.probabilities[-noise.first - reach : -noise.first + reach + 1]
    result, first = np.ones(1), 0
    for size, times in enumerate(counts, 1):
        spread = np.zeros(2 * reach * size + 1)
        spread[::size] = one
        for _ in range(times):
            result, first = np.convolve(result, spread), first - reach * size
    return first + np.arange(result.size), result


def delta_of(sigma, counts, epsilon):
    square = sum(n * size**2 for size, n in enumerate(counts, 1))
    values, masses = total(sigma, counts)
    losses = (square - 2 * values) / (2 * sigma**2)
    return float(masses @ np.maximum(0, -np.expm1(np.minimum(0, epsilon - losses))))


@pytest.mark.parametrize(
    ("cells", "pile", "sigma", "epsilon"),
    [
        (2, 2, 4.0, 1.0),
        (4, 2, 3.0, 3.0),
        (6, 2, 2.0, 1.0),
        (6, 2, 0.93, 20.0),
        (2, 3, 6.0, 2.0),
        (3, 3, 2.0, 8.0),
        (2, 4, 1.2, 12.0),
    ],
)
def test_no_move_is_worse(cells, pile, sigma, epsilon):
    worst = worst_gaussian_delta(sigma, cells, epsilon, pile=pile)
    others = other_moves_delta(sigma, cells, epsilon, pile)
    checked = 0
    for counts in moves(cells * pile, pile):
        found = delta_of(sigma, counts, epsilon)
        assert found <= worst * (1 + 1e-9) + 1e-17
        if any(counts[:-1]):
            assert found <= others * (1 + 1e-9) + 1e-17
        checked += 1
    assert checked >= 8


@pytest.mark.parametrize(("sigma", "epsilon"), [(2.0, 1.0), (0.93, 20.0)])
def test_piles_of_two_are_exact_where_the_general_bound_is_loose(sigma, epsilon):
    exact = delta_of(sigma, (0, 6), epsilon)
    assert worst_gaussian_delta(sigma, 6, epsilon, pile=2) == pytest.approx(exact, rel=1e-6)
    assert other_moves_delta(sigma, 6, epsilon, 2) > 1.1 * exact


@pytest.mark.parametrize("counts", [(1, 0, 2), (0, 3), (2, 1, 1), (1, 1), (1, 0, 0, 2)])
@pytest.mark.parametrize("sigma", [0.8, 1.5, 3.0])
def test_poisson_summation_bounds_every_probability(counts, sigma):
    values, masses = total(sigma, counts)
    divisor = math.gcd(*(size for size, n in enumerate(counts, 1) if n))
    square = sum(n * (size // divisor) ** 2 for size, n in enumerate(counts, 1))
    units = sum(n * size for size, n in enumerate(counts, 1))
    smooth = np.exp(-((values / divisor) ** 2) / (2 * square * sigma**2))
    smooth *= 1 + _theta_excess(sigma, square, units, len(counts) // divisor)
    smooth /= sigma * math.sqrt(2 * math.pi * square)
    assert (masses <= smooth + 1e-16).all()


@pytest.mark.core
@pytest.mark.parametrize("horizon", [2, 6, 20])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 10.0])
def test_the_proof_costs_nothing_at_usual_epsilons(horizon, epsilon):
    sigma = discrete_gaussian_sigma(6, epsilon, 1e-6, pile=horizon)
    assert other_moves_delta(sigma, 6, epsilon, horizon) <= 1e-6
    assert discrete_gaussian_delta(sigma, 6, epsilon, pile=horizon) > 0.97e-6


@pytest.mark.parametrize(("horizon", "epsilon"), [(6, 40.0), (20, 40.0), (6, 60.0)])
def test_beyond_the_proof_the_noise_is_raised_until_a_bound_holds(horizon, epsilon):
    sigma = discrete_gaussian_sigma(6, epsilon, 1e-6, pile=horizon)
    assert worst_gaussian_delta(sigma, 6, epsilon, pile=horizon) <= 1e-6
    assert discrete_gaussian_delta(sigma, 6, epsilon, pile=horizon) < 0.95e-6


def test_longest_other_move():
    """The length that the theorem gives to all moves but full piles, by enumeration."""
    for cells, pile in ((1, 2), (2, 2), (3, 3), (2, 5), (4, 3)):
        lengths = [
            sum(n * size**2 for size, n in enumerate(counts, 1))
            for counts in moves(cells * pile, pile)
            if any(counts[:-1])
        ]
        assert max(lengths) == cells * pile**2 - 2 * (pile - 1)


def test_concentrated_dp_in_both_directions():
    for rho in (0.01, 0.1, 1.0):
        epsilon = zcdp_epsilon(rho, 1e-6)
        assert zcdp_delta(rho, epsilon) <= 1e-6
        assert zcdp_delta(rho, 0.8 * epsilon) > 1e-6


# --- Who is counted on, and how much noise all users bring


@given(st.integers(0, 1000), st.integers(1, 5000))
def test_honest_users_are_whole_and_rounded_down(thousandths, users):
    share = thousandths / 1000
    expected = thousandths * users // 1000
    if expected:
        assert honest_users(share, users) == expected
    else:
        with pytest.raises(InvalidInputError, match="use a larger batch"):
            honest_users(share, users)


@given(st.integers(1, 1000))
def test_the_least_crowd_has_one_honest_user_and_no_smaller_one_does(thousandths):
    share = thousandths / 1000
    least = least_crowd(share)
    assert honest_users(share, least) >= 1
    if least > 1:
        with pytest.raises(InvalidInputError, match="use a larger batch"):
            honest_users(share, least - 1)


@given(st.integers(1, 1000), st.integers(1000, 10**12), st.fractions(1, 10**6))
def test_those_who_are_counted_on_add_the_mean_exactly(thousandths, users, mean):
    """Every user adds the same, and nobody else's noise is needed."""
    for share in (thousandths / 1000, Fraction(thousandths, 1000)):
        each = mean_of_all(mean, share, users) / users
        assert each * honest_users(share, users) == mean


def test_refusals_name_value_rule_and_remedy():
    for use in (lambda: honest_users(0.1, 3), lambda: mean_of_all(Fraction(5), 0.1, 3)):
        with pytest.raises(InvalidInputError, match=r"honest=0\.1 of users=3; use a larger batch"):
            use()


@pytest.mark.parametrize("horizon", [2, 3, 4])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_uneven_piles_are_covered(horizon, epsilon):
    """002's statistics: no move of H rewards, H visits and H - 1 transitions has a larger delta."""
    sigma = horizon / epsilon
    bound = uneven_piles_delta(sigma, horizon, epsilon)
    l2 = math.sqrt(4 * horizon**2 + 2 * (horizon - 1) ** 2)
    assert bound >= gaussian_delta(sigma, l2, epsilon)
    for ones, mostly, full in (
        (0, 2, 4),
        (2, 2, 3),
        (2 * horizon - 2, 0, 4),
        (6 * horizon - 2, 0, 0),
    ):
        counts = [ones, *[0] * (horizon - 2), full]
        counts[horizon - 2] += mostly
        assert bound >= delta_of(sigma, counts, epsilon) * (1 - 1e-9)
