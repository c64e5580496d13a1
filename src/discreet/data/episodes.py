"""From a table to episodes: cells become numbers, each user's rows are put in order and checked.

A column's different values are decided once each and looked up from then on, so that a million rows
cost a million look-ups and not a million checks.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from numbers import Integral, Real

import numpy as np

from discreet._spelling import (
    RefusedNameError,
    alphabets,
    lookalikes,
    person,
    quoted,
    spelled,
    warn_of_lookalikes,
)
from discreet._types import BoolArray, FloatArray, IntArray
from discreet.data.discretizer import MISSING, OUTSIDE, Cuts
from discreet.data.layout import Absence, Layout, Padding
from discreet.data.problems import Problems, Shown
from discreet.data.sources import Part, Source, find_columns
from discreet.data.vocabulary import key, nearest
from discreet.errors import InvalidInputError
from discreet.mdp.trajectories import Trajectories

NOTHING = -1
"""Stands for a name that is not recorded; a number that is not recorded is NaN."""

BROKEN = -2
"""Stands for a name that was refused, while a check goes on."""

_MISSING_TYPES = {"NAType", "NaTType"}
"""What pandas writes into columns of whole numbers, of text and of dates; it need not be there."""

_WORDS = {"n/a", "na", "#n/a", "null", "none", "missing", "-", "?", "."}
"""Words that often stand for nothing: a check proposes them, but no table is read by them."""


class RefusedCellError(Exception):
    """A cell breaks a rule; whoever knows its place makes a sentence of it.

    A number that is written in another way is ``read`` nevertheless, for what a check says next.
    """

    def __init__(
        self,
        value: object,
        rule: str,
        remedy: str,
        kind: str = "",
        mend: str = "",
        index: int = -1,
        read: float = math.nan,
    ) -> None:
        super().__init__(rule)
        self.value, self.rule, self.remedy, self.index = value, rule, remedy, index
        self.kind, self.mend, self.read = kind, mend or remedy.rstrip("."), read

    def at(self, index: int, value: object) -> "RefusedCellError":
        """The same, of another cell."""
        return RefusedCellError(
            value, self.rule, self.remedy, self.kind, self.mend, index, self.read
        )


def _raise(refused: RefusedCellError) -> None:
    raise refused


Refuse = Callable[[RefusedCellError], None]
"""What happens to a cell that is refused: it is raised, or noted."""


class Foreign:
    """Neither text nor an exact number; never equal to one (True is 1 to Python)."""

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
        return None if math.isnan(value) else Foreign(value) if _rounded(value) else float(value)
    return None if value is None or type(value).__name__ in _MISSING_TYPES else Foreign(value)


def _rounded(value: float | np.floating) -> bool:
    """Whether several whole numbers become this one in its type; of float64, `person` knows."""
    narrow = isinstance(value, np.float16 | np.float32)
    return narrow and abs(float(value)) >= 2 ** (np.finfo(value).nmant + 1)


class Decided:
    """The numbers of one column's values."""

    def __init__(self, decide: Callable[[object], int]) -> None:
        self._decide = decide
        self._known: dict[object, int] = {}
        self._refused: dict[object, RefusedCellError] = {}

    def numbers(self, values: Sequence[object], refuse: Refuse = _raise) -> IntArray:
        """One number for each value, `BROKEN` where it was refused.

        Raises:
            RefusedCellError: with the index of the first value that has none.
        """
        cells = plain(values)
        found = list(map(self._known.get, cells))
        for index in [i for i, number in enumerate(found) if number is None]:
            cell = cells[index]
            if cell not in self._known and cell not in self._refused:
                try:
                    self._known[cell] = self._decide(cell)
                except RefusedCellError as refused:
                    self._refused[cell] = refused
            if cell in self._refused:
                refuse(self._refused[cell].at(index, values[index]))
            found[index] = self._known.get(cell, BROKEN)
        return np.array(found, np.int64)


