"""The runner: executes what is missing, keeps what is finished, merges at the end.

Kill it and start it again: finished runs are read from disk and the results are the same, bit for
bit, as those of an uninterrupted run with any number of workers on any engine.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from discreet import _validate
from discreet.errors import DiscreetError
from discreet.lab.engines import get_engine
from discreet.lab.preflight import check_experiment
from discreet.lab.results import ResultFolder, Results
from discreet.lab.spec import Experiment
from discreet.lab.tasks import Outcome, Task, expand, tasks_of


@dataclass(frozen=True)
class Execution:
    """What a call of `run_experiment` did."""

    results: Results
    failures: list[Outcome]
    executed: int
    kept: int


Progress = Callable[[Outcome | None, int, int], None]
"""Called with (outcome, finished, total); outcome is None at the start."""


def _silent(outcome: Outcome | None, finished: int, total: int) -> None:
    """No display."""


def run_experiment(
    experiment: Experiment,
    output: str | Path,
    *,
    jobs: int = 1,
    engine: str = "local",
    address: str | None = None,
    progress: Progress = _silent,
) -> Execution:
    """Run an experiment into a folder, resuming what is there.

    Everything is checked before the first run. A run that fails all the same is reported and left
    out; all others are kept. Call again to repeat failures.

    Raises:
        DiscreetError: something is wrong with the experiment, or the folder holds another one.
    """
    _validate.count(jobs=jobs)
    execute = get_engine(engine, address)
    tasks = tasks_of(experiment)
    folder = ResultFolder(Path(output))
    if any(folder.finished(task) is None for task in tasks):
        check(experiment, engine=engine)
    folder.begin(experiment, tasks)
    left = [task for task in tasks if folder.finished(task) is None]
    kept = len(tasks) - len(left)
    failures: list[Outcome] = []
    progress(None, kept, len(tasks))
    outcomes = execute(left, jobs=jobs)
    for finished, outcome in enumerate(outcomes, start=kept + 1):
        if outcome.error is None:
            folder.keep(outcome)
        else:
            failures.append(outcome)
        progress(outcome, finished, len(tasks))
    if len(failures) == len(tasks):
        raise DiscreetError(f"Every run failed; the first one: {failures[0].error}")
    results = folder.complete(experiment, tasks)
    return Execution(results, failures, executed=len(left) - len(failures), kept=kept)


def check(experiment: Experiment, *, engine: str = "local") -> None:
    """Find everything that can be wrong with an experiment, without running it.

    Raises:
        DiscreetError: the first thing that is wrong, with its remedy.
    """
    check_experiment(experiment, expand(experiment), engine)


def free_folder(experiment: Experiment, wanted: str | Path) -> Path:
    """The wanted folder, or the first of ``wanted-2``, ``wanted-3`` ... that is not another's.

    A folder that holds runs of other settings, of other code or of another version is left alone.
    """
    tasks = tasks_of(experiment)
    first = Path(wanted)
    for number in itertools.count(1):
        folder = first if number == 1 else first.with_name(f"{first.name}-{number}")
        if not ResultFolder(folder).refusal(tasks):
            break
    return folder


def missing(experiment: Experiment, output: str | Path) -> list[Task]:
    """The tasks of an experiment that a folder does not have yet."""
    folder = ResultFolder(Path(output))
    return [task for task in tasks_of(experiment) if folder.finished(task) is None]
