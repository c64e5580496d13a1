"""Compiled passes over the edges of a flow network (see `network`).

Flow on an edge is bounded below by ``floor``: zero, or minus infinity for signed flows.
"""

from typing import NamedTuple

import numpy as np

from discreet._jit import kernel
from discreet._types import FloatArray, Int32Array, IntArray


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
