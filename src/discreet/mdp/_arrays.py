"""Checked copies of arrays that describe a model or a policy."""

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from discreet._types import BoolArray, FloatArray, NumberArray
from discreet.errors import InvalidInputError

_SUM_TOLERANCE = 1e-6
"""Rows may miss one by this much: single-precision matrices of S=1000 pass, mistakes do not."""

_EXACT_SUM = 1e-12
"""Rows further than this from one are rescaled in our copy; NumPy's multinomial needs it."""


def frozen_copy(array: ArrayLike, dtype: DTypeLike) -> NumberArray:
    """A read-only, contiguous copy."""
    copy = np.array(array, dtype=dtype, order="C", copy=True)
    copy.flags.writeable = False
    return copy


def one_layout(array: FloatArray) -> FloatArray:
    """A read-only contiguous view, or copy if need be: of one type, for which kernels compile once.

    >>> one_layout(np.zeros((2, 3)).T).flags.c_contiguous
    True
    """
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def numbers(array: ArrayLike, name: str) -> FloatArray:
    """A float64 copy without NaN or infinity."""
    try:
        copy: FloatArray = np.array(array, dtype=np.float64, order="C", copy=True)
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"Expected {name} to be an array of numbers, got {type(array).__name__}."
        ) from None
    bad = ~np.isfinite(copy)
    if bad.any():
        raise InvalidInputError(f"Expected finite {name}, got {copy[bad][0]}{_at(name, bad)}.")
    return copy


def probability_rows(array: ArrayLike, name: str) -> FloatArray:
    """A read-only copy whose rows (last axis) are distributions; names the first bad row.

    >>> probability_rows([[0.5, 0.6]], "transitions")
    Traceback (most recent call last):
    ...
    discreet.errors.InvalidInputError: Expected each row of transitions to sum to 1, \
got 1.1 at transitions[0]; rescale the row or correct its entries.
    """
    rows = numbers(array, name)
    negative = rows < 0
    if negative.any():
        raise InvalidInputError(
            f"Expected probabilities >= 0, got {rows[negative][0]}{_at(name, negative)}."
        )
    sums = rows.sum(axis=-1)
    wrong = np.abs(sums - 1) > _SUM_TOLERANCE
    if wrong.any():
        raise InvalidInputError(
            f"Expected each row of {name} to sum to 1, got {sums[wrong][0]:.9g}{_at(name, wrong)}; "
            f"rescale the row or correct its entries."
        )
    inexact = np.abs(sums - 1) > _EXACT_SUM
    if inexact.any():
        rows[inexact] /= sums[inexact][..., None]
    rows.flags.writeable = False
    return rows


def unit_interval(array: ArrayLike, name: str) -> FloatArray:
    """A read-only copy with all entries in [0, 1]; names the first that is not."""
    values = numbers(array, name)
    outside = (values < 0) | (values > 1)
    if outside.any():
        raise InvalidInputError(
            f"Expected {name} in [0, 1], got {values[outside][0]}{_at(name, outside)}; "
            f"rescale them first."
        )
    values.flags.writeable = False
    return values


def cumulative_rows(rows: FloatArray) -> FloatArray:
    """Cumulative sums along the last axis, exactly one from the last possible entry on.

    >>> cumulative_rows(np.array([0.0, 0.3, 0.7, 0.0])).tolist()
    [0.0, 0.3, 1.0, 1.0]
    """
    sums = np.cumsum(rows, axis=-1)
    possible = rows > 0
    from_here_on = np.cumsum(possible[..., ::-1], axis=-1)[..., ::-1]
    sums[from_here_on - possible == 0] = 1.0
    return sums


def _at(name: str, mask: BoolArray) -> str:
    """Where the first marked entry is, as an index expression."""
    if mask.ndim == 0:
        return ""
    first = np.argwhere(mask)[0]
    return f" at {name}[{', '.join(str(int(i)) for i in first)}]"
