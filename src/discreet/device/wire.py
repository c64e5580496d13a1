"""What all devices share, and the bytes of a report, version 1.

======  =====  ====================================================================================
offset  bytes  meaning
======  =====  ====================================================================================
0       4      ``dscr`` in ASCII
4       1      version of this format: 1
5       1      encoder: 1 histogram, 4 split
6       32     SHA-256 of the public description (`description.digest`): the batch it belongs to
38      ...    the body, of one length for all users of a batch
======  =====  ====================================================================================

Body of *histogram*: every message as 4 bytes, its cell as a big-endian integer, in the public order
of the groups. Of *split*: the slot as 4 bytes, then bits, packed eight to a byte, the first one in
the highest place; places left over are zero.

Through a shuffler messages of groups do not travel as a report: each of them is sealed on its own.
The 4 bytes of a cell in an HPKE envelope (X25519: 32 bytes of key, 16 bytes of tag) take 52 bytes.
"""

import struct
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import ClassVar, TypeAlias

from discreet.device.description import (
    Description,
    DeviceError,
    Episode,
    Plain,
    check,
    digest,
    plain_copy,
    read_episode,
    read_sizes,
)
from discreet.device.draws import ByteDraws, Draws

VERSION = 1
ENVELOPE = 52
"""Bytes of one sealed message."""
HEADER = 38
LARGEST_BODY = 1 << 24
"""Bytes; a device makes no larger report, whatever a description asks for."""
_MAGIC = b"dscr"

Report: TypeAlias = list[list[int]]
"""Lists of integers; what they mean is the encoder's affair."""


class Device(ABC):
    """Turns one episode into a report. Holds the public description of a batch, and no data.

    Attributes:
        sizes: and what the policy plays.
    """

    name: ClassVar[str]
    kind: ClassVar[int]
    """In the sixth byte of a report."""
    keys: ClassVar[set[str]]
    """Of a description, besides those of every one."""

    def __init__(self, data: object) -> None:
        description = check(data, self.name, self.keys)
        self._description = plain_copy(description)
        self.sizes = read_sizes(description)
        self._read(description)

    @abstractmethod
    def _read(self, description: Description) -> None:
        """Take what is this encoder's own."""

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
        steps = read_episode(episode, self.sizes)
        return self._encode(steps, ByteDraws() if draws is None else draws)

    def to_bytes(self, report: Report) -> bytes:
        """The report as bytes: header and body."""
        self._check(report)
        return _MAGIC + bytes([VERSION, self.kind]) + self.batch + self._pack(report)

    def from_bytes(self, data: object) -> Report:
        """The inverse of `to_bytes`; refuses whatever no device of this batch can have sent."""
        sent, length = check_bytes(data), HEADER + self.body
        if len(sent) < HEADER:
            raise DeviceError("wrongLength", f"Expected a report of {length} bytes.")
        if sent[:5] != _MAGIC + bytes([VERSION]):
            raise DeviceError("unknownVersion", f"Expected a report of version {VERSION}.")
        if sent[5:HEADER] != bytes([self.kind]) + self.batch:
            raise DeviceError("otherBatch", "Expected a report made for this batch's description.")
        if len(sent) != length:
            raise DeviceError("wrongLength", f"Expected a report of {length} bytes.")
        report = self._unpack(sent[HEADER:])
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


def check_bytes(data: object) -> bytes:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise DeviceError("notBytes", f"Expected bytes, got {type(data).__name__}.")
    return bytes(data)


def pack_words(numbers: Sequence[int]) -> bytes:
    return struct.pack(f">{len(numbers)}I", *numbers)


def unpack_words(data: bytes) -> list[int]:
    return list(struct.unpack(f">{len(data) // 4}I", data))


def pack_bits(bits: Sequence[int], length: int) -> bytes:
    r"""Eight to a byte, the first in the highest place, in ``length`` bytes.

    >>> pack_bits([1, 0, 1], 1)
    b'\xa0'
    """
    number = int("".join(map(str, bits)) or "0", 2)
    return (number << (8 * length - len(bits))).to_bytes(length)


def unpack_bits(data: bytes, count: int) -> list[int]:
    """The first ``count`` bits; the others must be zero."""
    digits = "".join(f"{byte:08b}" for byte in data)
    if "1" in digits[count:]:
        raise DeviceError("badPadding", "Expected zeros after the last bit.")
    return list(map(int, digits[:count]))
