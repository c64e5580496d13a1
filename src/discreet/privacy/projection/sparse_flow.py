"""The flow projection of large problems (mathematics in `flow`): work where there is flow."""

from typing import NamedTuple

import numpy as np

from discreet._jit import kernel
from discreet._types import FloatArray, IntArray, NumberArray
from discreet.privacy.projection.flow import flows
from discreet.privacy.projection.network import Edges, climb


class Rows(NamedTuple):
    """Rows of the support: relative variances, the node each belongs to, where each step begins.

    A row of (h, s) belongs to node s of its step; all rows of step 0 belong to node 0.
    """

    variance: FloatArray
    node: IntArray
    first: IntArray


@kernel
def start(y: FloatArray, rows: Rows, users: float, u: FloatArray) -> None:
    """The best potentials that are constant in each layer: every layer sums to the users.

    The sum of max(0, y + variance·c) is convex and increasing in c: a step of Newton's method ends
    above the solution wherever it begins, and from there comes down to it. On the way down a cell
    that has fallen to zero is never looked at again. Layers are alike: each begins where the one
    after it ended.
    """
    steps, states = rows.first.size - 1, y.shape[1]
    most = 0
    for h in range(steps):
        most = max(most, rows.first[h + 1] - rows.first[h])
    counts, variance = np.empty(most * states), np.empty(most * states)
    u[steps] = 0.0
    c = 0.0
    for h in range(steps - 1, -1, -1):
        total, slope = _layer_sum(y, rows, h, c)
        if slope == 0.0:  # nothing is above zero there: begin where everything is
            c = _above_all(y, rows, h)
            total, slope = _layer_sum(y, rows, h, c)
        c -= (total - users) / slope
        left = 0
        for r in range(rows.first[h], rows.first[h + 1]):
            for j in range(states):
                if y[r, j] + rows.variance[r] * c > 0.0:
                    counts[left], variance[left] = y[r, j], rows.variance[r]
                    left += 1
        for _ in range(60):
            total, slope, kept = -users, 0.0, 0
            for i in range(left):
                value = counts[i] + variance[i] * c
                if value > 0.0:
                    total += value
                    slope += variance[i]
                    counts[kept], variance[kept] = counts[i], variance[i]
                    kept += 1
            left = kept
            if total <= 1e-6 * users:
                break
            c -= total / slope
        u[h] = u[h + 1] + c


@kernel
def _layer_sum(y: FloatArray, rows: Rows, h: int, c: float) -> tuple[float, float]:
    """The sum of max(0, y + variance·c) in a layer, and its slope."""
    total, slope = 0.0, 0.0
    for r in range(rows.first[h], rows.first[h + 1]):
        active = 0
        for j in range(y.shape[1]):
            value = y[r, j] + rows.variance[r] * c
            if value > 0.0:
                total += value
                active += 1
        slope += rows.variance[r] * active
    return total, slope


@kernel
def _above_all(y: FloatArray, rows: Rows, h: int) -> float:
    """A constant that lifts every cell of a layer above zero."""
    c = 0.0
    for r in range(rows.first[h], rows.first[h + 1]):
        c = max(c, (1.0 - np.min(y[r])) / rows.variance[r])
    return c


@kernel
def candidates(
    y: FloatArray, rows: Rows, u: FloatArray, margin: float, room: Edges
) -> tuple[int, Edges]:
    """The cells above minus ``margin``, as edges between nodes h·S + s; the ground is the last.

    They are written to ``room``, or to more of it. Returns how many they are, and where.
    """
    steps, states = rows.first.size - 1, y.shape[1]
    tail, head, measured, variance = room
    n = 0
    for h in range(steps):
        ahead, last = u[h + 1], h == steps - 1
        for r in range(rows.first[h], rows.first[h + 1]):
            own, scale, counts = u[h, rows.node[r]], rows.variance[r], y[r]
            if n + states > tail.size:
                tail, head = longer(tail, states), longer(head, states)
                measured, variance = longer(measured, states), longer(variance, states)
            for j in range(states):
                if counts[j] + scale * (own - ahead[j]) > -margin:
                    tail[n] = h * states + rows.node[r]
                    head[n] = (h + 1) * states + (0 if last else j)
                    measured[n], variance[n] = counts[j], scale
                    n += 1
    return n, Edges(tail, head, measured, variance)


