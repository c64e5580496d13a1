"""Ball arithmetic: numbers that carry a proven enclosure of what they stand for (python-flint).

Every operation on balls encloses the exact result, so the upper end of a bound computed with balls
is a bound. Floats choose windows and indices; whatever they choose, the bound stays true.
"""

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import ParamSpec, TypeVar

from discreet.errors import MissingExtraError

try:
    from flint import arb, arb_poly, ctx, fmpq
except ImportError as error:
    raise MissingExtraError("python-flint", "certify") from error

__all__ = [
    "arb",
    "arb_poly",
    "at_precision",
    "ball",
    "clipped",
    "exact",
    "half_line",
    "lower",
    "upper",
]

P = ParamSpec("P")
R = TypeVar("R")

PRECISION = 256
"""Bits of a ball's centre: far more than any bound here loses to rounding."""
_LEAST = Fraction(1, 2**400)
"""Far below any delta."""


def at_precision(bits: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Run a function with balls of this many bits, whatever the caller works with."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            before = ctx.prec
            ctx.prec = bits
            try:
                return function(*args, **kwargs)
            finally:
                ctx.prec = before

        return run

    return decorate


def ball(value: int | float | Fraction) -> arb:
    """The ball around an exact number; a float stands for its exact binary value."""
    exactly = Fraction(value)
    return arb(fmpq(exactly.numerator, exactly.denominator))


def exact(end: arb) -> Fraction:
    """The rational value of a ball of radius zero."""
    mantissa, exponent = end.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def upper(value: arb) -> Fraction:
    """The upper end of a ball, exactly; one if nothing better is known.

    What is far below any delta is rounded up: an exact 10^-(10^9) would be a long number.
    """
    if not value.is_finite():
        return Fraction(1)
    return _LEAST if abs(value) <= ball(_LEAST) else exact(value.upper())


def lower(value: arb) -> Fraction:
    """The lower end of a ball around a number that is at least zero, exactly.

    Zero if nothing better is known, or if it is far below any delta (see `upper`).
    """
    return exact(value.lower()) if value.is_finite() and value >= ball(_LEAST) else Fraction(0)


def clipped(value: arb) -> arb:
    """A ball around max(0, x) for every x in the ball."""
    return value.nonnegative_part()


def half_line(value: arb) -> arb:
    """Phi(x), the standard normal distribution function."""
    root: arb = arb(2).sqrt()
    return (-value / root).erfc() / 2


def density(value: arb) -> arb:
    """The standard normal density."""
    return (-value * value / 2).exp() / (2 * arb.pi()).sqrt()


def as_float(value: Fraction) -> float:
    """The least double that is not below ``value``."""
    number = float(value)
    return number if Fraction(number) >= value else math.nextafter(number, math.inf)
