"""Who is counted on, and how much noise all users bring."""

from fractions import Fraction

import pytest

from discreet.errors import InvalidInputError
from discreet.privacy.accounting.piles import honest_users, least_crowd, mean_of_all
from helpers.properties import given, st


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
