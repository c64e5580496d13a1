"""Refutations are lower bounds: below the truth, and close enough to convict."""

from fractions import Fraction

import pytest

pytest.importorskip("flint")

from discreet.privacy.certificates.arithmetic import Losses, arb_poly, ball, binomial_atoms, exact
from discreet.privacy.certificates.distributions import BinomialBits, GaussianMoves
from helpers import curves, refutations
from helpers.properties import given, st
from helpers.refutations import binomial_refutation, gaussian_refutation

pytestmark = pytest.mark.usefixtures("sharp_balls")
HALF = Fraction(1, 2)
HAIR = 1 + Fraction(1, 10**12)


def upper_bound(noise, epsilon):
    return noise.bound(epsilon, Fraction(1, 10**9), lambda _: None)[0]


@pytest.mark.parametrize(("ups", "downs"), [(1, 0), (0, 1), (1, 1), (2, 1)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 4), Fraction(1)])
def test_fair_bits_against_listing_all_outputs(ups, downs, epsilon):
    trials = 10
    truth = curves.delta_of_moves(
        curves.exact_binomial(trials, HALF), [1] * ups + [-1] * downs, float(epsilon)
    )
    found = binomial_refutation(trials, ups, downs, epsilon)
    # Values of infinite loss are left out: they are no part of this lower bound.
    unseen = 1 - (1 - Fraction(1, 2**trials)) ** (ups + downs)
    assert truth - unseen - truth / 200 <= found <= truth * HAIR


def test_a_coarse_grid_is_still_a_lower_bound():
    epsilon = Fraction(1)
    truth = curves.stick(
        curves.exact_binomial(40, HALF),
        curves.moved(curves.exact_binomial(40, HALF), 1),
        curves.growth_of(1),
    )
    found = [binomial_refutation(40, 1, 0, epsilon, fineness=f) for f in (2, 20, 200)]
    assert found[0] < found[1] < found[2] <= truth * HAIR
    assert found[2] > truth * Fraction(98, 100)


def test_a_bracket_from_both_sides():
    epsilon = Fraction(1)
    noise = BinomialBits(trials=200, probability=HALF, ups=1, downs=1)
    high = upper_bound(noise, epsilon)
    low = binomial_refutation(200, 1, 1, epsilon)
    assert 0 < low <= high <= low * Fraction(101, 100)


@given(st.lists(st.integers(1, 20), min_size=2, max_size=6), st.integers(2, 6))
def test_losses_are_rounded_down(weights, m):
    """Under P nothing changes; under Q the rounded masses weigh at least as much."""
    base = Fraction((1 << m) - 1, 1 << m)
    noise = curves.exact_table(weights)
    there = curves.moved(noise, 1)
    atoms = [(ball(p), ball(there[x] / p)) for x, p in noise.items() if x in there]
    found = refutations.refute_rounded_down(atoms, base)
    masses = [exact(mass.mid()) for mass in found.masses.coeffs()]
    finite = sum(noise[x] for x in noise if x in there)
    assert abs(sum(masses) - finite) < Fraction(1, 10**40)
    under = sum(mass * base ** (found.first + i) for i, mass in enumerate(masses))
    true = sum(there[x] for x in noise if x in there)
    assert true * (1 - Fraction(1, 10**40)) <= under <= true / base * (1 + Fraction(1, 10**40))


@pytest.mark.parametrize("place", [-5, -1, 0, 1, 9])
def test_a_loss_just_below_the_grid_is_rounded_down_to_the_next_point(place):
    """Doubles cannot tell it from the grid point itself."""
    base = Fraction(15, 16)
    ratio = base**place * (1 + Fraction(1, 10**30))
    assert refutations.refute_rounded_down([(ball(1), ball(ratio))], base).first == place - 1


@given(st.lists(st.integers(1, 20), min_size=2, max_size=6), st.integers(0, 8))
def test_the_delta_of_rounded_losses_is_below_the_truth(weights, quarter):
    base, epsilon = Fraction(31, 32), Fraction(quarter, 4)
    noise = curves.exact_table(weights)
    there = curves.moved(noise, 1)
    atoms = [(ball(p), ball(there[x] / p)) for x, p in noise.items() if x in there]
    found = refutations.stick_from_below(
        refutations.refute_rounded_down(atoms, base), epsilon, base
    )
    assert 0 <= found <= curves.stick(noise, there, curves.growth_of(epsilon)) + Fraction(1, 10**15)


def test_missing_mass_earns_nothing_from_below():
    losses = Losses(0, arb_poly([ball(Fraction(1, 4)), ball(Fraction(1, 4))]))
    found = refutations.stick_from_below(losses, Fraction(0), HALF)
    assert abs(found - Fraction(1, 8)) < Fraction(1, 10**40)


def test_a_ball_around_zero_counts_as_nothing():
    from discreet.privacy.certificates.arithmetic import arb

    losses = Losses(3, arb_poly([arb(0, 1e-3)]))
    assert refutations.stick_from_below(losses, Fraction(0), HALF) == 0


def test_all_losses_of_a_binomial_are_placed():
    atoms = binomial_atoms(30, HALF, 1, 60.0)
    found = refutations.refute_rounded_down(atoms, Fraction(63, 64))
    total = sum(exact(mass.mid()) for mass in found.masses.coeffs())
    assert abs(total - (1 - Fraction(1, 2**30))) < Fraction(1, 10**20)


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1, 2)])
def test_gaussian_moves_against_listing_all_outputs(times, epsilon):
    noise = curves.exact_gaussian(3, 30, digits=25)
    truth = curves.delta_of_moves(noise, [1] * times, float(epsilon))
    found = gaussian_refutation(3, times, epsilon)
    assert truth * Fraction(4, 10) <= found <= truth * HAIR


@pytest.mark.parametrize("sigma", [25.35, 100.0])
def test_a_gaussian_bracket_is_narrow(sigma):
    epsilon = Fraction(1, 2)
    high = upper_bound(GaussianMoves(sigma=Fraction(sigma), times=36), epsilon)
    low = gaussian_refutation(sigma, 36, epsilon)
    assert 0 < low <= high <= low * Fraction(102, 100)


def test_where_the_lemma_says_nothing_nothing_is_refuted():
    assert gaussian_refutation(Fraction(1, 5), 3, Fraction(1)) == 0
    assert gaussian_refutation(10**6, 1, Fraction(3)) == 0


def test_more_moves_are_refuted_earlier():
    found = [gaussian_refutation(20, times, Fraction(1)) for times in (12, 24, 48)]
    assert 0 < found[0] < found[1] < found[2]
