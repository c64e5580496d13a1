"""The inner problem of entropy FTRL: transitions in their boxes, all blocks of a layer at once.

For potentials nu of the next layer, every block (x, a) looks for

    gain(x,a) = max over p in the box-simplex of  sum p(x')·(nu(x') - ln p(x')),

attained by p = clip(t·e^nu, lower, upper) with the scalar t that makes it sum to one. A block is a
*column* here: arrays are ``[H, X', X·A]``, block (x, a) is column x·A + a. Loops over columns carry
nothing from one to the next, so the compiler treats eight of them at a time without reordering a
single sum: results do not depend on the machine's vector width.
"""

import math
from typing import NamedTuple

import numpy as np

from discreet._jit import kernel
from discreet._types import Floats, Ints
from discreet.learners.adversarial.occupancy_kernels import Boxes, sort_descending

LINEAR_RANGE = 600.0
"""Differences of log weights up to this size are safe in plain floating point (e^600 < 1e261)."""
PASSES = 8
"""Newton steps for all blocks at once; blocks that need more (few) are finished one by one."""


class Columns(NamedTuple):
    """Bounds of all blocks as columns, b·ln b of every bound b, and room to work in.

    Attributes:
        lower: ``[H, X', X·A]``.
        upper: the same shape.
        lower_entropy: the same shape.
        upper_entropy: the same shape.
        weights: ``[X']``, exp(nu - max nu) of the layer at hand.
        totals: ``[X·A]``, one sum per block.
        slopes: ``[X·A]``.
    """

    lower: Floats
    upper: Floats
    lower_entropy: Floats
    upper_entropy: Floats
    weights: Floats
    totals: Floats
    slopes: Floats


class Solution(NamedTuple):
    """What the inner problem has found, for all layers.

    Attributes:
        scales: ``[H, X·A]``, the t of every block.
        transitions: ``[H, X', X·A]``, the p of every block.
        gains: ``[H, X·A]``.
    """

    scales: Floats
    transitions: Floats
    gains: Floats


def empty_columns(horizon: int, width: int, actions: int) -> Columns:
    """Room for the boxes of one problem size."""
    blocks = width * actions
    size = (horizon, width, blocks)
    low, high, low_entropy, high_entropy = (np.zeros(size) for _ in range(4))
    weights, totals, slopes = np.zeros(width), np.zeros(blocks), np.zeros(blocks)
    return Columns(low, high, low_entropy, high_entropy, weights, totals, slopes)


@kernel
def fill_columns(boxes: Boxes, columns: Columns) -> None:
    horizon, _, actions, _ = boxes.lower.shape
    for h in range(horizon):
        for x in range(boxes.widths[h]):
            for a in range(actions):
                column = x * actions + a
                for y in range(boxes.widths[h + 1]):
                    low, high = boxes.lower[h, x, a, y], boxes.upper[h, x, a, y]
                    columns.lower[h, y, column] = low
                    columns.upper[h, y, column] = high
                    columns.lower_entropy[h, y, column] = _entropy(low)
                    columns.upper_entropy[h, y, column] = _entropy(high)


@kernel
def _entropy(value: float) -> float:
    return value * math.log(value) if value > 0.0 else 0.0


@kernel
def solve_layer(
    h: int, potentials: Floats, n: int, blocks: int, columns: Columns, found: Solution
) -> None:
    """Best transitions and gains of the blocks of layer h.

    Args:
        h: layer.
        potentials: ``[H + 1, X]``; those of layer h + 1 count.
        n: states of layer h + 1.
        blocks: pairs of layer h.
        columns: bounds.
        found: filled; its scales say where to start each t (0: anywhere).
    """
    nu = potentials[h + 1]
    scales, p, gains = found
    if n == 1:
        p[h, 0, :blocks] = 1.0
        gains[h, :blocks] = nu[0]
        return
    peak, total, wide = _weigh(nu, n, columns.weights)
    if wide:
        order = np.empty(n, np.int64)
        sort_descending(nu, n, order)
        for column in range(blocks):
            scales[h, column] = 0.0
            gains[h, column] = _wide_block(h, nu, order, columns, column, n, p)
        return
    for column in range(blocks):
        if not scales[h, column] > 0.0:
            scales[h, column] = 1.0 / total
    _find_scales(h, n, blocks, columns, scales)
    _fill_gains(h, nu, peak, n, blocks, columns, found)


@kernel
def _weigh(nu: Floats, n: int, weights: Floats) -> tuple[float, float, bool]:
    """Weights exp(nu - max nu); (max nu, their sum, is the range too wide to use them?)."""
    peak, least, total = nu[0], nu[0], 0.0
    for y in range(1, n):
        peak = max(peak, nu[y])
        least = min(least, nu[y])
    for y in range(n):
        weights[y] = math.exp(nu[y] - peak)
        total += weights[y]
    return peak, total, peak - least > LINEAR_RANGE


@kernel
def _find_scales(h: int, n: int, blocks: int, columns: Columns, scales: Floats) -> None:
    """The t of every block: Newton's method on their sums, increasing and piecewise linear in t."""
    totals, slopes = columns.totals, columns.slopes
    tolerance = 1e-14 + 2e-16 * n
    for _ in range(PASSES):
        _add_up(h, n, blocks, columns, scales)
        unsettled = 0
        for column in range(blocks):
            missing = 1.0 - totals[column]
            off = abs(missing) > tolerance
            step = scales[h, column] + missing / slopes[column]
            unsettled += off
            scales[h, column] = step if off & (step > 0.0) & (step < np.inf) else scales[h, column]
        if unsettled == 0:
            return
    _add_up(h, n, blocks, columns, scales)
    for column in range(blocks):
        if abs(1.0 - totals[column]) > tolerance:
            scales[h, column] = box_scale(
                h, columns.weights, columns.lower, columns.upper, column, n, scales[h, column]
            )


