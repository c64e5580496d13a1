"""Compiled post-processing of private counts (equations in `postprocess`)."""

from discreet._jit import inlined, kernel
from discreet._types import FloatArray


@inlined
def valid_row(counts: FloatArray, low: float, high: float, out: FloatArray) -> None:
    """Write max(0, counts + c) with the c of least |c| whose sum lies in [low, high].

    The sum is convex and increasing in c, so dropping the non-positive entries until none is left
    to drop (Newton's method, started with all entries) ends at the root after at most S passes.
    """
    if high <= 0.0:
        out[:] = 0.0
        return
    total = 0.0
    clipped = 0.0
    for value in counts:
        total += value
        clipped += max(value, 0.0)
    if low <= clipped <= high:
        for i in range(counts.size):
            out[i] = max(counts[i], 0.0)
        return
    target = high if clipped > high else low
    active = counts.size
    while True:
        shift = (target - total) / active
        kept = 0
        total = 0.0
        for value in counts:
            if value + shift > 0.0:
                kept += 1
                total += value
        if kept >= active or kept == 0:  # '>': rounding can bring an entry at zero back
            break
        active = kept
    for i in range(counts.size):
        out[i] = max(counts[i] + shift, 0.0)


@kernel
def valid_rows(counts: FloatArray, totals: FloatArray, errors: FloatArray, out: FloatArray) -> None:
    """`valid_row` for every row of ``counts[rows, S]``, sums within ``errors`` of ``totals``."""
    for i in range(counts.shape[0]):
        valid_row(counts[i], totals[i] - errors[i], totals[i] + errors[i], out[i])
