"""Balls against fractions: whatever is computed, the exact value stays inside."""

import math
import runpy
import sys
from fractions import Fraction
from statistics import NormalDist

import pytest

pytest.importorskip("flint")

import itertools

from flint import ctx

from discreet.errors import MissingExtraError
from discreet.privacy.certificates import arithmetic
from discreet.privacy.certificates.arithmetic import (
    PRECISION,
    arb,
    at_precision,
    ball,
    clipped,
    density,
    exact,
    half_line,
    lower,
    upper,
)
from helpers.properties import given, st

FRACTIONS = st.fractions(min_value=-1000, max_value=1000, max_denominator=10**6)
POSITIVE = st.fractions(min_value=Fraction(1, 1000), max_value=1000, max_denominator=10**6)
DOUBLES = st.floats(min_value=1e-300, max_value=1e300)


def ends(value):
    """The two ends of a ball, exactly."""
    return exact(value.lower()), exact(value.upper())


def holds(value, truth):
    low, high = ends(value)
    return low <= truth <= high


@given(FRACTIONS)
def test_a_ball_holds_the_number_it_was_made_of(number):
    assert holds(ball(number), number)
    low, high = ends(ball(number))
    assert high - low <= Fraction(abs(number) + 1, 2**45)


@given(FRACTIONS, FRACTIONS, POSITIVE)
def test_sums_products_and_quotients_stay_inside(a, b, c):
    assert holds(ball(a) + ball(b), a + b)
    assert holds(ball(a) * ball(b) - ball(c), a * b - c)
    assert holds(ball(a) / ball(c), a / c)


@given(st.lists(FRACTIONS, min_size=1, max_size=12))
def test_many_roundings_stay_inside(numbers):
    total, product = arb(0), arb(1)
    for number in numbers:
        total += ball(number)
        product *= ball(number)
    assert holds(total, sum(numbers))
    assert holds(product, math.prod(numbers))


@given(POSITIVE)
def test_roots_and_exponentials_stay_inside(number):
    low, high = ends(ball(number).sqrt())
    assert low**2 <= number <= high**2
    back = ball(number).log().exp()
    assert holds(back, number)


@given(DOUBLES)
def test_a_double_stands_for_its_exact_binary_value(number):
    assert ends(ball(number)) == (Fraction(number), Fraction(number))


def test_decimals_are_not_doubles():
    assert not holds(at_precision(PRECISION)(ball)(0.1), Fraction(1, 10))
    assert holds(ball(Fraction(1, 10)), Fraction(1, 10))


@given(st.integers(-(2**80), 2**80), st.integers(-300, 300))
def test_the_exact_value_of_a_point(mantissa, exponent):
    point = at_precision(PRECISION)(ball)(Fraction(mantissa) * Fraction(2) ** exponent)
    assert exact(point) == Fraction(mantissa) * Fraction(2) ** exponent


def test_more_bits_give_smaller_balls():
    for bits in (53, 96, 256):
        radius = exact(at_precision(bits)(ball)(Fraction(1, 3)).rad())
        assert Fraction(1, 2 ** (bits + 4)) < radius < Fraction(1, 2**bits)


def test_the_precision_of_the_caller_comes_back():
    before = ctx.prec

    @at_precision(77)
    def inner():
        return ctx.prec

    @at_precision(200)
    def outer():
        return ctx.prec, inner(), ctx.prec

    assert outer() == (200, 77, 200)
    assert ctx.prec == before


def test_the_precision_comes_back_after_a_failure():
    before = ctx.prec

    @at_precision(before + 99)
    def fails():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fails()
    assert ctx.prec == before


def test_the_wrapped_function_keeps_its_name():
    @at_precision(64)
    def some_bound():
        """What it says."""

    assert (some_bound.__name__, some_bound.__doc__) == ("some_bound", "What it says.")


@given(FRACTIONS)
def test_the_upper_end_is_never_below(number):
    third = ball(number) / 3
    assert upper(third) >= number / 3
    assert upper(third) - number / 3 <= Fraction(1, 2**35)


def test_nothing_better_than_one_is_known_of_what_is_not_finite():
    assert upper(arb("nan")) == 1
    assert upper(arb("inf")) == 1
    assert upper(arb(1) / arb(0)) == 1


def test_tiny_numbers_are_rounded_up_to_a_short_one():
    least = Fraction(1, 2**400)
    assert upper(arb(-(10**9)).exp()) == least
    assert upper(arb(0)) == least
    assert upper(ball(3 * least)) == 3 * least
    assert upper(arb(-1)) == -1  # from below: minus the upper end of a negative number


def test_a_tiny_ball_around_zero_has_a_short_upper_end():
    """The exact end of such a ball has billions of digits."""
    tiny = arb(-(10**11)).exp()
    assert upper(tiny - tiny) == Fraction(1, 2**400)


@given(POSITIVE)
def test_the_lower_end_is_never_above(number):
    assert number / 3 - Fraction(1, 2**35) <= lower(ball(number) / 3) <= number / 3


def test_of_what_is_not_known_the_lower_end_is_zero():
    tiny = arb(-(10**11)).exp()
    assert [lower(x) for x in (arb("nan"), arb("inf"), arb(0), tiny, tiny - tiny)] == [0] * 5
    assert lower(arb(1, 2)) == lower(arb(-3)) == 0


@given(FRACTIONS)
def test_the_positive_part(number):
    assert holds(clipped(ball(number)), max(Fraction(0), number))


def test_the_positive_part_of_a_ball_around_zero():
    low, high = ends(clipped(arb(0, 1)))
    assert low <= 0
    assert 1 <= high < Fraction(1001, 1000)


@given(st.floats(min_value=-8, max_value=8))
def test_the_normal_distribution_function(x):
    value = half_line(ball(x))
    assert math.isclose(float(value.mid()), math.erfc(-x / math.sqrt(2)) / 2, rel_tol=1e-12)
    assert holds(value + half_line(ball(-x)), Fraction(1))


def test_the_normal_distribution_function_grows():
    values = [half_line(ball(Fraction(x, 4))) for x in range(-20, 21)]
    assert all(one < other for one, other in itertools.pairwise(values))
    assert holds(half_line(arb(0)), Fraction(1, 2))


@given(st.floats(min_value=-8, max_value=8))
def test_the_normal_density(x):
    assert math.isclose(float(density(ball(x)).mid()), NormalDist().pdf(x), rel_tol=1e-12)


def test_without_flint_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "flint", None)
    with pytest.raises(MissingExtraError, match=r"python-flint.*\[certify\]"):
        runpy.run_path(arithmetic.__file__)
