"""Compiled post-processing of private counts (equations in `postprocess`)."""

import numpy as np

from discreet._jit import as_float, as_word, inlined, kernel
from discreet._types import FloatArray


@inlined
def valid_row(counts: FloatArray, low: float, high: float, out: FloatArray) -> None:
    """Write max(0, counts + c) with the c of least |c| whose sum lies in [low, high].

    The sum is convex and increasing in c, so dropping the non-positive entries until none is left
    to drop (Newton's method, started with all entries that can stay) ends at the root after at most
    S passes.
    """
    if high <= 0.0:
        for i in range(counts.size):
            out[i] = 0.0
        return
    total = 0.0
    clipped = 0.0
    positives = 0
    for i in range(counts.size):
        total += counts[i]
        clipped += counts[i] if counts[i] > 0.0 else 0.0
        positives -= _mask(counts[i])
    shift = 0.0
    if not low <= clipped <= high:
        target, active = low, counts.size
        if clipped > high:  # the shift is negative: what is not positive is dropped anyway
            target, active, total = high, positives, clipped
        while True:
            shift = (target - total) / active
            kept = 0
            total = 0.0
            for i in range(counts.size):
                positive = _mask(counts[i] + shift)
                kept -= positive
                total += as_float(as_word(counts[i]) & np.uint64(positive))
            if kept >= active or kept == 0:  # '>': rounding can bring an entry at zero back
                break
            active = kept
    for i in range(counts.size):
        moved = counts[i] + shift
        out[i] = moved if moved > 0.0 else 0.0


@inlined
def _mask(value: float) -> int:
    """-1 (all bits) if the value is positive, otherwise 0.

    From its sign bit: whether a count under noise is positive is a coin toss, and a branch that the
    processor guesses wrong costs more than a pass over eight counts.
    """
    return int(np.int64(as_word(0.0 - value)) >> 63)


@kernel
def valid_rows(counts: FloatArray, totals: FloatArray, errors: FloatArray, out: FloatArray) -> None:
    """`valid_row` for every row of ``counts[rows, S]``, sums within ``errors`` of ``totals``."""
    for i in range(counts.shape[0]):
        valid_row(counts[i], totals[i] - errors[i], totals[i] + errors[i], out[i])
