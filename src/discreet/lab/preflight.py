"""Everything that can be wrong with an experiment, found before its first run.

Names of plots, missing extras, settings, environments that cannot be built, guarantees that no
noise reaches, numbers of users beyond a limit: each is found by making what the first run would
make, without simulating anybody.
"""

import importlib.util
import math
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import DiscreetError, MissingExtraError, UnknownNameError
from discreet.lab.labels import TITLES
from discreet.lab.spec import EnvironmentRow, Experiment
from discreet.lab.tasks import Cell, build_environment
from discreet.learners.registry import get_learner

if TYPE_CHECKING:
    from discreet.mdp.tabular import TabularMDP

_EXTRAS = {"pyarrow": "lab", "matplotlib": "lab"}
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
    from discreet.learners.regret import record_points

    record_points(cell.episodes)
    spec = get_learner(cell.learner.name)
    settings: dict[str, Any] = dict(cell.learner.settings)
    check_trust(spec, cell.trust)
    rng = np.random.default_rng(0)
    if spec.run is not None:
        few = min(cell.episodes, 2 * math.prod(mdp.shape.visits))
        learn(mdp, learner=spec.name, trust=cell.trust, episodes=few, **settings)
    elif spec.rhythm == "batch":
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
