"""How long an experiment takes and how much memory it needs, by rehearsing it with few users."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from discreet.lab.tasks import Cell, Outcome, Task, execute
from discreet.learners.registry import get_learner

_USERS = {"continual": 2_000, "batch": 20_000}  # of a rehearsal
_BATCHES_PER_DECADE = 5.0  # for each batch of the rehearsal: flow-ucb on ICU-Sepsis
_PER_USER = 60.0  # bytes for each user who is played: a stream of noise and what is recorded
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

    Every kind of task is rehearsed once, until the patience for rehearsals is over. What that
    compiles the runs find compiled. Times may be off by a factor of two.
    """
    if not tasks:
        return Forecast(0, 0.0, 0.0)
    began, processes = time.monotonic(), min(jobs, len(tasks))
    ordered = sorted((task.cell for task in tasks), key=lambda cell: cell.episodes)
    largest = {_kind(cell): cell for cell in ordered}
    costs: dict[str, Callable[[int], float]] = {}
    problems: list[str] = []
    spent = 0.0
    for kind, cell in largest.items():
        if not costs or spent < _PATIENCE:
            costs[kind], seconds = _rehearse(cell, problems)
            spent += seconds
    rehearsal = time.monotonic() - began
    last = costs[next(reversed(costs))]
    total = sum(costs.get(_kind(cell), last)(cell.episodes) for cell in ordered)
    played = max((cell.episodes for cell in ordered if not _in_batches(cell)), default=0)
    each, waiting = _resident() + _PER_USER * played, _START * (processes > 1)
    return Forecast(
        runs=len(tasks),
        seconds=rehearsal + total / processes + waiting,
        bytes=(each if processes == 1 else (processes + 1) * each) + _PICTURES,
        rehearsal=rehearsal,
        problems=tuple(dict.fromkeys(problems)),
    )


def _kind(cell: Cell) -> str:
    """Cells of one kind differ in numbers: of users, of epsilon."""
    trust = (cell.trust_name, cell.trust.mechanism)
    return repr((cell.environment, cell.learner, trust))


def _in_batches(cell: Cell) -> bool:
    """Whether users are counted by batches, and not played one by one."""
    batch = get_learner(cell.learner.name).schedule == "batch"
    return batch and "reward_range" not in cell.environment.parameters  # where there is no model


def _rehearse(cell: Cell, problems: list[str]) -> tuple[Callable[[int], float], float]:
    """Seconds of a run by its users, from one with a part of them; and the seconds that it took.

    A continual learner pays per user. A batch learner pays per batch, and batches grow with the
    logarithm of the users, unless users are played one by one.
    """
    batch = _in_batches(cell)
    users = min(_USERS["batch" if batch else "continual"], max(cell.episodes // 2, 1))
    first = _executed(cell, min(users, 200))  # compiles and calibrates
    if first.error is not None:
        problems.append(first.error)
        return lambda _: 0.0, 0.0
    seconds = _run(cell, users)
    if batch:
        return (
            lambda episodes: (
                seconds * (1 + _BATCHES_PER_DECADE * max(math.log10(episodes / users), 0.0))
            ),
            seconds,
        )
    return lambda episodes: seconds * episodes / users, seconds


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
