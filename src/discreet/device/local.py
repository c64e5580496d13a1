"""Local randomness: what leaves the device is private by itself, whoever sees it.

*One step* (`discreet.privacy.mechanisms.one_step` has the proof): the user draws one step and
reports the category she was in there, (row, next state, reward bit) as number
``(row·S + s')·2 + bit``, as a vector of bits: the true one is one with probability 1/2, every other
with probability ``flip``. Order of draws: bits of the rewards of all steps, the step below H, a bit
of probability ``flip`` for every category of that step, one bit of probability 1/2.

*Randomised response* (`discreet.privacy.mechanisms.randomized_response`): every counter of the
episode is a bit, flipped with probability ``flip``; statistics in the order of the description, in
each of them all played rows of all steps. Order of draws: bits of the rewards of all steps, a bit
of probability ``flip`` for every counter.

``flip`` is an exact fraction whose denominator is a power of two. A user who has left the policy is
in no category, and her counters are zero, from that step on; as many bits are drawn as for anybody.
"""

from typing import ClassVar

from discreet.device.base import Device, Report, check_lists
from discreet.device.description import bad, check, fraction, problem, read_statistics
from discreet.device.draws import Draws
from discreet.device.episode import LEFT, Episode
from discreet.device.errors import DeviceError
from discreet.device.wire import pack_bits, pack_words, unpack_bits, unpack_words


def flip_of(value: object) -> tuple[int, int]:
    """A probability above zero and below one whose denominator is a power of two."""
    numerator, denominator = fraction(value, "flip")
    if numerator >= denominator or denominator & (denominator - 1):
        raise bad("Expected flip below one, its denominator a power of two.")
    return numerator, denominator


class OneStepDevice(Device):
    """A report is ``[[step], [bits of the categories of that step]]``."""

    name: ClassVar[str] = "one-step"
    kind: ClassVar[int] = 2

    def __init__(self, data: object) -> None:
        """From a description with ``flip``."""
        description = check(data, self.name, {"flip"})
        super().__init__(description, problem(description))
        self.flip = flip_of(description.get("flip"))

    def categories(self, step: int) -> int:
        """Bits in a report of this step."""
        return 2 * self.problem.states * self.problem.rows[step]

    @property
    def body(self) -> int:
        """The step, and room for the bits of the step that has most of them."""
        return 4 + (max(map(self.categories, range(self.problem.horizon))) + 7) // 8

    def _encode(self, episode: Episode, draws: Draws) -> Report:
        rewards = draws.rewards(episode.rewards)
        step = draws.below(self.problem.horizon, 1)[0]
        bits = draws.bits(*self.flip, self.categories(step))
        kept = draws.bits(1, 2, 1)[0]
        row = episode.rows(self.problem)[step]
        if row != LEFT:
            move = row * self.problem.states + episode.states[step + 1]
            bits[2 * move + rewards[step]] = kept
        return [[step], bits]

    def _pack(self, report: Report) -> bytes:
        return pack_words(report[0]) + pack_bits(report[1], self.body - 4)

    def _unpack(self, body: bytes) -> Report:
        step = unpack_words(body[:4])
        _check_step(step[0], self.problem.horizon)
        return [step, unpack_bits(body[4:], self.categories(step[0]))]

    def _check(self, report: Report) -> None:
        check_lists(report[:1] if isinstance(report, list) else report, [1])
        _check_step(report[0][0], self.problem.horizon)
        check_lists(report, [1, self.categories(report[0][0])])
        check_bits(report[1])


class FlipDevice(Device):
    """A report is ``[bits of all counters]``."""

    name: ClassVar[str] = "randomized-response"
    kind: ClassVar[int] = 3

    def __init__(self, data: object) -> None:
        """From a description with ``flip`` and ``statistics``."""
        description = check(data, self.name, {"flip", "statistics"})
        super().__init__(description, problem(description))
        self.flip = flip_of(description.get("flip"))
        self.statistics = read_statistics(description.get("statistics"))

    @property
    def counters(self) -> int:
        """Bits in a report."""
        return sum(self.problem.rows) * sum(map(self._width, self.statistics))

    @property
    def body(self) -> int:
        """One bit for each counter."""
        return (self.counters + 7) // 8

    def _width(self, statistic: str) -> int:
        return self.problem.states if statistic == "transitions" else 1

    def _encode(self, episode: Episode, draws: Draws) -> Report:
        rewards = draws.rewards(episode.rewards)
        bits = draws.bits(*self.flip, self.counters)
        for counter in self._ones(episode, rewards):
            bits[counter] ^= 1
        return [bits]

    def _ones(self, episode: Episode, rewards: list[int]) -> list[int]:
        rows, ones, first = episode.rows(self.problem), [], 0
        for name in self.statistics:
            before = 0
            for h, row in enumerate(rows):
                place = first + (before + row) * self._width(name)
                if row != LEFT and (name != "rewards" or rewards[h]):
                    ones.append(place + (episode.states[h + 1] if name == "transitions" else 0))
                before += self.problem.rows[h]
            first += before * self._width(name)
        return ones

    def _pack(self, report: Report) -> bytes:
        return pack_bits(report[0], self.body)

    def _unpack(self, body: bytes) -> Report:
        return [unpack_bits(body, self.counters)]

    def _check(self, report: Report) -> None:
        check_lists(report, [self.counters])
        check_bits(report[0])


def _check_step(step: int, horizon: int) -> None:
    if not 0 <= step < horizon:
        raise DeviceError("cellOutOfRange", f"Expected a step from 0 to {horizon - 1}.")


def check_bits(bits: list[int]) -> None:
    """Refuse what is not a bit."""
    if any(bit not in (0, 1) for bit in bits):
        raise DeviceError("cellOutOfRange", "Expected bits.")
