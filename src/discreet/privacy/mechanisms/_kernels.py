"""Compiled loops of the stream mechanisms. Rows are time, columns are counters."""

import numpy as np

from discreet._jit import kernel
from discreet._types import FloatArray, IntArray, NumberArray


@kernel
def closing_level(time: int, levels: int) -> int:
    """The level of the node that closes after ``time`` leaves: its trailing zeros, capped."""
    level = 0
    while level < levels - 1 and time & 1 == 0:
        time >>= 1
        level += 1
    return level


@kernel
def tree_prefix(
    fresh: IntArray, first: int, nodes: IntArray, total: IntArray, out: NumberArray
) -> None:
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
            closed = nodes[j]
            for c in range(cells):
                total[c] -= closed[c]
                closed[c] = 0
        opened, new, prefix = nodes[level], fresh[i], out[i]
        for c in range(cells):
            opened[c] += new[c]
        for c in range(cells):  # one array at a time: more of them do not vectorise together
            total[c] += new[c]
        for c in range(cells):
            prefix[c] = total[c]


@kernel
def weighted(weight: int, value: int) -> int:
    """floor(weight·value/2^12 + 1/2): exact for every value below 2^62, weights up to 2^12.

    Adding a multiple of 2^12 to the value adds exactly its weighted part to the result.
    """
    return weight * (value >> 12) + ((weight * (value & 4095) + 2048) >> 12)


@kernel
def honaker_prefix(
    fresh: IntArray,
    first: int,
    own_weight: IntArray,
    nodes: IntArray,
    total: IntArray,
    out: IntArray,
) -> None:
    """As `tree_prefix`, with every node averaged with its two children, in units of 2^-12.

    ``fresh`` holds the noise of *all* nodes in the order in which they close (at one time: the
    leaf, its parent if that closes too, and so on); ``own_weight`` is in units of 2^-12.
    """
    levels, cells = nodes.shape
    row = 0
    merged = np.empty(cells, np.int64)
    for i in range(out.shape[0]):
        level = closing_level(first + i + 1, levels)
        for c in range(cells):
            merged[c] = fresh[row, c] << 12
        row += 1
        for j in range(level):
            weight = own_weight[j + 1]
            for c in range(cells):
                children = nodes[j, c] + merged[c]
                merged[c] = weight * fresh[row, c] + weighted(4096 - weight, children)
                total[c] -= nodes[j, c]
                nodes[j, c] = 0
            row += 1
        for c in range(cells):
            nodes[level, c] += merged[c]
            total[c] += merged[c]
            out[i, c] = total[c]


@kernel
def factored_prefix(
    fresh: IntArray,
    first: int,
    weights: IntArray,
    nodes: IntArray,
    total: IntArray,
    out: IntArray,
) -> None:
    """As `tree_prefix`, for the averaged tree in factored form (see `tree.averaging`).

    The node that closes takes over ``weights[level, j]`` (in units of 2^-12) of the estimate of
    every node j that it replaces.
    """
    levels, cells = nodes.shape
    for i in range(fresh.shape[0]):
        level = closing_level(first + i + 1, levels)
        for c in range(cells):
            merged = fresh[i, c]
            for j in range(level):
                merged += weighted(weights[level, j], nodes[j, c])
                total[c] -= nodes[j, c]
                nodes[j, c] = 0
            nodes[level, c] += merged
            total[c] += merged
            out[i, c] = total[c]


@kernel
def running_sums(fresh: IntArray, total: IntArray, out: FloatArray) -> None:
    """Sums of independent noise after each time; ``total`` carries over."""
    for i in range(fresh.shape[0]):
        for c in range(total.size):
            total[c] += fresh[i, c]
            out[i, c] = total[c]


