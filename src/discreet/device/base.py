"""What all devices share."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar, TypeAlias

from discreet.device.description import Description, Plain, Problem, digest, plain_copy
from discreet.device.draws import ByteDraws, Draws
from discreet.device.episode import Episode, read_episode
from discreet.device.errors import DeviceError
from discreet.device.wire import body_of, with_header

Report: TypeAlias = list[list[int]]
"""Lists of integers; what they mean is the encoder's affair."""
LARGEST_BODY = 1 << 24
"""Bytes; a device makes no larger report, whatever a description asks for."""


class Device(ABC):
    """Turns one episode into a report. Holds the public description of a batch, and no data.

    Attributes:
        problem: sizes and what the policy plays.
    """

    name: ClassVar[str]
    kind: ClassVar[int]
    """In the sixth byte of a report."""

    def __init__(self, description: Description, problem: Problem) -> None:
        self._description = plain_copy(description)
        self.problem = problem

    @cached_property
    def batch(self) -> bytes:
        """32 bytes that name the description."""
        return digest(self._description)

    def to_dict(self) -> dict[str, Plain]:
        """The description, for JSON."""
        return plain_copy(self._description)

    def encode(self, episode: Mapping[str, object], draws: Draws | None = None) -> Report:
        """One user's report; call it once per batch, and send the same bytes again after an error.

        Args:
            episode: ``{"states": [H + 1], "actions": [H], "rewards": [H]}``, rewards from 0 to 1.
            draws: where randomness comes from; the operating system, unless this is a test.
        """
        if self.body > LARGEST_BODY:
            raise DeviceError("tooLarge", f"Expected a report of at most {LARGEST_BODY} bytes.")
        steps = read_episode(episode, self.problem)
        return self._encode(steps, ByteDraws() if draws is None else draws)

    def to_bytes(self, report: Report) -> bytes:
        """The report as bytes, see `wire`."""
        self._check(report)
        return with_header(self.kind, self.batch, self._pack(report))

    def from_bytes(self, data: object) -> Report:
        """The inverse of `to_bytes`; refuses whatever no device of this batch can have sent."""
        report = self._unpack(body_of(data, self.kind, self.batch, self.body))
        self._check(report)
        return report

    @property
    @abstractmethod
    def body(self) -> int:
        """Bytes of a report after the header."""

    @abstractmethod
    def _encode(self, episode: Episode, draws: Draws) -> Report: ...

    @abstractmethod
    def _pack(self, report: Report) -> bytes: ...

    @abstractmethod
    def _unpack(self, body: bytes) -> Report: ...

    @abstractmethod
    def _check(self, report: Report) -> None: ...


def check_lists(report: object, lengths: list[int]) -> None:
    """A report has these many lists of these lengths, of integers all of them."""
    if (
        not isinstance(report, list)
        or not all(isinstance(part, list) for part in report)
        or [len(part) for part in report] != lengths
        or not all(type(number) is int for part in report for number in part)
    ):
        raise DeviceError("badReport", f"Expected {len(lengths)} lists of integers of this batch.")
