"""From an experiment to independent tasks, and the pure function that executes one of them.

A task is one run of one learner under one trust model on one environment. Its result depends on
nothing but the task, so it is the same on any machine, with any number of workers, in any order.
"""

import hashlib
import json
import time
import traceback
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from discreet.errors import DiscreetError, UnsupportedError
from discreet.lab.spec import EnvironmentRow, Experiment, LearnerRow
from discreet.learners.registry import get_learner
from discreet.privacy.trust import TrustModel, trust_name

SCHEMA_VERSION = 1
_POLICY_LIMIT = 2_000  # decisions kept for a heat map
_SIGNAL_LIMIT = 500  # counters kept for the picture of noise against signal


@dataclass(frozen=True)
class Cell:
    """One line of a results table: everything but the run number."""

    environment: EnvironmentRow
    learner: LearnerRow
    trust: TrustModel
    episodes: int
    seed: int

    @property
    def trust_name(self) -> str:
        """The trust model's short name."""
        return trust_name(self.trust)

    @property
    def key(self) -> str:
        """A fingerprint: equal cells give equal results."""
        content = {
            "schema": SCHEMA_VERSION,
            "environment": asdict(self.environment) | {"label": ""},
            "learner": [self.learner.name, dict(self.learner.settings)],
            "trust": [self.trust_name, asdict(self.trust)],
            "rest": [self.episodes, self.seed],
        }
        text = json.dumps(content, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Task:
    """One run of one cell."""

    cell: Cell
    run: int

    @property
    def name(self) -> str:
        """Also the name of its result file."""
        return f"{self.cell.key}-{self.run:04d}"


@dataclass(frozen=True)
class Outcome:
    """What a task leaves: plain values, or an error."""

    task: Task
    seconds: float
    record: Mapping[str, Any] | None = None
    error: str | None = None


def expand(experiment: Experiment) -> list[Cell]:
    """All cells of an experiment, in the order of its file.

    Raises:
        UnsupportedError: a learner names a trust model it cannot use, or nothing is left to run.
    """
    cells = [
        Cell(environment, learner, trust, episodes, experiment.seed)
        for environment in experiment.environments
        for learner in experiment.learners
        if not learner.environments or environment.title in learner.environments
        for spec in experiment.trusts
        if _uses(learner, spec.model)
        for trust in spec.models()
        for episodes in experiment.episodes
        if not learner.max_episodes or episodes <= learner.max_episodes
    ]
    if not cells:
        raise UnsupportedError(
            f"Experiment {experiment.name!r} has nothing to run: no learner fits its trust models."
        )
    return cells


def _uses(learner: LearnerRow, model: str) -> bool:
    supported = get_learner(learner.name).trusts
    wrong = [name for name in learner.trusts if name not in supported]
    if wrong:
        raise UnsupportedError(
            f"Learner {learner.name!r} cannot run under {wrong[0]!r}; it supports "
            f"{', '.join(supported)}."
        )
    return model in (learner.trusts or supported)


def tasks_of(experiment: Experiment) -> list[Task]:
    """All tasks: the runs of every cell."""
    return [Task(cell, run) for cell in expand(experiment) for run in range(experiment.runs)]


def execute(task: Task) -> Outcome:
    """Run one task; an exception becomes an error record, so that others go on."""
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # paper constants are reported in tables
            record = _record(task)
    except DiscreetError as error:
        return Outcome(task, time.perf_counter() - start, error=str(error))
    except Exception as error:  # a learner's bug must not take the others down
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error} (in {where.name}, line {where.lineno})"
        return Outcome(task, time.perf_counter() - start, error=text)
    return Outcome(task, time.perf_counter() - start, record=record)


def _record(task: Task) -> dict[str, Any]:
    from discreet.learners.learn import learn
    from discreet.mdp.planning import evaluate, plan
    from discreet.mdp.policies import DeterministicPolicy, uniform_policy

    cell = task.cell
    mdp = build_environment(cell.environment, cell.seed, task.run)
    result = learn(
        mdp,
        learner=cell.learner.name,
        trust=cell.trust,
        episodes=cell.episodes,
        seed=cell.seed,
        run=task.run,
        **cell.learner.settings,
    )
    policy = result.policy
    actions = policy.actions if isinstance(policy, DeterministicPolicy) else None
    uniform_gap = result.extras.get("uniform_regret_per_episode")
    if uniform_gap is None:
        uniform_gap = plan(mdp).value - evaluate(mdp, uniform_policy(mdp.shape))
    return {
        "episodes": result.regret.episodes.tolist(),
        "regret": result.regret.values.tolist(),
        "guarantee": result.guarantee.to_dict(),
        "uniform_regret_per_episode": float(uniform_gap),
        "constants": str(result.settings.get("constants", "")),
        "signal": _signal(mdp, cell.episodes),
        "noise_std": _noise_std(cell, mdp.shape),
        "policy": None if actions is None or actions.size > _POLICY_LIMIT else actions.tolist(),
    }


def _signal(mdp: Any, episodes: int) -> list[float]:
    """Expected visits of each (h, s, a) if all users followed the optimal policy, largest first."""
    from discreet.mdp.planning import occupancy, plan

    visits = occupancy(mdp, plan(mdp).policy).ravel() * episodes
    ranked = sorted((float(v) for v in visits if v >= 1e-6), reverse=True)
    return ranked[:_SIGNAL_LIMIT]


def _noise_std(cell: Cell, shape: Any) -> float:
    """Noise on one counter: of a release of all users at once, or of the last one of a stream."""
    rhythm = get_learner(cell.learner.name).rhythm
    if rhythm == "adversarial":
        return 0.0  # counts and losses carry different noise; no single line would be true
    if rhythm == "batch":
        plan = cell.trust.calibrate(shape)
        return float(max(plan.noise_variance(cell.episodes).values()) ** 0.5)
    stream = cell.trust.calibrate(shape, rhythm="stream", episodes=cell.episodes)
    return float(max(stream.noise_variance(cell.episodes).values()) ** 0.5)


def build_environment(spec: EnvironmentRow, seed: int, run: int) -> Any:
    """The environment of one run: relabelled and varied as its specification says."""
    from discreet.mdp.environments.registry import make

    parameters = dict(spec.parameters)
    if spec.vary:
        parameters[spec.vary] = seed + run
    if spec.relabel:
        parameters["relabel"] = seed + run
    return make(spec.name, **parameters)
