"""The runner: executes what is missing, keeps what is finished, merges at the end.

Kill it and start it again: finished runs are read from disk and the results are the same, bit for
bit, as those of an uninterrupted run with any number of workers on any engine.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from discreet import _validate
from discreet.errors import DiscreetError
from discreet.lab.engines import get_engine
from discreet.lab.results import ResultFolder, Results
from discreet.lab.spec import Experiment
from discreet.lab.tasks import Outcome, bundles, tasks_of


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

    A run that fails is reported and left out; all others are kept. Call again to repeat failures.
    """
    _validate.count(jobs=jobs)
    execute = get_engine(engine, address)
    tasks = tasks_of(experiment)
    folder = ResultFolder(Path(output))
    folder.begin(experiment, tasks)
    missing = [task for task in tasks if folder.finished(task) is None]
    kept = len(tasks) - len(missing)
    failures: list[Outcome] = []
    progress(None, kept, len(tasks))
    outcomes = execute(bundles(missing), jobs=jobs)
    for finished, outcome in enumerate(outcomes, start=kept + 1):
        if outcome.error is None:
            folder.keep(outcome)
        else:
            failures.append(outcome)
        progress(outcome, finished, len(tasks))
    if len(failures) == len(tasks):
        raise DiscreetError(f"Every run failed; the first one: {failures[0].error}")
    results = folder.complete(experiment, tasks)
    return Execution(results, failures, executed=len(missing) - len(failures), kept=kept)
