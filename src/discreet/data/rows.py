"""What a cell of a table means: a user, a name of the vocabulary, a number, or nothing.

A column's different values are decided once each and looked up from then on, so that a million rows
cost a million look-ups and not a million checks.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import TypeVar

import numpy as np

from discreet._spelling import RefusedNameError, person, spelled, warn_of_lookalikes
from discreet._types import FloatArray, IntArray
from discreet.data.discretizer import Cuts
from discreet.data.layout import Layout
from discreet.data.readers import Part, Source, check_columns, refusal
from discreet.data.vocabulary import key, nearest
from discreet.errors import InvalidInputError

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


# Rows of a table as numbers: users, steps, states, actions, rewards.


_Numbers = TypeVar("_Numbers", IntArray, FloatArray)


@dataclass(frozen=True)
class Rows:
    """All rows of a table, as they come.

    Attributes:
        users: the number of each row's user, in the order in which they first come.
        steps: 0 to H - 1, or H for the closing moment.
        states: numbers of the vocabulary.
        actions: likewise, or `NOTHING`.
        rewards: in [0, 1], or NaN where missing.
        following: the recorded next states, or `NOTHING`.
        places: where the rows stand in the table.
    """

    users: IntArray
    steps: IntArray
    states: IntArray
    actions: IntArray
    rewards: FloatArray
    following: IntArray
    places: IntArray

    def __len__(self) -> int:
        return len(self.users)

    def __getitem__(self, chosen: IntArray) -> "Rows":
        """Some rows, or all in another order."""
        return Rows(*(getattr(self, f.name)[chosen] for f in fields(self)))


def read_rows(source: Source, layout: Layout) -> tuple[Rows, list[str]]:
    """All rows of a table, and the names of its users."""
    reader = _Reader(source, layout)
    parts = [reader.read(part) for part in source.parts(reader.columns)]
    if not sum(map(len, parts)):
        raise InvalidInputError("Expected at least one row, got a table without any.")
    warn_of_lookalikes(reader.users.names)
    joined = (np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Rows))
    return Rows(*joined), reader.users.names


class _Reader:
    """Turns parts of a table into numbers, and remembers what it has decided."""

    def __init__(self, source: Source, layout: Layout) -> None:
        self.columns = layout.needed(source.names)
        check_columns(source, self.columns)
        self.users = Users()
        self._source = source
        self._layout = layout
        known = layout.vocabulary.numbers
        self._decided = {
            "user": Decided(self.users.decide),
            "step": Decided(name_decider(known("steps"), "steps", optional=False)),
            "state": Decided(name_decider(known("states"), "states", optional=False)),
            "action": Decided(name_decider(known("actions"), "actions", optional=True)),
            "next_state": Decided(name_decider(known("states"), "states", optional=True)),
        }

    def read(self, part: Part) -> Rows:
        recorded = self._layout.column("next_state") in self.columns
        return Rows(
            users=self._named("user", part),
            steps=self._named("step", part),
            states=self._states(part),
            actions=self._named("action", part),
            rewards=self._rewards(part),
            following=(
                self._named("next_state", part)
                if recorded
                else np.full(len(part.places), NOTHING, np.int64)
            ),
            places=part.places,
        )

    def _named(self, role: str, part: Part) -> IntArray:
        return self._cells(self._decided[role].numbers, self._layout.column(role), part)

    def _cells(
        self, read: Callable[[Sequence[object]], _Numbers], column: str, part: Part
    ) -> _Numbers:
        try:
            return read(part.columns[column])
        except RefusedCellError as refused:
            at = self._source.at(int(part.places[refused.index]))
            error = refusal(refused.rule, refused.value, column, at, refused.remedy)
        raise error

    def _states(self, part: Part) -> IntArray:
        discretizer = self._layout.discretizer
        if discretizer is None:
            return self._named("state", part)
        return discretizer.combine([self._bins(cuts, part) for cuts in discretizer.cuts])

    def _bins(self, cuts: Cuts, part: Part) -> IntArray:
        values = self._cells(numbers, cuts.column, part)
        bins = cuts.bins(values)
        bad = np.flatnonzero(bins < 0)
        if len(bad):
            rule, remedy = cuts.refusal(int(bins[bad[0]]))
            raise self._refusal(rule, values, cuts.column, part, bad[0], f"{remedy}.")
        return bins

    def _rewards(self, part: Part) -> FloatArray:
        """Rewards in [0, 1]."""
        column = self._layout.column("reward")
        low, high = map(float, self._layout.reward_range)
        values = self._cells(numbers, column, part)
        outside = np.flatnonzero((values < low) | (values > high))
        if len(outside) and not self._layout.clip_rewards:
            raise self._refusal(
                f"rewards from {low:g} to {high:g}",
                values,
                column,
                part,
                outside[0],
                "give their public range as reward_range=(low, high), or clip_rewards=True.",
            )
        return self._layout.scaled(values)

    def _refusal(
        self, rule: str, values: FloatArray, column: str, part: Part, index: int, remedy: str
    ) -> InvalidInputError:
        at = self._source.at(int(part.places[index]))
        return refusal(rule, float(values[index]), column, at, remedy)
