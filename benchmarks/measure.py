"""What the benchmarks share: ours and a peer in turns, in processor time, and lines of the table.

Processor time does not count what other programs do, and turns let both meet the same caches and
clock rate; the ratio is the median of the ratios of neighbours, with its spread.
"""

import resource
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Literal, NamedTuple

import numpy as np

SPREAD = (10, 90)
"""Percentiles of the paired ratios that a row states as ``low`` and ``high``."""
PAIR = 0.5
"""Processor seconds that a pair may take, both together, before fewer are measured."""
MOST = 10
"""Times as many pairs as were asked for are measured if they are short."""


class Peer(NamedTuple):
    """What we are compared with.

    Attributes:
        name: as people call it.
        version: of the package; empty where there is none.
        kind: ``"original"`` (the peer's own package), ``"rewritten"`` (after its description) or
            ``"ours"`` (our own code in another way: no peer offers this).
        note: how a rewritten peer compares with measurements of the original.
    """

    name: str
    version: str = ""
    kind: Literal["original", "rewritten", "ours"] = "original"
    note: str = ""


def package(distribution: str, what: str = "") -> Peer:
    """An installed package, with its version."""
    return Peer(what or distribution, metadata.version(distribution))


def processor_seconds() -> float:
    """Of this process and the processes it waited for, user and system."""
    others = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + others.ru_utime + others.ru_stime


def spent(call: Callable[[], object], times: int = 1) -> float:
    """Processor seconds of so many calls."""
    start = processor_seconds()
    for _ in range(times):
        call()
    return processor_seconds() - start


def turns(
    ours: Callable[[], object], peer: Callable[[], object], repeats: int
) -> list[tuple[float, float]]:
    """Processor seconds of both, in turns; the first turn, which compiles, does not count.

    Neighbours are short and many: what disturbs one disturbs the other, and the median forgets the
    few pairs between which something changed. So at least ``repeats`` pairs, and more while their
    time lasts: `PAIR` seconds for each that was asked for. A call that is shorter than the clock
    can see is repeated within its turn. Who goes first changes from pair to pair.
    """
    calls, pairs = [_long_enough(ours), _long_enough(peer)], []
    start = processor_seconds()
    while len(pairs) < repeats or (
        len(pairs) < MOST * repeats and processor_seconds() - start < PAIR * repeats
    ):
        first = len(pairs) % 2
        found = [calls[first](), calls[1 - first]()]
        pairs.append((found[first], found[1 - first]))
    return pairs


def _long_enough(call: Callable[[], object], least: float = 0.02) -> Callable[[], float]:
    """A function that returns the processor seconds of one call, measured over several."""
    call()
    seconds, times = spent(call), 1
    while seconds < least:
        times *= 2 if seconds <= 0 else min(16, int(1 + 1.2 * least / seconds))
        seconds = spent(call, times)
    return lambda: spent(call, times) / times


def row(
    task: str,
    pairs: Sequence[tuple[float, float]],
    peer: Peer,
    unit: str,
    *,
    clock: str = "processor",
) -> dict:
    """One line: both figures in one unit; the ratio says how many times better ours is."""
    ours, theirs = np.asarray(pairs, float).T
    ratios = theirs / ours
    low, high = np.percentile(ratios, SPREAD)
    return {
        "task": task,
        "ours": float(np.median(ours)),
        "peer": float(np.median(theirs)),
        "unit": unit,
        "ratio": float(np.median(ratios)),
        "low": float(low),
        "high": float(high),
        "clock": clock,
        "peer_name": peer.name,
        "peer_version": peer.version,
        "peer_is": peer.kind,
        "note": peer.note,
    }


def compare(
    task: str,
    ours: Callable[[], object],
    peer: Callable[[], object],
    against: Peer,
    unit: str,
    *,
    repeats: int,
    per: tuple[float, float] = (1.0, 1.0),
) -> dict:
    """Measure both in turns; ``per`` turns the seconds of a call of each into ``unit``."""
    pairs = [(a * per[0], b * per[1]) for a, b in turns(ours, peer, repeats)]
    return row(task, pairs, against, unit)
