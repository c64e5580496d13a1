"""The passes over edges, uncompiled, on one small network."""

import numpy as np
import pytest

from discreet.privacy.projection import network as kernels

EDGES = kernels.Edges(
    np.array([0, 0, 1], np.int32),
    np.array([1, 2, 2], np.int32),
    np.array([3.0, -1.0, 2.0]),
    np.array([1.0, 2.0, 1.0]),
)
U = np.array([1.0, -0.5, 0.0])
"""Node 2 is the ground."""


def flow():
    x = np.empty(3)
    kernels.potentials_flow.py_func(EDGES, U, x)
    return x


@pytest.mark.parametrize(("floor", "carrying"), [(0.0, [1.0, 1.0]), (-np.inf, [1.0, 2.0, 1.0])])
def test_imbalance_and_edges_that_carry_flow_by_hand(floor, carrying):
    assert flow().tolist() == [4.5, 1.0, 1.5]
    g, room = np.empty(3), kernels.Edges.room(3)
    assert kernels.imbalance.py_func(EDGES, U, 0.0, 7.0, g, room) == 3
    assert g.tolist() == [1.5, 3.0, 0.0]
    dry = EDGES._replace(measured=np.array([3.0, -2.0, 2.0]))
    found = room.first(kernels.imbalance.py_func(dry, U, floor, 7.0, g, room))
    assert found.variance.tolist() == carrying
    assert found.tail[-1] == 1 and found.head[-1] == 2


def test_laplacian_dense_and_applied_agree():
    dense, d, product = np.empty((2, 2)), np.empty(3), np.empty(3)
    kernels.dense_laplacian.py_func(EDGES, dense)
    assert dense.tolist() == [[3.0, -1.0], [-1.0, 2.0]]
    kernels.diagonal.py_func(EDGES, d)
    np.testing.assert_array_equal(d[:2], np.diag(dense))
    v = np.array([0.3, -2.0, 0.0])
    kernels.laplacian.py_func(EDGES, v, product)
    np.testing.assert_allclose(product[:2], dense @ v[:2])
    assert product[2] == 0.0


@pytest.mark.parametrize("size", [1, 3, 8])
def test_a_system_is_solved_to_a_percent(size):
    """Every pair of nodes is joined, each to the ground as well."""
    rng = np.random.default_rng(size)
    tail, head = np.triu_indices(size + 1, 1)
    edges = kernels.Edges(
        tail.astype(np.int32), head.astype(np.int32), tail * 0.0, rng.uniform(1, 2, tail.size)
    )
    dense, scale, ridge = np.empty((size, size)), np.empty(size + 1), np.full(size + 1, 0.1)
    kernels.dense_laplacian(edges, dense)
    kernels.diagonal(edges, scale)
    g = np.append(rng.normal(size=size), 0.0)
    step = kernels.conjugate_gradients(edges, g, scale + ridge, ridge)[:size]
    matrix = dense + 0.1 * np.eye(size)
    error = step - np.linalg.solve(matrix, g[:size])
    assert error @ matrix @ error <= 0.05**2 * (step @ matrix @ step)
    assert not kernels.conjugate_gradients(edges, 0 * g, scale + ridge, ridge).any()


def test_cells_far_below_zero_are_left_out_and_other_edges_never():
    low = EDGES._replace(measured=np.array([3.0, -9.0, -9.0]))
    assert kernels.above.py_func(low, 3, U, 2.0).tolist() == [0]
    assert kernels.above.py_func(low, 2, U, 2.0).tolist() == [0, 2]
    assert kernels.above.py_func(low, 3, U, 7.5).tolist() == [0, 1]
