"""Least squares on a flow network: consistent flows of many states or several measurements.

Flow on an edge is bounded below by ``floor``: zero, or minus infinity for signed flows.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from discreet._jit import kernel
from discreet._types import FloatArray, Int32Array, IntArray
from discreet.privacy.projection.flow import next_length
from discreet.privacy.projection.measurements import Measurements, inflow_visits


class Edges(NamedTuple):
    """Edges between numbered nodes; the last node is the ground, where flow ends."""

    tail: Int32Array
    head: Int32Array
    measured: FloatArray
    variance: FloatArray

    @classmethod
    def room(cls, size: int) -> "Edges":
        """Memory for so many edges, not used before it is written."""
        ends = np.empty(size, np.int32), np.empty(size, np.int32)
        return cls(*ends, np.empty(size), np.empty(size))

    def first(self, count: int) -> "Edges":
        """The first edges, in the same memory."""
        tail, head, measured, variance = self
        return Edges(tail[:count], head[:count], measured[:count], variance[:count])


@kernel
def potentials_flow(edges: Edges, u: FloatArray, x: FloatArray) -> None:
    """X = max(0, measured + variance·(u(tail) - u(head))), the minimiser for fixed potentials."""
    for e in range(x.size):
        rise = u[edges.tail[e]] - u[edges.head[e]]
        x[e] = max(0.0, edges.measured[e] + edges.variance[e] * rise)


@kernel
def imbalance(
    edges: Edges, u: FloatArray, floor: float, users: float, g: FloatArray, room: Edges
) -> int:
    """Inflow minus outflow at every node (``users`` enter node 0, the ground takes anything).

    The edges that carry flow are written to ``room``; returns how many they are.
    """
    g[:] = 0.0
    g[0] = users
    n = 0
    for e in range(edges.measured.size):
        tail, head = edges.tail[e], edges.head[e]
        x = edges.measured[e] + edges.variance[e] * (u[tail] - u[head])
        if x > floor:
            g[tail] -= x
            g[head] += x
            room.tail[n], room.head[n], room.variance[n] = tail, head, edges.variance[e]
            n += 1
    g[-1] = 0.0
    return n


@kernel
def diagonal(edges: Edges, d: FloatArray) -> None:
    """Diagonal of the Laplacian of these edges."""
    d[:] = 0.0
    for e in range(edges.variance.size):
        d[edges.tail[e]] += edges.variance[e]
        d[edges.head[e]] += edges.variance[e]


@kernel
def dense_laplacian(edges: Edges, out: FloatArray) -> None:
    """The Laplacian of these edges, without the ground."""
    out[:] = 0.0
    ground = out.shape[0]
    for e in range(edges.variance.size):
        i, j, v = edges.tail[e], edges.head[e], edges.variance[e]
        out[i, i] += v
        if j < ground:
            out[j, j] += v
            out[i, j] -= v
            out[j, i] -= v


@kernel
def laplacian(edges: Edges, v: FloatArray, out: FloatArray) -> None:
    """The Laplacian of these edges, times v; nothing at the ground."""
    out[:] = 0.0
    for e in range(edges.variance.size):
        tail, head = edges.tail[e], edges.head[e]
        flow = edges.variance[e] * (v[tail] - v[head])
        out[tail] += flow
        out[head] -= flow
    out[-1] = 0.0


@kernel
def conjugate_gradients(
    edges: Edges, g: FloatArray, scale: FloatArray, ridge: FloatArray
) -> FloatArray:
    """Solve (Laplacian + ridge) step = g to a percent; ``scale`` is the diagonal.

    Sums run in one fixed order, so that results are the same on any machine.
    """
    step, residual, product = np.zeros_like(g), g.copy(), np.empty_like(g)
    direction = residual / scale
    rho = _dot(residual, direction)
    goal = 1e-4 * rho
    for _ in range(500):
        if rho <= goal:
            break
        laplacian(edges, direction, product)
        for i in range(g.size):
            product[i] += ridge[i] * direction[i]
        alpha = rho / _dot(direction, product)
        for i in range(g.size):
            step[i] += alpha * direction[i]
            residual[i] -= alpha * product[i]
            product[i] = residual[i] / scale[i]
        fresh = _dot(residual, product)
        for i in range(g.size):
            direction[i] = product[i] + (fresh / rho) * direction[i]
        rho = fresh
    return step


@kernel
def _dot(a: FloatArray, b: FloatArray) -> float:
    """The inner product; four partial sums keep the processor busy."""
    one = two = three = four = 0.0
    whole = a.size - a.size % 4
    for i in range(0, whole, 4):
        one += a[i] * b[i]
        two += a[i + 1] * b[i + 1]
        three += a[i + 2] * b[i + 2]
        four += a[i + 3] * b[i + 3]
    for i in range(whole, a.size):
        one += a[i] * b[i]
    return (one + two) + (three + four)


@kernel
def above(edges: Edges, cells: int, u: FloatArray, margin: float) -> IntArray:
    """The first ``cells`` edges whose flow would be above minus ``margin``, and all others."""
    found = np.empty(edges.measured.size, np.int64)
    count = 0
    for e in range(edges.measured.size):
        rise = u[edges.tail[e]] - u[edges.head[e]]
        if e >= cells or edges.measured[e] + edges.variance[e] * rise > -margin:
            found[count] = e
            count += 1
    return found[:count].copy()


# Least squares on a flow network: the solver of consistent flows of many states or measurements.
#
#     minimise  sum (x - y)^2 / variance   subject to   x >= 0 and, at every node but the ground,
#     inflow = outflow, where all users enter at node 0.
#
# With one potential u per node (0 at the ground) the minimiser is x = max(0, y + variance·(u(tail)
# - u(head))); the potentials maximise a concave, piecewise quadratic dual whose gradient is inflow
# minus outflow and whose Hessian is the Laplacian of the edges that carry flow. Newton's method
# with a line search: the systems of small networks are factorised, those of large ones solved by
# conjugate gradients. The residual of the flow equations is a complete certificate, as in `flow`.
#
# Large networks work where there is flow: around the present potentials the dual is built from the
# edges above minus ``margin`` only. As long as no edge outside has risen by the margin, it is the
# whole dual; a step that would take one there ends at that border, where edges are chosen anew. A
# margin of one standard deviation of the noise keeps the chosen edges few; choosing anew is one
# pass over all of them, as cheap as a few Newton steps over a wider choice.


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
        chosen = above(self.edges, self.cells, u, margin)
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
    potentials_flow(network.edges, u, flow)
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
        most = to_border(graph, step, u - centre, margin)
        length, g = search(dual.gradient, u, step, float(g @ step), min(most, 1.0))
        u += length * step
        steps, at_border = steps + 1, length == most
    return steps, at_border


def to_border(graph: Graph, step: FloatArray, moved: FloatArray, margin: float) -> float:
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
        self._carrying = imbalance(self.edges, u, self.floor, self.users, g, self._room)
        return g

    def newton(self, g: FloatArray) -> FloatArray:
        """Solve (Laplacian of the edges that carry flow + a little) step = g, the last gradient."""
        edges, scale = self._room.first(self._carrying), np.empty_like(g)
        diagonal(edges, scale)
        ridge = 1e-10 * scale + 1e-8
        if g.size <= DIRECT_NODES:
            matrix = np.empty((g.size - 1, g.size - 1))
            dense_laplacian(edges, matrix)
            matrix[np.diag_indices_from(matrix)] += ridge[:-1]
            return np.append(np.linalg.solve(matrix, g[:-1]), 0.0)
        step = conjugate_gradients(edges, g, scale + ridge, ridge)
        step[-1] = 0.0
        return step


# More than one measurement of a batch: visits that were counted beside transitions, and who left.
#
# A release can hold, besides noisy transitions y, a second measurement w of the visits of every row
# (s, a) of a step, and the noisy number of users who have left the policy by each step. Together:
#
#     minimise  sum (x - y)²/variance + sum (v - w)²/(visit variance) + sum (L - l)²/(left variance)
#
# over transitions x, visits v and users L who have left, all nonnegative, where the inflow of (h,
# s) is the sum of v over its rows plus the users who leave there, v is the sum of x over its row,
# L_h is L_{h-1} plus all who leave at step h, and everybody is somewhere: all n users enter at step
# 0. In the network of `network` a row is a node between its state and the next states, and
# ``dropped_out`` is one more node per step. How many leave in each state is not measured: those
# edges have a variance of `FREE` times that of a counter, around what inflow and outflow suggest.
#
# Without last transitions the rows of the last step lead to the ground, measured by w; without w
# either, the visits there are the inflow of their state, in equal parts if it has several rows.


FREE = 1e4
"""Variance of the users who leave in one state, in variances of a transition counter."""
_SMALL = 64
"""Up to this many states every cell is worked on."""


class Projected(NamedTuple):
    """Consistent transitions, visits and users who have left, with the solver's certificate."""

    transitions: FloatArray
    visits: FloatArray
    dropped_out: FloatArray | None
    imbalance: float
    iterations: int