class Users(dict[str, int]):
    """Gives every user a number, in the order in which they first come; spellings are one user."""

    def decide(self, cell: object) -> int:
        given = cell.value if isinstance(cell, Foreign) else cell
        try:
            name = person("" if given is None else given)
        except RefusedNameError as refused:
            kind = "no name of a person" if cell is not None else "no user"
            raise RefusedCellError(cell, refused.rule, refused.remedy, kind) from None
        return self.setdefault(name, len(self))


def label_decider() -> Callable[[object], int]:
    """What tells the episodes of a user apart: any text or number, in one spelling."""
    known: dict[str, int] = {}

    def decide(cell: object) -> int:
        value = cell.value if isinstance(cell, Foreign) else cell
        if value is None or not spelled(str(value)):
            rule = "the name or number of an episode in every row"
            raise RefusedCellError(cell, rule, "fill it in.", "no episode")
        return known.setdefault(key(value) or str(value), len(known))

    return decide


_NOTHING = 'missing = ["WORD"] in [table] if it stands for nothing'


def name_decider(known: Mapping[str, int], kind: str, *, optional: bool) -> Callable[[object], int]:
    """What a value of a column of names means: its number in the vocabulary."""

    def decide(cell: object) -> int:
        if cell is None or (isinstance(cell, str) and not spelled(cell)):
            if optional:
                return NOTHING
            rule = f"one of the {kind} in every row"
            raise RefusedCellError(cell, rule, "fill it in.", f"no {kind[:-1]}")
        value = cell.value if isinstance(cell, Foreign) else cell
        number = known.get(str(key(value)))
        if number is None:
            rule, close = f"one of the {kind} of the design", nearest(value, known)
            remedy = f"{close} The design lists all {kind}; they are public."
            nothing = f", or {_NOTHING}" if optional else ""
            mend = f"correct it, or add it to {kind} = [...] at the top{nothing}"
            raise RefusedCellError(cell, rule, remedy, f"unknown {kind[:-1]}", mend)
        return number

    return decide


def numbers(values: Sequence[object], refuse: Refuse = _raise, *, decimal: str = ".") -> FloatArray:
    """One number for each value, NaN for nothing and for what was refused and cannot be read.

    >>> numbers(["0.5", "", 1, True, None]).tolist()
    [0.5, nan, 1.0, 1.0, nan]
    >>> numbers(["0,5", "12"], decimal=",").tolist()
    [0.5, 12.0]

    Raises:
        RefusedCellError: with the index of the first value that is no number.
    """
    try:
        if decimal == "." and not _has_underscore(values):
            return np.array(list(map(float, values)))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        pass  # something is missing or wrong: one by one
    found = np.full(len(values), math.nan)
    for index, value in enumerate(values):
        try:
            found[index] = _number(value, decimal)
        except RefusedCellError as refused:
            refuse(refused.at(index, value))
            found[index] = refused.read
    return found


def _number(value: object, decimal: str) -> float:
    cell = _plain(value)
    if cell is None or (isinstance(cell, str) and not spelled(cell)):
        return math.nan
    raw = cell.value if isinstance(cell, Foreign) else cell
    read = _parsed(raw, decimal)
    if read is not None:
        return read
    read = _parsed(raw, "," if decimal == "." else ".")
    if read is not None and decimal == ".":
        said = 'decimal = "," in [table] if all decimals are written so'
        remedy, kind = f"write {said}.", "decimal comma"
        raise RefusedCellError(value, "a number", remedy, kind, said, read=read)
    if read is not None:
        said = 'write a comma, as decimal = "," in [table] says, or take that line out'
        rule, kind = 'a decimal comma, as decimal = "," says', "decimal point"
        raise RefusedCellError(value, rule, f"{said}.", kind, said, read=read)
    said = f"missing = [{quoted(str(raw), 30)}]".replace("'", '"')
    remedy = f"correct it, or write {said} in [table] if it stands for nothing."
    raise RefusedCellError(value, "a number", remedy, "no number", f"correct it, or {_NOTHING}")


