"""Split reports: what leaves the device is private by itself, whoever sees it.

The proof is in `discreet.privacy.mechanisms.split`. A report belongs to a *slot*, a statistic at a
step. Slots are numbered through: the transitions of the steps in order (without the last step where
its transitions are not asked for), then the rewards of all steps. Cells of a slot of transitions:
``row·S + s'``; of rewards: ``2·row + bit``. The user draws the statistic (transitions with
probability 2/3 where both are asked for), then one of its steps, and reports the cell she was in
there as a vector of bits: the true one is one with probability 1/2, every other with probability
``flip``. Order of draws: bits of the rewards of all steps; one number below the sum of the weights
(2 for transitions, 1 for rewards), which picks the statistic; the step; a bit of probability
``flip`` for every cell of the slot; one bit of probability 1/2.

``flip`` is an exact fraction whose denominator is a power of two. A user who has left the policy is
in no cell from that step on; as many bits are drawn as for anybody.
"""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from discreet.device.description import (
    DROPPED_OUT,
    Description,
    DeviceError,
    Episode,
    bad,
    fraction,
    read_statistics,
    read_truth,
)
from discreet.device.draws import Draws
from discreet.device.wire import (
    Device,
    Report,
    check_lists,
    pack_bits,
    pack_words,
    unpack_bits,
    unpack_words,
)

WEIGHTS = {"transitions": 2, "rewards": 1}
"""How often a user of split reports each statistic, out of the sum of those that are asked for."""


class Part(NamedTuple):
    """A statistic that users of split report.

    Attributes:
        statistic: transitions or rewards.
        steps: how many steps it has.
        width: cells of each row.
    """

    statistic: str
    steps: int
    width: int


def parts(
    statistics: Sequence[str], states: int, horizon: int, *, last_transitions: bool
) -> tuple[Part, ...]:
    """What there is to report; visits are the rewards' cells added up.

    >>> parts(["transitions", "rewards"], 4, 6, last_transitions=False)
    (Part(statistic='transitions', steps=5, width=4), Part(statistic='rewards', steps=6, width=2))
    """
    kept = horizon if last_transitions else horizon - 1
    moved = Part("transitions", kept if "transitions" in statistics else 0, states)
    earned = Part("rewards", horizon if {"rewards", "visits"} & set(statistics) else 0, 2)
    return tuple(part for part in (moved, earned) if part.steps)


class SplitDevice(Device):
    """A report is ``[[slot], [bits of the cells of that slot]]``."""

    name: ClassVar[str] = "split"
    kind: ClassVar[int] = 4
    keys: ClassVar[set[str]] = {"flip", "statistics", "last_transitions"}

    def _read(self, description: Description) -> None:
        numerator, denominator = fraction(description.get("flip"), "flip")
        if numerator >= denominator or denominator & (denominator - 1):
            raise bad("Expected flip below one, its denominator a power of two.")
        self.flip = numerator, denominator
        last = read_truth(description.get("last_transitions"), "last_transitions")
        statistics = read_statistics(description.get("statistics"))
        self.parts = parts(statistics, self.sizes.states, self.sizes.horizon, last_transitions=last)
        if not self.parts:
            raise bad("Expected a statistic that has a slot; transitions need two steps.")

    @property
    def slots(self) -> int:
        """How many there are."""
        return sum(part.steps for part in self.parts)

    def cells(self, slot: int) -> int:
        """Bits in a report of this slot."""
        part, step = self.place(slot)
        return part.width * self.sizes.rows[step]

    def place(self, slot: int) -> tuple[Part, int]:
        """Statistic and step of a slot."""
        for part in self.parts:
            if slot < part.steps:
                break
            slot -= part.steps
        return part, slot

    def _encode(self, episode: Episode, draws: Draws) -> Report:
        rewards = draws.rewards(episode.rewards)
        slot = self._draw_slot(draws)
        bits = draws.bits(*self.flip, self.cells(slot))
        kept = draws.bits(1, 2, 1)[0]
        part, step = self.place(slot)
        row = episode.rows(self.sizes)[step]
        if row != DROPPED_OUT:
            moved = part.statistic == "transitions"
            cell = episode.states[step + 1] if moved else rewards[step]
            bits[row * part.width + cell] = kept
        return [[slot], bits]

    def _draw_slot(self, draws: Draws) -> int:
        """The statistic by its weight, then one of its steps; nothing depends on an episode."""
        number = draws.below(sum(WEIGHTS[part.statistic] for part in self.parts), 1)[0]
        first = 0
        for part in self.parts:
            if number < WEIGHTS[part.statistic]:
                break
            number -= WEIGHTS[part.statistic]
            first += part.steps
        return first + draws.below(part.steps, 1)[0]

    @property
    def body(self) -> int:
        """The slot, and room for the bits of the slot that has most of them."""
        return 4 + (max(map(self.cells, range(self.slots))) + 7) // 8

    def _pack(self, report: Report) -> bytes:
        return pack_words(report[0]) + pack_bits(report[1], self.body - 4)

    def _unpack(self, body: bytes) -> Report:
        slot = unpack_words(body[:4])
        self._check_slot(slot[0])
        return [slot, unpack_bits(body[4:], self.cells(slot[0]))]

    def _check(self, report: Report) -> None:
        check_lists(report[:1] if isinstance(report, list) else report, [1])
        self._check_slot(report[0][0])
        check_lists(report, [1, self.cells(report[0][0])])
        _check_bits(report[1])

    def _check_slot(self, slot: int) -> None:
        if not 0 <= slot < self.slots:
            most = self.slots - 1
            raise DeviceError("cellOutOfRange", f"Expected a slot from 0 to {most}.")


def _check_bits(bits: list[int]) -> None:
    if any(bit not in (0, 1) for bit in bits):
        raise DeviceError("cellOutOfRange", "Expected bits.")
