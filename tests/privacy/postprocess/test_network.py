"""The solver of flow networks, on networks that can be solved by hand."""

import numpy as np
import pytest

from discreet.privacy.postprocess import network
from discreet.privacy.postprocess.network import Network, search, solve
from discreet.privacy.postprocess.network_kernels import Edges


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


@pytest.mark.parametrize(("top", "length"), [(5.0, 1.0), (0.3, 0.3)])
def test_the_search_ends_at_the_top_or_at_the_border(top, length):
    """A parabola with its maximum at ``top``, climbed from zero, at most to one."""

    def gradient(u):
        return top - u

    found, g = search(gradient, np.zeros(1), np.ones(1), top, 1.0)
    assert found == pytest.approx(length, abs=0.1 * length)
    assert g[0] == pytest.approx(top - found)