@kernel
def encoder_series(weights: FloatArray, decays: FloatArray, grid: float, out: IntArray) -> None:
    """The coefficients c_t of the series with (b·c)_t = 1, as multiples of 1/grid.

    b_j = sum of weights·decays^j with b_0 = 1. Rounding errors are fed back: each c_t makes up for
    the rounding of all earlier ones, so |(b·c)_t - 1| <= 1/(2·grid) at every t.
    """
    state = np.zeros(weights.size)
    for t in range(out.size):
        rest = 1.0
        for m in range(weights.size):
            rest -= weights[m] * state[m]
        out[t] = np.int64(np.rint(rest * grid))
        value = out[t] / grid
        for m in range(weights.size):
            state[m] = decays[m] * (state[m] + value)


@kernel
def encode_row(
    encoder: IntArray,
    time: int,
    times: IntArray,
    cells: IntArray,
    amounts: IntArray,
    out: IntArray,
) -> None:
    """Add the sum of encoder[time - times]·amounts to each cell, in integers."""
    for k in range(times.size):
        out[cells[k]] += encoder[time - times[k]] * amounts[k]


@kernel
def decode_rows(
    rows: IntArray,
    rates: FloatArray,
    decays: FloatArray,
    gains: FloatArray,
    scale: float,
    state: FloatArray,
    out: FloatArray,
) -> None:
    """Filter every column by (1-u)·b(u), weigh by ``gains``, sum up, and round.

    With b_j the sum of weights·decays^j, b_0 = 1 and rates = weights·(1 - decays), the series
    (1-u)·b(u) is 1 - sum over m of rates·u/(1 - decays·u). ``state[terms + 1, cells]`` carries
    over: the memory of every exponential, then the running sum. ``out`` is floor(scale·sum + 1/2).

    Counters go through in strips with copies of their own, which stay in the first-level cache and
    are known not to overlap: ten times faster than the plain triple loop.
    """
    terms, cells = state.shape[0] - 1, state.shape[1]
    width = 64
    strip = np.zeros((terms, width))
    value, change, total = np.zeros(width), np.empty(width), np.zeros(width)
    for start in range(0, cells, width):
        used = min(width, cells - start)
        for c in range(used):  # no slices: their comparison of shapes is compiled for seconds
            for m in range(terms):
                strip[m, c] = state[m, start + c]
            total[c] = state[terms, start + c]
        for i in range(rows.shape[0]):
            for c in range(used):
                value[c] = rows[i, start + c]
            for c in range(width):
                change[c] = value[c]
            for m in range(terms):
                decay, rate, memory = decays[m], rates[m], strip[m]
                for c in range(width):
                    change[c] -= rate * memory[c]
                    memory[c] = decay * memory[c] + value[c]
            for c in range(width):
                total[c] += gains[i] * change[c]
            for c in range(used):
                out[i, start + c] = np.floor(scale * total[c] + 0.5)
        for c in range(used):
            for m in range(terms):
                state[m, start + c] = strip[m, c]
            state[terms, start + c] = total[c]


@kernel
def decoded_variances(
    rates: FloatArray, decays: FloatArray, gains: FloatArray, out: FloatArray
) -> None:
    """Variance of what `decode_rows` makes of independent noise of variance one, at every time.

    The state of the decoder is linear in the noise; its covariance follows the same recursion.
    ``state`` holds the covariances of the exponentials, in the last column those with the running
    sum, and in the corner the variance of that.
    """
    terms = rates.size
    state = np.zeros((terms + 1, terms + 1))
    fed = np.empty(terms)
    for t in range(gains.size):
        gain, change, shared = gains[t], 1.0, 0.0
        for m in range(terms):
            total = 0.0
            for n in range(terms):
                total += state[m, n] * rates[n]
            fed[m] = total
            change += rates[m] * total
            shared -= rates[m] * state[m, terms]
        state[terms, terms] += gain * (gain * change + 2 * shared)
        out[t] = state[terms, terms]
        for m in range(terms):
            state[m, terms] = decays[m] * (state[m, terms] - gain * fed[m]) + gain
            for n in range(terms):
                state[m, n] = decays[m] * decays[n] * state[m, n] + 1.0
