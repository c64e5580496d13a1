"""Split reports: one transition or one reward of one step, private by itself.

`discreet.privacy.mechanisms.split` has the proof. A report belongs to a *slot*: a statistic at a
step. Slots are numbered through: the transitions of the steps in order (without the last step where
its transitions are not asked for), then the rewards of all steps. Cells of a slot of transitions:
``row·S + s'``; of rewards: ``2·row + bit``. The user draws the statistic (transitions with
probability 2/3 where both are asked for), then one of its steps, and reports the cell she was in
there as a vector of bits: the true one is one with probability 1/2, every other with probability
``flip``, an exact fraction whose denominator is a power of two.

Order of draws: bits of the rewards of all steps; one number below the sum of the weights (2 for
transitions, 1 for rewards), which picks the statistic; the step; a bit of probability ``flip`` for
every cell of the slot; one bit of probability 1/2. A user who has left the policy is in no cell
from that step on; as many bits are drawn as for anybody.
"""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from discreet.device.base import Device, Report, check_lists
from discreet.device.description import bad, check, problem, read_statistics
from discreet.device.draws import Draws
from discreet.device.episode import LEFT, Episode
from discreet.device.errors import DeviceError
from discreet.device.local import check_bits, flip_of
from discreet.device.wire import pack_bits, pack_words, unpack_bits, unpack_words

WEIGHTS = {"transitions": 2, "rewards": 1}
"""How often a user reports each statistic, out of the sum of those that are asked for."""


class Part(NamedTuple):
    """A statistic that users report.

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

    def __init__(self, data: object) -> None:
        """From a description with ``flip``, ``statistics`` and ``last_transitions``."""
        description = check(data, self.name, {"flip", "statistics", "last_transitions"})
        super().__init__(description, problem(description))
        self.flip = flip_of(description.get("flip"))
        last = description.get("last_transitions")
        if not isinstance(last, bool):
            raise bad("Expected last_transitions to be true or false.")
        statistics = read_statistics(description.get("statistics"))
        self.parts = parts(
            statistics, self.problem.states, self.problem.horizon, last_transitions=last
        )
        if not self.parts:
            raise bad("Expected a statistic that has a slot; transitions need two steps.")

    @property
    def slots(self) -> int:
        """How many there are."""
        return sum(part.steps for part in self.parts)

    def cells(self, slot: int) -> int:
        """Bits in a report of this slot."""
        part, step = self.place(slot)
        return part.width * self.problem.rows[step]

    def place(self, slot: int) -> tuple[Part, int]:
        """Statistic and step of a slot."""
        for part in self.parts:
            if slot < part.steps:
                return part, slot
            slot -= part.steps
        raise self._no_slot()

    @property
    def body(self) -> int:
        """The slot, and room for the bits of the slot that has most of them."""
        return 4 + (max(map(self.cells, range(self.slots))) + 7) // 8

    def _encode(self, episode: Episode, draws: Draws) -> Report:
        rewards = draws.rewards(episode.rewards)
        slot = self._draw_slot(draws)
        bits = draws.bits(*self.flip, self.cells(slot))
        kept = draws.bits(1, 2, 1)[0]
        part, step = self.place(slot)
        row = episode.rows(self.problem)[step]
        if row != LEFT:
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

    def _pack(self, report: Report) -> bytes:
        return pack_words(report[0]) + pack_bits(report[1], self.body - 4)

    def _unpack(self, body: bytes) -> Report:
        slot = unpack_words(body[:4])
        return [slot, unpack_bits(body[4:], self.cells(slot[0]))]

    def _check(self, report: Report) -> None:
        check_lists(report[:1] if isinstance(report, list) else report, [1])
        if report[0][0] < 0:
            raise self._no_slot()
        check_lists(report, [1, self.cells(report[0][0])])
        check_bits(report[1])

    def _no_slot(self) -> DeviceError:
        return DeviceError("cellOutOfRange", f"Expected a slot from 0 to {self.slots - 1}.")
