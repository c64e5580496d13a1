"""The envelopes of one batch between the shuffler and the opener: on disk, never all in memory.

They lie in files without a name, which end with their process: sealed envelopes, and beside them
their encapsulated keys in buckets, so that copies are found bucket by bucket. A bucket is drawn by
a hash that nobody else knows; whoever chooses keys cannot fill one.

A copy would count a user twice and so move counters by more than the guarantee covers. Of envelopes
with one encapsulated key the first counts, every other one is a blank: the batch is as if their
senders had sent rubbish. It is not refused, or two participants with one envelope between them
could stop a study; a shuffler that copies learns no more than one that drops reports.
"""

import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from discreet._types import IntArray, WordArray
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
_RECORD = KEY + 8
"""Bytes of an encapsulated key with the number of its envelope."""


class AttackError(DiscreetError):
    """What came from the shuffler cannot be what devices sent; nothing was counted."""


class Fetched:
    """One batch.

    Args:
        folder: of the analyser; its disk takes 92 bytes per envelope.
        sizes: envelopes of every class.
    """

    def __init__(self, folder: Path, sizes: list[int]) -> None:
        self._sizes, self._folder = sizes, folder
        self._place = self._missing = 0
        self._copies = np.zeros(0, np.int64)
        wanted = -(-_RECORD * sum(sizes) // _BUCKET)
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

    def blank_copies(self) -> int:
        """Find all copies and make blanks of them; how many there were."""
        self._copies, first = np.zeros(0, np.int64), 0
        for _, envelopes in self.slices():
            heads = _heads(envelopes)
            numbers = np.arange(first, first + len(heads), dtype=np.uint64)
            self._scatter(np.column_stack([heads, numbers]))
            first += len(heads)
        found = []
        for bucket in self._buckets:
            bucket.seek(0)
            found.append(_copies(np.frombuffer(bucket.read(), np.uint64).reshape(-1, _WORDS + 1)))
            bucket.seek(0)
            bucket.truncate()
        self._copies = np.sort(np.concatenate(found))
        return len(self._copies)

    def slices(self) -> Iterator[tuple[int, bytes]]:
        """All envelopes, some at a time, each with its class; copies as bytes that do not open."""
        self._sealed.seek(0)
        first = 0
        for place, size in enumerate(self._sizes):
            for begin in range(0, size, SLICE):
                part = self._sealed.read(min(SLICE, size - begin) * ENVELOPE)
                yield place, self._blanked(part, first + begin)
            first += size

    def _blanked(self, part: bytes, first: int) -> bytes:
        low, high = np.searchsorted(self._copies, [first, first + len(part) // ENVELOPE])
        if low == high:
            return part
        envelopes = np.frombuffer(part, np.uint8).reshape(-1, ENVELOPE).copy()
        envelopes[self._copies[low:high] - first] = 0
        return envelopes.tobytes()

    def _scatter(self, numbered: WordArray) -> None:
        if self._shift is None:
            self._buckets[0].write(numbered.tobytes())
            return
        products = numbered[:, :_WORDS] * self._multipliers
        drawn = products.sum(axis=1, dtype=np.uint64) >> self._shift
        for bucket in np.unique(drawn).tolist():
            self._buckets[bucket].write(numbered[drawn == bucket].tobytes())


def _heads(envelopes: bytes) -> WordArray:
    """The encapsulated keys as words."""
    table = np.frombuffer(envelopes, np.uint8).reshape(-1, ENVELOPE)[:, :KEY]
    return np.ascontiguousarray(table).view(np.uint64)


def _copies(numbered: WordArray) -> IntArray:
    """Numbers of the envelopes whose key came before; the last column holds all numbers.

    First by their first words, which settle it unless somebody has made them equal.
    """
    order = np.argsort(numbered[:, 0])
    first = numbered[order, 0]
    same = np.zeros(len(first), bool)
    same[1:] = first[1:] == first[:-1]
    same[:-1] |= same[1:]
    suspects = numbered[order[same]]
    suspects = suspects[np.argsort(suspects[:, _WORDS])]
    _, kept = np.unique(suspects[:, :_WORDS], axis=0, return_index=True)  # the first of each
    return np.delete(suspects[:, _WORDS], kept).astype(np.int64)
