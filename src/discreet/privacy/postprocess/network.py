"""Least squares on a flow network: the solver behind consistent flows with more than transitions.

    minimise  sum (x - y)^2 / variance   subject to   x >= 0 and, at every node but the ground,
    inflow = outflow, where all users enter at node 0.

With one potential u per node (0 at the ground) the minimiser is
x = max(0, y + variance·(u(tail) - u(head))); the potentials maximise a concave, piecewise quadratic
dual whose gradient is inflow minus outflow and whose Hessian is the Laplacian of the edges that
carry flow. Newton's method with a line search: the systems of small networks are factorised, those
of large ones solved by conjugate gradients. The residual of the flow equations is a complete
certificate, as in `flow`.

Large networks work where there is flow: around the present potentials the dual is built from the
edges above minus ``margin`` only. As long as no edge outside has risen by the margin, it is the
whole dual; a step that would take one there ends at that border, where edges are chosen anew.
"""

from typing import NamedTuple

import numpy as np

from discreet._types import FloatArray, IntArray
from discreet.privacy.postprocess import network_kernels as kernels
from discreet.privacy.postprocess.dual_steps import conjugate_gradients, search
from discreet.privacy.postprocess.network_kernels import Edges

DIRECT_NODES = 400
"""Up to this many nodes Newton systems are factorised."""
_MOST_ITERATIONS = 500


class Network(NamedTuple):
    """Edges with relative variances, of which the first ``cells`` may be left out.

    Attributes:
        edges: between nodes; users enter at node 0, the last node is the ground.
        cells: edges of a variance of at most one, from a group of nodes to another one.
        groups: ``[n, 4]``: where tails and heads of cells begin and end.
    """

    edges: Edges
    cells: int
    groups: IntArray

    def rise(self, change: FloatArray) -> float:
        """The most by which the flow of a cell can have grown."""
        tops = [change[a:b].max() - change[c:d].min() for a, b, c, d in self.groups]
        return max(0.0, float(max(tops, default=0.0)))

    def near(self, u: FloatArray, margin: float) -> Edges:
        """The edges whose flow would be above minus ``margin``."""
        if not np.isfinite(margin):
            return self.edges
        chosen = kernels.above(self.edges, self.cells, u, margin)
        tail, head, measured, variance = self.edges
        return Edges(tail[chosen], head[chosen], measured[chosen], variance[chosen])


class Solved(NamedTuple):
    """Flow on every edge, the largest imbalance of a node, Newton steps."""

    flow: FloatArray
    imbalance: float
    iterations: int


def solve(
    network: Network, users: float, tolerance: float, margin: float, potentials: FloatArray
) -> Solved:
    """The least-squares flow.

    Args:
        network: what is measured.
        users: enter at node 0.
        tolerance: the largest imbalance that counts as none.
        margin: of the first region in which cells are left out; infinite for small networks.
        potentials: where to start, one per node, zero at the ground.
    """
    edges, u, g = network.edges, potentials.copy(), np.zeros_like(potentials)
    flow = np.empty_like(edges.measured)
    iterations = 0
    while True:
        kernels.potentials_flow(edges, u, flow)
        kernels.imbalance(edges, flow, users, g)
        worst = float(np.abs(g).max())
        if worst <= tolerance or iterations >= _MOST_ITERATIONS:
            return Solved(flow, worst, iterations)
        goal = max(1e-3 * worst, tolerance / 4) if np.isfinite(margin) else tolerance
        steps, at_border = _climb(network, users, u, goal, margin)
        iterations += steps
        margin *= 2.0 if at_border else 0.1


def _climb(
    network: Network, users: float, u: FloatArray, goal: float, margin: float
) -> tuple[int, bool]:
    """Newton's method until no node is out of balance by more than ``goal``, or at the border.

    Changes ``u``; returns the number of steps, at least one, and whether the border was reached.
    """
    dual = _Dual(network.near(u, margin), users)
    centre, g = u.copy(), dual.gradient(u)
    steps, at_border = 0, False
    while steps == 0 or not (at_border or steps == 60 or np.abs(g).max() <= goal):
        step = dual.newton(u, g)
        rise = network.rise(step)
        most = (margin - network.rise(u - centre)) / rise if rise > 0 else np.inf
        length, g = search(dual.gradient, u, step, float(g @ step), min(most, 1.0))
        u += length * step
        steps, at_border = steps + 1, length == most
    return steps, at_border


class _Dual:
    """The dual over some of the edges."""

    def __init__(self, edges: Edges, users: float) -> None:
        self.edges, self.users = edges, users
        self._flow = np.empty_like(edges.measured)

    def gradient(self, u: FloatArray) -> FloatArray:
        """Inflow minus outflow at every node."""
        g = np.zeros_like(u)
        kernels.potentials_flow(self.edges, u, self._flow)
        kernels.imbalance(self.edges, self._flow, self.users, g)
        return g

    def newton(self, u: FloatArray, g: FloatArray) -> FloatArray:
        """Solve (Laplacian of the edges that carry flow + a little) step = g."""
        kernels.potentials_flow(self.edges, u, self._flow)
        scale = np.empty_like(g)
        kernels.diagonal(self.edges, self._flow, scale)
        ridge = 1e-10 * scale + 1e-8
        if g.size <= DIRECT_NODES:
            return self._factorised(g, ridge)

        def apply(v: FloatArray, out: FloatArray) -> None:
            kernels.laplacian(self.edges, self._flow, v, out)

        step = conjugate_gradients(apply, g, scale + ridge, ridge)
        step[-1] = 0.0
        return step

    def _factorised(self, g: FloatArray, ridge: FloatArray) -> FloatArray:
        matrix = np.empty((g.size - 1, g.size - 1))
        kernels.dense_laplacian(self.edges, self._flow, matrix)
        matrix[np.diag_indices_from(matrix)] += ridge[:-1]
        return np.append(np.linalg.solve(matrix, g[:-1]), 0.0)
