"""The front door: ``discreet.learn`` runs any learner of the roster on a known MDP."""

from typing import Any

import numpy as np

from discreet import _validate
from discreet._seeds import RunSeeds
from discreet.errors import UnsupportedError
from discreet.learners.base import BatchLearner, Problem
from discreet.learners.loop import public_facts, run_batches
from discreet.learners.registry import LearnerSpec, get_learner
from discreet.learners.result import Result
from discreet.mdp.tabular import TabularMDP
from discreet.privacy.trust import NoPrivacy, TrustModel, trust_name


def learn(
    mdp: TabularMDP,
    *,
    learner: str,
    trust: TrustModel | None = None,
    episodes: int,
    seed: int = 0,
    run: int = 0,
    **settings: Any,
) -> Result:
    """Simulate ``episodes`` users of ``mdp`` under a learner and a trust model.

    Args:
        mdp: the true model; the learner sees only private statistics of its users.
        learner: a name of the roster (``discreet list``).
        trust: who sees raw episodes; None means no privacy.
        episodes: K, the number of users.
        seed: one integer fixes every draw of the run.
        run: the number of the run among independent repetitions with one seed.
        settings: the learner's own settings; ``stationary=True`` declares the problem stationary.

    Returns:
        The exact expected regret curve, the last policy and the guarantee delivered.
    """
    _validate.count(episodes=episodes)
    spec = get_learner(learner)
    trust = NoPrivacy() if trust is None else trust
    check_trust(spec, trust)
    seeds = RunSeeds(seed, run)
    if spec.rhythm != "batch":
        if spec.run is None:
            raise UnsupportedError(f"Learner {spec.name!r} cannot be run on a tabular MDP.")
        result: Result = spec.run(mdp, trust, episodes, seeds, **settings)
        return result
    problem = public_facts(mdp, episodes, stationary=bool(settings.pop("stationary", False)))
    batch_learner = make_batch_learner(spec, problem, trust, seeds.generator("policy"), settings)
    return _learn_in_batches(spec.name, mdp, batch_learner, seeds)


def check_trust(spec: LearnerSpec, trust: TrustModel) -> None:
    """Refuse a trust model that the learner cannot use."""
    name = trust_name(trust)
    if name not in spec.trusts:
        raise UnsupportedError(
            f"Learner {spec.name!r} does not run under trust model {name!r}; "
            f"it takes: {', '.join(spec.trusts)}."
        )


def make_batch_learner(
    spec: LearnerSpec,
    problem: Problem,
    trust: TrustModel,
    rng: np.random.Generator,
    settings: dict[str, Any],
) -> BatchLearner:
    """A batch learner with its plan calibrated for exactly the statistics it needs.

    ``spec.make`` is the learner's class: its ``statistics`` decide the sensitivity.
    """
    if spec.rhythm != "batch" or spec.make is None:
        raise UnsupportedError(
            f"Learner {spec.name!r} releases after every episode, not per batch; use a batch "
            f"learner, for instance 'flow-ucb'."
        )
    statistics: tuple[str, ...] = spec.make.statistics  # type: ignore[attr-defined]
    plan = trust.calibrate(problem.shape, rhythm="batch", statistics=statistics)
    learner: BatchLearner = spec.make(problem, plan, rng, **settings)
    return learner


def _learn_in_batches(name: str, mdp: TabularMDP, learner: BatchLearner, seeds: RunSeeds) -> Result:
    outcome = run_batches(mdp, learner, seeds)
    return Result(
        learner=name,
        regret=outcome.regret,
        guarantee=learner.plan.guarantee,
        policy=outcome.policy,
        episodes=learner.problem.episodes,
        seed=seeds.seed,
        settings=dict(getattr(learner, "settings", {})),
        extras={"batches": outcome.batches, **getattr(learner, "extras", {})},
    )
