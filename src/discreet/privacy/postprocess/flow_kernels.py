"""Compiled solver of the flow projection (mathematics and notation in `flow`).

The played (h, s, a) are *rows*, sorted by step: row r belongs to state ``state[r]``, the rows of
step h are ``first[h]:first[h + 1]``. Potentials are ``u[h, s]`` for h = 0..H with u[H] = 0; at
h = 0 one potential, ``u[0, 0]``, serves all start states. Counts are bounded below by ``floor``:
zero, or minus infinity for signed flows; a cell is *active* where it lies above the floor.
"""

import numpy as np

from discreet._jit import kernel
from discreet._types import FloatArray, IntArray


@kernel
def flows(
    y: FloatArray,
    variance: FloatArray,
    state: IntArray,
    first: IntArray,
    floor: float,
    u: FloatArray,
    x: FloatArray,
) -> None:
    """X = max(floor, y + variance·(u_h(s) - u_{h+1}(s'))), the minimiser for fixed potentials."""
    for h in range(first.size - 1):
        for r in range(first[h], first[h + 1]):
            own = u[h, state[r]] if h > 0 else u[0, 0]
            for j in range(y.shape[1]):
                x[r, j] = max(floor, y[r, j] + variance[r] * (own - u[h + 1, j]))


@kernel
def imbalance(x: FloatArray, state: IntArray, first: IntArray, users: float, g: FloatArray) -> None:
    """Inflow minus outflow at every (h, s): the gradient of the dual."""
    g[:] = 0.0
    g[0, 0] = users
    steps = first.size - 1
    for h in range(steps):
        for r in range(first[h], first[h + 1]):
            s = state[r] if h > 0 else 0
            for j in range(x.shape[1]):
                g[h, s] -= x[r, j]
                if h + 1 < steps:
                    g[h + 1, j] += x[r, j]


@kernel
def diagonal(
    x: FloatArray,
    variance: FloatArray,
    state: IntArray,
    first: IntArray,
    floor: float,
    d: FloatArray,
) -> None:
    """Diagonal of the dual's Hessian: the weight of the active cells at every (h, s)."""
    d[:] = 0.0
    steps = first.size - 1
    for h in range(steps):
        for r in range(first[h], first[h + 1]):
            s = state[r] if h > 0 else 0
            for j in range(x.shape[1]):
                if x[r, j] > floor:
                    d[h, s] += variance[r]
                    if h + 1 < steps:
                        d[h + 1, j] += variance[r]


@kernel
def newton(
    x: FloatArray,
    variance: FloatArray,
    state: IntArray,
    first: IntArray,
    floor: float,
    ridge: FloatArray,
    g: FloatArray,
    step: FloatArray,
) -> None:
    """Solve (Laplacian of the active cells + ridge) step = g by block-tridiagonal Cholesky."""
    steps, states = first.size - 1, x.shape[1]
    factor = np.zeros((steps, states, states))
    coupling = np.zeros((steps, states, states))
    for h in range(steps):
        for s in range(states):
            step[h, s] = g[h, s]
    for h in range(steps):
        block = factor[h]
        for s in range(states):
            block[s, s] += ridge[h, s]
        for r in range(first[h], first[h + 1]):
            s = state[r] if h > 0 else 0
            for j in range(states):
                if x[r, j] > floor:
                    block[s, s] += variance[r]
                    if h + 1 < steps:
                        factor[h + 1, j, j] += variance[r]
                        coupling[h, s, j] -= variance[r]
        _cholesky(block)
        _forward_vector(block, step[h])
        if h + 1 < steps:
            _forward_matrix(block, coupling[h])
            _eliminate(coupling[h], factor[h + 1], step[h], step[h + 1])
    for h in range(steps - 1, -1, -1):
        if h + 1 < steps:
            for s in range(states):
                for j in range(states):
                    step[h, s] -= coupling[h, s, j] * step[h + 1, j]
        _backward_vector(factor[h], step[h])


@kernel
def _cholesky(a: FloatArray) -> None:
    """Lower Cholesky factor in place; a pivot lost to rounding becomes a tiny one."""
    size = a.shape[0]
    for i in range(size):
        for j in range(i + 1):
            total = a[i, j]
            for k in range(j):
                total -= a[i, k] * a[j, k]
            if i == j:
                a[i, i] = np.sqrt(max(total, 1e-300))
            else:
                a[i, j] = total / a[j, j]


@kernel
def _forward_vector(lower: FloatArray, b: FloatArray) -> None:
    for i in range(b.size):
        for k in range(i):
            b[i] -= lower[i, k] * b[k]
        b[i] /= lower[i, i]


@kernel
def _backward_vector(lower: FloatArray, b: FloatArray) -> None:
    for i in range(b.size - 1, -1, -1):
        for k in range(i + 1, b.size):
            b[i] -= lower[k, i] * b[k]
        b[i] /= lower[i, i]


