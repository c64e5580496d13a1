"""Compiled passes over chosen cells, against dense linear algebra on the same graph."""

import numpy as np
import pytest

from discreet.privacy.postprocess.sparse_flow_kernels import (
    Rows,
    active,
    candidates,
    diagonal,
    laplacian,
)

ROWS = Rows(np.array([1.0, 0.5, 2.0, 1.5]), np.array([0, 0, 0, 1]), np.array([0, 2, 4]))
COUNTS = np.array([[3.0, -2.0], [0.5, 1.0], [-4.0, 2.0], [1.0, -0.1]])
NODES = 6  # three layers of two


@pytest.fixture
def potentials():
    u = np.random.default_rng(2).normal(0, 0.5, (3, 2))
    u[2] = 0
    return u


def shifted(u):
    step = np.array([0, 0, 1, 1])
    own = u[step, ROWS.node]
    return COUNTS + ROWS.variance[:, None] * (own[:, None] - u[step + 1])


@pytest.mark.parametrize("margin", [0.0, 1.0, np.inf])
def test_candidates_are_the_cells_above_minus_the_margin(potentials, margin):
    cells, values = candidates(COUNTS, ROWS, potentials, margin), shifted(potentials)
    for r in range(4):
        chosen = cells.columns[cells.pointers[r] : cells.pointers[r + 1]]
        assert chosen.tolist() == np.flatnonzero(values[r] > -margin).tolist()
    assert cells.counts.size == (values > -margin).sum()


def test_active_cells_are_the_candidates_above_the_floor(potentials):
    cells = active(candidates(COUNTS, ROWS, potentials, np.inf), ROWS, 0.0, potentials)
    assert cells.columns.size == (shifted(potentials) > 0).sum()


def test_the_laplacian_is_that_of_the_graph(potentials):
    cells = candidates(COUNTS, ROWS, potentials, 0.0)
    dense = np.zeros((NODES, NODES))
    for r in range(4):
        for j in cells.columns[cells.pointers[r] : cells.pointers[r + 1]]:
            edge = np.zeros((3, 2))
            edge[int(r > 1), ROWS.node[r]] += 1
            edge[int(r > 1) + 1, j] -= 1
            dense += ROWS.variance[r] * np.outer(edge.ravel(), edge.ravel())
    diagonals = np.empty((3, 2))
    diagonal(cells, ROWS, diagonals)
    assert diagonals.ravel() == pytest.approx(np.diag(dense))
    v, out = np.random.default_rng(5).normal(size=(3, 2)), np.empty((3, 2))
    laplacian(cells, ROWS, v, out)
    assert out[:2].ravel() == pytest.approx((dense @ v.ravel())[:4])
    assert not out[2].any()  # the last layer has no equation


def test_constants_are_in_the_kernel_of_the_laplacian(potentials):
    out = np.empty((3, 2))
    laplacian(candidates(COUNTS, ROWS, potentials, np.inf), ROWS, np.ones((3, 2)), out)
    assert out == pytest.approx(np.zeros((3, 2)))