def project_measurements(
    y: FloatArray,
    variance: FloatArray,
    rows: tuple[IntArray, ...],
    users: float,
    horizon: int,
    measurements: Measurements,
) -> Projected:
    """The projection of rows ``y[R, S]`` of the support in ``rows``, sorted by step."""
    layout = _Layout(y, variance, rows, horizon, measurements)
    network, place = layout.network()
    deviation = float(np.sqrt(variance.max()))
    tolerance = max(1e-6 * deviation, 1e-12 * users)
    large = y.shape[1] > _SMALL
    start = layout.start(users) if large else np.zeros(layout.nodes + 1)
    solved = solve(network, users, tolerance, deviation if large else np.inf, start)
    transitions, visits, dropped_out = place(solved.flow)
    return Projected(transitions, visits, dropped_out, solved.imbalance, solved.iterations)


class _Layout:
    """Numbers of the nodes: the start, then by step rows (with a second measurement) and states."""

    def __init__(
        self,
        y: FloatArray,
        variance: FloatArray,
        rows: tuple[IntArray, ...],
        horizon: int,
        measurements: Measurements,
    ) -> None:
        self.y, self.measurements, self.horizon = y, measurements, horizon
        self.scale = float(variance.max())
        self.relative = variance / self.scale
        self.steps, self.states, _ = rows
        self.moving = horizon if measurements.last_transitions else horizon - 1
        self.first = np.searchsorted(self.steps, np.arange(horizon + 1))
        self.row_node = np.zeros(len(self.steps), np.int64)
        self.state_node = np.full((horizon + 1, y.shape[1]), -1, np.int64)
        self.state_node[0] = 0
        self.groups: list[tuple[int, int, int, int]] = []
        self.nodes = self._number()

    def _number(self) -> int:
        """Number all nodes; -1 stands for the ground. Returns how many there are without it."""
        measured_twice, count, size = self.measurements.visits is not None, 1, self.y.shape[1]
        tails = (0, 1)
        for h in range(self.moving):
            here = slice(self.first[h], self.first[h + 1])
            if measured_twice:
                self.row_node[here] = count + np.arange(self.first[h + 1] - self.first[h])
                tails = (count, count + int(self.first[h + 1] - self.first[h]))
                count = tails[1]
            else:
                self.row_node[here] = self.state_node[h, self.states[here]]
            if h + 1 < self.moving or (measured_twice and h + 1 < self.horizon):
                self.state_node[h + 1] = count + np.arange(size)
                self.groups.append((*tails, count, count + size))
                tails = (count, count + size)
                count += size
            else:
                self.groups.append((*tails, -1, -1))
        self.dropped_out_first = count
        gone = self.measurements.dropped_out
        return count if gone is None else count + len(gone)

    def start(self, users: float) -> FloatArray:
        """Potentials that are constant in each layer, such that every layer sums to the users."""
        from discreet.privacy.projection.sparse_flow import Rows, start

        u = np.zeros(self.nodes + 1)
        if not self.moving:
            return u
        cells, moved = self._cells()
        layers = np.zeros((self.moving + 1, self.y.shape[1]))
        nodes = np.where(self.steps[cells] > 0, self.states[cells], 0)
        start(
            moved, Rows(self.relative[cells], nodes, self.first[: self.moving + 1]), users, layers
        )
        for h in range(self.moving):
            u[self.state_node[h]] = layers[h, 0]
            u[self.row_node[self.first[h] : self.first[h + 1]]] = layers[h, 0]
        u[-1] = 0.0
        if self.measurements.dropped_out is not None:
            steps = np.minimum(np.arange(len(self.measurements.dropped_out)), self.moving)
            u[self.dropped_out_first : -1] = layers[steps, 0]
        return u

    def network(self) -> "tuple[Network, _Place]":
        """All edges, and what to read off their flow."""
        parts = [self._transitions(), self._visits(), self._leaving(), self._dropped_out()]
        tail, head, count, relative = (
            np.concatenate([part[i] for part in parts]) for i in range(4)
        )
        ground = self.nodes
        groups = [[ground if end < 0 else end for end in group] for group in self.groups]
        for group in groups:
            group[3] = max(group[3], group[2] + 1)
        edges = Edges(
            tail.astype(np.int32),
            np.where(head < 0, ground, head).astype(np.int32),
            count,
            relative,
        )
        sizes = [part[0].size for part in parts]
        network = Network(edges, sizes[0], np.array(groups, np.int64).reshape(-1, 4))
        return network, _Place(self, np.cumsum([0, *sizes]))

    def _cells(self) -> tuple[slice, FloatArray]:
        rows = slice(0, int(self.first[self.moving]))
        return rows, self.y[rows]

    def _transitions(self) -> "_Part":
        rows, moved = self._cells()
        size = self.y.shape[1]
        head = self.state_node[self.steps[rows] + 1]
        return (
            np.repeat(self.row_node[rows], size),
            head.ravel(),
            moved.ravel(),
            np.repeat(self.relative[rows], size),
        )

    def _visits(self) -> "_Part":
        if self.measurements.visits is None:
            return _NOTHING
        tail = self.state_node[self.steps, self.states]
        head = np.where(self.steps < self.moving, self.row_node, -1)
        variance = np.full(tail.size, self.measurements.visit_variance / self.scale)
        return tail, head, self.measurements.visits, variance

    def _leaving(self) -> "_Part":
        """From every state to ``dropped_out``, around its inflow minus its outflow."""
        if self.measurements.dropped_out is None:
            return _NOTHING
        tails: list[IntArray] = []
        heads: list[IntArray] = []
        for h in range(len(self.measurements.dropped_out)):
            nodes = np.unique(self.state_node[h])
            nodes = nodes[nodes >= 0]
            tails.append(nodes)
            heads.append(np.full(nodes.size, self.dropped_out_first + h))
        tail, head = np.concatenate(tails), np.concatenate(heads)
        return tail, head, self._missing(tail), np.full(tail.size, FREE)

    def _missing(self, nodes: IntArray) -> FloatArray:
        """Noisy inflow minus noisy outflow of these nodes, if positive."""
        balance = np.zeros(self.nodes + 1)
        rows, moved = self._cells()
        np.add.at(balance, self.state_node[self.steps[rows] + 1], moved)
        measured_twice = self.measurements.visits
        out = self.y.sum(axis=1) if measured_twice is None else measured_twice
        np.subtract.at(balance, self.state_node[self.steps, self.states], out)
        balance[0] = 0.0  # who does not even begin is in the first count of those who left
        return np.maximum(balance[nodes], 0.0)

    def _dropped_out(self) -> "_Part":
        if self.measurements.dropped_out is None or self.measurements.dropped_out_variance is None:
            return _NOTHING
        tail = self.dropped_out_first + np.arange(len(self.measurements.dropped_out))
        head = np.where(tail + 1 < self.nodes, tail + 1, -1)
        variance = self.measurements.dropped_out_variance / self.scale
        return tail, head, self.measurements.dropped_out, variance


_Part = tuple[IntArray, IntArray, FloatArray, FloatArray]
_NOTHING: _Part = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0))


class _Place:
    """Reads transitions, visits and users who left off the flow of all edges."""

    def __init__(self, layout: _Layout, ends: IntArray) -> None:
        self.layout, self.ends = layout, ends

    def __call__(self, flow: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        layout, ends = self.layout, self.ends
        transitions = np.zeros_like(layout.y)
        rows, moved = layout._cells()
        transitions[rows] = flow[: ends[1]].reshape(moved.shape)
        if layout.measurements.visits is not None:
            visits = flow[ends[1] : ends[2]]
        elif layout.measurements.last_transitions:
            visits = transitions.sum(axis=1)
        else:
            visits = inflow_visits(
                transitions, (layout.steps, layout.states, layout.steps), layout.horizon
            )
        dropped_out = None if layout.measurements.dropped_out is None else flow[ends[3] :]
        return transitions, visits, dropped_out
