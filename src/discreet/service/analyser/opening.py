"""Opening envelopes: the analyser's heaviest work, some 70 microseconds each (docs/scale.md).

In this process where there are few, in several processes, or on a Ray cluster. Results are the same
whoever does it. A worker is given the batch's key: it must belong to the analyser.
"""

import collections
import itertools
import multiprocessing
import struct
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from discreet._ray import connected
from discreet._types import IntArray
from discreet.device import ENVELOPE
from discreet.service.protocol import envelope

T = TypeVar("T")
_FEW = 20_000
"""Envelopes for which starting processes is not worth its while: a second or two."""


def open_cells(
    envelopes: bytes, key: X25519PrivateKey, manifest: bytes, place: int, blank: int
) -> IntArray:
    """The cells of envelopes of one class; what no device of the batch has sealed is a blank.

    A blank counts nowhere: who sends rubbish moves no counter, and cannot stop the others.
    """
    bound, size = envelope.info(manifest, place), len(envelopes) // ENVELOPE
    cells = np.full(size, blank, np.int64)
    for i in range(size):
        try:
            text = envelope.SUITE.decrypt(
                envelopes[ENVELOPE * i : ENVELOPE * (i + 1)], key, info=bound
            )
            (cell,) = struct.unpack(">I", text)
        except (InvalidTag, ValueError, struct.error):
            continue
        cells[i] = min(cell, blank)
    return cells


Tally = tuple[int, IntArray]
"""Of a class: how many envelopes hold each of its cells, and last those that are blank."""


class Task(NamedTuple):
    """Some envelopes of one class.

    Attributes:
        envelopes: their bytes.
        key: the batch's private key.
        manifest: the manifest's hash.
        place: of the class.
        blank: what unreadable envelopes stand for.
    """

    envelopes: bytes
    key: bytes
    manifest: bytes
    place: int
    blank: int

    def open(self) -> Tally:
        """How many of them hold each cell."""
        key = X25519PrivateKey.from_private_bytes(self.key)
        cells = open_cells(self.envelopes, key, self.manifest, self.place, self.blank)
        return self.place, np.bincount(cells, minlength=self.blank + 1)


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