@kernel
def longer(old: NumberArray, more: int) -> NumberArray:
    """Twice as much memory, and ``more``, with the same beginning."""
    new = np.empty(2 * old.size + more, old.dtype)
    for i in range(old.size):
        new[i] = old[i]
    return new


@kernel
def balance(
    y: FloatArray, rows: Rows, floor: float, users: float, u: FloatArray, g: FloatArray
) -> None:
    """Inflow minus outflow ``g[H + 1, S]`` at every node, over all cells."""
    g[:] = 0.0
    g[0, 0] = users
    for h in range(rows.first.size - 1):
        for r in range(rows.first[h], rows.first[h + 1]):
            own, scale, out = u[h, rows.node[r]], rows.variance[r], 0.0
            for j in range(y.shape[1]):
                x = y[r, j] + scale * (own - u[h + 1, j])
                if x > floor:
                    out += x
                    g[h + 1, j] += x
            g[h, rows.node[r]] -= out


# With far more cells than users most cells end at zero and need no work. `network` climbs the dual
# over the cells near the present potentials; what is particular here is that all cells of a layer
# stand in one array, so that choosing some of them, or looking at all, is one pass over it.


def project_large(
    y: FloatArray,
    rows: Rows,
    users: float,
    tolerance: float,
    deviation: float,
    floor: float,
    x: FloatArray,
) -> tuple[float, int]:
    """As `flow.project_rows`, of noisy counts ``y[R, S]``; the projection is written to ``x``.

    ``deviation`` is that of the noise where it is largest: the margin of `network`.
    Returns the largest imbalance and the number of iterations.
    """
    layers = _Layers(y, rows, floor)
    u, margin = np.zeros(layers.shape), np.inf
    if floor == 0.0:
        start(y, rows, users, u)
        margin = deviation
    nodes = u.reshape(-1)[: layers.ground + 1]  # the same memory
    worst, iterations = climb(layers, users, tolerance, margin, nodes)
    flows(y, rows.variance, rows.node, rows.first, floor, u, x)
    return worst, iterations


class _Layers:
    """The cells as edges from node h·S + s to node (h + 1)·S + s', or to the ground at the end."""

    def __init__(self, y: FloatArray, rows: Rows, floor: float) -> None:
        self.y, self.rows, self.floor = y, rows, floor
        steps, states = rows.first.size - 1, y.shape[1]
        self.shape, self.ground = (steps + 1, states), steps * states
        self._room = Edges.room(1 << 18)

    def near(self, u: FloatArray, margin: float) -> Edges:
        """The cells above minus ``margin``."""
        potentials = self._potentials(u)
        count, self._room = candidates(self.y, self.rows, potentials, margin, self._room)
        return self._room.first(count)

    def worst(self, u: FloatArray, users: float) -> float:
        """The largest imbalance of a node, over all cells."""
        g = np.zeros(self.shape)
        balance(self.y, self.rows, self.floor, users, self._potentials(u), g)
        return float(np.abs(g[:-1]).max())

    def rise(self, change: FloatArray) -> float:
        """The most by which a difference of potentials in successive layers can have grown."""
        grown = self._potentials(change)
        highest = grown[:-1].max(axis=1)
        highest[0] = grown[0, 0]
        return float((highest - grown[1:].min(axis=1)).max())

    def _potentials(self, u: FloatArray) -> FloatArray:
        """``[H + 1, S]``, zero in the last layer, which is the ground."""
        out = np.zeros(self.shape)
        out.reshape(-1)[: self.ground] = u[:-1]
        return out
