"""Validators: one sentence with the value and the rule, for every kind of wrong value."""

from fractions import Fraction

import numpy as np
import pytest

from discreet import _validate
from discreet.errors import InvalidInputError
from helpers.properties import given, st

pytestmark = pytest.mark.core
FINITE = st.floats(allow_nan=False, allow_infinity=False)
NOT_NUMBERS = [None, "1", True, float("nan"), float("inf"), 1j, [1], np.array([1.0])]


@pytest.mark.parametrize("rule", ["real", "positive", "probability", "delta"])
@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
def test_what_is_no_finite_number_is_refused_by_all(rule, value):
    with pytest.raises(InvalidInputError, match="Expected x to be a finite number, got x="):
        getattr(_validate, rule)(x=value)


@given(FINITE)
def test_rules_are_their_inequalities(value):
    rules = {
        "real": True,
        "positive": value > 0,
        "probability": 0 <= value <= 1,
        "delta": 0 <= value < 1,
    }
    for rule, holds in rules.items():
        if holds:
            getattr(_validate, rule)(x=value)
        else:
            with pytest.raises(InvalidInputError):
                getattr(_validate, rule)(x=value)


@pytest.mark.parametrize("value", [1, np.float64(0.5), np.int64(1), Fraction(1, 3)])
def test_numbers_of_other_kinds_are_welcome(value):
    _validate.positive(x=value)
    _validate.probability(x=value)


def test_a_fraction_is_compared_exactly():
    tiny = Fraction(1, 10**400)  # zero as a float
    _validate.positive(x=tiny)
    with pytest.raises(InvalidInputError, match="in \\[0, 1\\]"):
        _validate.probability(x=1 + tiny)


def test_the_first_bad_value_is_named():
    with pytest.raises(InvalidInputError, match=r"Expected b > 0, got b=-2\."):
        _validate.positive(a=1, b=-2, c=-3)


def test_what_is_too_much_is_told_with_a_remedy():
    _validate.at_most(1e6, "use fewer", a=1e6, b=-5, c=Fraction(1, 3))
    with pytest.raises(
        InvalidInputError, match=r"Expected b <= 1e\+06, got b=1000001; use fewer\."
    ):
        _validate.at_most(1e6, "use fewer", a=1, b=10**6 + 1)
    with pytest.raises(InvalidInputError, match="finite number"):
        _validate.at_most(1e6, "use fewer", a=float("nan"))


@pytest.mark.parametrize("value", [0, -1, 1.0, True, "1", None, np.float64(2)], ids=repr)
def test_a_count_is_a_positive_integer(value):
    with pytest.raises(InvalidInputError, match="n to be an integer >= 1"):
        _validate.count(n=value)


def test_a_count_has_a_minimum_and_takes_numpy_integers():
    _validate.count(n=np.int64(1))
    _validate.count(0, n=0)
    with pytest.raises(InvalidInputError, match="integer >= 3, got n=2"):
        _validate.count(3, n=2)
    with pytest.raises(InvalidInputError, match="minimum=0"):
        _validate.count(minimum=0)  # a name like any other


@pytest.mark.parametrize("allowed", [("a", "b"), {"a": 1, "b": 2}], ids=["tuple", "mapping"])
def test_a_choice_is_one_of_the_words(allowed):
    _validate.choice(allowed, x="a")
    for wrong in ("c", None, 1, ["a"]):
        with pytest.raises(InvalidInputError, match="x to be one of 'a', 'b', got x="):
            _validate.choice(allowed, x=wrong)


@given(st.decimals(-1000, 1000, places=6))
def test_exact_is_what_a_person_wrote(decimal):
    assert _validate.exact(float(decimal)) == Fraction(decimal)


def test_exact_keeps_fractions_and_integers():
    assert _validate.exact(Fraction(1, 3)) == Fraction(1, 3)
    assert _validate.exact(7) == 7


@pytest.mark.parametrize("value", [2.5, 2.0, True, "2", None])
def test_an_integer_may_be_anything_but_must_be_whole(value):
    _validate.integer(n=-3)
    with pytest.raises(InvalidInputError, match="Expected n to be an integer, got n="):
        _validate.integer(n=value)
