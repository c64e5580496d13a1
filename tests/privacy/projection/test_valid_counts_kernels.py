"""The nearest valid row, against its definition: shift, clip, and no more than needed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.privacy.projection.valid_counts import valid_rows

ROWS = st.lists(st.floats(-50, 50), min_size=1, max_size=6)


def valid(counts, total, error):
    row = np.array([counts], np.float64)
    out = np.empty_like(row)
    valid_rows(row, np.array([total]), np.array([error]), out)
    return out[0]


@given(ROWS, st.floats(0.5, 80), st.floats(0, 10))
def test_the_sum_is_within_reach_and_nothing_is_negative(counts, total, error):
    out = valid(counts, total, error)
    assert (out >= 0).all()
    assert total - error - 1e-7 <= out.sum() <= total + error + 1e-7


@given(ROWS, st.floats(0.5, 80), st.floats(0, 10))
def test_entries_keep_their_order_and_differences(counts, total, error):
    out, row = valid(counts, total, error), np.array(counts)
    positive = out > 1e-9
    shifts = (out - row)[positive]
    assert np.ptp(shifts) <= 1e-7 if shifts.size else True
    if shifts.size and not positive.all():  # what is zero would be negative after the same shift
        assert (row[~positive] + shifts[0] <= 1e-7).all()


@given(ROWS)
def test_a_row_that_is_valid_already_is_only_clipped(counts):
    clipped = np.maximum(counts, 0)
    assert np.array_equal(valid(counts, clipped.sum(), 1.0), clipped)


def test_no_users_no_counts():
    assert not valid([3.0, -1.0], -2.0, 1.0).any()


@pytest.mark.parametrize(("total", "expected"), [(2.0, [2.0, 0.0]), (9.0, [6.0, 3.0])])
def test_by_hand(total, expected):
    assert valid([5.0, 2.0], total, 0.0) == pytest.approx(expected)


def test_rows_do_not_touch_each_other():
    counts = np.random.default_rng(0).normal(0, 5, (7, 4))
    totals, errors = np.linspace(1, 9, 7), np.zeros(7)
    out = np.empty_like(counts)
    valid_rows(counts, totals, errors, out)
    for i in range(7):
        assert np.array_equal(out[i], valid(counts[i], totals[i], errors[i]))
