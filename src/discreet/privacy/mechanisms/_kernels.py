"""Compiled loops of the stream mechanisms. Rows are time, columns are counters."""

import numpy as np

from discreet._jit import kernel
from discreet._types import FloatArray, IntArray


@kernel
def tree_prefix(
    fresh: IntArray, first: int, nodes: IntArray, total: IntArray, out: FloatArray
) -> None:
    """Noise of the prefix sums after ``first + 1, first + 2, ...`` leaves (see `tree`).

    Args:
        fresh: ``[n, cells]``, the noise of new nodes in the order of their first use.
        first: leaves seen before.
        nodes: ``[levels, base, cells]``; node i of a level is in place i % base (updated).
        total: ``[cells]``, the sum of the nodes of the current prefix (updated).
        out: ``[times, cells]``, the sums after each time.
    """
    levels, base, cells = nodes.shape
    below = (base - 1) // 2
    above, row = base - 1 - below, 0
    ends = np.empty(levels, np.int64)  # the prefix, rounded to nodes of each level
    ends[0] = first
    for j in range(1, levels):
        ends[j] = (ends[j - 1] + below) // base
    for i in range(out.shape[0]):
        j = 0
        while j < levels - 1 and ends[j] - base * ends[j + 1] == above:
            # A parent takes over: its first children are no longer added, its last ones taken off.
            for back in range(1, above + 1):
                used = nodes[j, (ends[j] - back) % base]
                for c in range(cells):
                    total[c] -= used[c]
            for ahead in range(1, below + 1):
                new = nodes[j, (ends[j] + ahead) % base]
                for c in range(cells):
                    new[c] = fresh[row, c]
                    total[c] -= new[c]
                row += 1
            ends[j] += 1
            j += 1
        node = nodes[j, ends[j] % base]
        if j == levels - 1 or ends[j] >= base * ends[j + 1]:  # otherwise one fewer is taken off
            for c in range(cells):
                node[c] = fresh[row, c]
            row += 1
        for c in range(cells):
            total[c] += node[c]
            out[i, c] = total[c]
        ends[j] += 1


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
