"""Sums and models of rows against plain NumPy."""

import numpy as np
import pytest

from discreet.learners import pooling as kernels
from discreet.learners.estimate import COLUMNS, VISITS
from discreet.privacy.projection.valid_counts import valid_counts


def test_rows_are_added_where_their_numbers_say_and_nowhere_without_one():
    rng = np.random.default_rng(0)
    numbers, weight = np.array([2, -1, 0, 2]), rng.random(4)
    rows, total = rng.random((4, 3)), rng.random((3, 3))
    expected = total.copy()
    expected[2] += weight[0] * rows[0] + weight[3] * rows[3]
    expected[0] += weight[2] * rows[2]
    kernels.add_rows(numbers, weight, rows, total)
    np.testing.assert_allclose(total, expected, rtol=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_a_model_is_the_valid_distribution_nearest_to_the_counts(seed):
    rng = np.random.default_rng(seed)
    counts = rng.normal(5.0, 6.0, (1, 1, 1, 3))
    visits, found = 1.0 + 20.0 * rng.random(), np.empty(3)
    kernels.row_model(counts[0, 0, 0], visits, found)
    assert found.sum() == pytest.approx(1.0)
    assert (found >= 0).all()
    exact = valid_counts(counts, np.full((1, 1, 1), visits), 0.0).transitions
    np.testing.assert_allclose(found, exact[0, 0, 0] / visits, atol=1e-9)


def test_consistent_counts_are_their_own_model_and_unvisited_rows_lead_anywhere():
    found = np.empty(3)
    kernels.row_model(np.array([3.0, 1.0, 0.0]), 4.0, found)
    assert found.tolist() == [0.75, 0.25, 0.0]
    kernels.row_model(np.full(3, 9.0), 0.0, found)
    np.testing.assert_allclose(found, 1 / 3)


def test_a_pooled_row_has_one_number_for_all_steps_and_others_their_own():
    number = np.array([[[4, -1]], [[-1, 2]], [[0, 1]]])
    out = np.empty_like(number)
    assert kernels.numbered(number, np.array([[True, False]]), out) == 3
    assert out[:, 0, 0].tolist() == [0, 0, 0]
    assert out[:, 0, 1].tolist() == [-1, 1, 2]
    nobody = np.full((2, 1, 1), -1)
    assert kernels.numbered(nobody, np.array([[True]]), nobody.copy()) == 0


def test_the_model_of_a_pooled_row_is_that_of_all_its_counts():
    number = np.array([[[0, 2]], [[1, 3]]])
    counts = np.array([[3.0, 1.0], [1.0, 3.0], [6.0, 2.0], [0.0, 4.0]])
    transition_sums = np.zeros((2, 1, 2, COLUMNS))
    transition_sums[..., VISITS] = counts.sum(axis=1)[number]
    pooled, places = np.array([[True, False]]), np.empty_like(number)
    found = np.empty((kernels.numbered(number, pooled, places), 2))
    kernels.models(number, counts, transition_sums, pooled, places, found)
    np.testing.assert_allclose(found[places[:, 0, 0]], [[0.5, 0.5]] * 2)
    np.testing.assert_allclose(found[places[:, 0, 1]], [[0.75, 0.25], [0.0, 1.0]])
