"""How many cells and noise cells a class has: the least that suffices, in exact integers."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.device.layout import layout

pytestmark = pytest.mark.core


@given(
    st.integers(1, 10**6),
    st.integers(1, 10**12),
    st.fractions(min_value=Fraction(1, 10**6), max_value=10**9),
)
def test_noise_per_user_is_the_least_that_suffices(rows, users, mean):
    (one,) = layout(
        [rows],
        2,
        ["visits"],
        last_transitions=False,
        users=users,
        mean=(mean.numerator, mean.denominator),
    )
    assert one.cells == rows + 1
    exact = one.cells * mean / users
    assert one.noise == math.ceil(exact) >= 1
    per_user = one.noise * Fraction(one.weight, 2**32)
    assert exact <= per_user
    assert per_user <= one.noise and per_user - exact < Fraction(one.noise, 2**32)


def test_the_published_size():
    """22 messages at S=4, H=6, n=20,000 and 13,664 at the size of ICU-Sepsis."""
    size = {"statistics": ["transitions", "rewards"], "last_transitions": False}
    small = layout([4] * 6, 4, users=20_000, mean=(39371, 100), **size)
    assert sum(one.messages for one in small) == 22
    large = layout([716] * 20, 716, users=10**6, mean=(1393, 1), **size)
    assert sum(one.messages for one in large) == 13_664
    huge = layout([716] * 20, 716, users=10**8, mean=(1393, 1), **size)
    assert sum(one.messages for one in huge) == 211


def test_statistics_stand_in_one_order_however_they_are_asked_for():
    size = {"last_transitions": True, "users": 9, "mean": (1, 3)}
    one, other = (
        layout([1, 2], 3, names, **size)
        for names in (["rewards", "transitions"], ("transitions", "rewards"))
    )
    assert one == other
    assert [(c.statistic, c.step, c.cells) for c in one] == [
        ("transitions", 0, 4),
        ("transitions", 1, 7),
        ("rewards", 0, 3),
        ("rewards", 1, 5),
    ]
    assert [c.none for c in one] == [3, 6, 2, 4]


def test_a_step_that_plays_nothing_has_the_cell_none_alone():
    (one,) = layout([0], 3, ["rewards"], last_transitions=False, users=9, mean=(10, 1))
    assert (one.cells, one.none, one.messages) == (1, 0, 3)
