"""Compiled passes over all cells, against plain NumPy."""

import numpy as np
import pytest

from discreet.privacy.projection.flow import flows, imbalance
from discreet.privacy.projection.network import Edges
from discreet.privacy.projection.network import imbalance as imbalance_of_edges
from discreet.privacy.projection.sparse_flow import Rows, balance, candidates

ROWS = Rows(np.array([1.0, 0.5, 2.0, 1.5]), np.array([0, 0, 0, 1]), np.array([0, 2, 4]))
COUNTS = np.array([[3.0, -2.0], [0.5, 1.0], [-4.0, 2.0], [1.0, -0.1]])
USERS = 9.0
GROUND = 4  # two layers of two nodes before it


@pytest.fixture
def potentials():
    u = np.random.default_rng(2).normal(0, 0.5, (3, 2))
    u[2] = 0
    return u


def shifted(u):
    step = np.array([0, 0, 1, 1])
    own = u[step, ROWS.node]
    return COUNTS + ROWS.variance[:, None] * (own[:, None] - u[step + 1])


def chosen_edges(u, margin, room=8):
    count, edges = candidates(COUNTS, ROWS, u, margin, Edges.room(room))
    return edges.first(count)


@pytest.mark.parametrize("room", [0, 3, 8])
@pytest.mark.parametrize("margin", [0.0, 1.0, np.inf])
def test_candidates_are_the_cells_above_minus_the_margin(potentials, margin, room):
    edges, chosen = chosen_edges(potentials, margin, room), shifted(potentials) > -margin
    r, j = np.nonzero(chosen)
    assert edges.measured.tolist() == COUNTS[chosen].tolist()
    assert edges.variance.tolist() == ROWS.variance[r].tolist()
    assert edges.tail.tolist() == (2 * (r > 1) + ROWS.node[r]).tolist()
    assert edges.head.tolist() == np.where(r > 1, GROUND, 2 + j).tolist()


@pytest.mark.parametrize("floor", [0.0, -np.inf])
def test_three_ways_to_the_imbalance_agree(potentials, floor):
    cells, dense, x = np.empty((3, 2)), np.zeros((2, 2)), np.empty_like(COUNTS)
    balance(COUNTS, ROWS, floor, USERS, potentials, cells)
    flows(COUNTS, ROWS.variance, ROWS.node, ROWS.first, floor, potentials, x)
    imbalance(x, ROWS.node, ROWS.first, USERS, dense)
    assert cells[:2] == pytest.approx(dense)
    edges, nodes = chosen_edges(potentials, np.inf), potentials.ravel()[: GROUND + 1]
    of_edges = np.empty(GROUND + 1)
    imbalance_of_edges(edges, nodes.copy(), floor, USERS, of_edges, Edges.room(8))
    assert of_edges[:GROUND] == pytest.approx(dense.ravel())
