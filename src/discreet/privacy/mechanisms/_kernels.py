"""Compiled loops of the stream mechanisms. Rows are time, columns are counters."""

import numpy as np
from numpy.typing import NDArray

from discreet._jit import kernel

_Floats = NDArray[np.float64]
_Integers = NDArray[np.int64]


@kernel
def closing_level(time: int, levels: int) -> int:
    """The level of the node that closes after ``time`` leaves: its trailing zeros, capped."""
    level = 0
    while level < levels - 1 and time & 1 == 0:
        time >>= 1
        level += 1
    return level


@kernel
def tree_prefix(fresh: _Integers, first: int, nodes: _Floats, total: _Floats, out: _Floats) -> None:
    """Noise of the prefix sums after ``first + 1, first + 2, ...`` leaves.

    Args:
        fresh: ``[n, cells]``, the noise of the one node that closes at each time.
        first: leaves seen before.
        nodes: ``[levels, cells]``, noise of the nodes in the current prefix (updated).
        total: ``[cells]``, their sum (updated).
        out: ``[n, cells]``, the sums after each time.
    """
    levels, cells = nodes.shape
    for i in range(fresh.shape[0]):
        level = closing_level(first + i + 1, levels)
        for j in range(level):
            for c in range(cells):
                total[c] -= nodes[j, c]
                nodes[j, c] = 0.0
        for c in range(cells):
            nodes[level, c] += fresh[i, c]
            total[c] += fresh[i, c]
            out[i, c] = total[c]


@kernel
def honaker_prefix(
    fresh: _Integers,
    first: int,
    own_weight: _Floats,
    nodes: _Floats,
    total: _Floats,
    out: _Floats,
) -> None:
    """As `tree_prefix`, with every node averaged with its two children.

    ``fresh`` holds the noise of *all* nodes in the order in which they close (at one time: the
    leaf, its parent if that closes too, and so on).
    """
    levels, cells = nodes.shape
    row = 0
    merged = np.empty(cells)
    for i in range(out.shape[0]):
        level = closing_level(first + i + 1, levels)
        for c in range(cells):
            merged[c] = fresh[row, c]
        row += 1
        for j in range(level):
            weight = own_weight[j + 1]
            for c in range(cells):
                children = nodes[j, c] + merged[c]
                merged[c] = weight * fresh[row, c] + (1.0 - weight) * children
                total[c] -= nodes[j, c]
                nodes[j, c] = 0.0
            row += 1
        for c in range(cells):
            nodes[level, c] += merged[c]
            total[c] += merged[c]
            out[i, c] = total[c]


@kernel
def running_sums(fresh: _Integers, total: _Floats, out: _Floats) -> None:
    """Sums of independent noise after each time; ``total`` carries over."""
    for i in range(fresh.shape[0]):
        for c in range(total.size):
            total[c] += fresh[i, c]
            out[i, c] = total[c]
