"""Encoders of the library on the code of `discreet.device`: one code for trials and deployments.

A device asks for its randomness by distribution (`Draws`); here a `Sampler` answers, so that
simulations are seeded, audits list every outcome with its probability, and a study's secure sampler
works as well.
"""

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from discreet import _validate
from discreet._types import BoolArray, FloatArray, IntArray, JsonObject, Plain
from discreet.device.description import VERSION, DeviceError, plain_fraction
from discreet.device.draws import WORD
from discreet.device.histogram import HistogramDevice
from discreet.device.local import SplitDevice
from discreet.device.wire import ENVELOPE, HEADER, Device, Report
from discreet.errors import InvalidInputError
from discreet.mdp.shape import Shape
from discreet.privacy.mechanisms.base import Traffic
from discreet.privacy.sampling.samplers import Sampler

D = TypeVar("D", bound=Device)


@contextmanager
def refusals() -> Iterator[None]:
    """What a device refuses, the library refuses in the same words."""
    try:
        yield
    except DeviceError as error:
        raise InvalidInputError(str(error)) from error


@dataclass(frozen=True)
class SamplerDraws:
    """The randomness of a device (`discreet.device.Draws`) from one of the library's samplers.

    A reward that is a bit already takes no draw here: the outcomes that an audit has to list stay
    few. (On a real device it does, so that the number of random bytes says nothing.)
    """

    sampler: Sampler

    def below(self, bound: int, count: int) -> list[int]:
        """From a table of equal weights."""
        drawn: list[int] = self.sampler.table(np.ones(bound, np.int64), count).tolist()
        return drawn

    def noise(self, cells: int, weight: int, count: int) -> list[int]:
        """From a table whose first entry is the dummy: a sampler without noise sends dummies."""
        if weight == WORD:
            return self.below(cells, count)
        drawn = self.sampler.table(_noise_table(cells, weight), count)
        return [int(i) - 1 if i else cells for i in drawn]

    def rewards(self, rewards: Sequence[float]) -> list[int]:
        """One bit for each, drawn where it is not one already."""
        return [int(self.sampler.binomial(1, r, 1)[0]) if 0 < r < 1 else int(r) for r in rewards]

    def bits(self, numerator: int, denominator: int, count: int) -> list[int]:
        """Independent bits; the fraction is a double."""
        drawn: list[int] = self.sampler.binomial(1, numerator / denominator, count).tolist()
        return drawn


@functools.lru_cache(maxsize=8)
def _noise_table(cells: int, weight: int) -> IntArray:
    table = np.full(cells + 1, weight, np.int64)
    table[0] = (WORD - weight) * cells
    return table


def plain_episode(states: IntArray, actions: IntArray, rewards: FloatArray) -> dict[str, object]:
    """One episode as a device takes it."""
    arrays = {"states": states, "actions": actions, "rewards": rewards}
    return {name: np.asarray(array).tolist() for name, array in arrays.items()}


def plain_shape(encoder: str, shape: Shape, support: BoolArray) -> dict[str, Plain]:
    """The part of a description that all devices share."""
    return {
        "version": VERSION,
        "encoder": encoder,
        "states": shape.states,
        "actions": shape.actions,
        "horizon": shape.horizon,
        "support": np.flatnonzero(support).tolist(),
    }


def plain_flip(flip: float) -> dict[str, Plain]:
    """The double as the fraction it is."""
    return {"flip": plain_fraction(*float(flip).as_integer_ratio())}


