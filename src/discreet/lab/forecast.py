"""How long an experiment takes and how much memory it needs, by rehearsing it with few users."""

import math
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from discreet.lab.tasks import Cell, Outcome, Task, execute
from discreet.learners.registry import get_learner

_FIRST = {"continual": 200, "batch": 20_000}  # users of the first rehearsal
_BATCHES_PER_DECADE = 5.0  # for each batch of the first rehearsal: flow-ucb on ICU-Sepsis
_LONG_ENOUGH = {"continual": 0.1, "batch": 1.0}  # seconds that tell a rate; batches are few
_MEASURED = (10_000, 20_000)  # users: noise is drawn in blocks of at most 8,192 episodes
_PICTURES = 1.3e8  # bytes of the libraries that write tables and draw
_PATIENCE = 4.0  # seconds for all rehearsals, without compilation
_START = 1.5  # seconds in which a worker process starts and loads


@dataclass(frozen=True)
class Forecast:
    """What to expect of the missing runs; bytes of memory are those of all processes together."""

    runs: int
    seconds: float
    bytes: float
    rehearsal: float = 0.0
    """Of the seconds, those of compiling and rehearsing, which are over."""
    problems: tuple[str, ...] = ()
    """Of rehearsals that failed, a sentence each."""

    def __str__(self) -> str:
        """A sentence for people.

        >>> for seconds in (0.3, 42, 95, 100_000):
        ...     print(Forecast(480, seconds, 7.1e8))
        480 runs: about a second, 0.7 GB of memory
        480 runs: about 42 seconds, 0.7 GB of memory
        480 runs: about 2 minutes, 0.7 GB of memory
        480 runs: about 28 hours, 0.7 GB of memory
        """
        units = (("hours", 3600), ("minutes", 60), ("seconds", 1))
        unit, length = next((u for u in units if self.seconds >= 1.5 * u[1]), ("", 1))
        time = f"{self.seconds / length:.0f} {unit}" if unit else "a second"
        runs = f"{self.runs:,} run" + ("s" if self.runs != 1 else "")
        return f"{runs}: about {time}, {self.bytes / 1e9:.1f} GB of memory"


def forecast(tasks: Sequence[Task], jobs: int = 1) -> Forecast:
    """What these tasks will take on ``jobs`` processes of this machine.

    Every kind of task is rehearsed, until the patience for rehearsals is over. What they compile
    the runs find compiled.
    """
    if not tasks:
        return Forecast(0, 0.0, 0.0)
    began, processes = time.monotonic(), min(jobs, len(tasks))
    ordered = sorted((task.cell for task in tasks), key=lambda cell: cell.episodes)
    runs, largest = Counter(map(_kind, ordered)), {_kind(cell): cell for cell in ordered}
    rehearsed: dict[str, _Rehearsed] = {}
    problems: list[str] = []
    for kind, cell in largest.items():
        if not rehearsed or sum(one.seconds for one in rehearsed.values()) < _PATIENCE:
            rehearsed[kind] = _rehearse(cell, runs[kind] / processes, problems)
    rehearsal = time.monotonic() - began
    last = rehearsed[next(reversed(rehearsed))]
    total = sum(rehearsed.get(_kind(cell), last).cost(cell.episodes) for cell in ordered)
    growth = max(one.slope * largest[kind].episodes for kind, one in rehearsed.items())
    each, waiting = _resident() + growth, 0.0 if processes == 1 else _START
    return Forecast(
        runs=len(tasks),
        seconds=rehearsal + total / processes + waiting,
        bytes=(each if processes == 1 else (processes + 1) * each) + _PICTURES,
        rehearsal=rehearsal,
        problems=tuple(dict.fromkeys(problems)),
    )


def _kind(cell: Cell) -> str:
    """Cells of one kind differ in numbers: of users, of epsilon."""
    trust = (cell.trust_name, getattr(cell.trust, "mechanism", ""))
    return repr((cell.environment, cell.learner, trust))


class _Rehearsed(NamedTuple):
    """What rehearsals of one kind said."""

    cost: Callable[[int], float]  # seconds of a run by its users
    slope: float  # bytes that each user adds
    seconds: float  # that they took, without compilation


