"""What the analyser keeps secret, what it fetches, and how it opens it.

*Keys*: one signing key, and one key per batch that is destroyed when counted; files in a folder of
the analyser, readable by their owner only. A batch key that was destroyed is overwritten and
unlinked; what a disk or a backup keeps of it is beyond this program: keep them out of backups.

*Fetched envelopes* lie in files without a name, which end with their process: on disk, never all in
memory, and beside them their encapsulated keys in buckets, so that copies are found bucket by
bucket. A bucket is drawn by a hash that nobody else knows; whoever chooses keys cannot fill one. A
copy would count a user twice and so move counters by more than the guarantee covers. Of envelopes
with one encapsulated key the first counts, every other one is a dummy: the batch is as if their
senders had sent rubbish. It is not refused, or two participants with one envelope between them
could stop a study; a shuffler that copies learns no more than one that drops reports.

*Opening* is the heaviest work, some 70 microseconds each (docs: Scale): in this process where
there are few, in several processes, or on a Ray cluster. Results are the same whoever does it. A
worker is given the batch's key: it must belong to the analyser.
"""

import collections
import itertools
import logging
import multiprocessing
import os
import secrets
import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from discreet._files import read_parsed, write_atomically
from discreet._ray import connected
from discreet._types import IntArray, WordArray
from discreet.device import ENVELOPE
from discreet.errors import DiscreetError, InvalidInputError
from discreet.service.protocol import report
from discreet.service.protocol.report import KEY

log = logging.getLogger("discreet.service.opening")
_OPEN = {"code": "keyReadable"}
SIZE = 32


def make_signing_key(path: Path) -> Ed25519PrivateKey:
    key = Ed25519PrivateKey.generate()
    write_atomically(path, key.private_bytes_raw().hex().encode() + b"\n", private=True)
    return key


def read_signing_key(path: Path) -> Ed25519PrivateKey:
    """The key that `make_signing_key` made."""
    return Ed25519PrivateKey.from_private_bytes(_read(path))


def destroy(path: Path) -> None:
    """Overwrite and remove; harmless if that was done before."""
    try:
        with path.open("r+b") as file:
            file.write(b"0" * path.stat().st_size)
            file.flush()
            os.fsync(file.fileno())
        path.unlink()
    except FileNotFoundError:
        return


def old_of(path: Path) -> Path:
    """Where the signing key is that is being replaced, until a manifest names the new one."""
    return path.with_name(f"{path.name}.old")


