"""The envelopes of one batch between the shuffler and the opener: on disk, never all in memory.

They lie in files without a name, which end with their process: sealed envelopes, and beside them
their encapsulated keys in buckets, so that copies are found bucket by bucket. A bucket is drawn by
a hash that nobody else knows; whoever chooses keys cannot fill one.
"""

import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from discreet._types import WordArray
from discreet.device import ENVELOPE
from discreet.errors import DiscreetError
from discreet.service.protocol.envelope import KEY

SLICE = 10_000
"""Envelopes that are in memory at a time: a second of opening."""
_BUCKET = 32 << 20
"""Bytes of a bucket of encapsulated keys, about."""
_MOST_BUCKETS = 256
_IN_MEMORY = 4 << 20
"""Bytes that need no disk: of the envelopes, and of all buckets together."""
_WORDS = KEY // 8


class AttackError(DiscreetError):
    """What came from the shuffler cannot be what devices sent; nothing was counted."""


class Fetched:
    """One batch.

    Args:
        folder: of the analyser; its disk takes 84 bytes per envelope.
        sizes: envelopes of every class.
    """

    def __init__(self, folder: Path, sizes: list[int]) -> None:
        self._sizes, self._folder = sizes, folder
        self._place = self._missing = 0
        wanted = -(-KEY * sum(sizes) // _BUCKET)
        power = min((wanted - 1).bit_length() if wanted > 1 else 0, _MOST_BUCKETS.bit_length() - 1)
        self._shift = np.uint64(64 - power) if power else None
        self._sealed = self._file(_IN_MEMORY)
        self._buckets = [self._file(_IN_MEMORY >> power) for _ in range(1 << power)]
        drawn = [secrets.randbits(64) | 1 for _ in range(_WORDS)]
        self._multipliers = np.array(drawn, np.uint64)

    @property
    def classes(self) -> int:
        """How many there are."""
        return len(self._sizes)

    def _file(self, in_memory: int) -> "tempfile.SpooledTemporaryFile[bytes]":
        return tempfile.SpooledTemporaryFile(in_memory, dir=str(self._folder))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        for file in (self._sealed, *self._buckets):
            file.close()

    def begin(self, place: int) -> None:
        """What is taken from now on belongs to this class."""
        self._place, self._missing = place, self._sizes[place] * ENVELOPE

    def take(self, part: bytes) -> None:
        """Some bytes of the class, in whatever pieces they come."""
        self._missing -= len(part)
        if self._missing < 0:
            self._refuse_length("more")
        self._sealed.write(part)

    def end(self) -> None:
        """The class is complete, or the shuffler does not keep to the protocol."""
        if self._missing:
            self._refuse_length(f"{self._sizes[self._place] * ENVELOPE - self._missing} bytes")

    def _refuse_length(self, found: str) -> None:
        raise AttackError(
            f"Class {self._place} has {found}, expected {self._sizes[self._place] * ENVELOPE} "
            f"bytes: the shuffler does not keep to the protocol. Nothing was counted."
        )

    def slices(self) -> Iterator[tuple[int, bytes]]:
        """All envelopes, some at a time, each with its class."""
        self._sealed.seek(0)
        for place, size in enumerate(self._sizes):
            for first in range(0, size, SLICE):
                yield place, self._sealed.read(min(SLICE, size - first) * ENVELOPE)

    def check_distinct(self) -> None:
        """Refuse a batch with two envelopes of one encapsulated key: somebody copied a report.

        A copy would count a user twice and so move counters by more than the guarantee covers.
        """
        for _, envelopes in self.slices():
            self._scatter(_heads(envelopes))
        for bucket in self._buckets:
            bucket.seek(0)
            heads = np.frombuffer(bucket.read(), np.uint64).reshape(-1, _WORDS)
            if _has_copies(heads):
                raise AttackError("Two envelopes are copies of each other. Nothing was counted.")
            bucket.seek(0)
            bucket.truncate()

    def _scatter(self, heads: WordArray) -> None:
        if self._shift is None:
            self._buckets[0].write(heads.tobytes())
            return
        drawn = (heads * self._multipliers).sum(axis=1, dtype=np.uint64) >> self._shift
        for bucket in np.unique(drawn).tolist():
            self._buckets[bucket].write(heads[drawn == bucket].tobytes())


def _heads(envelopes: bytes) -> WordArray:
    """The encapsulated keys as words."""
    table = np.frombuffer(envelopes, np.uint8).reshape(-1, ENVELOPE)[:, :KEY]
    return np.ascontiguousarray(table).view(np.uint64)


def _has_copies(heads: WordArray) -> bool:
    """First by their first words, which settle it unless somebody has made them equal."""
    order = np.argsort(heads[:, 0])
    first = heads[order, 0]
    same = np.zeros(len(first), bool)
    same[1:] = first[1:] == first[:-1]
    same[:-1] |= same[1:]
    suspects = heads[order[same]]
    return len(np.unique(suspects, axis=0)) != len(suspects)
