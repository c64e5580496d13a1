"""Checked copies of arrays."""

import numpy as np
import pytest

from discreet.errors import InvalidInputError
from discreet.mdp import _arrays


def test_frozen_copies_are_contiguous_and_separate():
    given = np.arange(6).reshape(2, 3).T
    copy = _arrays.frozen_copy(given, np.int64)
    assert copy.flags.c_contiguous
    assert not copy.flags.writeable
    given[0, 0] = 9
    assert copy[0, 0] == 0


@pytest.mark.parametrize(
    "given", [np.ones((2, 3)), np.ones((3, 2)).T, np.broadcast_to(1.0, (2, 3))]
)
def test_one_layout_is_one_type_and_leaves_the_array_as_it_was(given):
    before = given.flags.writeable
    seen = _arrays.one_layout(given)
    np.testing.assert_array_equal(seen, given)
    assert seen.flags.c_contiguous
    assert (seen.flags.writeable, given.flags.writeable) == (False, before)


@pytest.mark.parametrize("excess", [0.0, 1e-13, -1e-9, 1e-7])
def test_small_errors_are_rescaled_away(excess):
    given = np.array([[0.5, 0.5 + excess]])
    rows = _arrays.probability_rows(given, "rows")
    assert abs(rows.sum() - 1) <= 1e-12
    assert given[0, 1] == 0.5 + excess
    if abs(excess) <= 1e-12:
        np.testing.assert_array_equal(rows, given)


@pytest.mark.parametrize("excess", [2e-6, -0.01, 1.0])
def test_large_errors_are_refused_with_the_sum(excess):
    with pytest.raises(InvalidInputError, match=r"rows to sum to 1, got .* at rows\[1\]"):
        _arrays.probability_rows([[0.5, 0.5], [0.5, 0.5 + excess]], "rows")


def test_the_first_bad_row_is_named():
    rows = np.full((2, 3, 2), 0.5)
    rows[1, 0, 0] = rows[1, 2, 0] = 0.9
    with pytest.raises(InvalidInputError, match=r"got 1\.4 at p\[1, 0\]"):
        _arrays.probability_rows(rows, "p")


def test_a_single_distribution_needs_no_index():
    with pytest.raises(InvalidInputError, match=r"sum to 1, got 0\.5; rescale"):
        _arrays.probability_rows([0.25, 0.25], "initial")


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([1.0], [1.0]),
        ([0.0, 1.0, 0.0], [0.0, 1.0, 1.0]),
        ([0.25, 0.0, 0.75], [0.25, 0.25, 1.0]),
        ([0.1] * 10, None),
    ],
)
def test_cumulative_rows_reach_one_at_the_last_possible_entry(row, expected):
    cumulative = _arrays.cumulative_rows(np.array(row))
    assert cumulative[-1] == 1
    assert (np.diff(cumulative) >= 0).all()
    if expected:
        assert cumulative.tolist() == expected


def test_text_and_ragged_lists_are_not_numbers():
    for bad in ("abc", [[1.0], [1.0, 2.0]], object()):
        with pytest.raises(InvalidInputError, match="array of numbers"):
            _arrays.numbers(bad, "rewards")
