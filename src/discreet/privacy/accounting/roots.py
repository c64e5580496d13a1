"""Roots, without scipy; and which epsilons and deltas can be guaranteed at all."""

import math
from collections.abc import Callable
from typing import NamedTuple

from discreet import _validate
from discreet.errors import CalibrationError, InvalidInputError

_LEAST_DELTA, _LARGEST_EPSILON = 1e-300, 1e9


def check_delta(delta: float) -> None:
    """A delta is zero, or a number that doubles can be compared with."""
    _validate.delta(delta=delta)
    if 0 < delta < _LEAST_DELTA:
        raise InvalidInputError(
            f"Expected delta=0 or delta >= {_LEAST_DELTA:g}, got delta={float(delta)!r}: smaller "
            f"ones are lost in double precision; use delta=0 with a pure mechanism (laplace)."
        )


def check_epsilon(epsilon: float) -> None:
    """An epsilon is positive, and small enough for the arithmetic of every mechanism."""
    _validate.positive(epsilon=epsilon)
    remedy = "that protects nobody: use a smaller one, or trust 'none' to learn without privacy"
    _validate.at_most(_LARGEST_EPSILON, remedy, epsilon=epsilon)


# Where a function of one number changes its sign, by the method of Brent (1973, chapter 4).
#
# The same steps, to the last bit, as `scipy.optimize.brentq`, whose import takes longer than all
# calibrations of a run: a test compares the two.


_RELATIVE = 8.881784197001252e-16
"""Four units in the last place."""
_MOST_STEPS = 100


class _Point(NamedTuple):
    x: float
    value: float


def bracketed_root(
    function: Callable[[float], float],
    low: float,
    high: float,
    *,
    xtol: float = 2e-12,
    rtol: float = _RELATIVE,
) -> float:
    """A root of a continuous function between ``low`` and ``high``, where its signs are opposite.

    It is this close, ``xtol``, or this close relative to itself, ``rtol``.

    Raises:
        CalibrationError: both ends have the same sign, or the root is not found.

    >>> round(bracketed_root(lambda x: x * x - 2, 0.0, 2.0), 12)
    1.414213562373
    """
    before, best = _Point(low, function(low)), _Point(high, function(high))
    if before.value == 0:
        return before.x
    if best.value == 0:
        return best.x
    if (before.value < 0) == (best.value < 0):
        raise CalibrationError(
            f"Expected a change of sign between {low!r} and {high!r}, got {before.value!r} and "
            f"{best.value!r}."
        )
    other, last, step = before, 0.0, 0.0
    for _ in range(_MOST_STEPS):
        if before.value != 0 and (before.value < 0) != (best.value < 0):
            other = before
            last = step = best.x - before.x
        if abs(other.value) < abs(best.value):
            before, best, other = best, other, best
        near, half = (xtol + rtol * abs(best.x)) / 2, (other.x - best.x) / 2
        if best.value == 0 or abs(half) < near:
            return best.x
        last, step = _next_step(before, best, other, (last, step), half, near)
        before = best
        moved = step if abs(step) > near else math.copysign(near, half)
        best = _Point(best.x + moved, function(best.x + moved))
    raise CalibrationError(
        f"No root was found between {low!r} and {high!r} in {_MOST_STEPS} steps."
    )


def _next_step(
    before: _Point,
    best: _Point,
    other: _Point,
    steps: tuple[float, float],
    half: float,
    near: float,
) -> tuple[float, float]:
    """The step before last and the next one: interpolated if that is short, else to the middle."""
    last, step = steps
    if abs(last) <= near or abs(best.value) >= abs(before.value):
        return half, half
    if before.x == other.x:  # two points: a line
        wanted = -best.value * (best.x - before.x) / (best.value - before.value)
    else:  # three: the inverse of a parabola
        here = (before.value - best.value) / (before.x - best.x)
        there = (other.value - best.value) / (other.x - best.x)
        wanted = (
            -best.value
            * (other.value * there - before.value * here)
            / (there * here * (other.value - before.value))
        )
    if 2 * abs(wanted) < min(abs(last), 3 * abs(half) - near):
        return step, wanted
    return half, half
