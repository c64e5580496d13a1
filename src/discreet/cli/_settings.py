"""Settings given as ``name=value`` on the command line."""

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from discreet.errors import InvalidInputError

if TYPE_CHECKING:
    from discreet._types import Plain


def parse_value(text: str) -> "Plain":
    """A Python literal if it reads as one, else the text itself; ``2e5`` is the integer 200000.

    >>> [parse_value(t) for t in ("4", "2e5", "0.5", "true", "S..G")]
    [4, 200000, 0.5, True, 'S..G']
    """
    words: dict[str, bool | None] = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):  # the last two: absurd nesting
        return text
    if not isinstance(value, int | float | str | list | tuple | dict):
        return text  # bytes, sets and complex numbers are nobody's settings
    if isinstance(value, float) and "e" in text.lower() and value.is_integer():
        return int(value)
    return value


def parse_settings(texts: Iterable[str]) -> "dict[str, Plain]":
    """``["states=4", "slip=0.1"]`` as a dictionary."""
    settings: dict[str, Plain] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise InvalidInputError(f"Expected --set name=value, got --set {text!r}.")
        settings[name.strip()] = parse_value(value.strip())
    return settings
