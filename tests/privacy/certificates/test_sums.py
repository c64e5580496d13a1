"""The lemma on weighted sums of discrete Gaussians, against the distributions themselves."""

import math
from fractions import Fraction

import pytest

pytest.importorskip("flint")

import itertools

from discreet.privacy.certificates import arithmetic, verify
from discreet.privacy.certificates.arithmetic import (
    Shifted,
    _variation,
    ball,
    closed_form,
    delta_of_shift,
    exact,
    excess,
    lattice_sum,
    least_share,
    smooth_parts,
)
from helpers.curves import exact_gaussian, moved, stick, weighted_sum
from helpers.properties import given, st

pytestmark = pytest.mark.usefixtures("sharp_balls")
LITTLE = [Fraction(2, 5), Fraction(3, 5), Fraction(1), Fraction(8, 5)]


def high(function, *arguments):
    return exact(function(*arguments).upper())


def low(function, *arguments):
    return exact(function(*arguments).lower())


def direction(sigma, vector):
    """The `Shifted` of an integer vector."""
    step = math.gcd(*vector)
    return Shifted(
        sigma=Fraction(sigma),
        norm=sum((v // step) ** 2 for v in vector),
        cells=len(vector),
        step=step,
        ones=all(abs(v) == step for v in vector),
    )


def normal(shifted, u):
    """The normal density of deviation t at u."""
    spread = float(shifted.sigma) ** 2 * shifted.norm
    return Fraction(math.exp(-u * u / (2 * spread)) / math.sqrt(2 * math.pi * spread))


def test_a_direction_is_seen_through_its_primitive_part():
    shifted = direction(2, (4, 4, -4))
    assert (shifted.norm, shifted.step, shifted.cells, shifted.ones) == (3, 4, 3, True)
    assert shifted.squares == 48
    assert math.isclose(float(shifted.deviation), 2 * math.sqrt(3))
    assert not direction(2, (1, 2)).ones


@pytest.mark.parametrize("sigma", LITTLE)
@pytest.mark.parametrize("vector", [(1,), (1, 1), (1, -1, 1), (1, 2), (2, 3), (1, 1, 2)])
def test_no_probability_exceeds_the_lemma(sigma, vector):
    shifted = direction(sigma, vector)
    factor = high(excess, shifted) * (1 + Fraction(1, 10**12))
    noise = weighted_sum(exact_gaussian(sigma, digits=30), vector)
    for u in range(-6, 7):
        assert noise.get(u, 0) <= factor * normal(shifted, u)


@pytest.mark.parametrize("vector", [(1,), (1, 1), (1, 1, 1)])
@pytest.mark.parametrize("sigma", LITTLE)
def test_no_probability_falls_below_the_share(sigma, vector):
    shifted = direction(sigma, vector)
    share = low(least_share, shifted) * (1 - Fraction(1, 10**12))
    noise = weighted_sum(exact_gaussian(sigma, digits=30), vector)
    for u in range(-5, 6):
        assert noise[u] >= share * normal(shifted, u)


def test_the_factor_is_not_idle():
    """At sigma = 0.4 the density alone is no bound."""
    shifted = direction(Fraction(2, 5), (1, 1))
    noise = weighted_sum(exact_gaussian(shifted.sigma, 6, digits=30), (1, 1))
    assert noise[0] > normal(shifted, 0)


def test_the_factor_falls_to_one_as_noise_grows():
    for vector in ((1, 1, 1), (1, 2, 2)):
        factors = [high(excess, direction(sigma, vector)) for sigma in (1, 2, 4, 8, 16)]
        assert all(one >= other >= 1 for one, other in itertools.pairwise(factors))
        assert factors[-1] < 1 + Fraction(1, 10**50)


def test_general_entries_cost_more_than_ones():
    sigma = Fraction(3, 2)
    ones = Shifted(sigma=sigma, norm=5, cells=2)
    general = Shifted(sigma=sigma, norm=5, cells=2, ones=False)
    assert low(excess, general) > high(excess, ones)


def test_the_share_of_little_noise_is_nothing():
    assert low(least_share, Shifted(sigma=Fraction(1, 5), norm=3, cells=3)) == 0


SETTINGS = [
    (sigma, vector, epsilon)
    for sigma in (Fraction(1), Fraction(2))
    for vector in ((1,), (1, 1), (2, 2))
    for epsilon in (Fraction(0), Fraction(1, 2), Fraction(2))
]


@pytest.mark.parametrize(("sigma", "vector", "epsilon"), SETTINGS)
def test_the_delta_of_a_direction_against_its_distribution(sigma, vector, epsilon):
    """The loss depends on <v, X> alone: its distribution and the moved one decide."""
    shifted = direction(sigma, vector)
    noise = weighted_sum(exact_gaussian(sigma, digits=30), [v // shifted.step for v in vector])
    squares = shifted.squares
    twice = 2 * shifted.sigma**2
    truth = sum(
        p * -Fraction(math.expm1(float(epsilon) - loss))
        for u, p in noise.items()
        if (loss := float((squares - 2 * shifted.step * u) / twice)) > epsilon
    )
    bound, method = delta_of_shift(shifted, epsilon)
    bound = exact(bound.upper())
    assert method == "lattice-sum"
    assert truth * (1 - Fraction(1, 10**9)) <= bound
    assert bound <= truth * (1 + 4 * (high(excess, shifted) - 1) + Fraction(1, 10**9))


def test_the_distribution_of_one_counter_gives_the_same_delta():
    """The shortcut through the loss, against (P - e^epsilon·Q)+ itself."""
    noise = exact_gaussian(2)
    truth = stick(noise, moved(noise, 3), Fraction(math.exp(0.5)))
    bound = exact(delta_of_shift(direction(2, (3,)), Fraction(1, 2))[0].upper())
    assert truth <= bound * (1 + Fraction(1, 10**12))
    assert bound <= truth * (1 + Fraction(1, 10**9))


def test_the_far_tail_is_counted_whole():
    """Where hardly any term is summed, the geometric series carries the bound."""
    shifted = direction(3, (1,))
    truth = sum(
        normal(shifted, u) * Fraction(max(0.0, -math.expm1(8 - (1 - 2 * u) / 18)))
        for u in range(-400, 0)
    )
    found = high(lattice_sum, shifted, Fraction(8))
    assert truth * (1 - Fraction(1, 10**12)) <= found <= truth * (1 + Fraction(1, 10**6))


def test_the_far_tail_is_counted_whole_wherever_the_sum_ends(monkeypatch):
    shifted, epsilon = direction(3, (1, 1)), Fraction(1)
    whole = low(lattice_sum, shifted, epsilon)
    monkeypatch.setattr(arithmetic, "_DEPTH", 0.5)
    short = high(lattice_sum, shifted, epsilon)
    assert whole <= short * (1 + Fraction(1, 10**12))
    assert short > whole * Fraction(101, 100)  # the tail is not negligible here


SAME = [
    (Fraction(1, 2), 1, 1, True),
    (Fraction(3, 4), 5, 2, False),
    (Fraction(6, 5), 3, 3, True),
    (Fraction(5), 36, 36, True),
    (Fraction(7, 2), 14, 3, False),
]


@pytest.mark.parametrize(("sigma", "norm", "cells", "ones"), SAME)
def test_the_verifier_finds_the_same_with_integers(sigma, norm, cells, ones):
    """Two programs that share nothing but the proof."""
    shifted = Shifted(sigma=sigma, norm=norm, cells=cells, step=2, ones=ones)
    variance, epsilon = sigma**2, Fraction(3, 7)
    pairs = [
        (high(excess, shifted), verify.excess(variance, norm, cells, ones)),
        (high(lattice_sum, shifted, epsilon), verify.lattice_sum(variance, norm, 2, epsilon)),
        (high(closed_form, shifted, epsilon), verify.closed_form(variance, norm, 2, epsilon)),
    ]
    for ours, theirs in pairs:
        assert abs(ours - theirs) <= Fraction(1, 10**12) * ours


@given(
    st.integers(2, 40),
    st.integers(1, 30),
    st.integers(1, 3),
    st.fractions(min_value=0, max_value=4, max_denominator=64),
)
def test_the_integral_is_as_near_to_the_sum_as_it_says(sigma, norm, step, epsilon):
    shifted = Shifted(sigma=Fraction(sigma), norm=norm, cells=norm, step=step)
    integral, correction = smooth_parts(shifted, epsilon)
    summed = lattice_sum(shifted, epsilon)
    slack = Fraction(1, 10**9) * exact(summed.upper())  # the sum counts its far tail whole
    assert exact(correction.lower()) > 0
    assert exact(summed.lower()) <= exact((integral + correction).upper()) + slack
    assert exact(summed.upper()) + slack >= exact((integral - correction).lower())


def test_the_closed_form_is_the_integral_and_its_error():
    shifted, epsilon = Shifted(sigma=Fraction(30), norm=36, cells=36), Fraction(1)
    integral, correction = smooth_parts(shifted, epsilon)
    whole = integral + correction
    assert abs(high(closed_form, shifted, epsilon) - exact(whole.upper())) < Fraction(1, 10**60)


def test_an_epsilon_may_be_a_ball():
    shifted = Shifted(sigma=Fraction(30), norm=36, cells=36)
    one, other = (
        high(closed_form, shifted, epsilon) for epsilon in (Fraction(1, 3), ball(Fraction(1, 3)))
    )
    assert abs(one - other) < Fraction(1, 10**60)


@pytest.mark.parametrize(
    ("sigma", "method"), [(12_500, "lattice-sum"), (12_501, "closed-form"), (10**9, "closed-form")]
)
def test_long_sums_go_by_the_closed_form(sigma, method, monkeypatch):
    """Sixteen counters: a deviation of 50,000 is the longest sum."""
    monkeypatch.setattr(arithmetic, "lattice_sum", closed_form)  # which, not how long it takes
    shifted = Shifted(sigma=Fraction(sigma), norm=16, cells=16)
    assert delta_of_shift(shifted, Fraction(1))[1] == method


@pytest.mark.parametrize("y", [-6.0, -3.0, -1.5, -1.0, -0.99, 0.0, 1.0, 4.0])
def test_the_variation_of_the_slope_is_not_underestimated(y):
    """The integral of |phi''| up to y, by a fine sum."""

    def slope(x):
        return -x * math.exp(-x * x / 2) / math.sqrt(2 * math.pi)

    points = [y - 12 + 12 * i / 20_000 for i in range(20_001)]
    truth = sum(abs(slope(b) - slope(a)) for a, b in itertools.pairwise(points))
    bound = float(_variation(ball(y)))
    assert truth <= bound * (1 + 1e-9)
    if y <= -1:
        assert bound <= truth * (1 + 1e-6)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(5)])
def test_more_noise_is_more_privacy_and_more_moves_are_less(epsilon):
    def bound(sigma, cells):
        shifted = Shifted(sigma=Fraction(sigma), norm=cells, cells=cells)
        return exact(delta_of_shift(shifted, epsilon)[0].upper())

    assert bound(4, 6) > bound(5, 6) > bound(10, 6)
    assert bound(5, 6) < bound(5, 12) < bound(5, 24)
