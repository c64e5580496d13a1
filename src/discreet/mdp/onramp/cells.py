"""What a cell of a table means: a user, a name of the vocabulary, a number, or nothing.

A column's different values are decided once each and looked up from then on, so that a million rows
cost a million look-ups and not a million checks.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real

import numpy as np

from discreet._spelling import RefusedNameError, person, spelled
from discreet._types import FloatArray, IntArray
from discreet.mdp.vocabulary import key, nearest

NOTHING = -1
"""Stands for a name that is not recorded; a number that is not recorded is NaN."""

_MISSING_TYPES = {"NAType", "NaTType"}
"""What pandas writes into columns of whole numbers, of text and of dates; it need not be there."""


class RefusedCellError(Exception):
    """A cell breaks a rule; whoever knows its place makes a sentence of it."""

    def __init__(self, value: object, rule: str, remedy: str, index: int = -1) -> None:
        super().__init__(rule)
        self.value, self.rule, self.remedy, self.index = value, rule, remedy, index


class Foreign:
    """A value that is neither text nor a number; never equal to one (True is 1 to Python)."""

    def __init__(self, value: object) -> None:
        self.value = value


_FLAGS = {True: Foreign(True), False: Foreign(False)}


def plain(values: Sequence[object]) -> Sequence[object]:
    """The values with one kind of nothing (None), and with others told apart from numbers.

    >>> plain(["ill", 3, None, float("nan"), np.int8(3)])
    ['ill', 3, None, None, 3]
    """
    if set(map(type, values)) <= {str, int, type(None)}:
        return values
    return [_plain(value) for value in values]


def _plain(value: object) -> object:
    if isinstance(value, bool | np.bool_):
        return _FLAGS[bool(value)]
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real) and isinstance(value, float | np.floating):
        return None if math.isnan(value) else float(value)
    return None if value is None or type(value).__name__ in _MISSING_TYPES else Foreign(value)


class Decided:
    """The numbers of one column's values."""

    def __init__(self, decide: Callable[[object], int]) -> None:
        self._decide = decide
        self._known: dict[object, int] = {}

    def numbers(self, values: Sequence[object]) -> IntArray:
        """One number for each value.

        Raises:
            RefusedCellError: with the index of the first value that has none.
        """
        cells = plain(values)
        found = list(map(self._known.get, cells))
        if None in found:
            try:
                for index in [i for i, number in enumerate(found) if number is None]:
                    found[index] = self._number(cells[index])
            except RefusedCellError as refused:
                refused.index, refused.value = index, values[index]
                raise
        return np.array(found, np.int64)

    def _number(self, cell: object) -> int:
        number = self._known.get(cell)
        if number is None:
            number = self._known[cell] = self._decide(cell)
        return number


class Users:
    """Gives every user a number, in the order in which they first come; spellings are one user."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}

    def decide(self, cell: object) -> int:
        name = _user_name(cell)
        number = self._numbers.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        return number


def _user_name(cell: object) -> str:
    try:
        return person("" if cell is None else cell)
    except RefusedNameError as refused:
        raise RefusedCellError(cell, refused.rule, refused.remedy) from None


def name_decider(known: Mapping[str, int], kind: str, *, optional: bool) -> Callable[[object], int]:
    """What a value of a column of names means: its number in the vocabulary."""

    def decide(cell: object) -> int:
        if cell is None or (isinstance(cell, str) and not spelled(cell)):
            if optional:
                return NOTHING
            raise RefusedCellError(cell, f"one of the {kind} in every row", "fill it in.")
        value = cell.value if isinstance(cell, Foreign) else cell
        number = known.get(str(key(value)))
        if number is None:
            remedy = f"{nearest(value, known)} The vocabulary is public: it lists all {kind}."
            raise RefusedCellError(cell, f"one of the {kind} of the vocabulary", remedy)
        return number

    return decide


def numbers(values: Sequence[object]) -> FloatArray:
    """One number for each value, NaN for nothing.

    >>> numbers(["0.5", "", 1, True, None]).tolist()
    [0.5, nan, 1.0, 1.0, nan]

    Raises:
        RefusedCellError: with the index of the first value that is no number.
    """
    try:
        if not _has_underscore(values):
            return np.array(list(map(float, values)))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        pass  # something is missing or wrong: one by one
    return np.array([_number(value, index) for index, value in enumerate(values)], np.float64)


def _number(value: object, index: int) -> float:
    cell = _plain(value)
    if cell is None or (isinstance(cell, str) and not spelled(cell)):
        return math.nan
    raw = cell.value if isinstance(cell, Foreign) else cell
    try:
        if not _has_underscore([raw]):
            return float(raw)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        pass
    comma = isinstance(raw, str) and "," in raw
    remedy = (
        "write decimals with a point." if comma else "correct it, or leave it empty if unknown."
    )
    raise RefusedCellError(value, "a number", remedy, index)


def _has_underscore(values: Sequence[object]) -> bool:
    """Python reads 1_0 as ten; a table that says so is damaged."""
    return any(type(v) is str and "_" in v for v in values)
