"""Keyword validators: each raises one sentence with the value, the rule and the remedy."""

import math
from collections.abc import Mapping
from numbers import Integral, Rational, Real
from typing import TYPE_CHECKING, Any, TypeGuard

from discreet.errors import InvalidInputError

if TYPE_CHECKING:  # presets load without NumPy
    from fractions import Fraction

    from discreet._types import Plain


def _fail(name: str, value: object, rule: str, remedy: str = "") -> InvalidInputError:
    return InvalidInputError(f"Expected {rule}, got {name}={value!r}{remedy}.")


def real(**values: object) -> None:
    """Each value is a finite real number (integers and fractions are welcome, booleans are not).

    >>> real(epsilon=1)
    >>> real(epsilon=float("nan"))
    Traceback (most recent call last):
    ...
    discreet.errors.InvalidInputError: Expected epsilon to be a finite number, got epsilon=nan.
    """
    _reals(values)


def _reals(values: Mapping[str, object]) -> list[tuple[str, Any]]:
    found = []
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
            raise _fail(name, value, f"{name} to be a finite number")
        found.append((name, value))
    return found


def positive(**values: object) -> None:
    """Each value is a finite number above zero."""
    for name, value in _reals(values):
        if not value > 0:
            raise _fail(name, value, f"{name} > 0")


def probability(**values: object) -> None:
    """Each value lies in [0, 1]."""
    for name, value in _reals(values):
        if not 0 <= value <= 1:
            raise _fail(name, value, f"{name} in [0, 1]")


def delta(**values: object) -> None:
    """Each value is a differential-privacy delta: in [0, 1)."""
    for name, value in _reals(values):
        if not 0 <= value < 1:
            raise _fail(name, value, f"{name} in [0, 1)")


def _whole(value: object) -> TypeGuard[int]:
    """An integer of any kind; True and 2.0 are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def integer(**values: object) -> None:
    """Each value is a whole number; 2.0 is none."""
    for name, value in values.items():
        if not _whole(value):
            raise _fail(name, value, f"{name} to be an integer")


def count(minimum: int = 1, /, **values: object) -> None:
    """Each value is an integer of at least ``minimum``."""
    for name, value in values.items():
        if not _whole(value) or value < minimum:
            raise _fail(name, value, f"{name} to be an integer >= {minimum}")


def at_most(limit: float, remedy: str, /, **values: object) -> None:
    """No value is above ``limit``; ``remedy`` ends the sentence.

    >>> at_most(100, "use smaller batches", users=101)
    Traceback (most recent call last):
    ...
    discreet.errors.InvalidInputError: Expected users <= 100, got users=101; use smaller batches.
    """
    for name, value in _reals(values):
        if value > limit:
            raise _fail(name, value, f"{name} <= {limit:g}", f"; {remedy}")


def choice(allowed: Mapping[str, object] | tuple[str, ...], **values: object) -> None:
    """Each value is one of the allowed words."""
    for name, value in values.items():
        if not isinstance(value, str) or value not in allowed:
            raise _fail(name, value, f"{name} to be one of {', '.join(map(repr, allowed))}")


def truth(**values: object) -> None:
    """Each value is True or False, not a word or a number that Python takes for one."""
    for name, value in values.items():
        if not isinstance(value, bool):
            raise _fail(name, value, f"{name} to be True or False")


def description(data: object) -> "Mapping[str, Plain]":
    """The public description of an encoder: a dictionary.

    >>> description(None)
    Traceback (most recent call last):
    ...
    discreet.errors.InvalidInputError: badDescription: Expected a dictionary, got None.
    """
    if not isinstance(data, Mapping):
        raise InvalidInputError(f"badDescription: Expected a dictionary, got {data!r:.60}.")
    return data


def exact(value: float | Rational) -> "Fraction":
    """The rational number a person means by ``value``: 0.1 is one tenth, not 0.1000000000000000055.

    >>> exact(0.1) + exact(0.9) == 1
    True
    """
    from fractions import Fraction

    if isinstance(value, Rational):
        return Fraction(value)
    return Fraction(repr(float(value)))
