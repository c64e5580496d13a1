"""The runner: checks everything, executes what is missing, keeps what is finished, merges.

Kill it and start it again: finished runs are read from disk and the results are the same, bit for
bit, as those of an uninterrupted run with any number of workers on any engine.
"""

import contextlib
import functools
import importlib.util
import itertools
import math
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet import _validate
from discreet.errors import DiscreetError, MissingExtraError, UnknownNameError
from discreet.lab.plots import PLOTS
from discreet.lab.results import ResultFolder, Results
from discreet.lab.spec import Experiment
from discreet.lab.tasks import (
    Cell,
    Outcome,
    Task,
    build_environment,
    execute,
    expand,
    lost,
    tasks_of,
)
from discreet.learners.registry import get_learner

if TYPE_CHECKING:
    from discreet.mdp.simulation import Simulator
    from discreet.mdp.tabular import TabularMDP


@dataclass(frozen=True)
class Execution:
    """What a call of `run_experiment` did."""

    results: Results
    failures: list[Outcome]
    executed: int
    kept: int


Progress = Callable[[Outcome | None, int, int], None]
"""Called with (outcome, finished, total); outcome is None at the start."""


def run_experiment(
    experiment: Experiment,
    output: str | Path,
    *,
    jobs: int = 1,
    engine: str = "local",
    address: str | None = None,
    progress: Progress = lambda outcome, finished, total: None,
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
    left = missing(experiment, output)
    if left:
        check(experiment, engine=engine)
    folder.begin(experiment, tasks)
    kept = len(tasks) - len(left)
    failures: list[Outcome] = []
    progress(None, kept, len(tasks))
    outcomes = execute(left, jobs)
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


def free_folder(experiment: Experiment, wanted: str | Path) -> Path:
    """The wanted folder, or the first of ``wanted-2``, ``wanted-3`` ... that is not another's.

    A folder that holds runs of other settings, of other code or of another version is left alone.
    """
    tasks, folder = tasks_of(experiment), Path(wanted)
    numbered = (folder.with_name(f"{folder.name}-{number}") for number in itertools.count(2))
    while ResultFolder(folder).refusal(tasks):
        folder = next(numbered)
    return folder


def missing(experiment: Experiment, output: str | Path) -> list[Task]:
    """The tasks of an experiment that a folder does not have yet."""
    folder = ResultFolder(Path(output))
    return [task for task in tasks_of(experiment) if folder.finished(task) is None]


# Checks before the first run.


def check(experiment: Experiment, *, engine: str = "local") -> None:
    """Find everything that can be wrong with an experiment, without running it.

    Learners, settings, mechanisms and what no calibration reaches are found by making what the
    first run would make, without simulating anybody.

    Raises:
        DiscreetError: the first thing that is wrong, with its remedy.
    """
    cells = expand(experiment)
    for name in experiment.plots:
        if name not in PLOTS:
            raise UnknownNameError("plot", name, PLOTS)
    if engine not in ENGINES:
        raise UnknownNameError("engine", engine, ENGINES)
    for package in ("pyarrow", "matplotlib", "jinja2", *(["ray"] if engine == "ray" else [])):
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(package, "ray" if package == "ray" else "lab")
    places = {repr(cell.environment): cell for cell in cells}
    models = {place: environment_of(cell, experiment.runs) for place, cell in places.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # paper constants are reported in tables
        for cell in cells:
            check_cell(cell, models[repr(cell.environment)])


def environment_of(cell: Cell, runs: int) -> "TabularMDP | Simulator":
    """The environment of a cell as its first possible run has it; what varies may fail in some."""
    for run in range(runs if cell.environment.vary else 1):
        with contextlib.suppress(DiscreetError):
            return build_environment(cell.environment, cell.seed, run)
    return build_environment(cell.environment, cell.seed, 0)  # fails as the first one did


def check_cell(cell: Cell, mdp: "TabularMDP | Simulator") -> None:
    """Make the learner of one cell with its release, as its run will.

    Nobody is simulated, but for a few users of a learner that is a whole run by itself.
    """
    from discreet.learners.continual import make_learner
    from discreet.learners.learn import (
        check_trust,
        continual_kind,
        declared_stationary,
        learn,
        make_batch_learner,
        public_facts,
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
        stationary = declared_stationary(mdp, spec, settings)
        problem = public_facts(mdp, cell.episodes, stationary=stationary)
        try:
            make_batch_learner(spec, problem, cell.trust, rng, settings)
        except TypeError as error:
            raise DiscreetError(f"Learner {spec.name!r} cannot be made: {error}.") from error
    else:
        make_learner(continual_kind(spec), mdp, cell.trust, cell.episodes, rng, settings)


# Engines execute tasks; which one is used never changes a result.


Engine = Callable[[Sequence[Task], int], Iterator[Outcome]]
"""Executes independent tasks on so many workers and yields their outcomes in any order."""
ENGINES = ("local", "ray")


def get_engine(name: str, address: str | None = None) -> Engine:
    """The engine called ``name``; ``address`` joins an existing Ray cluster."""
    if name not in ENGINES:
        raise UnknownNameError("engine", name, ENGINES)
    return run_local if name == "local" else functools.partial(run_on_ray, address=address)


_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


def run_local(work: Sequence[Task], jobs: int) -> Iterator[Outcome]:
    """Yield outcomes as they finish. Leaving the iteration early cancels what has not started."""
    if jobs == 1 or len(work) <= 1:
        yield from map(execute, work)
        return
    # One thread per worker: the workers are the parallelism.
    saved = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(
        max_workers=min(jobs, len(work)), mp_context=context, initializer=_serve
    )
    finished = False
    try:
        pending = {pool.submit(execute, task): task for task in work}
        while pending:
            done, _ = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                task = pending.pop(future)
                try:
                    yield future.result()
                except BrokenProcessPool:
                    # The worker was killed (out of memory, a signal); the run can be repeated.
                    yield lost(task, "its worker process died; run again to repeat it")
        finished = True
    finally:
        if not finished:  # interrupted: what is under way is not worth waiting for
            for process in list((getattr(pool, "_processes", None) or {}).values()):
                process.kill()
        pool.shutdown(wait=True, cancel_futures=True)
        for name, value in saved.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _serve() -> None:
    """A worker leaves interruptions to its parent, and ends when its parent ends, however."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":  # the kernel ends us; a compiled loop lets no thread look
        import ctypes

        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, int(signal.SIGKILL))
    parent = multiprocessing.parent_process()
    if parent is not None:  # elsewhere, and if the parent has ended meanwhile

        def end() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=end, daemon=True).start()


def run_on_ray(work: Sequence[Task], jobs: int, address: str | None) -> Iterator[Outcome]:
    """The same tasks on the cluster at ``address``, or on a local one started here."""
    from discreet._ray import connected

    with connected(address, jobs) as ray:
        remote = ray.remote(num_cpus=1, max_retries=2)(execute)
        pending = {remote.remote(task): task for task in work}
        while pending:
            done, _ = ray.wait(list(pending), num_returns=1)
            for reference in done:
                task = pending.pop(reference)
                try:
                    yield ray.get(reference)
                except ray.exceptions.RayError as error:
                    yield lost(task, f"its Ray worker failed: {str(error).splitlines()[0]}")