@dataclass(frozen=True, eq=False)
class DeviceEncoder(ABC, Generic[D]):
    """An encoder of the library that holds a device, and no data."""

    device: D
    kind: ClassVar[type[Any]]

    @property
    @abstractmethod
    def traffic(self) -> Traffic:
        """What one device sends."""

    @abstractmethod
    def rows(self, report: Report) -> IntArray:
        """A report as the analyser takes it."""

    def encode(
        self, states: IntArray, actions: IntArray, rewards: FloatArray, sampler: Sampler
    ) -> IntArray:
        """One user's private report, as the analyser takes it."""
        episode = plain_episode(states, actions, rewards)
        with refusals():
            return self.rows(self.device.encode(episode, SamplerDraws(sampler)))

    @property
    def length(self) -> int:
        """Bytes of one report, header included."""
        return HEADER + self.device.body

    def from_bytes(self, data: bytes) -> IntArray:
        """A report that came as bytes, as the analyser takes it; refused if of another batch."""
        with refusals():
            return self.rows(self.device.from_bytes(data))

    def to_dict(self) -> dict[str, Plain]:
        """Plain values for JSON: what `discreet.device.load` takes."""
        return dict[str, Plain](self.device.to_dict())

    @classmethod
    def from_dict(cls, data: JsonObject) -> Self:
        with refusals():
            return cls(cls.kind(data))


class HistogramEncoder(DeviceEncoder[HistogramDevice]):
    """Turns one episode into messages ``(group, cell)``, ``int64[messages, 2]``."""

    kind = HistogramDevice

    @classmethod
    def of(
        cls,
        shape: Shape,
        statistics: Sequence[str],
        support: BoolArray,
        *,
        last_transitions: bool,
        users: int,
        mean: Fraction,
    ) -> Self:
        """For the devices of a batch.

        Args:
            shape: the problem's size.
            statistics: which of transitions, rewards and visits.
            support: ``bool[H, S, A]``, what the public policy can play.
            last_transitions: whether transitions of the last step are sent.
            users: of the batch.
            mean: lambda, noise per cell from all users together.
        """
        _validate.count(users=users)
        return cls.from_dict(
            plain_shape("histogram", shape, support)
            | {
                "statistics": list(statistics),
                "last_transitions": bool(last_transitions),
                "users": int(users),
                "lambda": plain_fraction(mean.numerator, mean.denominator),
            }
        )

    @property
    def traffic(self) -> Traffic:
        """Every message is sealed and takes the 52 bytes of its envelope."""
        return Traffic(self.device.messages, self.device.messages * ENVELOPE)

    def rows(self, report: Report) -> IntArray:
        """For every group one data cell and K noise cells."""
        groups = np.repeat(np.arange(len(report)), [len(cells) for cells in report])
        return np.stack([groups, np.concatenate(report)], axis=1).astype(np.int64)


class SplitEncoder(DeviceEncoder[SplitDevice]):
    """A report is ``(slot, bits of all cells)``, ``int64[1, 1 + S·A·max(S, 2)]``.

    Slots are a device's (`discreet.device.local`); cells of unplayed actions and those that a slot
    does not have are always zero, and are not sent.
    """

    kind = SplitDevice

    @property
    def flip(self) -> float:
        """The probability of a false bit, a double."""
        numerator, denominator = self.device.flip
        return numerator / denominator

    @property
    def traffic(self) -> Traffic:
        """One report per user, with its header (`discreet.device.wire`)."""
        return Traffic(1, self.length)

    @classmethod
    def of(
        cls,
        shape: Shape,
        statistics: Sequence[str],
        flip: float,
        support: BoolArray,
        *,
        last_transitions: bool,
    ) -> Self:
        """For all users; ``support`` is what the public policy can play."""
        asked = {"statistics": list(statistics), "last_transitions": bool(last_transitions)}
        return cls.from_dict(plain_shape("split", shape, support) | plain_flip(flip) | asked)

    def rows(self, report: Report) -> IntArray:
        """The slot, and the bits at the places of their cells."""
        sizes, ((slot,), bits) = self.device.sizes, report
        part, step = self.device.place(slot)
        pairs, width = sizes.states * sizes.actions, part.width
        cube = np.zeros((pairs, width), np.int64)
        cube[list(sizes.pairs[step])] = np.reshape(np.array(bits, np.int64), (-1, width))
        rest = np.zeros(pairs * (max(sizes.states, 2) - width), np.int64)
        return np.concatenate([[slot], cube.ravel(), rest])[None]
