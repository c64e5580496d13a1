"""From an experiment to independent tasks, and the pure function that executes one of them.

A task is one run of one learner under one trust model on one environment. Its result depends on
nothing but the task, so it is the same on any machine, with any number of workers, in any order.
"""

import functools
import hashlib
import importlib
import json
import time
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, cast

import numpy as np

import discreet
from discreet import _registry
from discreet._types import Plain
from discreet.errors import UnsupportedError, sentence_of
from discreet.lab.spec import EnvironmentRow, Experiment, LearnerRow
from discreet.learners.registry import get_learner
from discreet.mdp.environments.registry import creator, get_environment, is_gymnasium_id
from discreet.privacy.mechanisms import registry as mechanism_registry
from discreet.privacy.trust import PrivateTrust, TrustModel

if TYPE_CHECKING:
    from discreet.learners.result import Result
    from discreet.mdp.simulation import Simulator
    from discreet.mdp.tabular import TabularMDP

SCHEMA_VERSION = 2
_POLICY_LIMIT = 2_000  # decisions kept for a heat map
_AT_RANDOM = 4_000  # episodes that say what random play earns where there is no model
_SIGNAL_LIMIT = 500  # counters kept for the picture of noise against signal


class Origin(TypedDict):
    """The code behind a run: a version, and fingerprints of source files."""

    version: str
    learner: str
    environment: str
    mechanism: str


