"""The solver of flow networks, on networks that can be solved by hand."""

import numpy as np
import pytest

from discreet.privacy.projection import network
from discreet.privacy.projection import network as kernels
from discreet.privacy.projection.network import Edges, Network, climb, search, solve


def edges(*rows):
    """(tail, head, measured, variance); the last node is the ground."""
    tail, head, measured, variance = zip(*rows, strict=True)
    return Edges(
        np.array(tail, np.int32),
        np.array(head, np.int32),
        np.array(measured, float),
        np.array(variance, float),
    )


def solved(network_edges, users, *, nodes, margin=np.inf, groups=()):
    cells = len(network_edges.tail) if len(groups) else 0
    whole = Network(network_edges, cells, np.array(groups, np.int64).reshape(-1, 4))
    return solve(whole, users, 1e-9, margin, np.zeros(nodes + 1))


def test_two_ways_share_what_is_missing_by_their_variances():
    found = solved(edges((0, 1, 4.0, 1.0), (0, 1, 3.0, 3.0)), 11.0, nodes=1)
    np.testing.assert_allclose(found.flow, [5.0, 6.0], atol=1e-6)
    assert found.imbalance <= 1e-9


def test_no_flow_is_negative():
    found = solved(edges((0, 1, 9.0, 1.0), (0, 1, -9.0, 1.0)), 2.0, nodes=1)
    np.testing.assert_allclose(found.flow, [2.0, 0.0], atol=1e-6)


def test_two_looks_at_one_flow_are_averaged_by_their_precisions():
    # Way 1 is measured as 8 with variance 1 and, further on, as 2 with variance 2; way 2 hardly.
    way = edges((0, 1, 8.0, 1.0), (1, 2, 2.0, 2.0), (0, 2, 0.0, 1e6))
    found = solved(way, 100.0, nodes=2)
    np.testing.assert_allclose(found.flow[:2], 6.0, atol=1e-3)


@pytest.mark.parametrize("direct", [0, 400])
def test_what_is_left_out_comes_back_where_it_carries_flow(direct, monkeypatch):
    """A margin that leaves out the cell which the solution needs."""
    monkeypatch.setattr(network, "DIRECT_NODES", direct)
    rows = [(0, 1, 1.0, 1.0), (0, 2, -5.0, 1.0), (1, 3, 0.0, 1.0), (2, 3, 60.0, 1.0)]
    whole = solved(edges(*rows), 10.0, nodes=3)
    narrow = solved(edges(*rows), 10.0, nodes=3, margin=0.5, groups=[(0, 1, 1, 3), (1, 3, 3, 4)])
    assert whole.flow[1] > 5
    np.testing.assert_allclose(narrow.flow, whole.flow, atol=1e-6)
    assert narrow.iterations > whole.iterations


def test_how_far_a_cell_can_have_risen():
    some = Network(edges((0, 1, 0.0, 1.0)), 1, np.array([[0, 1, 1, 3], [1, 3, 3, 4]]))
    assert some.rise(np.array([1.0, 0.5, -2.0, 0.0])) == 3.0
    assert some.rise(np.zeros(4)) == 0.0


def test_the_border_is_nearer_by_what_edges_have_risen_already():
    some = Network(edges((0, 1, 0.0, 1.0)), 1, np.array([[0, 1, 1, 2]]))
    step, moved = np.array([2.0, 0.0]), np.array([1.0, -2.0])
    assert network.to_border(some, step, 0 * moved, 7.0) == 3.5
    assert network.to_border(some, step, moved, 7.0) == 2.0
    assert network.to_border(some, step, moved, 3.0) == 0.0
    assert network.to_border(some, step, moved, np.inf) == np.inf
    assert network.to_border(some, -step, moved, 7.0) == np.inf  # no edge rises


class Watched:
    """A network that notes where edges were chosen, and how far they can have risen since."""

    def __init__(self, whole):
        self.whole, self.floor, self.rise = whole, whole.floor, whole.rise
        self.centre, self.risen = None, []

    def near(self, u, margin):
        self._arrived(u)
        self.centre = u.copy()
        return self.whole.near(u, margin)

    def worst(self, u, users):
        self._arrived(u)
        return self.whole.worst(u, users)

    def _arrived(self, u):
        if self.centre is not None:
            self.risen.append(self.rise(u - self.centre))


def test_no_edge_that_was_left_out_has_risen_by_more_than_the_margin():
    """Else it could carry flow that nobody has looked at.

    The border matters where a choice of edges holds for several steps.
    """
    rng, layers, several = np.random.default_rng(0), [0, 1, 7, 13, 19, 20], 0
    groups = np.array([layers[i : i + 2] + layers[i + 1 : i + 3] for i in range(4)])
    cells = [(i, j) for a, b, c, d in groups for i in range(a, b) for j in range(c, d)]
    for _ in range(20):
        noisy = [(i, j, rng.normal(0, 5), 1.0) for i, j in cells]
        graph = Watched(Network(edges(*noisy), len(cells), groups))
        worst, steps = climb(graph, 100.0, 1e-6, 20.0, np.zeros(20))
        assert worst <= 1e-6
        assert max(graph.risen) <= 20.0 * (1 + 1e-9)
        several += steps > len(graph.risen)
    assert several >= 10


@pytest.mark.parametrize(("margin", "left"), [(np.inf, 0.5), (100.0, 0.0)])
def test_chosen_edges_are_balanced_to_a_quarter_of_what_all_have_to_be(margin, left):
    """Sums over all edges round otherwise: they must not send it back for that.

    The first step, by the one edge that carries flow, is 11 and takes the other to a half, which
    is too much; the second is exact. A tolerance of one is content with the first.
    """
    ways = edges((0, 1, 9.0, 1.0), (0, 1, -10.5, 1.0))
    whole = Network(ways, 2, np.array([[0, 1, 1, 2]]))
    found = solve(whole, 20.0, 1.0, margin, np.zeros(2))
    assert found.imbalance == pytest.approx(left, abs=1e-6)


@pytest.mark.parametrize(("top", "length"), [(5.0, 1.0), (0.3, 0.3)])
def test_the_search_ends_at_the_top_or_at_the_border(top, length):
    """A parabola with its maximum at ``top``, climbed from zero, at most to one."""

    def gradient(u):
        return top - u

    found, g = search(gradient, np.zeros(1), np.ones(1), top, 1.0)
    assert found == pytest.approx(length, abs=0.1 * length)
    assert g[0] == pytest.approx(top - found)


# --- The passes over edges, uncompiled, on one small network


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
    dry = kernels.Edges(EDGES.tail, EDGES.head, np.array([3.0, -2.0, 2.0]), EDGES.variance)
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
    low = kernels.Edges(EDGES.tail, EDGES.head, np.array([3.0, -9.0, -9.0]), EDGES.variance)
    assert kernels.above.py_func(low, 3, U, 2.0).tolist() == [0]
    assert kernels.above.py_func(low, 2, U, 2.0).tolist() == [0, 2]
    assert kernels.above.py_func(low, 3, U, 7.5).tolist() == [0, 1]
