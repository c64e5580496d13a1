"""Linear algebra by layers against dense NumPy; occupancies against lists of paths and policies."""

import itertools

import numpy as np
import pytest

from discreet.adversarial import occupancy as kernels
from discreet.adversarial.occupancy import Boxes, empty_tridiagonal, open_boxes
from helpers.layers import random_boxes, random_layered

WIDTHS = np.array([1, 3, 2, 1])


def positive_matrix(rng, n):
    half = rng.normal(size=(n, n))
    return half @ half.T + n * np.eye(n)


@pytest.mark.core
def test_open_boxes_exclude_nothing_and_own_their_widths():
    boxes = open_boxes(WIDTHS, (3, 3, 2, 3))
    assert not boxes.lower.any()
    assert (boxes.upper == 1.0).all()
    boxes.widths[0] = 9
    assert WIDTHS[0] == 1


def test_rows_of_blocks_are_views_in_order():
    blocks = np.arange(2 * 3 * 2 * 3, dtype=float).reshape(2, 3, 2, 3)
    matrix = kernels.rows(blocks)
    for h, x, a in np.ndindex(2, 3, 2):
        assert np.array_equal(matrix[(h * 3 + x) * 2 + a], blocks[h, x, a])
    matrix[0, 0] = -1.0
    assert blocks[0, 0, 0, 0] == -1.0


@pytest.mark.parametrize("n", [1, 2, 5])
def test_cholesky_is_numpys(n):
    matrix = positive_matrix(np.random.default_rng(n), n)
    factor = matrix.copy()
    assert kernels.cholesky(factor, n)
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(matrix), rtol=1e-12)


def test_cholesky_says_when_a_matrix_is_not_positive_definite():
    assert not kernels.cholesky(np.array([[1.0, 2.0], [2.0, 1.0]]), 2)
    assert not kernels.cholesky(np.zeros((1, 1)), 1)


def dense_system(rng, widths):
    """A positive definite block-tridiagonal matrix and where each layer begins in it."""
    starts = np.concatenate([[0], np.cumsum(widths)])
    matrix = np.zeros((starts[-1], starts[-1]))
    for h, n in enumerate(widths):
        here = slice(starts[h], starts[h + 1])
        matrix[here, here] = positive_matrix(rng, n) + 5 * np.eye(n)
        if h + 1 < len(widths):
            ahead = slice(starts[h + 1], starts[h + 2])
            matrix[here, ahead] = 0.5 * rng.normal(size=(n, widths[h + 1]))
            matrix[ahead, here] = matrix[here, ahead].T
    return matrix, starts


@pytest.mark.parametrize(("damping", "ridge"), [(0.0, 0.0), (0.3, 0.0), (0.0, 0.7)])
def test_the_block_solver_solves_the_dense_system(damping, ridge):
    rng, widths = np.random.default_rng(3), np.array([2, 3, 1, 2])
    matrix, starts = dense_system(rng, widths)
    system = empty_tridiagonal(4, 3)
    rhs, out = np.zeros((4, 3)), np.full((4, 3), np.nan)
    for h, n in enumerate(widths):
        here = slice(starts[h], starts[h + 1])
        system.diagonal[h, :n, :n] = np.tril(matrix[here, here])
        rhs[h, :n] = rng.normal(size=n)
        if h < 3:
            ahead = slice(starts[h + 1], starts[h + 2])
            system.coupling[h, :n, : widths[h + 1]] = matrix[here, ahead]
    assert kernels.solve_tridiagonal(widths, 0, 3, system, damping, ridge, rhs, out)
    changed = matrix + damping * np.diag(np.diag(matrix)) + ridge * np.eye(len(matrix))
    flat = np.concatenate([rhs[h, :n] for h, n in enumerate(widths)])
    found = np.concatenate([out[h, :n] for h, n in enumerate(widths)])
    np.testing.assert_allclose(found, np.linalg.solve(changed, flat), rtol=1e-9)


def test_the_block_solver_takes_some_layers_and_refuses_what_is_not_definite():
    widths = np.array([1, 2, 1])
    system = empty_tridiagonal(3, 2)
    system.diagonal[1, :2, :2] = [[4.0, 0.0], [1.0, 3.0]]
    rhs, out = np.ones((3, 2)), np.zeros((3, 2))
    assert kernels.solve_tridiagonal(widths, 1, 1, system, 0.0, 0.0, rhs, out)
    np.testing.assert_allclose(out[1], np.linalg.solve([[4.0, 1.0], [1.0, 3.0]], [1.0, 1.0]))
    assert not out[[0, 2]].any()
    system.diagonal[1, 1, 1] = 0.1
    assert not kernels.solve_tridiagonal(widths, 1, 1, system, 0.0, 0.0, rhs, out)
    assert kernels.solve_tridiagonal(widths, 1, 1, system, 0.0, 1.0, rhs, out)


