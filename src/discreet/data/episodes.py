"""From a table to episodes: cells become numbers, each user's rows are put in order and checked.

A column's different values are decided once each and looked up from then on, so that a million rows
cost a million look-ups and not a million checks.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from numbers import Integral, Real
from typing import TypeVar

import numpy as np

from discreet._spelling import RefusedNameError, person, quoted, spelled, warn_of_lookalikes
from discreet._types import BoolArray, FloatArray, IntArray
from discreet.data.discretizer import Cuts
from discreet.data.layout import Layout, Padding
from discreet.data.sources import Part, Source, check_columns, refusal
from discreet.data.vocabulary import key, nearest
from discreet.errors import InvalidInputError
from discreet.mdp.trajectories import Trajectories

_Numbers = TypeVar("_Numbers", IntArray, FloatArray)

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
                    cell = cells[index]
                    if cell not in self._known:
                        self._known[cell] = self._decide(cell)
                    found[index] = self._known[cell]
            except RefusedCellError as refused:
                refused.index, refused.value = index, values[index]
                raise
        return np.array(found, np.int64)


class Users(dict[str, int]):
    """Gives every user a number, in the order in which they first come; spellings are one user."""

    def decide(self, cell: object) -> int:
        try:
            name = person("" if cell is None else cell)
        except RefusedNameError as refused:
            raise RefusedCellError(cell, refused.rule, refused.remedy) from None
        return self.setdefault(name, len(self))


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


@dataclass(frozen=True)
class Rows:
    """All rows of a table, as they come; states and actions are numbers of the vocabulary."""

    users: IntArray  # the number of each row's user, in the order in which they first come
    steps: IntArray  # 0 to H - 1, or H for the closing moment
    states: IntArray
    actions: IntArray  # or `NOTHING`
    rewards: FloatArray  # in [0, 1], or NaN where missing
    following: IntArray  # the recorded next states, or `NOTHING`
    places: IntArray  # where the rows stand in the table

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
    names = list(reader.users)
    warn_of_lookalikes(names)
    joined = (np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Rows))
    return Rows(*joined), names


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
        nothing = np.full(len(part.places), NOTHING, np.int64)
        rewards = self._layout.column("reward")
        return Rows(
            users=self._named("user", part),
            steps=self._named("step", part),
            states=self._states(part),
            actions=self._named("action", part),
            rewards=self._cells(partial(_rewards, self._layout), rewards, part),
            following=self._named("next_state", part) if recorded else nothing,
            places=part.places,
        )

    def _named(self, role: str, part: Part) -> IntArray:
        return self._cells(self._decided[role].numbers, self._layout.column(role), part)

    def _cells(
        self, read: Callable[[Sequence[object]], _Numbers], column: str, part: Part
    ) -> _Numbers:
        try:
            return read(part.column(column))
        except RefusedCellError as refused:
            at = self._source.at(int(part.places[refused.index]))
            error = refusal(refused.rule, refused.value, column, at, refused.remedy)
        raise error

    def _states(self, part: Part) -> IntArray:
        discretizer = self._layout.discretizer
        if discretizer is None:
            return self._named("state", part)

        def bins(cuts: Cuts, values: Sequence[object]) -> IntArray:
            given = numbers(values)
            found = cuts.bins(given)
            bad = np.flatnonzero(found < 0)
            if len(bad):
                rule, remedy = cuts.refusal(int(found[bad[0]]))
                raise RefusedCellError(float(given[bad[0]]), rule, f"{remedy}.", int(bad[0]))
            return found

        cells = [self._cells(partial(bins, c), c.column, part) for c in discretizer.cuts]
        return discretizer.combine(cells)


def _rewards(layout: Layout, values: Sequence[object]) -> FloatArray:
    low, high = map(float, layout.reward_range)
    given = numbers(values)
    outside = np.flatnonzero((given < low) | (given > high))
    if len(outside) and not layout.clip_rewards:
        remedy = "give their public range as reward_range=(low, high), or clip_rewards=True."
        rule, first = f"rewards from {low:g} to {high:g}", int(outside[0])
        raise RefusedCellError(float(given[first]), rule, remedy, first)
    return layout.scaled(given)


def read_episodes(source: Source, layout: Layout) -> tuple[Trajectories, list[str]]:
    """The episodes of a table, and the names of their users in the same order."""
    rows, names = read_rows(source, layout)
    episodes = _Episodes(rows, names, source.at, layout)
    return episodes.trajectories(), names


class _Episodes:
    """Rows sorted by user and step, checked, and laid out as arrays."""

    def __init__(
        self, rows: Rows, names: list[str], at: Callable[[int], str], layout: Layout
    ) -> None:
        self._names = names
        self._at = at
        self._layout = layout
        self._steps = layout.vocabulary.steps
        self._rows = rows[np.lexsort((rows.steps, rows.users))]

    def trajectories(self) -> Trajectories:
        closing = self._closing()
        self._check_order(closing)
        following = self._following()
        ordinary = np.flatnonzero(~closing)
        self._rows, following = self._rows[ordinary], following[ordinary]
        ends, rows, padding = self._ends(following), self._rows, self._layout.padding
        users, horizon = len(ends), len(self._steps)
        states = np.repeat(ends[:, None], horizon + 1, axis=1)
        actions = np.zeros((users, horizon), np.int64)
        rewards = np.zeros((users, horizon))
        if padding is not None:
            actions[:] = self._layout.end_actions(padding)[:, ends].T
            rewards[:] = self._layout.scaled(np.array(padding.reward))
        cells = rows.users, rows.steps
        states[cells], actions[cells], rewards[cells] = rows.states, rows.actions, rows.rewards
        return Trajectories(states, actions, rewards)

    @property
    def _last(self) -> BoolArray:
        """True at each user's last row."""
        users = self._rows.users
        return np.append(users[1:] != users[:-1], True)

    def _closing(self) -> BoolArray:
        """True at rows that hold a state alone: what was seen after a user's last step."""
        rows = self._rows
        no_action, no_reward = rows.actions == NOTHING, np.isnan(rows.rewards)
        closing: BoolArray = no_action & no_reward
        for role, missing in (("action", no_action), ("reward", no_reward)):
            self._refuse_first(
                missing & ~closing,
                f"an action and a reward at every step, got no {role}; fill it in (only a row for "
                f"the state after the last step has neither)",
            )
        self._refuse_first(
            ~closing & (rows.steps == len(self._steps)),
            f"{len(self._steps)} steps, the last called {quoted(self._steps[-1])}, got one more; "
            f"leave its action and reward empty, or name it in the vocabulary",
        )
        return closing

    def _check_order(self, closing: BoolArray) -> None:
        """Each user's steps are 0, 1, 2, ... and a closing row comes last."""
        rows = self._rows
        begins = np.flatnonzero(np.append(True, self._last[:-1]))
        lengths = np.diff(np.append(begins, len(rows)))
        wrong = rows.steps != np.arange(len(rows)) - np.repeat(begins, lengths)
        if wrong.any():
            index = int(np.flatnonzero(wrong)[0])
            same = index > 0 and rows.users[index - 1] == rows.users[index]
            if same and rows.steps[index - 1] == rows.steps[index]:
                before = self._at(int(rows.places[index - 1]))
                rule = f"every step once, got it also in {before}; remove one of the two rows"
            else:
                missing = self._step(int(rows.steps[index - 1]) + 1 if same else 0)
                rule = (
                    f"steps without a gap, got none called {missing} before this one; add the row"
                )
            raise self._refusal(index, rule)
        self._refuse_first(
            closing & ~self._last,
            "only a user's last row without action and reward, got a later one; fill them in",
        )
        self._refuse_first(
            closing & (rows.steps == 0), "at least one step, got only a state; add its rows"
        )
        self._refuse_first(
            closing & (rows.following != NOTHING),
            "no next state where there is no action, got one; give it a row of its own",
        )

    def _following(self) -> IntArray:
        """The state after each row: that of the user's next row, else the recorded one."""
        rows = self._rows
        inferred = np.where(self._last, NOTHING, np.roll(rows.states, -1))
        both = (inferred != NOTHING) & (rows.following != NOTHING)
        self._refuse_first(
            both & (inferred != rows.following),
            "the state of a user's next row to be this row's next state, got another; correct one",
        )
        return np.where(inferred == NOTHING, rows.following, inferred)

    def _ends(self, following: IntArray) -> IntArray:
        """The state after each user's last step; ends that were not seen are filled in."""
        rows, padding = self._rows, self._layout.padding
        last = self._last
        early = last & (rows.steps < len(self._steps) - 1)
        if padding is not None:
            following = self._arrived(following, early, padding)
        elif early.any():
            index = int(np.flatnonzero(early)[0])
            missing = self._step(int(rows.steps[index]) + 1)
            raise self._refusal(
                index,
                f"episodes of {len(self._steps)} steps, got no step {missing}; add the row, or say "
                f"padding=Padding(END_STATE) if episodes can end early",
            )
        unseen = last & (following == NOTHING)
        return np.where(unseen, rows.states, following)[last]

    def _arrived(self, following: IntArray, early: BoolArray, padding: Padding) -> IntArray:
        """Episodes that ended early are in an end state, seen or the only one."""
        ends = self._layout.end_states(padding)
        if len(ends) == 1:
            following = np.where(early & (following == NOTHING), ends[0], following)
        self._refuse_first(
            early & ~np.isin(following, ends),
            f"an episode that ends early to arrive in {', '.join(map(quoted, padding.ends))}, got "
            f"one that does not; correct its last next state, or add the missing steps",
        )
        return following

    def _step(self, number: int) -> str:
        names = [*self._steps, self._layout.vocabulary.closing]
        return quoted(names[number])

    def _refuse_first(self, wrong: BoolArray, rule: str) -> None:
        if wrong.any():
            raise self._refusal(int(np.flatnonzero(wrong)[0]), rule)

    def _refusal(self, index: int, rule: str) -> InvalidInputError:
        rows = self._rows
        user = self._names[int(rows.users[index])]
        return InvalidInputError(
            f"Expected {rule}; see user {quoted(user)}, step {self._step(int(rows.steps[index]))}, "
            f"{self._at(int(rows.places[index]))}."
        )
