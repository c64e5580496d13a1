"""Valid distributions from noisy counts, in closed form. Free: post-processing costs no privacy.

For one (h, s, a) with noisy transition counts n_i and a noisy visit count n that is off by at most
e, Qiao and Wang (2023, Section 5.1.1) solve the linear program

    minimise  max_i |x_i - n_i|   subject to   x >= 0,  |sum x - n| <= e.

Its solutions are not unique. The common shift x_i = max(0, n_i + c), with the c of least absolute
value that makes the sum feasible, is the Euclidean projection onto the same set and one of the
optima: it is unique, continuous in the data, and needs no solver. Its value is

    max(0, -min n_i, (n - e - sum n_i)/S, max_j (sum of the j largest n_i - n - e)/j).

If n + e < 0 no x is feasible; then x = 0, the feasible set's limit.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from discreet._types import FloatArray
from discreet.errors import InvalidInputError


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
    from discreet.privacy.postprocess.valid_counts_kernels import valid_rows

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
