"""Compiled passes over the cells of a large flow projection (see `sparse_flow`)."""

from typing import NamedTuple

import numpy as np

from discreet._jit import kernel
from discreet._types import FloatArray, Int32Array, IntArray


class Rows(NamedTuple):
    """The played rows: relative variances, the node each belongs to, where each step begins.

    A row of (h, s) belongs to node s of its step; all rows of step 0 belong to node 0.
    """

    variance: FloatArray
    node: IntArray
    first: IntArray


class Cells(NamedTuple):
    """Some cells of every row: those of row r are ``pointers[r]:pointers[r + 1]``."""

    pointers: IntArray
    columns: Int32Array
    counts: FloatArray


@kernel
def start(y: FloatArray, rows: Rows, users: float, u: FloatArray) -> None:
    """The best potentials that are constant in each layer: every layer sums to the users.

    The sum of max(0, y + variance·c) is convex and increasing in c; Newton's method, started with
    every cell, comes down to the users from above.
    """
    steps = rows.first.size - 1
    u[steps] = 0.0
    for h in range(steps - 1, -1, -1):
        c = 0.0
        total, slope = -users, 0.0
        for r in range(rows.first[h], rows.first[h + 1]):
            slope += rows.variance[r] * y.shape[1]
            total += np.sum(y[r])
        for _ in range(60):
            c -= total / slope
            total, slope = -users, 0.0
            for r in range(rows.first[h], rows.first[h + 1]):
                shift, sum_row, active = rows.variance[r] * c, 0.0, 0
                for j in range(y.shape[1]):
                    value = y[r, j] + shift
                    if value > 0.0:
                        sum_row += value
                        active += 1
                total += sum_row
                slope += rows.variance[r] * active
            if total <= 1e-6 * users:
                break
        u[h] = u[h + 1] + c


@kernel
def candidates(y: FloatArray, rows: Rows, u: FloatArray, margin: float) -> Cells:
    """The cells above minus ``margin``."""
    pointers = np.zeros(y.shape[0] + 1, np.int64)
    for h in range(rows.first.size - 1):
        for r in range(rows.first[h], rows.first[h + 1]):
            own = u[h, rows.node[r]]
            count = 0
            for j in range(y.shape[1]):
                if y[r, j] + rows.variance[r] * (own - u[h + 1, j]) > -margin:
                    count += 1
            pointers[r + 1] = pointers[r] + count
    columns = np.empty(pointers[-1], np.int32)
    counts = np.empty(pointers[-1])
    for h in range(rows.first.size - 1):
        for r in range(rows.first[h], rows.first[h + 1]):
            own = u[h, rows.node[r]]
            i = pointers[r]
            for j in range(y.shape[1]):
                if y[r, j] + rows.variance[r] * (own - u[h + 1, j]) > -margin:
                    columns[i] = j
                    counts[i] = y[r, j]
                    i += 1
    return Cells(pointers, columns, counts)


@kernel
def gradient(
    cells: Cells, rows: Rows, floor: float, users: float, u: FloatArray, g: FloatArray
) -> None:
    """Inflow minus outflow at every node, over the candidates."""
    g[:] = 0.0
    for h in range(rows.first.size - 1):
        for r in range(rows.first[h], rows.first[h + 1]):
            own, out = u[h, rows.node[r]], 0.0
            for i in range(cells.pointers[r], cells.pointers[r + 1]):
                j = cells.columns[i]
                x = cells.counts[i] + rows.variance[r] * (own - u[h + 1, j])
                if x > floor:
                    out += x
                    g[h + 1, j] += x
            g[h, rows.node[r]] -= out
    g[0, 0] += users
    g[-1] = 0.0


@kernel
def active(cells: Cells, rows: Rows, floor: float, u: FloatArray) -> Cells:
    """The candidates above the floor (without their counts)."""
    pointers = np.zeros_like(cells.pointers)
    columns = np.empty_like(cells.columns)
    n = 0
    for h in range(rows.first.size - 1):
        for r in range(rows.first[h], rows.first[h + 1]):
            own = u[h, rows.node[r]]
            for i in range(cells.pointers[r], cells.pointers[r + 1]):
                j = cells.columns[i]
                if cells.counts[i] + rows.variance[r] * (own - u[h + 1, j]) > floor:
                    columns[n] = j
                    n += 1
            pointers[r + 1] = n
    return Cells(pointers, columns[:n].copy(), np.empty(0))


@kernel
def diagonal(cells: Cells, rows: Rows, d: FloatArray) -> None:
    """Diagonal of the Laplacian of these cells."""
    d[:] = 0.0
    for h in range(rows.first.size - 1):
        for r in range(rows.first[h], rows.first[h + 1]):
            count = cells.pointers[r + 1] - cells.pointers[r]
            d[h, rows.node[r]] += rows.variance[r] * count
            for i in range(cells.pointers[r], cells.pointers[r + 1]):
                d[h + 1, cells.columns[i]] += rows.variance[r]


@kernel
def laplacian(cells: Cells, rows: Rows, v: FloatArray, out: FloatArray) -> None:
    """The Laplacian of these cells times v."""
    out[:] = 0.0
    for h in range(rows.first.size - 1):
        for r in range(rows.first[h], rows.first[h + 1]):
            s = rows.node[r]
            total = 0.0
            for i in range(cells.pointers[r], cells.pointers[r + 1]):
                j = cells.columns[i]
                flow = rows.variance[r] * (v[h, s] - v[h + 1, j])
                total += flow
                out[h + 1, j] -= flow
            out[h, s] += total
    out[-1] = 0.0