def _rehearse(cell: Cell, runs: float, problems: list[str]) -> _Rehearsed:
    """Rehearse with more and more users while it takes at most half the time of the ``runs``."""
    spec = get_learner(cell.learner.name)
    played = "reward_range" in cell.environment.parameters  # no model: every user takes time
    batch = spec.schedule == "batch" and not played
    schedule = "batch" if batch else "continual"
    enough = _LONG_ENOUGH[schedule]
    users = min(_FIRST[schedule], cell.episodes)
    first = _executed(cell, users)  # compiles and calibrates, so it counts only if it is alone
    if first.error is not None:
        problems.append(first.error)
    times, spent, warm = [(users, first.seconds)], first.seconds, False
    while True:
        cost = extrapolated(times, schedule)
        half = runs * cost(cell.episodes) / 2
        told = len(times) > 1 and times[-1][1] > enough  # two points tell a slope
        ahead = min(users * (100 if batch else 4), cell.episodes) if warm else users
        over = told or times[-1][1] > _PATIENCE or len(times) > 8 or spent + cost(ahead) > half
        if over or (warm and ahead == users):
            break
        times = [*times, (ahead, _run(cell, ahead))] if warm else [(ahead, _run(cell, ahead))]
        users, spent, warm = ahead, spent + times[-1][1], True
    few, more = _MEASURED
    if batch or cell.episodes <= more or spent + cost(few + more) >= min(_PATIENCE, half):
        return _Rehearsed(cost, 0.0, spent)
    slope = max((_peak(cell, more) - _peak(cell, few)) / (more - few), 0.0)
    return _Rehearsed(cost, slope, spent + cost(few + more))


def _run(cell: Cell, users: int) -> float:
    """Seconds of a run, without compilation; a failure is left to the run itself.

    What others do on this machine while it rehearses is not counted: the estimate is for a machine
    that has nothing else to do.
    """
    began = time.process_time()
    passed = _executed(cell, users).seconds
    return min(passed, time.process_time() - began)


def _executed(cell: Cell, users: int) -> Outcome:
    return execute(Task(replace(cell, episodes=users), 0))


def extrapolated(times: Sequence[tuple[int, float]], schedule: str) -> Callable[[int], float]:
    """Seconds of a run by its users, from the users and seconds of rehearsals, of which two count.

    A continual learner pays per user: a line. A batch learner pays per batch, and batches grow with
    the logarithm of the users or a little faster: the geometric mean of a line in the logarithm and
    of a power. After a single rehearsal they are taken to grow as they do on ICU-Sepsis.

    >>> cost = extrapolated([(100, 1.0), (10_000, 2.0)], "batch")
    >>> round(cost(1_000_000), 2)  # 3 by the line, 4 by the power
    3.46
    """
    users, seconds = times[-1]
    before, earlier = times[-2] if len(times) > 1 else (0, 0.0)
    if schedule == "continual":
        slope = max((seconds - earlier) / max(users - before, 1), 0.0)
        return lambda episodes: max(seconds + slope * (episodes - users), 0.0)
    if not before:
        return lambda episodes: (
            seconds * (1.0 + _BATCHES_PER_DECADE * max(math.log10(episodes / users), 0.0))
        )
    doubled = math.log(seconds / earlier) if seconds > earlier > 0 else 0.0
    steps = math.log(max(users, 2) / before) or 1.0

    def cost(episodes: int) -> float:
        ahead = math.log(episodes / users) / steps
        line = seconds + max(seconds - earlier, 0.0) * ahead
        return math.sqrt(max(line, 0.0) * seconds * math.exp(doubled * ahead))

    return cost


def _peak(cell: Cell, users: int) -> int:
    tracemalloc.start()
    try:
        _run(cell, users)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _resident() -> float:
    try:
        import resource
    except ImportError:  # not on Windows
        return 3e8
    import sys

    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)


def available_memory() -> float:
    """Bytes that this machine could still give; infinite where it does not say."""
    import os

    try:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return math.inf