@kernel
def _add_up(h: int, n: int, blocks: int, columns: Columns, scales: Floats) -> None:
    """Totals: sum over y of clip(t·weight, lower, upper) per block. Slopes: its derivative in t."""
    lower, upper, totals, slopes = columns.lower, columns.upper, columns.totals, columns.slopes
    for column in range(blocks):
        totals[column] = 0.0
        slopes[column] = 0.0
    for y in range(n):
        weight = columns.weights[y]
        for column in range(blocks):
            low, high, value = lower[h, y, column], upper[h, y, column], scales[h, column] * weight
            totals[column] += min(max(value, low), high)
            slopes[column] += weight if (low < value) & (value < high) else 0.0


@kernel
def _fill_gains(
    h: int, nu: Floats, peak: float, n: int, blocks: int, columns: Columns, found: Solution
) -> None:
    """Transitions and gains from the scales: nu - ln p is the same for all entries off a bound."""
    free = columns.totals
    scales, p, gains = found
    for column in range(blocks):
        free[column] = 0.0
        gains[h, column] = 0.0
    for y in range(n):
        weight, potential = columns.weights[y], nu[y]
        for column in range(blocks):
            value = scales[h, column] * weight
            low, high = columns.lower[h, y, column], columns.upper[h, y, column]
            below, above = value <= low, value >= high
            entropy = (
                columns.lower_entropy[h, y, column]
                if below
                else columns.upper_entropy[h, y, column]
            )
            value = min(max(value, low), high)
            p[h, y, column] = value
            free[column] += 0.0 if below | above else value
            gains[h, column] += value * potential - entropy if below | above else 0.0
    for column in range(blocks):
        gains[h, column] += free[column] * (peak - math.log(scales[h, column]))


@kernel
def box_scale(
    h: int, weights: Floats, lower: Floats, upper: Floats, column: int, n: int, scale: float
) -> float:
    """The t of one block, from t = ``scale``, whatever it takes.

    Newton's method inside a bracket; it walks to the next breakpoint where nothing is free to move.
    """
    least, most, t = 0.0, np.inf, scale
    tolerance = 1e-14 + 2e-16 * n
    for _ in range(40 + 2 * n):
        total, slope = 0.0, 0.0
        for y in range(n):
            low, high, value = lower[h, y, column], upper[h, y, column], t * weights[y]
            total += min(max(value, low), high)
            slope += weights[y] if low < value < high else 0.0
        missing = 1.0 - total
        if abs(missing) <= tolerance:
            break
        if missing > 0.0:
            least = t
        else:
            most = t
        step = t + missing / slope if slope > 0.0 else -1.0
        if not least < step < most:
            step = _next_breakpoint(h, weights, lower, upper, column, n, t, missing > 0.0)
            if not least < step < most:
                step = 0.5 * (least + most)
        if step == t or step == np.inf:  # noqa: PLR1714
            break
        t = step
    return t


@kernel
def _next_breakpoint(
    h: int,
    weights: Floats,
    lower: Floats,
    upper: Floats,
    column: int,
    n: int,
    t: float,
    upwards: bool,
) -> float:
    """The nearest t at which an entry starts or stops to be clipped, and a hair beyond it."""
    best = np.inf if upwards else 0.0
    for y in range(n):
        for point in (lower[h, y, column] / weights[y], upper[h, y, column] / weights[y]):
            if (upwards and t < point < best) or (not upwards and best < point < t):
                best = point
    return best * (1.0 + 1e-12) if upwards else best * (1.0 - 1e-12)


@kernel
def _wide_block(
    h: int, nu: Floats, order: Ints, columns: Columns, column: int, n: int, p: Floats
) -> float:
    """Best ``p`` and gain of a block whose potentials span a very wide range.

    Weights are taken relative to the marginal entry: entries further than `LINEAR_RANGE` from it
    sit at a bound, so cutting their exponents there changes nothing.
    """
    weights, lower, upper = columns.weights, columns.lower, columns.upper
    centre = nu[marginal_entry(h, order, lower, upper, column, n)]
    for y in range(n):
        weights[y] = math.exp(min(max(nu[y] - centre, -LINEAR_RANGE), LINEAR_RANGE))
    t = box_scale(h, weights, lower, upper, column, n, 1.0)
    gain, level = 0.0, centre - math.log(t)
    for y in range(n):
        value = t * weights[y]
        clipped = min(max(value, lower[h, y, column]), upper[h, y, column])
        p[h, y, column] = clipped
        gain += value * level if clipped == value else clipped * nu[y] - _entropy(clipped)
    return gain


@kernel
def marginal_entry(h: int, order: Ints, lower: Floats, upper: Floats, column: int, n: int) -> int:
    """The entry at which the mass runs out when it is given to the best entries first."""
    spare = 1.0
    for y in range(n):
        spare -= lower[h, y, column]
    for k in range(n):
        spare -= upper[h, order[k], column] - lower[h, order[k], column]
        if spare <= 0.0:
            return int(order[k])
    return int(order[n - 1])
