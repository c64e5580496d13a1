"""Rows of a table as numbers: users, steps, states, actions, rewards."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np

from discreet._spelling import warn_of_lookalikes
from discreet._types import FloatArray, IntArray
from discreet.errors import InvalidInputError
from discreet.mdp.discretizer import Cuts
from discreet.mdp.onramp.cells import (
    NOTHING,
    Decided,
    RefusedCellError,
    Users,
    name_decider,
    numbers,
)
from discreet.mdp.onramp.layout import Layout
from discreet.mdp.onramp.sources import Part, Source, check_columns, refusal

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