def _parsed(raw: object, decimal: str) -> float | None:
    """The number that a cell is, with this mark before its decimals; None if it is none."""
    other = "," if decimal == "." else "."
    if _has_underscore([raw]) or (isinstance(raw, str) and other in raw):
        return None
    try:
        return float(raw.replace(",", ".") if isinstance(raw, str) else raw)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None


def _has_underscore(values: Sequence[object]) -> bool:
    """Python reads 1_0 as ten; a table that says so is damaged."""
    return any(type(v) is str and "_" in v for v in values)


@dataclass(frozen=True)
class TableRows:
    """TableRows of a table, as they come; states and actions are numbers of the vocabulary."""

    users: IntArray  # the number of each row's user, or of one of the user's several episodes
    steps: IntArray  # 0 to H - 1, or H for the closing moment
    states: IntArray  # or `NOTHING`
    blank: BoolArray  # nothing at all is said of the state
    actions: IntArray  # or `NOTHING`
    rewards: FloatArray  # in [0, 1], or NaN where missing
    following: IntArray  # the recorded next states, or `NOTHING`
    places: IntArray  # where the rows stand in the table; -1 if they were filled in

    def __len__(self) -> int:
        return len(self.users)

    def __getitem__(self, chosen: IntArray | BoolArray) -> "TableRows":
        """Some rows, or all in another order."""
        return TableRows(*(getattr(self, f.name)[chosen] for f in fields(self)))


def read_rows(source: Source, layout: Layout) -> tuple[TableRows, list[str]]:
    """All rows of a table, and the names of its users, once for every episode."""
    reader = _Reader(source, layout, Problems())
    parts = list(reader.parts())
    if not sum(map(len, parts)):
        raise InvalidInputError("Expected at least one row, got a table without any.")
    warn_of_lookalikes(list(reader.users))
    return _joined(parts), reader.names