@dataclass(frozen=True)
class Cell:
    """One line of a results table: everything but the run number."""

    environment: EnvironmentRow
    learner: LearnerRow
    trust: TrustModel
    episodes: int
    seed: int
    imports: tuple[str, ...] = ()

    @property
    def trust_name(self) -> str:
        return self.trust.name

    @functools.cached_property
    def key(self) -> str:
        """A fingerprint: equal cells, run by equal code, give equal results."""
        printed = [f"paper {self.learner.paper}"] if self.learner.paper else []
        content = {
            "schema": SCHEMA_VERSION,
            "made by": self.origin,
            "environment": asdict(self.environment) | {"label": ""},
            "learner": [self.learner.name, dict(self.learner.settings), *printed],
            "trust": [self.trust_name, asdict(self.trust)],
            "rest": [self.episodes, self.seed],
        }
        text = json.dumps(content, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @functools.cached_property
    def origin(self) -> Origin:
        """Which code makes it: our logic, and the files of what comes from elsewhere."""
        spec, asked = get_learner(self.learner.name), self.trust.mechanism
        chosen = [
            mechanism.code
            for mechanism in mechanism_registry.everything()
            if (mechanism.trust, mechanism.name) == (self.trust_name, asked) and not mechanism.ours
        ]
        name, path = self.environment.name, Path(self.environment.name)
        if path.suffix == ".npz" and path.is_file():
            environment = _registry.of_file(path)
        else:
            build = get_environment(name).build
            behind = creator(name) if is_gymnasium_id(name) else None
            parts = [getattr(build, "func", build), *([] if behind is None else [behind])]
            environment = "-".join(dict.fromkeys(map(_registry.of_object, parts)))

        def ours_and(things: Iterable[object]) -> str:
            found = [_registry.logic(), *map(_registry.of_object, things)]
            return "-".join(dict.fromkeys(found))

        return {
            "version": discreet.__version__,
            "learner": ours_and([spec.make or spec.run]),
            "environment": environment,
            "mechanism": ours_and(chosen),
        }


@dataclass(frozen=True)
class Task:
    """One run of one cell."""

    cell: Cell
    run: int

    @property
    def name(self) -> str:
        """Also the name of its result file."""
        return f"{self.cell.key}-{self.run:04d}"


class GuaranteeDict(TypedDict):
    """A `Guarantee` as plain values; an epsilon of None is infinite."""

    notion: str
    epsilon: float | None
    delta: float
    assumptions: list[str]
    unit: str
    neighbours: str
    claimed: str | None
    simulated: bool


class Returns(TypedDict):
    """Of a run without a model: mean returns so far, their standard errors, and random play's."""

    values: list[float]
    errors: list[float]
    uniform: float


class Record(TypedDict):
    """What one finished run leaves, stated by the run itself and never computed again.

    ``source`` has the fingerprints of the code; ``mechanism``, ``noise`` (standard deviation on one
    counter of each statistic) and ``settings`` are as the run resolved them; ``signal`` has the
    expected visits of each (h, s, a) if all users followed the optimal policy, largest first.
    """

    version: str
    source: Origin
    mechanism: str
    noise: dict[str, float]
    settings: dict[str, Plain]
    guarantee: GuaranteeDict
    episodes: list[int]
    regret: list[float]
    uniform_regret_per_episode: float
    signal: list[float]
    policy: list[list[int]] | None
    notes: list[str]
    returns: Returns | None


@dataclass(frozen=True)
class Outcome:
    """What a task leaves: plain values, or an error."""

    task: Task
    seconds: float
    record: Record | None = None
    error: str | None = None
    compile_seconds: float = 0.0


def expand(experiment: Experiment) -> list[Cell]:
    """All cells of an experiment, in the order of its file.

    Raises:
        UnsupportedError: a learner names a trust model it cannot use, or nothing is left to run.
    """
    _registry.import_modules(experiment.imports)
    for learner in experiment.learners:
        supported = get_learner(learner.name).trusts
        for name in learner.trusts:
            if name not in supported:
                raise UnsupportedError(
                    f"Learner {learner.name!r} cannot run under {name!r}; it supports "
                    f"{', '.join(supported)}."
                )
    cells = [
        Cell(environment, learner, trust, episodes, experiment.seed, experiment.imports)
        for environment in experiment.environments
        for learner in experiment.learners
        if not learner.environments or environment.title in learner.environments
        for spec in learner.trust_rows(experiment.trusts)
        if spec.model in (learner.trusts or get_learner(learner.name).trusts)
        for trust in spec.models()
        for episodes in experiment.episodes
        if not learner.max_episodes or episodes <= learner.max_episodes
    ]
    if not cells:
        raise UnsupportedError(
            f"Experiment {experiment.name!r} has nothing to run: no learner fits its trust models."
        )
    return cells


def tasks_of(experiment: Experiment) -> list[Task]:
    """All tasks: the runs of every cell."""
    return [Task(cell, run) for cell in expand(experiment) for run in range(experiment.runs)]


_LOADED = ("discreet.learners.learn", "discreet.privacy.accounting.search")


def execute(task: Task) -> Outcome:
    """Run a task; an exception becomes an error record, so that others go on."""
    start = time.perf_counter()
    compiling: list[float] = []
    try:
        from numba.core import event

        _registry.import_modules(task.cell.imports)
        get_learner(task.cell.learner.name)  # its modules are loaded before the clock starts,
        for module in _LOADED:  # and so is what all learners use
            importlib.import_module(module)
        timer = event.install_timer("numba:compiler_lock", compiling.append)
        with warnings.catch_warnings(), timer:
            warnings.simplefilter("ignore", UserWarning)  # paper constants are reported in tables
            start = time.perf_counter()
            record = _run(task)
    except Exception as error:  # a learner's bug must not take the others down
        return Outcome(task, time.perf_counter() - start, error=sentence_of(error))
    compiled = sum(compiling)  # or read from the cache on disk
    seconds = time.perf_counter() - start - compiled
    return Outcome(task, seconds, record, compile_seconds=compiled)


def lost(task: Task, reason: str) -> Outcome:
    """The outcome of a task whose worker did not answer."""
    return Outcome(task, 0.0, error=reason)


def _run(task: Task) -> Record:
    from discreet.learners.learn import learn, run_paper

    cell, trust = task.cell, task.cell.trust
    mdp = build_environment(cell.environment, cell.seed, task.run)
    what = {"episodes": cell.episodes, "seed": cell.seed, "run": task.run, **cell.learner.settings}
    if cell.learner.paper and isinstance(trust, PrivateTrust):  # a preset has both
        printed = {name: getattr(trust, name) for name in ("epsilon", "delta", "calibration")}
        result = run_paper(cell.learner.paper, mdp, **printed, **what)
    else:
        result = learn(mdp, learner=cell.learner.name, trust=trust, **what)
    gap, signal = _scale(mdp, result)
    curve, returns = result.regret.episodes, None
    if result.returns is not None:
        curve, values = result.returns.episodes, result.returns.values.tolist()
        returns = Returns(values=values, errors=result.returns.errors.tolist(), uniform=gap)
    return {
        "version": discreet.__version__,
        "source": cell.origin,
        "mechanism": result.mechanism,
        "noise": {name: float(std) for name, std in result.noise.items()},
        "settings": json.loads(json.dumps(result.settings, default=str)),
        "guarantee": cast(GuaranteeDict, result.guarantee.to_dict()),
        "episodes": curve.tolist(),
        "regret": result.regret.values.tolist(),
        "uniform_regret_per_episode": gap,
        "signal": signal[:_SIGNAL_LIMIT],
        "policy": _small_policy(task, mdp, result),
        "notes": list(result.notes),
        "returns": returns,
    }


def _scale(mdp: "TabularMDP | Simulator", result: "Result") -> tuple[float, list[float]]:
    """What random play loses per episode (without a model, earns), and visits of the best policy.

    Those of a whole run, the largest first; nobody knows them without a model.
    """
    from discreet.mdp.planning import evaluate, occupancy, solve
    from discreet.mdp.policies import uniform_policy
    from discreet.mdp.simulation import Simulator, sample_trajectories

    random = uniform_policy(mdp.shape)
    if isinstance(mdp, Simulator):
        rng = np.random.default_rng(result.seed)
        return float(mdp.returns(sample_trajectories(mdp, random, _AT_RANDOM, rng)).mean()), []
    best = solve(mdp)
    gap = result.extras.get("uniform_regret_per_episode")  # adversarial learners know it themselves
    if gap is None:
        gap = best.value - evaluate(mdp, random)
    visits = occupancy(mdp, best.policy).ravel() * result.episodes
    return float(gap), sorted((float(v) for v in visits if v >= 1e-6), reverse=True)


def _small_policy(
    task: Task, mdp: "TabularMDP | Simulator", result: "Result"
) -> list[list[int]] | None:
    """The actions of a deterministic policy that is small enough for a picture.

    In the environment's own names of actions, not in those of this run.
    """
    from discreet.mdp.policies import DeterministicPolicy
    from discreet.mdp.tabular import TabularMDP, relabelling

    policy, row = result.policy, task.cell.environment
    if not isinstance(policy, DeterministicPolicy) or policy.actions.size > _POLICY_LIMIT:
        return None
    actions = policy.actions
    if row.relabel:
        if not isinstance(mdp, TabularMDP) or not get_environment(row.name).relabelled_by_us:
            return None
        original = np.broadcast_to(
            relabelling(mdp, task.cell.seed + task.run), (*actions.shape, mdp.shape.actions)
        )
        actions = np.take_along_axis(original, actions[..., None], axis=-1)[..., 0]
    kept: list[list[int]] = actions.tolist()
    return kept


def build_environment(spec: EnvironmentRow, seed: int, run: int) -> "TabularMDP | Simulator":
    """The environment of one run: relabelled and varied as its specification says."""
    from discreet.mdp.environments.registry import make_world

    parameters = dict(spec.parameters)
    if spec.vary:
        parameters[spec.vary] = seed + run
    if spec.relabel:
        parameters["relabel"] = seed + run
    return make_world(spec.name, **parameters)