class BatchKeys:
    """One key per manifest, in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700, exist_ok=True)

    def make(self, number: int) -> X25519PrivateKey:
        """A fresh key for a manifest that nobody has seen yet."""
        key = X25519PrivateKey.generate()
        write_atomically(self._path(number), key.private_bytes_raw().hex().encode(), private=True)
        return key

    def has(self, number: int) -> bool:
        return self._path(number).exists()

    def read(self, number: int) -> bytes:
        return _read(self._path(number))

    def public(self, number: int) -> bytes:
        """The public half, as a manifest states it."""
        return (
            X25519PrivateKey.from_private_bytes(self.read(number)).public_key().public_bytes_raw()
        )

    def destroy(self, number: int) -> None:
        destroy(self._path(number))

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:06d}.key"


def _read(path: Path) -> bytes:
    key = read_parsed(path, lambda data: bytes.fromhex(data.decode("ascii")), "the key")
    if len(key) != SIZE:
        raise InvalidInputError(f"Expected a key of {SIZE} bytes in {str(path)!r}.")
    if not any(key):
        raise InvalidInputError(
            f"The key in {str(path)!r} is all zeros: it was destroyed, or never made."
        )
    if path.stat().st_mode & 0o077:
        log.warning(
            "other accounts of this machine may read the key %s: chmod 600", path, extra=_OPEN
        )
    return key


T = TypeVar("T")
_FEW = 20_000
"""Envelopes for which starting processes is not worth its while: a second or two."""


def open_cells(
    envelopes: bytes, key: X25519PrivateKey, manifest: bytes, place: int, dummy: int
) -> IntArray:
    """The cells of envelopes of one group; ``dummy + 1`` is what no device of the batch has sealed.

    That counts nowhere, like a dummy: who sends rubbish moves no counter.
    """
    bound, size = report.info(manifest, place), len(envelopes) // ENVELOPE
    cells = np.full(size, dummy + 1, np.int64)
    for i in range(size):
        try:
            text = report.SUITE.decrypt(
                envelopes[ENVELOPE * i : ENVELOPE * (i + 1)], key, info=bound
            )
            (cell,) = struct.unpack(">I", text)
        except (InvalidTag, ValueError, struct.error):
            continue
        cells[i] = min(cell, dummy + 1)
    return cells


Tally = tuple[int, IntArray]
"""Of a group: how many envelopes hold each of its cells, are dummies, and cannot be read."""


class Task(NamedTuple):
    """Some envelopes of one group.

    Attributes:
        envelopes: their bytes.
        key: the batch's private key.
        manifest: the manifest's hash.
        place: of the group.
        dummy: the cell of a dummy.
    """

    envelopes: bytes
    key: bytes
    manifest: bytes
    place: int
    dummy: int

    def open(self) -> Tally:
        key = X25519PrivateKey.from_private_bytes(self.key)
        cells = open_cells(self.envelopes, key, self.manifest, self.place, self.dummy)
        return self.place, np.bincount(cells, minlength=self.dummy + 2)


Opener = Callable[[Iterable[Task]], Iterator[Tally]]
"""Opens tasks as they come, a few at a time, and gives the tally of each, in their order."""


def in_processes(jobs: int) -> Opener:
    """An opener with so many processes; few envelopes are opened in this one."""

    def run(tasks: Iterable[Task]) -> Iterator[Tally]:
        rest, first, seen = iter(tasks), [], 0
        while seen <= _FEW and (task := next(rest, None)) is not None:
            first.append(task)
            seen += len(task.envelopes) // ENVELOPE
        if jobs <= 1 or seen <= _FEW:
            yield from (task.open() for task in itertools.chain(first, rest))
            return
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(jobs, mp_context=context) as pool:
            try:
                submitted = (pool.submit(Task.open, task) for task in itertools.chain(first, rest))
                for future in _ahead(submitted, 2 * jobs):
                    yield future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    return run


def on_ray(address: str | None, jobs: int) -> Opener:
    """An opener on the Ray cluster at an address, or on a local one."""

    def run(tasks: Iterable[Task]) -> Iterator[Tally]:
        with connected(address, jobs, hint="ray_address") as ray:
            remote = ray.remote(num_cpus=1, max_retries=2)(_opened)
            # Large arguments go to a store that may write them to disk: the key is not among them.
            submitted = (remote.remote(task.key, task._replace(key=b"")) for task in tasks)
            for reference in _ahead(submitted, 2 * int(ray.cluster_resources()["CPU"])):
                yield ray.get(reference)

    return run


def _opened(key: bytes, task: Task) -> Tally:
    return task._replace(key=key).open()


def _ahead(items: Iterator[T], count: int) -> Iterator[T]:
    """The same items, so many of them begun before the first is waited for.

    >>> list(_ahead(iter("abc"), 2))
    ['a', 'b', 'c']
    """
    begun: collections.deque[T] = collections.deque()
    for item in items:
        begun.append(item)
        if len(begun) >= count:
            yield begun.popleft()
    yield from begun


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
        sizes: envelopes of every group.
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
    def groups(self) -> int:
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
        """What is taken from now on belongs to this group."""
        self._place, self._missing = place, self._sizes[place] * ENVELOPE

    def take(self, part: bytes) -> None:
        """Some bytes of the group, in whatever pieces they come."""
        self._missing -= len(part)
        if self._missing < 0:
            self._refuse_length("more")
        self._sealed.write(part)

    def end(self) -> None:
        """The group is complete, or the shuffler does not keep to the protocol."""
        if self._missing:
            self._refuse_length(f"{self._sizes[self._place] * ENVELOPE - self._missing} bytes")

    def _refuse_length(self, found: str) -> None:
        raise AttackError(
            f"Group {self._place} has {found}, expected {self._sizes[self._place] * ENVELOPE} "
            f"bytes: the shuffler does not keep to the protocol. Nothing was counted. If that is "
            f"so again, `discreet service abandon --config FILE` gives the batch up."
        )

    def dummy_copies(self) -> int:
        """Find all copies and make dummies of them; how many there were."""
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
        """All envelopes, some at a time, each with its group; copies as bytes that do not open."""
        self._sealed.seek(0)
        first = 0
        for place, size in enumerate(self._sizes):
            for begin in range(0, size, SLICE):
                part = self._sealed.read(min(SLICE, size - begin) * ENVELOPE)
                yield place, self._marked(part, first + begin)
            first += size

    def _marked(self, part: bytes, first: int) -> bytes:
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