@kernel
def _forward_matrix(lower: FloatArray, b: FloatArray) -> None:
    size = b.shape[0]
    for i in range(size):
        for k in range(i):
            if lower[i, k] != 0.0:
                for j in range(size):
                    b[i, j] -= lower[i, k] * b[k, j]
        for j in range(size):
            b[i, j] /= lower[i, i]


@kernel
def _eliminate(
    coupling: FloatArray, block: FloatArray, solved: FloatArray, rest: FloatArray
) -> None:
    """Schur complement of one block in the next: block -= C'C, rest -= C'solved."""
    size = block.shape[0]
    for k in range(size):
        for i in range(size):
            c = coupling[k, i]
            if c != 0.0:
                rest[i] -= c * solved[k]
                for j in range(i + 1):
                    block[i, j] -= c * coupling[k, j]


# Loops, not array expressions: what these compare and allocate is compiled for seconds.


@kernel
def _scale(values: FloatArray, factor: float, more: float) -> None:
    """``values`` times a factor, and ``more``, in place."""
    for h in range(values.shape[0]):
        for s in range(values.shape[1]):
            values[h, s] = values[h, s] * factor + more


@kernel
def _inner(left: FloatArray, right: FloatArray) -> float:
    total = 0.0
    for h in range(left.shape[0]):
        for s in range(left.shape[1]):
            total += left[h, s] * right[h, s]
    return total


@kernel
def _largest(values: FloatArray) -> float:
    """In absolute value; not a number if one of them is none."""
    most = 0.0
    for h in range(values.shape[0]):
        for s in range(values.shape[1]):
            size = abs(values[h, s])
            if size > most or np.isnan(size):
                most = size
    return most


@kernel
def _move(u: FloatArray, length: float, step: FloatArray, out: FloatArray) -> None:
    """``out`` = u + length·step; ``u`` has one row more, which stays."""
    for h in range(step.shape[0]):
        for s in range(step.shape[1]):
            out[h, s] = u[h, s] + length * step[h, s]
    last = step.shape[0]
    for s in range(step.shape[1]):
        out[last, s] = u[last, s]


@kernel
def project_rows(
    y: FloatArray,
    variance: FloatArray,
    state: IntArray,
    first: IntArray,
    users: float,
    tolerance: float,
    floor: float,
    x: FloatArray,
) -> tuple[float, int]:
    """Newton's method on the dual with a line search; returns (largest imbalance, iterations).

    The dual is concave and piecewise quadratic, so Newton steps with an exact line search end at
    its maximum after finitely many active sets.
    """
    steps = first.size - 1
    u = np.zeros((steps + 1, y.shape[1]))
    trial = np.empty_like(u)
    g = np.zeros((steps, y.shape[1]))
    moved = np.empty_like(g)
    step = np.zeros((steps, y.shape[1]))
    ridge = np.empty_like(g)
    x[:] = 1.0  # start with every cell active: the projection onto the flow equations alone
    imbalance(y, state, first, users, g)
    for iteration in range(200):
        diagonal(x, variance, state, first, floor, ridge)
        _scale(ridge, 1e-10, 1e-8 * np.max(variance))
        newton(x, variance, state, first, floor, ridge, g, step)
        if iteration > 0:
            slope = _inner(g, step)
            length = _line_search(
                y, variance, state, first, floor, users, slope, u, step, trial, x, moved
            )
        else:
            length = 1.0
        _move(u, length, step, u)
        flows(y, variance, state, first, floor, u, x)
        imbalance(x, state, first, users, g)
        worst = _largest(g)
        if worst <= tolerance:
            break
    return worst, iteration + 1


@kernel
def next_length(low: float, high: float, slope_low: float, slope_high: float) -> float:
    """Where a line through both slopes is zero, at least a tenth away from both ends."""
    guess = low + (high - low) * slope_low / (slope_low - slope_high)
    return min(max(guess, low + 0.1 * (high - low)), high - 0.1 * (high - low))


@kernel
def _line_search(
    y: FloatArray,
    variance: FloatArray,
    state: IntArray,
    first: IntArray,
    floor: float,
    users: float,
    slope: float,
    u: FloatArray,
    step: FloatArray,
    trial: FloatArray,
    x: FloatArray,
    g: FloatArray,
) -> float:
    """A length at which the dual's slope along ``step`` has fallen close to zero from above."""
    low, high = 0.0, 1.0
    length = 1.0
    slope_low, slope_high = slope, -1.0
    for _ in range(40):
        _move(u, length, step, trial)
        flows(y, variance, state, first, floor, trial, x)
        imbalance(x, state, first, users, g)
        here = _inner(g, step)
        if abs(here) <= 0.1 * slope or (length == 1.0 and here >= 0.0):
            return length
        if here > 0.0:
            low, slope_low = length, here
        else:
            high, slope_high = length, here
        length = next_length(low, high, slope_low, slope_high)
    return low
