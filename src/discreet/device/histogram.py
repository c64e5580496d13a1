"""Shuffle by classes: one data cell and K noise cells for every (statistic, step).

A class has D cells: its counters, of the pairs (s, a) that the public policy plays at its step in
ascending order, and ``none`` = D - 1 for a user who has left the policy. Transitions: row·S + s'.
Rewards: 2·row + bit. Visits: row. A noise cell is uniform over the D cells with probability
q = Q/2^32, and ``blank`` = D otherwise. For n users and noise of mean lambda per cell

    K = ceil(D·lambda/n),    Q = min(2^32, ceil(2^32·D·lambda/(n·K))),

in integers, lambda an exact fraction. The data cell stands at a random place among the 1 + K.

Order of draws: bits of the rewards of all steps; then for every class its noise, and the place of
its data cell, one number below 1 + K (the data cell is put last and changes places with it).

The number of messages, their length and the number of random bytes are the same whatever the
episode (rejected bytes depend on nothing but themselves). The proof that sums of such messages are
private is in `discreet.privacy.mechanisms.histogram`; it needs all messages of a class mixed over
all users.
"""

from collections.abc import Sequence
from typing import ClassVar

from discreet.device.base import Device, Report, check_lists
from discreet.device.description import (
    bad,
    check,
    fraction,
    integer,
    problem,
    read_statistics,
)
from discreet.device.draws import WORD, Draws
from discreet.device.episode import LEFT, Episode
from discreet.device.errors import DeviceError
from discreet.device.layout import MessageClass, layout
from discreet.device.wire import check_bytes, pack_words, unpack_words


class HistogramDevice(Device):
    """A report is a list of 1 + K cells for every class.

    Attributes:
        classes: all classes in the order in which they are sent.
    """

    name: ClassVar[str] = "histogram"
    kind: ClassVar[int] = 1

    def __init__(self, data: object) -> None:
        """From a description with ``statistics``, ``last_transitions``, ``users``, ``lambda``."""
        keys = {"statistics", "last_transitions", "users", "lambda"}
        description = check(data, self.name, keys)
        super().__init__(description, problem(description))
        self.classes = layout(
            self.problem.rows,
            self.problem.states,
            read_statistics(description.get("statistics")),
            last_transitions=_truth(description.get("last_transitions")),
            users=integer(description.get("users"), "users"),
            mean=fraction(description.get("lambda"), "lambda"),
        )
        if not self.classes:
            raise bad("Expected a statistic that has a class; transitions need two steps.")
        if any(one.cells >= WORD for one in self.classes):
            raise bad("Expected fewer than 2^32 cells in a class.")

    @property
    def messages(self) -> int:
        """How many messages a user sends."""
        return sum(one.messages for one in self.classes)

    @property
    def body(self) -> int:
        """Four bytes per message."""
        return 4 * self.messages

    def _encode(self, episode: Episode, draws: Draws) -> Report:
        bits = draws.rewards(episode.rewards)
        own = self.data_cells(episode, bits)
        return [_hidden(cell, one, draws) for cell, one in zip(own, self.classes, strict=True)]

    def data_cells(self, episode: Episode, bits: Sequence[int]) -> list[int]:
        """The user's own cell in every class: what must never be sent alone."""
        rows, after = episode.rows(self.problem), episode.states[1:]
        states, cells = self.problem.states, []
        for one in self.classes:
            row, h = rows[one.step], one.step
            inside = {
                "transitions": row * states + after[h],
                "rewards": 2 * row + bits[h],
                "visits": row,
            }
            cells.append(one.none if row == LEFT else inside[one.statistic])
        return cells

    def _pack(self, report: Report) -> bytes:
        return pack_words([cell for cells in report for cell in cells])

    def _unpack(self, body: bytes) -> Report:
        cells, first, report = unpack_words(body), 0, []
        for one in self.classes:
            report.append(cells[first : first + one.messages])
            first += one.messages
        return report

    def _check(self, report: Report) -> None:
        check_lists(report, [one.messages for one in self.classes])
        for one, cells in zip(self.classes, report, strict=True):
            if min(cells) < 0 or max(cells) > one.cells:
                raise DeviceError("cellOutOfRange", f"Expected cells from 0 to {one.cells}.")


def _hidden(cell: int, one: MessageClass, draws: Draws) -> list[int]:
    """The data cell among its noise cells, at a random place."""
    cells = [*draws.noise(one.cells, one.weight, one.noise), cell]
    place = draws.below(one.messages, 1)[0]
    cells[place], cells[-1] = cells[-1], cells[place]
    return cells


def cell_to_bytes(cell: int) -> bytes:
    """What is sealed in one envelope."""
    if type(cell) is not int or not 0 <= cell < WORD:
        raise DeviceError("cellOutOfRange", "Expected a cell from 0 to 2^32 - 1.")
    return pack_words([cell])


def cell_from_bytes(data: object, one: MessageClass) -> int:
    """What an analyser finds in one envelope of a class."""
    payload = check_bytes(data)
    if len(payload) != 4:
        raise DeviceError("wrongLength", f"Expected a cell of 4 bytes, got {len(payload)}.")
    cell = unpack_words(payload)[0]
    if cell > one.cells:
        raise DeviceError("cellOutOfRange", f"Expected a cell from 0 to {one.cells}, got {cell}.")
    return cell


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise bad("Expected last_transitions to be true or false.")
    return value
