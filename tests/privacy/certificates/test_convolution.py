"""Distributions of sums of discrete Gaussians, against sums of fractions of sixty digits."""

from fractions import Fraction

import pytest

pytest.importorskip("flint")

from discreet.privacy.certificates import arithmetic
from discreet.privacy.certificates.arithmetic import (
    Shifted,
    arb,
    exact,
    one_draw,
    sum_of_draws,
    window_of_sum,
)
from helpers.curves import distribution_of_sum, exact_gaussian

pytestmark = pytest.mark.usefixtures("sharp_balls")
CLOSE = Fraction(1, 10**50)
SIGMAS = [Fraction(2, 5), Fraction(1), Fraction(7, 3)]


def low(mass):
    return exact(mass.lower())


def high(mass):
    return exact(mass.upper())


def total(masses):
    return sum(masses, arb(0))


@pytest.fixture
def narrow(monkeypatch):
    """A window of two sigmas: what lies outside is not negligible at all."""
    monkeypatch.setattr(arithmetic, "_REACH", 2.0)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_one_draw_has_the_probabilities_of_the_definition(sigma):
    reach, poly = one_draw(sigma)
    truth = exact_gaussian(sigma, reach + 5)
    masses = poly.coeffs()
    assert len(masses) == 2 * reach + 1
    for x, mass in zip(range(-reach, reach + 1), masses, strict=True):
        assert low(mass) - CLOSE <= truth[x] <= high(mass) + CLOSE
        assert high(mass) - low(mass) < CLOSE
    assert reach >= 17 * sigma
    assert Fraction(0) <= 1 - low(total(masses)) < Fraction(1, 10**58)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_what_lies_outside_the_window_is_part_of_the_whole(narrow, sigma):
    """Normalised by the window alone, probabilities would be too large."""
    reach, poly = one_draw.__wrapped__(sigma)
    truth = exact_gaussian(sigma)
    for x, mass in zip(range(-reach, reach + 1), poly.coeffs(), strict=True):
        assert low(mass) <= truth[x] <= high(mass)
    missing = 1 - total(poly.coeffs())
    beyond = 2 * sum(p for x, p in truth.items() if x > reach)
    assert low(missing) <= beyond <= high(missing)


@pytest.mark.parametrize("draws", [0, 1, 2, 3])
@pytest.mark.parametrize("sigma", SIGMAS[:2])
def test_sums_against_listing_all_draws(sigma, draws):
    truth = distribution_of_sum(exact_gaussian(sigma, 8, digits=40), draws)
    found = dict(sum_of_draws(sigma, draws))
    for value in range(-6, 7):
        mass = found.get(value, arb(0))
        assert abs(exact(mass.mid()) - truth.get(value, 0)) < Fraction(1, 10**8)
        assert high(mass) - low(mass) < CLOSE


def test_no_draws_are_no_noise():
    [(value, mass)] = sum_of_draws(Fraction(3), 0)
    assert (value, low(mass), high(mass)) == (0, 1, 1)


def test_values_are_those_of_the_sum():
    values = [value for value, _ in sum_of_draws(Fraction(1), 3)]
    reach, _ = one_draw(Fraction(1))
    assert values == list(range(-3 * reach, 3 * reach + 1))


def test_sums_are_symmetric_and_their_variances_add_up():
    sigma = Fraction(3, 2)
    one, three = (dict(sum_of_draws(sigma, draws)) for draws in (1, 3))
    assert all(abs(low(three[x]) - low(three[-x])) < CLOSE for x in three)

    def variance(noise):
        return sum(x * x * low(mass) for x, mass in noise.items())

    assert abs(variance(three) - 3 * variance(one)) < Fraction(1, 10**40)


def test_a_narrow_window_never_overestimates(narrow):
    sigma = Fraction(1)
    reach, poly = one_draw.__wrapped__(sigma)
    truth = distribution_of_sum(exact_gaussian(sigma, 12, digits=40), 2)
    square = (poly * poly).coeffs()
    assert all(
        low(mass) <= truth[x]
        for x, mass in zip(range(-2 * reach, 2 * reach + 1), square, strict=True)
    )
    assert high(1 - total(square)) > Fraction(1, 10**4)  # and says how much is missing


def shifted(sigma, counts):
    return Shifted(sigma=Fraction(sigma), norm=counts, cells=counts)


@pytest.mark.parametrize("counts", [1, 2, 3])
@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(3, 2)])
def test_the_window_bounds_every_probability(sigma, counts):
    truth = distribution_of_sum(exact_gaussian(sigma, 10, digits=40), counts)
    masses, _ = window_of_sum(shifted(sigma, counts))
    for value, mass in masses:
        assert truth.get(value, 0) <= high(mass)


@pytest.mark.parametrize("counts", [1, 4])
def test_the_window_wastes_little_where_there_is_noise(counts):
    masses, tail = window_of_sum(shifted(2, counts))
    whole = total([mass for _, mass in masses])
    assert 1 <= high(whole + tail) <= 1 + Fraction(1, 10**12)
    assert high(tail) < Fraction(1, 10**58)


def test_the_tail_bounds_all_other_values(narrow):
    sigma, counts = Fraction(3, 2), 2
    masses, tail = window_of_sum.__wrapped__(shifted(sigma, counts))
    inside = {value for value, _ in masses}
    truth = distribution_of_sum(exact_gaussian(sigma, 16, digits=40), counts)
    beyond = sum(p for value, p in truth.items() if value not in inside)
    assert Fraction(1, 1000) < beyond <= high(tail) <= Fraction(3, 2) * beyond


def test_values_of_the_window_are_listed_once():
    masses, _ = window_of_sum(shifted(3, 2))
    values = [value for value, _ in masses]
    assert values == list(range(-values[-1], values[-1] + 1))
    assert values[-1] >= 17 * 3 * 2**0.5
