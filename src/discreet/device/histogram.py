"""Shuffled histograms: one data cell and K noise cells for every group (statistic, step).

A group has D cells: its counters, of the pairs (s, a) that the public policy plays at its step in
ascending order, and ``dropped_out`` = D - 1 for a user who has left the policy. Transitions:
row·S + s'. Rewards: 2·row + bit. Visits: row. A noise cell is uniform over the D cells with
probability q = Q/2^32, and ``dummy`` = D otherwise. For n users and noise of mean lambda per cell

    K = ceil(D·lambda/n),    Q = min(2^32, ceil(2^32·D·lambda/(n·K))),

in integers, lambda an exact fraction: device and analyser compute the same numbers from the public
description, and an analyser cannot ask for less noise than lambda says. The data cell stands at a
random place among the 1 + K.

Order of draws: bits of the rewards of all steps; then for every group its noise, and the place of
its data cell, one number below 1 + K (the data cell is put last and changes places with it).

The number of messages, their length and the number of random bytes are the same whatever the
episode (rejected bytes depend on nothing but themselves). The proof that sums of such messages are
private is in `discreet.privacy.mechanisms.histogram`; it needs all messages of a group mixed over
all users.
"""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from discreet.device.description import (
    DROPPED_OUT,
    STATISTICS,
    Description,
    DeviceError,
    Episode,
    bad,
    fraction,
    integer,
    read_statistics,
    read_truth,
)
from discreet.device.draws import WORD, Draws
from discreet.device.wire import (
    Device,
    Report,
    check_bytes,
    check_lists,
    pack_words,
    unpack_words,
)


class MessageGroup(NamedTuple):
    """All messages of one statistic at one step.

    Attributes:
        statistic: transitions, rewards or visits.
        step: h.
        cells: D, with ``dropped_out``.
        noise: K, noise cells per user.
        weight: Q; a noise cell is not a dummy with probability Q/2^32.
    """

    statistic: str
    step: int
    cells: int
    noise: int
    weight: int

    @property
    def dropped_out(self) -> int:
        """The cell of users who have left the policy."""
        return self.cells - 1

    @property
    def messages(self) -> int:
        """Per user."""
        return 1 + self.noise


def layout(
    rows: Sequence[int],
    states: int,
    statistics: Sequence[str],
    *,
    last_transitions: bool,
    users: int,
    mean: tuple[int, int],
) -> tuple[MessageGroup, ...]:
    """All groups of a batch, in the order in which they are sent.

    >>> for group in layout([2], 2, ["rewards"], last_transitions=False, users=100, mean=(50, 1)):
    ...     print(group)
    MessageGroup(statistic='rewards', step=0, cells=5, noise=3, weight=3579139414)

    Args:
        rows: pairs of the support, per step.
        states: S.
        statistics: which of transitions, rewards and visits.
        last_transitions: whether the last step has a group of transitions.
        users: n.
        mean: lambda as numerator and denominator.
    """
    width = {"transitions": states, "rewards": 2, "visits": 1}
    found = []
    for name in (name for name in STATISTICS if name in statistics):
        steps = len(rows) - (name == "transitions" and not last_transitions)
        for step in range(steps):
            cells = rows[step] * width[name] + 1
            numerator, denominator = cells * mean[0], users * mean[1]
            noise = -(-numerator // denominator)
            weight = min(WORD, -(-WORD * numerator // (denominator * noise)))
            found.append(MessageGroup(name, step, cells, noise, weight))
    return tuple(found)


class HistogramDevice(Device):
    """A report is a list of 1 + K cells for every group.

    Attributes:
        groups: in the order in which they are sent.
    """

    name: ClassVar[str] = "histogram"
    kind: ClassVar[int] = 1
    keys: ClassVar[set[str]] = {"statistics", "last_transitions", "users", "lambda"}

    def _read(self, description: Description) -> None:
        self.groups = layout(
            self.sizes.rows,
            self.sizes.states,
            read_statistics(description.get("statistics")),
            last_transitions=read_truth(description.get("last_transitions"), "last_transitions"),
            users=integer(description.get("users"), "users"),
            mean=fraction(description.get("lambda"), "lambda"),
        )
        if not self.groups:
            raise bad("Expected a statistic that has a group; transitions need two steps.")
        if any(group.cells >= WORD for group in self.groups):
            raise bad("Expected fewer than 2^32 cells in a group.")

    @property
    def messages(self) -> int:
        """How many messages a user sends."""
        return sum(group.messages for group in self.groups)

    @property
    def body(self) -> int:
        """Four bytes per message."""
        return 4 * self.messages

    def _encode(self, episode: Episode, draws: Draws) -> Report:
        bits = draws.rewards(episode.rewards)
        own = self._data_cells(episode, bits)
        return [_hidden(cell, group, draws) for cell, group in zip(own, self.groups, strict=True)]

    def _data_cells(self, episode: Episode, bits: Sequence[int]) -> list[int]:
        """The user's own cell in every group: what must never be sent alone."""
        rows, after = episode.rows(self.sizes), episode.states[1:]
        states, cells = self.sizes.states, []
        for group in self.groups:
            row, h = rows[group.step], group.step
            inside = {
                "transitions": row * states + after[h],
                "rewards": 2 * row + bits[h],
                "visits": row,
            }
            cells.append(group.dropped_out if row == DROPPED_OUT else inside[group.statistic])
        return cells

    def _pack(self, report: Report) -> bytes:
        return pack_words([cell for cells in report for cell in cells])

    def _unpack(self, body: bytes) -> Report:
        cells, first, report = unpack_words(body), 0, []
        for group in self.groups:
            report.append(cells[first : first + group.messages])
            first += group.messages
        return report

    def _check(self, report: Report) -> None:
        check_lists(report, [group.messages for group in self.groups])
        for group, cells in zip(self.groups, report, strict=True):
            if min(cells) < 0 or max(cells) > group.cells:
                raise DeviceError("cellOutOfRange", f"Expected cells from 0 to {group.cells}.")


def _hidden(cell: int, group: MessageGroup, draws: Draws) -> list[int]:
    """The data cell among its noise cells, at a random place."""
    cells = [*draws.noise(group.cells, group.weight, group.noise), cell]
    place = draws.below(group.messages, 1)[0]
    cells[place], cells[-1] = cells[-1], cells[place]
    return cells


def cell_to_bytes(cell: int) -> bytes:
    """What is sealed in one envelope."""
    if type(cell) is not int or not 0 <= cell < WORD:
        raise DeviceError("cellOutOfRange", "Expected a cell from 0 to 2^32 - 1.")
    return pack_words([cell])


def cell_from_bytes(data: object, group: MessageGroup) -> int:
    """What an analyser finds in one envelope of a group."""
    payload = check_bytes(data)
    if len(payload) != 4:
        raise DeviceError("wrongLength", f"Expected a cell of 4 bytes, got {len(payload)}.")
    cell = unpack_words(payload)[0]
    if cell > group.cells:
        raise DeviceError("cellOutOfRange", f"Expected a cell from 0 to {group.cells}, got {cell}.")
    return cell
