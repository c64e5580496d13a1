"""Everything that can be wrong with an experiment, found before its first run.

Names of plots, missing extras, settings, environments that cannot be built, guarantees that no
noise reaches, numbers of users beyond a limit: each is found by making what the first run would
make, without simulating anybody.
"""

import importlib.util
import itertools
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet import _validate
from discreet.errors import DiscreetError, MissingExtraError, UnknownNameError
from discreet.lab.engines import get_engine
from discreet.lab.results import ResultFolder, Results
from discreet.lab.spec import EnvironmentRow, Experiment
from discreet.lab.style import TITLES
from discreet.lab.tasks import Cell, Outcome, Task, build_environment, expand, tasks_of
from discreet.learners.registry import get_learner

if TYPE_CHECKING:
    from discreet.mdp.tabular import TabularMDP


_EXTRAS = {"pyarrow": "lab", "matplotlib": "lab", "jinja2": "lab"}
_ENGINE_EXTRAS = {"ray": {"ray": "ray"}}


def check_experiment(experiment: Experiment, cells: Sequence[Cell], engine: str = "local") -> None:
    """Raise what a run of these cells would raise, before any of them starts.

    Raises:
        DiscreetError: the first thing that is wrong, with its remedy.
    """
    for name in experiment.plots:
        if name not in TITLES:
            raise UnknownNameError("plot", name, TITLES)
    for package, extra in {**_EXTRAS, **_ENGINE_EXTRAS.get(engine, {})}.items():
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(package, extra)
    places = {_place(c.environment): environment_of(c, experiment.runs) for c in _places(cells)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # paper constants are reported in tables
        for cell in cells:
            check_cell(cell, places[_place(cell.environment)])


def environment_of(cell: Cell, runs: int) -> "TabularMDP":
    """The environment of a cell as its first possible run has it; what varies may fail in some."""
    tries = range(runs if cell.environment.vary else 1)
    failure: DiscreetError | None = None
    for run in tries:
        try:
            return build_environment(cell.environment, cell.seed, run)
        except DiscreetError as error:
            failure = failure or error
    raise failure or DiscreetError("Expected at least one run.")


def check_cell(cell: Cell, mdp: "TabularMDP") -> None:
    """Make the learner of one cell with its release, as its run will.

    Nobody is simulated, but for a few users of a learner that is a whole run by itself.
    """
    from discreet.learners.continual import make_learner
    from discreet.learners.learn import (
        check_trust,
        learn,
        make_batch_learner,
        public_facts,
        stream_kind,
    )
    from discreet.learners.result import record_points

    record_points(cell.episodes)
    spec = get_learner(cell.learner.name)
    settings: dict[str, Any] = dict(cell.learner.settings)
    check_trust(spec, cell.trust)
    rng = np.random.default_rng(0)
    if spec.run is not None:
        few = min(cell.episodes, 2 * math.prod(mdp.shape.visits))
        learn(mdp, learner=spec.name, trust=cell.trust, episodes=few, **settings)
    elif spec.schedule == "batch":
        stationary = settings.pop("stationary", False)
        problem = public_facts(mdp, cell.episodes, stationary=stationary)
        try:
            make_batch_learner(spec, problem, cell.trust, rng, settings)
        except TypeError as error:
            raise DiscreetError(f"Learner {spec.name!r} cannot be made: {error}.") from error
    else:
        make_learner(stream_kind(spec), mdp, cell.trust, cell.episodes, rng, settings)


def _place(row: EnvironmentRow) -> str:
    return repr(row)


def _places(cells: Iterable[Cell]) -> list[Cell]:
    return list({_place(cell.environment): cell for cell in cells}.values())


# The runner: executes what is missing, keeps what is finished, merges at the end.
#
# Kill it and start it again: finished runs are read from disk and the results are the same, bit for
# bit, as those of an uninterrupted run with any number of workers on any engine.


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
