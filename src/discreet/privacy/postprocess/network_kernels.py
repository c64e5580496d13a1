"""Compiled passes over the edges of a flow network (see `network`)."""

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


@kernel
def potentials_flow(edges: Edges, u: FloatArray, x: FloatArray) -> None:
    """X = max(0, measured + variance·(u(tail) - u(head))), the minimiser for fixed potentials."""
    for e in range(x.size):
        rise = u[edges.tail[e]] - u[edges.head[e]]
        x[e] = max(0.0, edges.measured[e] + edges.variance[e] * rise)


@kernel
def imbalance(edges: Edges, x: FloatArray, users: float, g: FloatArray) -> None:
    """Inflow minus outflow at every node (``users`` enter node 0, the ground takes anything)."""
    g[:] = 0.0
    g[0] = users
    for e in range(x.size):
        g[edges.tail[e]] -= x[e]
        g[edges.head[e]] += x[e]
    g[-1] = 0.0


@kernel
def diagonal(edges: Edges, x: FloatArray, d: FloatArray) -> None:
    """Diagonal of the Laplacian of the edges that carry flow."""
    d[:] = 0.0
    for e in range(x.size):
        if x[e] > 0.0:
            d[edges.tail[e]] += edges.variance[e]
            d[edges.head[e]] += edges.variance[e]


@kernel
def dense_laplacian(edges: Edges, x: FloatArray, out: FloatArray) -> None:
    """The Laplacian of the edges that carry flow, without the ground."""
    out[:] = 0.0
    ground = out.shape[0]
    for e in range(x.size):
        if x[e] > 0.0:
            i, j, v = edges.tail[e], edges.head[e], edges.variance[e]
            out[i, i] += v
            if j < ground:
                out[j, j] += v
                out[i, j] -= v
                out[j, i] -= v


@kernel
def laplacian(edges: Edges, x: FloatArray, v: FloatArray, out: FloatArray) -> None:
    """The Laplacian of the edges that carry flow, times v (v is zero at the ground)."""
    out[:] = 0.0
    for e in range(x.size):
        if x[e] > 0.0:
            flow = edges.variance[e] * (v[edges.tail[e]] - v[edges.head[e]])
            out[edges.tail[e]] += flow
            out[edges.head[e]] -= flow
    out[-1] = 0.0


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
