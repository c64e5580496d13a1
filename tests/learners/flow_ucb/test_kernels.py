"""Small parts of flow-ucb's planning against plain NumPy: rows, models, spreads, occupancies."""

import numpy as np
import pytest

from discreet.learners.flow_ucb import kernels
from discreet.privacy.postprocess.valid_counts import valid_counts

add_rows = kernels.add_rows.py_func
model = kernels.model.py_func
spread = kernels.spread.py_func
credit = kernels.credit.py_func
state_occupancy = kernels.state_occupancy.py_func


def test_rows_are_added_where_their_numbers_say_and_nowhere_without_one():
    rng = np.random.default_rng(0)
    numbers, weight = np.array([2, -1, 0, 2]), rng.random(4)
    rows, total = rng.random((4, 3)), rng.random((3, 3))
    expected = total.copy()
    expected[2] += weight[0] * rows[0] + weight[3] * rows[3]
    expected[0] += weight[2] * rows[2]
    add_rows(numbers, weight, rows, total)
    np.testing.assert_allclose(total, expected, rtol=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_a_model_is_the_valid_distribution_nearest_to_the_counts(seed):
    rng = np.random.default_rng(seed)
    counts = rng.normal(5.0, 6.0, (1, 3, 2, 3))
    visits = 1.0 + 20.0 * rng.random((1, 3, 2))
    number, found = np.arange(6).reshape(1, 3, 2), np.zeros((6, 3))
    model(number, counts.reshape(6, 3).copy(), visits, found)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert (found >= 0).all()
    exact = valid_counts(counts, visits, 0.0)
    expected = exact.transitions / visits[..., None]
    np.testing.assert_allclose(found.reshape(counts.shape), expected, atol=1e-9)


def test_consistent_counts_are_their_own_model_and_unvisited_rows_lead_anywhere():
    counts = np.array([[3.0, 1.0, 0.0], [9.0, 9.0, 9.0]])
    places, visits, found = np.full((1, 3, 2), -1), np.zeros((1, 3, 2)), np.zeros((2, 3))
    places[0, 0], visits[0, 0] = (0, 1), (4.0, 0.0)
    model(places, counts, visits, found)
    np.testing.assert_allclose(found, [[0.75, 0.25, 0.0], [1 / 3, 1 / 3, 1 / 3]])


@pytest.mark.parametrize("seed", range(3))
def test_the_spread_is_mean_variance_and_deviations(seed):
    rng = np.random.default_rng(seed)
    p, values, reward = rng.dirichlet(np.ones(4)), rng.random(4), rng.random()
    mean, variance, deviation = spread(p, values, reward)
    assert mean == pytest.approx(p @ values)
    assert variance == pytest.approx(p @ (values - p @ values) ** 2 + reward * (1 - reward))
    assert deviation == pytest.approx(((values - p @ values) ** 2).sum())


def test_certain_successors_and_rewards_have_no_variance():
    mean, variance, deviation = spread(np.array([0.0, 1.0]), np.array([5.0, 2.0]), 1.0)
    assert (mean, variance) == (2.0, 0.0)
    assert deviation == pytest.approx(9.0)


def test_a_batch_counts_fully_without_noise_and_hardly_below_it():
    assert credit(0.0, 0.0, 1.0) == 1.0
    assert credit(10.0, 0.0, 3.0) == 1.0
    assert credit(0.0, 4.0, 1.0) == 0.0
    assert credit(4.0, 4.0, 1.0) == 0.5
    weights = [credit(n, 100.0, 2.0) for n in (1.0, 10.0, 100.0, 1e6)]
    assert weights == sorted(weights)
    assert weights[-1] > 0.999
    assert credit(10.0, 100.0, 4.0) > credit(10.0, 100.0, 1.0)


@pytest.mark.parametrize("layers", [1, 3])
def test_occupancies_are_products_of_the_model(layers):
    rng = np.random.default_rng(layers)
    states, actions = 3, rng.integers(0, 2, (3, 3))
    number = np.arange(layers * states * 2).reshape(layers, states, 2)
    probabilities = rng.dirichlet(np.ones(states), number.size)
    initial = rng.dirichlet(np.ones(states))
    out = np.full((3, states), 7.0)
    state_occupancy(number, probabilities, actions, initial, out)
    mass = initial
    for h in range(3):
        np.testing.assert_allclose(out[h], mass)
        layer = h if layers > 1 else 0
        mass = mass @ probabilities[number[layer, np.arange(states), actions[h]]]
    np.testing.assert_allclose(out.sum(axis=1), 1.0)


def test_a_row_that_nobody_visited_leads_anywhere():
    number = np.full((1, 2, 1), -1)
    out = np.zeros((2, 2))
    state_occupancy(number, np.zeros((0, 2)), np.zeros((2, 2), np.int64), np.array([1.0, 0.0]), out)
    assert out.tolist() == [[1.0, 0.0], [0.5, 0.5]]


def test_renamed_actions_give_the_same_occupancies():
    rng = np.random.default_rng(9)
    number = np.arange(12).reshape(2, 3, 2)
    probabilities = rng.dirichlet(np.ones(3), 12)
    actions, initial = rng.integers(0, 2, (2, 3)), rng.dirichlet(np.ones(3))
    one, other = np.zeros((2, 3)), np.zeros((2, 3))
    state_occupancy(number, probabilities, actions, initial, one)
    state_occupancy(number[:, :, ::-1].copy(), probabilities, 1 - actions, initial, other)
    assert np.array_equal(one, other)
