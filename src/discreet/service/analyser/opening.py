"""Opening envelopes: the analyser's heaviest work, some 50 microseconds each.

In this process where there are few, in several processes, or on a Ray cluster. Results are the same
whoever does it. A worker is given the batch's key: it must belong to the analyser.
"""

import multiprocessing
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from discreet._types import IntArray
from discreet.device import ENVELOPE
from discreet.errors import DiscreetError, MissingExtraError
from discreet.service.protocol import envelope

_SLICE = 20_000
"""Envelopes of one task: a second."""


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

    def open(self) -> IntArray:
        """The cells."""
        key = X25519PrivateKey.from_private_bytes(self.key)
        return open_cells(self.envelopes, key, self.manifest, self.place, self.blank)

    def slices(self) -> Iterator["Task"]:
        """The same in tasks of a second."""
        step = _SLICE * ENVELOPE
        for first in range(0, len(self.envelopes), step):
            yield self._replace(envelopes=self.envelopes[first : first + step])


Opener = Callable[[Sequence[Task]], list[IntArray]]
"""From one task per class to the cells of every class."""


def opened(
    tasks: Sequence[Task], run: Callable[[list[Task]], Iterable[IntArray]]
) -> list[IntArray]:
    """Tasks cut into slices, run, and put together again."""
    pieces = [(i, piece) for i, task in enumerate(tasks) for piece in task.slices()]
    found: list[list[IntArray]] = [[] for _ in tasks]
    for (i, _), cells in zip(pieces, run([piece for _, piece in pieces]), strict=True):
        found[i].append(cells)
    return [np.concatenate(cells) if cells else np.zeros(0, np.int64) for cells in found]


def in_processes(jobs: int) -> Opener:
    """An opener with so many processes; few envelopes are opened in this one."""

    def run(tasks: Sequence[Task]) -> list[IntArray]:
        total = sum(len(task.envelopes) for task in tasks) // ENVELOPE
        if jobs <= 1 or total <= _SLICE:
            return [task.open() for task in tasks]
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(jobs, mp_context=context) as pool:
            try:
                return opened(tasks, lambda pieces: pool.map(Task.open, pieces))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    return run


def on_ray(address: str | None, jobs: int) -> Opener:
    """An opener on the Ray cluster at an address, or on a local one."""

    def run(tasks: Sequence[Task]) -> list[IntArray]:
        try:
            import ray
        except ImportError:
            raise MissingExtraError("ray", "ray") from None
        # Ray reports usage to its makers unless told otherwise.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        where = {"address": address} if address else {"num_cpus": jobs, "include_dashboard": False}
        try:
            ray.init(log_to_driver=False, logging_level="ERROR", **where)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise DiscreetError(f"Cannot reach a Ray cluster at {address!r}: {error}.") from None
        try:
            remote = ray.remote(num_cpus=1, max_retries=2)(Task.open)
            return opened(tasks, lambda pieces: ray.get([remote.remote(p) for p in pieces]))
        finally:
            ray.shutdown()

    return run