def _joined(parts: Sequence[TableRows]) -> TableRows:
    names = (item.name for item in fields(TableRows))
    return TableRows(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


class _Reader:
    """Turns parts of a table into numbers, and remembers what it has decided."""

    def __init__(self, source: Source, layout: Layout, problems: Problems) -> None:
        self.users = Users()
        self._source, self._layout, self._problems = source, layout, problems
        self._nothing = layout.nothing
        self._words = list(layout.form.missing)  # and what a check finds that may be missing there
        self._episodes: dict[tuple[int, int], int] = {}  # by the numbers of user and label
        there = {name.casefold() for name in source.names}
        self._more = [
            role
            for role in ("next_state", "episode")
            if role in layout.form.columns or layout.column(role).casefold() in there
        ]
        roles = ["user", "step", "action", "reward", *self._more]
        roles += ["state"] if layout.form.discretizer is None else []
        wanted = {layout.column(role): f'{role} = "NAME" in [table.columns]' for role in roles}
        for column in () if layout.form.discretizer is None else layout.form.discretizer.columns:
            wanted.setdefault(column, 'column = "NAME" in [[table.cuts]]')
        self._columns = find_columns(source.names, wanted, problems)
        self._whole = len(self._columns) == len(wanted)
        known = layout.vocabulary.numbers
        kinds = ("states", "actions", "steps")
        named = {name.casefold() for kind in kinds for name in known(kind)}
        self._proposed = _WORDS - named if problems.collect else set[str]()
        self._decided = {
            "user": Decided(self.users.decide),
            "episode": Decided(label_decider()),
            "step": Decided(name_decider(known("steps"), "steps", optional=False)),
            "state": Decided(name_decider(known("states"), "states", optional=True)),
            "action": Decided(name_decider(known("actions"), "actions", optional=True)),
            "next_state": Decided(name_decider(known("states"), "states", optional=True)),
        }

    def parts(self) -> Iterator[TableRows]:
        """The table's rows, a part at a time; none if a column is not there."""
        if self._whole:
            columns = list(self._columns.values())
            yield from map(self._read, self._source.parts(columns, self._problems))

    def _read(self, part: Part) -> TableRows:
        nothing = np.full(len(part.places), NOTHING, np.int64)
        states, blank = self._states(part)
        return TableRows(
            users=self._owners(part),
            steps=self._named("step", part),
            states=states,
            blank=blank,
            actions=self._named("action", part),
            rewards=self._rewards(part),
            following=self._named("next_state", part) if "next_state" in self._more else nothing,
            places=part.places,
        )

    @property
    def names(self) -> list[str]:
        """The name of each episode's user, in the order in which they first come."""
        names = list(self.users)
        return [names[user] for user, _ in self._episodes] if "episode" in self._more else names

    def _owners(self, part: Part) -> IntArray:
        """The number of each row's user, or of one of the user's several episodes."""
        users = self._named("user", part)
        if "episode" not in self._more:
            return users
        labels = self._named("episode", part)
        _, first, place = np.unique(users * 2**32 + labels, return_index=True, return_inverse=True)
        numbers = np.full(len(first), BROKEN)
        for index in np.argsort(first):
            pair = int(users[first[index]]), int(labels[first[index]])
            if BROKEN not in pair:
                numbers[index] = self._episodes.setdefault(pair, len(self._episodes))
        return numbers[place]

    def _values(self, column: str, part: Part) -> Sequence[object]:
        """The cells of a column, None where a word stands for nothing."""
        values = part.column(self._columns[column])
        if self._nothing:
            values = [None if _among(value, self._nothing) else value for value in values]
        return values

    def _optional(self, column: str, part: Part) -> Sequence[object]:
        """The same for columns whose cells may be empty; a check says which words may mean that."""
        values = self._values(column, part)
        if not self._proposed:
            return values
        where = [i for i, cell in enumerate(values) if _folded(cell) in self._proposed]
        if not where:
            return values
        found = [spelled(str(values[i])) for i in where]
        self._words = list(dict.fromkeys([*self._words, *found]))
        self._problems.add(
            "word for a missing value",
            f"missing = {json.dumps(self._words, ensure_ascii=False)} in [table]",
            [self._source.at(int(part.places[i])) for i in where[:3]],
            [Shown(f"{quoted(word)} in {quoted(column)}") for word in found[:3]],
            "",
            len(where),
        )
        left = list(values)
        for i in where:
            left[i] = None
        return left

    def _refuse(self, column: str, part: Part, refused: RefusedCellError) -> None:
        at = self._source.at(int(part.places[refused.index]))
        self._problems.add(
            f"{refused.kind} in {quoted(column)}",
            refused.mend,
            [at],
            [refused.value],
            f"Expected {refused.rule}, got {quoted(refused.value)} in column {quoted(column)}, "
            f"{at}; {refused.remedy}",
        )

    def _named(self, role: str, part: Part) -> IntArray:
        column = self._layout.column(role)
        refuse = partial(self._refuse, column, part)
        needed = role in ("user", "episode", "step")
        values = self._values(column, part) if needed else self._optional(column, part)
        return self._decided[role].numbers(values, refuse)

    def _states(self, part: Part) -> tuple[IntArray, BoolArray]:
        """The states, `NOTHING` where a value that is needed is missing; and which are blank."""
        discretizer = self._layout.form.discretizer
        if discretizer is None:
            states = self._named("state", part)
            return states, np.asarray(states == NOTHING)
        cells = [self._bins(cuts, part) for cuts in discretizer.cuts]
        bins = np.array([found for found, _ in cells])
        states = discretizer.combine([np.maximum(found, 0) for found in bins])
        states[(bins == MISSING).any(axis=0)] = NOTHING
        states[(bins == BROKEN).any(axis=0)] = BROKEN
        return states, np.all([absent for _, absent in cells], axis=0)

    def _numbers(self, column: str, part: Part) -> tuple[FloatArray, Refuse, list[int]]:
        """The numbers of a column, how others of them are refused, and the rows of all refused."""
        broken: list[int] = []

        def refuse(refused: RefusedCellError) -> None:
            self._refuse(column, part, refused)
            if math.isnan(refused.read):
                broken.append(refused.index)

        values = self._optional(column, part)
        return numbers(values, refuse, decimal=self._layout.form.decimal), refuse, broken

    def _bins(self, cuts: Cuts, part: Part) -> tuple[IntArray, BoolArray]:
        """The bin of each value, `MISSING` or `BROKEN`; and where there is none."""
        given, refuse, broken = self._numbers(cuts.column, part)
        found = cuts.bins(given)
        absent = np.isnan(given)
        for index in np.flatnonzero(found == OUTSIDE):
            rule, remedy, mend = cuts.outside_rule
            kind = "number out of range"
            refuse(RefusedCellError(float(given[index]), rule, remedy, kind, mend, int(index)))
        found[broken], absent[broken] = BROKEN, False
        return found, absent

    def _rewards(self, part: Part) -> FloatArray:
        layout, column = self._layout, self._layout.column("reward")
        low, high = map(float, layout.form.reward_range)
        given, refuse, broken = self._numbers(column, part)
        outside = (given < low) | (given > high)
        for index in () if layout.form.clip_rewards else np.flatnonzero(outside):
            rule, value = f"rewards from {low:g} to {high:g}", float(given[index])
            said = "clip_rewards = true, or the reward_range = [low, high] that the protocol says"
            remedy, mend = f"correct it, or write {said}.", f"{said}, in [table]"
            refuse(RefusedCellError(value, rule, remedy, "reward out of range", mend, int(index)))
        given[broken] = low
        return layout.scaled(given)


def _folded(value: object) -> str:
    return spelled(value).casefold() if isinstance(value, str) and len(value) < 10 else ""


def _among(value: object, words: frozenset[object]) -> bool:
    try:
        return (spelled(value) if isinstance(value, str) else value) in words
    except TypeError:  # a list, say
        return False


def read_episodes(source: Source, layout: Layout) -> tuple[Trajectories, list[str]]:
    """The episodes of a table, and the names of their users in the same order."""
    rows, names = read_rows(source, layout)
    episodes = _Episodes(rows, names, source.at, layout, Problems())
    return episodes.trajectories(), names


def check_episodes(source: Source, layout: Layout, problems: Problems) -> tuple[int, int]:
    """Note all problems of a table; how many rows and people could be read."""
    reader = _Reader(source, layout, problems)
    parts = list(reader.parts())
    rows = _joined(parts) if parts else None
    if not (rows or problems.found):
        none = "Expected at least one row, got a table without any."
        problems.add("no row", "add rows below the header", ["table"], [Shown("empty")], none)
    if rows is not None and len(rows):
        named = rows[rows.users != BROKEN]
        lost = np.unique(named.users[named.steps == BROKEN])
        whole = named[~np.isin(named.users, lost)]  # the order of the others cannot be known
        if len(whole):
            _Episodes(whole, reader.names, source.at, layout, problems).check()
        _check_names(reader, rows, source, problems)
    return 0 if rows is None else len(rows), len(reader.users)


def _check_names(reader: _Reader, rows: TableRows, source: Source, problems: Problems) -> None:
    """Note names that may be a second spelling of somebody, where they first stand."""
    mixed, twins = lookalikes(list(reader.users))
    said = {name: f"{quoted(name)} mixes {alphabets(name)}" for name in mixed}
    said |= {name: f"{quoted(name)} beside {quoted(other)}" for other, name in twins}
    numbers, first = np.unique(rows.users, return_index=True)
    known = numbers != BROKEN
    found = list(zip(numbers[known], first[known], strict=True))
    place = {reader.names[n]: int(i) for n, i in reversed(found)}
    order = sorted(said, key=lambda name: place.get(name, -1))
    if order:
        problems.add(
            "name that may be another spelling of somebody",
            "write each person's name in one way in the table: these count as different people",
            [source.at(int(rows.places[place[n]])) if n in place else "" for n in order],
            [Shown(said[name]) for name in order],
            "",
        )


class _Episodes:
    """TableRows sorted by user and step, checked, and laid out as arrays."""

    def __init__(
        self,
        rows: TableRows,
        names: list[str],
        at: Callable[[int], str],
        layout: Layout,
        problems: Problems,
    ) -> None:
        self._names, self._at = names, at
        self._layout, self._problems = layout, problems
        self._steps = layout.vocabulary.steps
        self._people = np.unique(rows.users)
        empty = rows.blank & (rows.actions == NOTHING) & np.isnan(rows.rewards)
        rows = rows[~empty | (rows.following != NOTHING)]  # who only has a row was not there
        self._rows = rows[np.lexsort((rows.steps, rows.users))]

    def check(self) -> IntArray:
        """Note what is wrong, fill in what is declared; the state after each user's last step."""
        self._check_people()
        if not len(self._rows):
            return np.zeros(0, np.int64)
        self._check_once()
        self._fill_values()
        self._fill_absent()
        closing = self._closing()
        self._check_closing(closing)
        following = self._following()
        self._rows, following = self._rows[~closing], following[~closing]
        self._check_possible()
        return self._ends(following) if len(self._rows) else np.zeros(0, np.int64)

    def trajectories(self) -> Trajectories:
        ends = self.check()
        rows, layout = self._rows, self._layout
        users, horizon = len(ends), len(self._steps)
        states = np.repeat(ends[:, None], horizon + 1, axis=1)
        actions = np.ascontiguousarray(layout.filled_actions[:, ends].T)
        rewards = np.zeros((users, horizon))
        if layout.form.padding is not None:
            rewards[:] = layout.scaled(np.array(layout.form.padding.reward))
        cells = rows.users, rows.steps
        states[cells], actions[cells], rewards[cells] = rows.states, rows.actions, rows.rewards
        return Trajectories(states, actions, rewards)

    @property
    def _last(self) -> BoolArray:
        """True at each user's last row."""
        users = self._rows.users
        return np.append(users[1:] != users[:-1], True)

    @property
    def _first(self) -> BoolArray:
        """True at each user's first row."""
        return np.append(True, self._last[:-1])

    def _check_people(self) -> None:
        """Everybody has a row that says something."""
        nobody = [self._names[i] for i in np.setdiff1d(self._people, self._rows.users)]
        if nobody:
            self._problems.add(
                "person with empty rows alone",
                "leave the rows out",
                [""] * len(nobody),
                nobody,
                f"Expected something in the rows of user {quoted(nobody[0])}, got empty ones; "
                f"leave them out.",
            )

    def _check_once(self) -> None:
        """Each of a user's steps once; of several the first counts while a check goes on."""
        rows = self._rows
        twice = ~self._first & (rows.steps == np.roll(rows.steps, 1))
        if twice.any():
            before = self._at(int(rows.places[int(np.flatnonzero(twice)[0]) - 1]))
            self._refuse(
                twice,
                "step more than once",
                'remove one of the two rows, or episode = "NAME" in [table.columns]',
                f"every step once, got it also in {before}; remove one of the two rows, or tell a "
                f"user's episodes apart in a column `episode`",
            )
            self._rows = rows[~twice]

    def _fill_values(self) -> None:
        """Missing states and rewards, as was declared."""
        rows, layout = self._rows, self._layout
        states, rewards = rows.states.copy(), rows.rewards.copy()
        absent = states == NOTHING
        if layout.form.missing_state is not None:
            states[absent] = layout.numbers_of([layout.form.missing_state])[0]
        else:
            named = " and ".join(quoted(name) for name in layout.state_columns)
            bins = ', or missing = "bin" in [[table.cuts]]' * (layout.form.discretizer is not None)
            self._refuse(
                absent,
                f"no state in {named}",
                f'missing_state = "STATE" in [table]{bins}',
                f"one of the states in every row, got none from {named}; fill it in, or write "
                f'missing_state = "STATE" in [table]{bins}',
            )
        if layout.form.missing_reward is not None:
            unpaid = np.isnan(rewards) & (rows.actions != NOTHING)
            rewards[unpaid] = layout.scaled(np.array(layout.form.missing_reward))
        self._rows = replace(rows, states=states, rewards=rewards)

    def _fill_absent(self) -> None:
        """TableRows for the steps before a user's first row, and between two of them."""
        rows, layout = self._rows, self._layout
        first = self._first
        before = np.where(first, -1, np.roll(rows.steps, 1))
        away = rows.steps - before - 1  # how many steps are missing before each row
        form = layout.form
        for name, absence, where in (("late", form.late, first), ("gap", form.gap, ~first)):
            missing = where & (away > 0)
            if absence is not None:
                self._add_rows(rows, np.where(missing, away, 0), absence)
            elif missing.any():
                index = int(np.flatnonzero(missing)[0])
                none = self._step(int(before[index]) + 1)
                late = name == "late"
                said = f'{name} = {{state = "STATE", reward = {layout.unrecorded}}} in [table]'
                self._refuse(
                    missing,
                    "person who comes late" if late else "gap between steps",
                    said,
                    f"{'the first step of everybody' if late else 'steps without a gap'}, got none "
                    f"called {none} before this one; add the row, or write {said}",
                )
        rows = self._rows
        self._rows = rows[np.lexsort((rows.steps, rows.users))]

    def _add_rows(self, rows: TableRows, away: IntArray, absence: Absence) -> None:
        """``away[i]`` rows before row i, in which the user is absent."""
        count = int(away.sum())
        ends = np.cumsum(away)
        back = np.repeat(ends, away) - np.arange(count)  # steps before the row that is there
        steps = np.repeat(rows.steps, away) - back
        state = int(self._layout.numbers_of([absence.state])[0])
        reward = float(self._layout.scaled(np.array(absence.reward)))
        filled = TableRows(
            users=np.repeat(rows.users, away),
            steps=steps,
            states=np.full(count, state),
            blank=np.zeros(count, np.bool_),
            actions=self._layout.filled_actions[steps, state],
            rewards=np.full(count, reward),
            following=np.full(count, NOTHING),
            places=np.full(count, -1),
        )
        self._rows = _joined([self._rows, filled])

    def _closing(self) -> BoolArray:
        """True at rows that hold a state alone: what was seen after a user's last step."""
        rows = self._rows
        no_action, no_reward = rows.actions == NOTHING, np.isnan(rows.rewards)
        closing: BoolArray = no_action & no_reward
        for role, missing in (("action", no_action), ("reward", no_reward)):
            line = f"missing_reward = {self._layout.unrecorded} in [table]"
            said = "" if role == "action" else f", or write {line}"
            self._refuse(
                missing & ~closing,
                f"no {role}",
                "fill it in" if role == "action" else line,
                f"an action and a reward at every step, got no {role}; fill it in{said} (only a "
                f"row for the state after the last step has neither)",
            )
        self._refuse(
            ~closing & (rows.steps == len(self._steps)),
            "step after the last one",
            "steps = [...] at the top with one more, or leave its action and reward empty",
            f"{len(self._steps)} steps, the last called {quoted(self._steps[-1])}, got one more; "
            f"leave its action and reward empty, or add it to steps = [...]",
        )
        return closing

    def _check_closing(self, closing: BoolArray) -> None:
        rows = self._rows
        self._refuse(
            closing & ~self._last,
            "no action and no reward",
            "fill them in, or empty the whole row",
            "only a user's last row without action and reward, got a later one; fill them in",
        )
        self._refuse(
            closing & self._first,
            "person with a state alone",
            "add the rows, or leave it out",
            "at least one step, got only a state; add its rows",
        )
        self._refuse(
            closing & (rows.following != NOTHING),
            "next state without an action",
            "give it a row of its own",
            "no next state where there is no action, got one; give it a row of its own",
        )

    def _check_possible(self) -> None:
        """Nobody did what the public mask says is impossible."""
        rows, shape = self._rows, self._layout.vocabulary.shape
        if shape.allowed is None:
            return
        read = (rows.steps < shape.horizon) & (rows.states >= 0) & (rows.actions >= 0)
        place = (rows.steps[read], rows.states[read], rows.actions[read])
        wrong = np.zeros(len(rows), np.bool_)
        wrong[read] = ~shape.allowed[place]
        if wrong.any():
            index, names = int(wrong.argmax()), self._layout.vocabulary.actions
            possible = shape.allowed[rows.steps[index], rows.states[index]]
            listed = ", ".join(quoted(names[a]) for a in np.flatnonzero(possible))
            self._refuse(
                wrong,
                "action that is not allowed there",
                "correct the row, or [[allowed]]",
                f"one of the allowed actions ({listed}), got {quoted(names[rows.actions[index]])}, "
                f"which cannot be done there; correct the row, or [[allowed]]",
            )

    def _following(self) -> IntArray:
        """The state after each row: that of the user's next row, else the recorded one."""
        rows = self._rows
        near = ~self._last & (np.roll(rows.steps, -1) == rows.steps + 1)
        inferred = np.where(near, np.roll(rows.states, -1), NOTHING)
        both = (inferred >= 0) & (rows.following >= 0)
        self._refuse(
            both & (inferred != rows.following),
            "next state that is not the next row's",
            "correct one of the two",
            "the state of a user's next row to be this row's next state, got another; correct one",
        )
        return np.where(inferred == NOTHING, rows.following, inferred)

    def _ends(self, following: IntArray) -> IntArray:
        """The state after each user's last step; ends that were not seen are filled in."""
        rows, padding = self._rows, self._layout.form.padding
        last = self._last
        early = last & (rows.steps < len(self._steps) - 1)
        if padding is not None:
            following = self._arrived(following, early, padding)
        elif early.any():
            index = int(np.flatnonzero(early)[0])
            missing = self._step(int(rows.steps[index]) + 1)
            reward = self._layout.unrecorded
            said = f'padding = {{end = "STATE", reward = {reward}}} in [table]'
            self._refuse(
                early,
                "episode that ended early",
                said,
                f"episodes of {len(self._steps)} steps, got no step {missing}; add the row, or "
                f"write {said}",
            )
        unseen = last & (following == NOTHING)
        return np.where(unseen, rows.states, following)[last]

    def _arrived(self, following: IntArray, early: BoolArray, padding: Padding) -> IntArray:
        """Episodes that ended early are in an end state, seen or the only one."""
        ends = self._layout.numbers_of(padding.ends)
        if len(ends) == 1:
            following = np.where(early & (following == NOTHING), ends[0], following)
        named = ", ".join(map(quoted, padding.ends))
        self._refuse(
            early & ~np.isin(following, ends),
            "early end in another state",
            f"padding = {{end = [...]}} in [table] with that state, or correct it; now {named}",
            f"an episode that ends early to arrive in {named}, got "
            f"one that does not; correct its last next state, or add the missing steps",
        )
        return following

    def _step(self, number: int) -> str:
        names = [*self._steps, self._layout.vocabulary.closing]
        return quoted(names[number])

    def _refuse(self, wrong: BoolArray, kind: str, mend: str, rule: str) -> None:
        """Note a problem of the marked rows."""
        chosen = np.flatnonzero(wrong)
        if not len(chosen):
            return
        rows = self._rows
        users = [self._names[int(rows.users[i])] for i in chosen[:3]]
        steps = [self._step(int(rows.steps[i])) for i in chosen[:3]]
        places = [self._at(int(rows.places[i])) for i in chosen[:3]]
        self._problems.add(
            kind,
            mend,
            places,
            users,
            f"Expected {rule}; see user {quoted(users[0])}, step {steps[0]}, {places[0]}.",
            len(chosen),
        )
