"""What the benchmarks share: the least time of some repetitions, and one line of the table."""

import time
from collections.abc import Callable


def best(
    call: Callable[[], object],
    repeats: int,
    *,
    clock: Callable[[], float] = time.perf_counter,
    warm_up: bool = True,
) -> float:
    """Least seconds of a call; the first one, which compiles, does not count."""
    if warm_up:
        call()
    times = []
    for _ in range(repeats):
        start = clock()
        call()
        times.append(clock() - start)
    return min(times)


def row(task: str, ours: float, peer: float, peer_name: str, unit: str) -> dict:
    """Two times (or sizes) in one unit; the ratio says how many times better ours is."""
    return {
        "task": task,
        "ours": ours,
        "peer": peer,
        "peer_name": peer_name,
        "ratio": peer / ours,
        "unit": unit,
    }
