"""The passes over edges, uncompiled, on one small network."""

import numpy as np

from discreet.privacy.postprocess import network_kernels as kernels

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


def test_flow_and_imbalance_by_hand():
    assert flow().tolist() == [4.5, 1.0, 1.5]
    g = np.empty(3)
    kernels.imbalance.py_func(EDGES, flow(), 7.0, g)
    assert g.tolist() == [1.5, 3.0, 0.0]


def test_laplacian_dense_and_applied_agree():
    x = np.array([4.5, 0.0, 1.5])  # the second edge carries nothing
    dense, d, product = np.empty((2, 2)), np.empty(3), np.empty(3)
    kernels.dense_laplacian.py_func(EDGES, x, dense)
    assert dense.tolist() == [[1.0, -1.0], [-1.0, 2.0]]
    kernels.diagonal.py_func(EDGES, x, d)
    np.testing.assert_array_equal(d[:2], np.diag(dense))
    v = np.array([0.3, -2.0, 0.0])
    kernels.laplacian.py_func(EDGES, x, v, product)
    np.testing.assert_allclose(product[:2], dense @ v[:2])
    assert product[2] == 0.0


def test_cells_far_below_zero_are_left_out_and_other_edges_never():
    low = EDGES._replace(measured=np.array([3.0, -9.0, -9.0]))
    assert kernels.above.py_func(low, 3, U, 2.0).tolist() == [0]
    assert kernels.above.py_func(low, 2, U, 2.0).tolist() == [0, 2]
    assert kernels.above.py_func(low, 3, U, 7.5).tolist() == [0, 1]