def test_the_largest_entry_is_that_of_the_states_that_exist():
    values = np.array([[9.0, 9.0], [-3.0, 99.0], [2.0, -2.5]])
    widths = np.array([1, 1, 2])
    assert kernels.largest(values, widths, 1, 2) == 3.0
    assert kernels.largest(values, widths, 2, 2) == 2.5
    assert kernels.largest(values, widths, 0, 2) == 9.0


@pytest.mark.parametrize("seed", range(3))
def test_occupancies_are_sums_over_paths(seed):
    mdp = random_layered(seed, tuple(WIDTHS))
    policy = np.random.default_rng(seed).dirichlet(np.ones(2), mdp.shape.visits[:2])
    expected = np.zeros(mdp.shape.visits)
    for states in itertools.product(*(range(w) for w in WIDTHS)):
        for actions in itertools.product(range(2), repeat=3):
            chance = 1.0
            for h in range(3):
                chance *= policy[h, states[h], actions[h]]
                chance *= mdp.transitions[h, states[h], actions[h], states[h + 1]]
            for h in range(3):
                expected[h, states[h], actions[h]] += chance
    out = np.zeros(mdp.shape.visits)
    kernels.state_action_occupancy(mdp.transitions, policy, mdp.widths, out)
    np.testing.assert_allclose(out, expected, atol=1e-14)
    assert out.sum(axis=(1, 2)) == pytest.approx(1.0)


def test_upper_bounds_of_boxes_without_width_are_the_occupancy():
    mdp = random_layered(4, tuple(WIDTHS))
    policy = np.random.default_rng(4).dirichlet(np.ones(2), mdp.shape.visits[:2])
    exact, bounds = np.zeros(mdp.shape.visits), np.zeros(mdp.shape.visits)
    kernels.state_action_occupancy(mdp.transitions, policy, mdp.widths, exact)
    boxes = Boxes(mdp.widths, mdp.transitions, mdp.transitions)
    kernels.upper_occupancy(boxes, policy, bounds)
    np.testing.assert_allclose(bounds[mdp.present], exact[mdp.present], atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_upper_bounds_hold_for_all_transitions_in_the_boxes_and_grow_with_them(seed):
    mdp, narrow = random_boxes(seed, radius=0.05)
    _, wide = random_boxes(seed, radius=0.3)
    policy = np.random.default_rng(seed).dirichlet(np.ones(2), mdp.shape.visits[:2])
    found = []
    for boxes in (narrow, wide):
        bounds, exact = np.zeros(mdp.shape.visits), np.zeros(mdp.shape.visits)
        kernels.upper_occupancy(boxes, policy, bounds)
        kernels.state_action_occupancy(mdp.transitions, policy, mdp.widths, exact)
        assert (bounds[mdp.present] >= exact[mdp.present] - 1e-12).all()
        found.append(bounds[mdp.present])
    assert (found[1] >= found[0] - 1e-12).all()
    assert (found[1] > found[0] + 1e-6).any()


def test_with_open_boxes_every_state_can_be_reached_for_sure():
    policy = np.full((3, 3, 2), 0.5)
    bounds = np.zeros((3, 3, 2))
    kernels.upper_occupancy(open_boxes(WIDTHS, (3, 3, 2, 3)), policy, bounds)
    for h, here in enumerate(WIDTHS[:-1]):
        np.testing.assert_allclose(bounds[h, :here], 0.5)


@pytest.mark.parametrize("seed", range(4))
def test_sorting_is_descending_and_keeps_the_order_of_equals(seed):
    values = np.random.default_rng(seed).integers(0, 4, 9).astype(float)
    order = np.full(9, -1, np.int64)
    kernels.sort_descending(values, 9, order)
    assert order.tolist() == sorted(range(9), key=lambda i: (-values[i], i))


@pytest.mark.parametrize("seed", range(5))
def test_the_greedy_value_is_the_best_corner_of_the_box_simplex(seed):
    """All corners: every entry at a bound, except one that takes what is left."""
    rng = np.random.default_rng(seed)
    p, values = rng.dirichlet(np.ones(4)), rng.normal(size=4)
    lower, upper = np.maximum(p - 0.2, 0.0), np.minimum(p + 0.2, 1.0)
    order = np.argsort(-values)
    best = -np.inf
    for free in range(4):
        for bits in itertools.product((0, 1), repeat=3):
            corner = np.insert(np.array(bits, float), free, 0.0)
            q = np.where(corner == 1, upper, lower)
            q[free] = 1.0 - (q.sum() - q[free])
            if lower[free] - 1e-12 <= q[free] <= upper[free] + 1e-12:
                best = max(best, float(q @ values))
    spare = 1.0 - lower.sum()
    assert kernels._greedy_value(values, order, lower, upper, 4, spare) == pytest.approx(best)
