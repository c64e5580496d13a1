"""Convex problems over occupancy measures with transitions in boxes: what both solvers share.

Layered problems are padded to their widest layer: ``widths[h]`` states in layer h = 0..H (one in
the first and in the last), arrays ``[H, X, A]`` and ``[H, X, A, X]`` with X the largest width.
Entries outside the widths are never read. Every solve is checked by its duality gap.
"""

import math
from typing import NamedTuple

import numpy as np

from discreet._jit import kernel
from discreet._types import Floats, Ints
from discreet.errors import SolverError

GAP_LIMIT = 1e-3
"""A solve that misses its certificate by more than this is an error; most gaps are below 1e-8."""


class Boxes(NamedTuple):
    """Confidence boxes ``lower <= P(x'|x,a) <= upper``, one per (h, x, a, x')."""

    widths: Ints
    lower: Floats
    upper: Floats


def open_boxes(widths: Ints, shape: tuple[int, ...]) -> Boxes:
    """Boxes that exclude nothing; ``shape`` is (H, X, A, X)."""
    return Boxes(widths.copy(), np.zeros(shape), np.ones(shape))


class Tridiagonal(NamedTuple):
    """Workspace of a block-tridiagonal Newton system, one block per layer."""

    diagonal: Floats
    coupling: Floats
    factor: Floats
    mixing: Floats


def empty_tridiagonal(layers: int, width: int) -> Tridiagonal:
    """Room for ``layers`` blocks of at most ``width`` unknowns."""
    size = (layers, width, width)
    return Tridiagonal(np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size))


@kernel
def rows(blocks: Floats) -> Floats:
    """``[H, X, A, X]`` as a matrix: block (h, x, a) is row (h·X + x)·A + a."""
    return blocks.reshape(-1, blocks.shape[3])


@kernel
def cholesky(matrix: Floats, n: int) -> bool:
    """Lower Cholesky factor in place; False if the matrix is not positive definite."""
    for i in range(n):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            if i > j:
                matrix[i, j] = total / matrix[j, j]
            elif total > 0.0:
                matrix[i, i] = math.sqrt(total)
            else:
                return False
    return True


@kernel
def solve_tridiagonal(
    widths: Ints,
    first: int | np.int64,
    last: int,
    system: Tridiagonal,
    damping: float,
    ridge: float,
    rhs: Floats,
    out: Floats,
) -> bool:
    """Solve the block-tridiagonal system of layers ``first..last`` by block Cholesky.

    ``diagonal[h]`` holds a lower triangle, ``coupling[h]`` the block between layers h and h+1;
    ``damping`` times the diagonal and ``ridge`` are added. False if not positive definite.
    """
    for h in range(first, last + 1):
        n = widths[h]
        factor = system.factor[h]
        for i in range(n):
            for j in range(i + 1):
                factor[i, j] = system.diagonal[h, i, j]
            factor[i, i] += damping * system.diagonal[h, i, i] + ridge
        if h > first:  # Schur complement: subtract what layer h-1 explains
            previous, mixing = system.factor[h - 1], system.mixing[h]
            for i in range(n):
                for k in range(widths[h - 1]):
                    total = system.coupling[h - 1, k, i]
                    for j in range(k):
                        total -= previous[k, j] * mixing[i, j]
                    mixing[i, k] = total / previous[k, k]
            for i in range(n):
                for j in range(i + 1):
                    total = 0.0
                    for k in range(widths[h - 1]):
                        total += mixing[i, k] * mixing[j, k]
                    factor[i, j] -= total
        if not cholesky(factor, n):
            return False
        for i in range(n):
            total = rhs[h, i]
            if h > first:
                for k in range(widths[h - 1]):
                    total -= system.mixing[h, i, k] * out[h - 1, k]
            for k in range(i):
                total -= factor[i, k] * out[h, k]
            out[h, i] = total / factor[i, i]
    for h in range(last, first - 1, -1):
        n = widths[h]
        for i in range(n - 1, -1, -1):
            total = out[h, i]
            if h < last:
                for k in range(widths[h + 1]):
                    total -= system.mixing[h + 1, k, i] * out[h + 1, k]
            for k in range(i + 1, n):
                total -= system.factor[h, k, i] * out[h, k]
            out[h, i] = total / system.factor[h, i, i]
    return True


@kernel
def copy_table(values: Floats, out: Floats) -> None:
    """``out[:] = values`` for matrices, without a slice's comparison of shapes.

    The message of that comparison is compiled for seconds wherever it may be needed.
    """
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            out[i, j] = values[i, j]


@kernel
def subtract_tables(left: Floats, right: Floats, out: Floats) -> None:
    """``out[:] = left - right`` for matrices."""
    for i in range(left.shape[0]):
        for j in range(left.shape[1]):
            out[i, j] = left[i, j] - right[i, j]


@kernel
def largest(values: Floats, widths: Ints, first: int, last: int) -> float:
    """Largest absolute value over the states of layers ``first..last``."""
    peak = 0.0
    for h in range(first, last + 1):
        for x in range(widths[h]):
            peak = max(peak, abs(values[h, x]))
    return peak


@kernel
def upper_occupancy(boxes: Boxes, policy: Floats, out: Floats) -> None:
    """``out[h, x, a]``: the largest probability of (x, a) over all transitions in the boxes.

    For one target state the best transition is greedy, layer by layer backwards: start from the
    lower bounds and give the rest to the successors with the highest probability of reaching the
    target. The paper's COMP-UOB; equal to a linear program over occupancy measures.
    """
    horizon, width, actions = policy.shape
    hit, before = np.zeros(width), np.zeros(width)
    order = np.empty(width, np.int64)
    spare = np.ones(policy.shape)
    for h in range(horizon):
        for x in range(boxes.widths[h]):
            for a in range(actions):
                for y in range(boxes.widths[h + 1]):
                    spare[h, x, a] -= boxes.lower[h, x, a, y]
    for layer in range(horizon):
        for target in range(boxes.widths[layer]):
            hit[:] = 0.0
            hit[target] = 1.0
            for h in range(layer - 1, -1, -1):
                n = boxes.widths[h + 1]
                sort_descending(hit, n, order)
                for x in range(boxes.widths[h]):
                    total = 0.0
                    for a in range(actions):
                        if policy[h, x, a] > 0.0:
                            value, left = 0.0, spare[h, x, a]
                            for y in range(n):
                                value += boxes.lower[h, x, a, y] * hit[y]
                            for k in range(n):
                                y = order[k]
                                room = min(boxes.upper[h, x, a, y] - boxes.lower[h, x, a, y], left)
                                value += room * hit[y]
                                left -= room
                            total += policy[h, x, a] * value
                    before[x] = total
                for x in range(boxes.widths[h]):
                    hit[x] = before[x]
            for a in range(actions):
                out[layer, target, a] = hit[0] * policy[layer, target, a]


@kernel
def sort_descending(values: Floats, n: int, order: Ints) -> None:
    """Insertion sort: ``values[order]`` decreases."""
    for j in range(n):
        k = j
        while k > 0 and values[order[k - 1]] < values[j]:
            order[k] = order[k - 1]
            k -= 1
        order[k] = j


def check_gap(gap: float, episode: int | None = None) -> None:
    """Raise if a solve missed its certificate by more than `GAP_LIMIT`."""
    if not gap <= GAP_LIMIT:
        where = "" if episode is None else f" in episode {episode}"
        raise SolverError(
            f"The occupancy solver stopped{where} with a duality gap of {gap:.3g} > {GAP_LIMIT}; "
            f"use a smaller learning rate or larger epsilon."
        )
