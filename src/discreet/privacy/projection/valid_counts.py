"""Valid counts, row by row: non-negative transitions whose sums fit the visits."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from discreet._jit import inlined, kernel
from discreet._types import FloatArray
from discreet.errors import InvalidInputError


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
        positives += int(counts[i] > 0.0)
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
                positive = counts[i] + shift > 0.0
                kept += int(positive)
                total += counts[i] if positive else 0.0
            if kept >= active or kept == 0:  # '>': rounding can bring an entry at zero back
                break
            active = kept
    for i in range(counts.size):
        moved = counts[i] + shift
        out[i] = moved if moved > 0.0 else 0.0


@kernel
def valid_rows(counts: FloatArray, totals: FloatArray, errors: FloatArray, out: FloatArray) -> None:
    """`valid_row` for every row of ``counts[rows, S]``, sums within ``errors`` of ``totals``."""
    for i in range(counts.shape[0]):
        valid_row(counts[i], totals[i] - errors[i], totals[i] + errors[i], out[i])


# Valid distributions from noisy counts, in closed form. Free: post-processing costs no privacy.
#
# For one (h, s, a) with noisy transition counts n_i and a noisy visit count n that is off by at
# most e, Qiao and Wang (2023, Section 5.1.1) solve the linear program
#
#     minimise  max_i |x_i - n_i|   subject to   x >= 0,  |sum x - n| <= e.
#
# Its solutions are not unique. The common shift x_i = max(0, n_i + c), with the c of least absolute
# value that makes the sum feasible, is the Euclidean projection onto the same set and one of the
# optima: it is unique, continuous in the data, and needs no solver. Its value is
#
#     max(0, -min n_i, (n - e - sum n_i)/S, max_j (sum of the j largest n_i - n - e)/j).
#
# If n + e < 0 no x is feasible; then x = 0, the feasible set's limit.


class ValidCounts(NamedTuple):
    """Post-processed counts: ``transitions[..., S]`` sum to ``visits[...]`` over the last axis."""

    transitions: FloatArray
    visits: FloatArray


def valid_transitions(transitions: ArrayLike, visits: ArrayLike, error: ArrayLike) -> FloatArray:
    """The nearest non-negative transition counts whose sums are within ``error`` of ``visits``.

    Args:
        transitions: noisy counts ``[..., S]``, typically ``[H, S, A, S]``.
        visits: noisy totals ``[...]``.
        error: how far a total may be off, a number or an array like ``visits``.

    >>> valid_transitions([5.0, -2.0, 1.0], 4.0, 1.0).tolist()
    [4.5, 0.0, 0.5]
    """
    counts = np.ascontiguousarray(transitions, dtype=np.float64)
    totals = np.asarray(visits, dtype=np.float64)
    errors = np.asarray(error, dtype=np.float64)
    _check(counts, totals, errors)
    rows = counts.reshape(-1, counts.shape[-1])
    out = np.empty_like(rows)
    spread = np.broadcast_to(errors, totals.shape)
    valid_rows(rows, np.ravel(totals), np.ravel(spread), out)
    return out.reshape(counts.shape)


def valid_counts(transitions: ArrayLike, visits: ArrayLike, error: ArrayLike) -> ValidCounts:
    """The counts of Qiao and Wang (2023, equation 5): valid, and never an underestimate.

    With ``error`` E bounding the noise of every counter, the totals are matched within E/4, E/(2S)
    is added to every transition and so E/2 to every visit: with the noise within its bound,
    ``visits`` lie between the true ones and the true ones plus E.
    """
    errors = np.asarray(error, dtype=np.float64)
    valid = valid_transitions(transitions, visits, errors / 4)
    valid += (errors / (2 * valid.shape[-1]))[..., None]
    return ValidCounts(valid, valid.sum(axis=-1))


def _check(counts: FloatArray, totals: FloatArray, errors: FloatArray) -> None:
    if counts.ndim < 1 or counts.shape[-1] < 1 or counts.shape[:-1] != totals.shape:
        raise InvalidInputError(
            f"Expected transitions [..., S] and visits [...], got shapes {counts.shape} and "
            f"{totals.shape}."
        )
    if not (np.isfinite(counts).all() and np.isfinite(totals).all()):
        raise InvalidInputError("Expected finite counts, got NaN or infinity; nothing was changed.")
    if not (np.isfinite(errors).all() and (errors >= 0).all()):
        raise InvalidInputError(f"Expected error >= 0 and finite, got error={errors!r}.")
    if errors.ndim and errors.shape != totals.shape:
        raise InvalidInputError(
            f"Expected error to be a number or of shape {totals.shape}, got shape {errors.shape}."
        )
