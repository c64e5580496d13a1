"""Least squares on a flow network: the solver behind consistent flows of many states or looks.

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
whole dual; a step that would take one there ends at that border, where edges are chosen anew. A
margin of one standard deviation of the noise keeps the chosen edges few; choosing anew is one pass
over all of them, as cheap as a few Newton steps over a wider choice.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from discreet._types import FloatArray, IntArray
from discreet.privacy.postprocess import network_kernels as kernels
from discreet.privacy.postprocess.flow_kernels import next_length
from discreet.privacy.postprocess.network_kernels import Edges

DIRECT_NODES = 400
"""Up to this many nodes Newton systems are factorised."""
_MOST_ITERATIONS = 500


class Graph(Protocol):
    """A network of which `climb` sees a part at a time."""

    @property
    def floor(self) -> float:
        """No flow is below it."""

    def near(self, u: FloatArray, margin: float) -> Edges:
        """The edges whose flow would be above minus ``margin``."""

    def rise(self, change: FloatArray) -> float:
        """The most by which the flow of an edge that may be left out can have grown."""

    def worst(self, u: FloatArray, users: float) -> float:
        """The largest imbalance of a node, over all edges."""


class Network(NamedTuple):
    """Edges with relative variances, of which the first ``cells`` may be left out.

    Attributes:
        edges: between nodes; users enter at node 0, the last node is the ground.
        cells: edges of a variance of at most one, from a group of nodes to another one.
        groups: ``[n, 4]``: where tails and heads of cells begin and end.
        floor: no flow is below it.
    """

    edges: Edges
    cells: int
    groups: IntArray
    floor: float = 0.0

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

    def worst(self, u: FloatArray, users: float) -> float:
        """The largest imbalance of a node, over all edges."""
        return float(np.abs(_Dual(self.edges, users, self.floor).gradient(u)).max())


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
        margin: of the region in which cells are left out; infinite for small networks.
        potentials: where to start, one per node, zero at the ground.
    """
    u, flow = potentials.copy(), np.empty_like(network.edges.measured)
    worst, iterations = climb(network, users, tolerance, margin, u)
    kernels.potentials_flow(network.edges, u, flow)
    return Solved(flow, worst, iterations)


def climb(
    graph: Graph, users: float, tolerance: float, margin: float, u: FloatArray
) -> tuple[float, int]:
    """Change the potentials ``u`` until the flow equations hold, over all edges.

    Returns the largest imbalance and the number of Newton steps.
    """
    goal = tolerance / 4 if np.isfinite(margin) else tolerance
    iterations, at_border = 0, False
    while True:
        if not at_border or iterations >= _MOST_ITERATIONS:
            worst = graph.worst(u, users)
            if worst <= tolerance or iterations >= _MOST_ITERATIONS:
                return worst, iterations
        steps, at_border = _climb_inside(graph, users, u, goal, margin)
        iterations += steps


def _climb_inside(
    graph: Graph, users: float, u: FloatArray, goal: float, margin: float
) -> tuple[int, bool]:
    """Newton's method until no node is out of balance by more than ``goal``, or at the border.

    Changes ``u``; returns the number of steps, at least one, and whether the border was reached.
    """
    dual = _Dual(graph.near(u, margin), users, graph.floor)
    centre, g = u.copy(), dual.gradient(u)
    steps, at_border = 0, False
    while steps == 0 or not (at_border or steps == 60 or np.abs(g).max() <= goal):
        step = dual.newton(g)
        most = _to_border(graph, step, u - centre, margin)
        length, g = search(dual.gradient, u, step, float(g @ step), min(most, 1.0))
        u += length * step
        steps, at_border = steps + 1, length == most
    return steps, at_border


def _to_border(graph: Graph, step: FloatArray, moved: FloatArray, margin: float) -> float:
    """How many steps from here the border is, ``moved`` since edges were chosen."""
    if np.isinf(margin):  # every edge was chosen
        return np.inf
    rise = graph.rise(step)
    return (margin - graph.rise(moved)) / rise if rise > 0 else np.inf


def search(
    gradient: Callable[[FloatArray], FloatArray],
    u: FloatArray,
    step: FloatArray,
    slope: float,
    most: float,
) -> tuple[float, FloatArray]:
    """A length up to ``most`` where the slope has almost fallen to zero, and the gradient there.

    It is the last gradient that was asked for.
    """
    low, high, length = 0.0, most, most
    slope_low, slope_high = slope, -1.0
    for _ in range(40):
        g = gradient(u + length * step)
        here = float(g @ step)
        if abs(here) <= 0.1 * slope or (length == most and here >= 0.0):
            return length, g
        if here > 0.0:
            low, slope_low = length, here
        else:
            high, slope_high = length, here
        length = next_length(low, high, slope_low, slope_high)
    return low, gradient(u + low * step)  # still uphill: the dual has grown


class _Dual:
    """The dual over some of the edges."""

    def __init__(self, edges: Edges, users: float, floor: float) -> None:
        self.edges, self.users, self.floor = edges, users, floor
        self._room, self._carrying = Edges.room(edges.measured.size), 0

    def gradient(self, u: FloatArray) -> FloatArray:
        """Inflow minus outflow at every node."""
        g = np.empty_like(u)
        self._carrying = kernels.imbalance(self.edges, u, self.floor, self.users, g, self._room)
        return g

    def newton(self, g: FloatArray) -> FloatArray:
        """Solve (Laplacian of the edges that carry flow + a little) step = g, the last gradient."""
        edges, scale = self._room.first(self._carrying), np.empty_like(g)
        kernels.diagonal(edges, scale)
        ridge = 1e-10 * scale + 1e-8
        if g.size <= DIRECT_NODES:
            return _factorised(edges, g, ridge)
        step = kernels.conjugate_gradients(edges, g, scale + ridge, ridge)
        step[-1] = 0.0
        return step


def _factorised(edges: Edges, g: FloatArray, ridge: FloatArray) -> FloatArray:
    matrix = np.empty((g.size - 1, g.size - 1))
    kernels.dense_laplacian(edges, matrix)
    matrix[np.diag_indices_from(matrix)] += ridge[:-1]
    return np.append(np.linalg.solve(matrix, g[:-1]), 0.0)
