"""The front door: `learn` runs any learner on a known MDP, `run_paper` what a paper prints.

A batch learner runs here: ask, let users run the policy, release, tell. Regret is exact, never
realised. The continual schedule is in `learners.continual`.
"""

from dataclasses import replace
from typing import Any, TypeAlias, cast

import numpy as np

from discreet import _validate
from discreet._seeds import RunSeeds
from discreet._types import FloatArray
from discreet.errors import InvalidInputError, UnsupportedError
from discreet.learners.base import Batch, BatchLearner, ContinualLearner, PublicFacts
from discreet.learners.registry import (
    LearnerSpec,
    get_learner,
    spec_of_class,
    spec_of_settings,
)
from discreet.learners.result import (
    NO_REGRET,
    RegretRecorder,
    Result,
    ReturnCurve,
    noise_deviations,
)
from discreet.learners.settings import Settings
from discreet.mdp.counts import Counts
from discreet.mdp.layered import LayeredMDP
from discreet.mdp.planning import RegretMeter
from discreet.mdp.policies import MixturePolicy, Policy
from discreet.mdp.simulation import Simulator, sample_counts, sample_trajectories
from discreet.mdp.tabular import TabularMDP
from discreet.papers.presets import get_preset
from discreet.privacy.sampling.samplers import Sampler, SimulationSampler
from discreet.privacy.statistics import PrivateCounts
from discreet.privacy.trust import NoPrivacy, TrustModel, check_trust_model

Learner: TypeAlias = "str | LearnerSpec | Settings | type[BatchLearner] | type[ContinualLearner]"
"""A registered name, a specification, settings (`FlowSettings(batches=5)`) or a class of one's
own."""


def learn(
    mdp: TabularMDP | LayeredMDP | Simulator,
    *,
    learner: Learner = "",
    trust: TrustModel | None = None,
    episodes: int,
    seed: int = 0,
    run: int = 0,
    **settings: Any,
) -> Result:
    """Simulate ``episodes`` users of ``mdp`` under a learner and a trust model.

    Args:
        mdp: the true model; the learner sees only private statistics of its users. An environment
            without a model (`discreet.mdp.simulator`) is played, with returns instead of regret.
        learner: a registered name (``discreet list``), settings of a learner, its specification, or
            a class of your own.
        trust: who sees raw episodes; None means no privacy.
        episodes: K, the number of users.
        seed: an integer that fixes every random draw.
        run: the number of the run, among independent runs with one seed.
        settings: the learner's own settings; ``stationary=True`` declares the problem stationary,
            ``batches=N`` allows a batch learner at most N recruitments.

    Returns:
        The exact expected regret curve, the last policy and the guarantee delivered.
    """
    if "paper" in settings:
        raise InvalidInputError(
            f"learn(paper=...) is run_paper(...) now; write "
            f"discreet.run_paper({settings['paper']!r}, mdp, epsilon=1, episodes={episodes})."
        )
    for name in ("epsilon", "delta"):
        if name in settings:
            raise InvalidInputError(
                f"Expected {name} in a trust model, got {name}={settings[name]!r}; write "
                f"trust=discreet.Central({name}={settings[name]!r})."
            )
    spec, own = specified(learner)
    return _learn(mdp, spec, trust, episodes, RunSeeds(seed, run), {**own, **settings})


def run_paper(
    paper: str,
    mdp: TabularMDP | LayeredMDP | Simulator,
    *,
    epsilon: float,
    delta: float | None = None,
    episodes: int,
    seed: int = 0,
    run: int = 0,
    calibration: str | None = None,
    **settings: Any,
) -> Result:
    """Simulate the algorithm of a paper as printed: statistics, noise, constants, schedule.

    Args:
        paper: a preset (``discreet list papers``).
        mdp: the true model.
        epsilon: that the paper's algorithm claims.
        delta: likewise; None takes the paper's own.
        episodes: K, the number of users.
        seed: an integer that fixes every random draw.
        run: the number of the run, among independent runs with one seed.
        calibration: ``"exact"`` keeps the mechanism and delivers what it claims.
        settings: of the learner, in place of printed ones; ``literal=False`` repairs what
            contradicts itself in the printed text.

    Returns:
        As `learn`; the guarantee says what is delivered, and what the paper claims.
    """
    preset = get_preset(paper)
    trust = preset.trust_model(epsilon, delta, calibration)
    spec, seeds = get_learner(preset.learner), RunSeeds(seed, run)
    result = _learn(mdp, spec, trust, episodes, seeds, preset.chosen(settings))
    batches = result.extras.get("batches", ())
    view = preset.view(mdp.shape, trust, batches) if batches else None
    seen = preset.seen(result.guarantee, view, batches)
    return replace(result, guarantee=seen, settings={**result.settings, "paper": preset.name})


def specified(learner: Learner) -> tuple[LearnerSpec, dict[str, Any]]:
    """A specification, and the settings that came with it."""
    if isinstance(learner, str) and learner:
        return get_learner(learner), {}
    if isinstance(learner, LearnerSpec):
        return learner, {}
    if isinstance(learner, Settings):
        return spec_of_settings(type(learner)), learner.to_toml()
    if isinstance(learner, type) and issubclass(learner, BatchLearner | ContinualLearner):
        return spec_of_class(learner), {}
    raise InvalidInputError(
        f"Expected learner='flow-ucb', for instance, its settings, its specification or a class of "
        f"learners, got {learner!r}; `discreet list` names them."
    )


def _learn(
    mdp: TabularMDP | LayeredMDP | Simulator,
    spec: LearnerSpec,
    trust: TrustModel | None,
    episodes: int,
    seeds: RunSeeds,
    settings: dict[str, Any],
) -> Result:
    _validate.count(episodes=episodes)
    trust = NoPrivacy() if trust is None else trust
    check_trust(spec, trust)
    _check_mdp(mdp, spec)
    if spec.run is not None:
        return spec.run(mdp, trust, episodes, seeds, **settings)
    world = cast("TabularMDP | Simulator", mdp)
    if spec.schedule == "continual":
        from discreet.learners.continual import run_continual

        kind = continual_kind(spec)
        return run_continual(kind, world, trust, episodes, seeds, **settings)
    declared = declared_stationary(world, spec, settings)
    problem = public_facts(world, episodes, stationary=declared)
    made = make_batch_learner(spec, problem, trust, seeds.generator("policy"), settings)
    return run_batches(world, made, seeds, name=spec.name)


def _check_mdp(mdp: object, spec: LearnerSpec) -> None:
    kinds = (TabularMDP, Simulator) if spec.run is None else (TabularMDP, LayeredMDP)
    if not isinstance(mdp, kinds):
        name = mdp if isinstance(mdp, str) else "RiverSwim"
        names = " or ".join(kind.__name__ for kind in kinds)
        raise InvalidInputError(
            f"Expected a {names} for learner {spec.name!r}, got mdp={mdp!r}; write for instance "
            f"learn(discreet.make({name!r}), ...)."
        )
    if spec.run is not None and isinstance(mdp, TabularMDP) and mdp.allowed is not None:
        raise UnsupportedError(
            f"Learner {spec.name!r} plays every action everywhere, and {mdp!r} does not allow all; "
            f"use a learner that obeys its mask, for instance 'flow-ucb'."
        )


def check_trust(spec: LearnerSpec, trust: TrustModel) -> None:
    """Refuse what is no trust model, and one that the learner cannot use."""
    check_trust_model(trust)
    name = trust.name
    if name in spec.trusts:
        return
    fault, remedy = f"does not run under trust model {name!r}", ""
    if name == "shuffle" and spec.schedule != "batch":
        fault, remedy = "releases after every user", " Under shuffle use 'flow-ucb'."
    takes = f"it takes: {', '.join(spec.trusts)}."
    raise UnsupportedError(f"Learner {spec.name!r} {fault}; {takes}{remedy}")


def make_batch_learner(
    spec: LearnerSpec,
    problem: PublicFacts,
    trust: TrustModel,
    rng: np.random.Generator,
    settings: dict[str, Any],
) -> BatchLearner:
    """A batch learner with its mechanism calibrated for exactly the statistics it needs.

    What it has ``released`` with these settings, and its ``last_transitions``, decide the
    sensitivity.
    """
    kind = spec.make
    if kind is None or not issubclass(kind, BatchLearner):
        raise UnsupportedError(
            f"Learner {spec.name!r} releases after every episode, not per batch; use a batch "
            f"learner, for instance 'flow-ucb'."
        )
    mechanism = trust.calibrate(
        problem.shape,
        statistics=kind.released(settings),
        last_transitions=kind.last_transitions or problem.stationary,
    )
    return kind(problem, mechanism, rng, **settings)


def declared_stationary(
    mdp: TabularMDP | Simulator, spec: LearnerSpec, settings: dict[str, Any]
) -> bool:
    """Whether a batch learner is told that steps are one; of a continual one, its own setting."""
    if spec.schedule == "batch":
        given: bool = settings.pop("stationary", False)
        return given
    kind = continual_kind(spec)
    chosen = kind.settings_type.choose(settings, learner=spec.name).stationary
    if chosen and not mdp.stationary:
        raise UnsupportedError(f"stationary=True needs a stationary MDP, and {mdp!r} is not.")
    return mdp.stationary if chosen is None else chosen


def continual_kind(spec: LearnerSpec) -> type[ContinualLearner]:
    """The class of a learner of the continual schedule."""
    if spec.make is None or not issubclass(spec.make, ContinualLearner):
        raise UnsupportedError(
            f"Learner {spec.name!r} cannot be run on a tabular MDP: its specification has "
            f"neither a class of its schedule (make=) nor a run of its own (run=)."
        )
    return spec.make


def public_facts(
    mdp: TabularMDP | Simulator, episodes: int, *, stationary: bool = False
) -> PublicFacts:
    """What a learner may know of ``mdp`` in advance: its size and where episodes can start."""
    _validate.truth(stationary=stationary)
    return PublicFacts(shape=mdp.shape, episodes=episodes, start=mdp.start, stationary=stationary)


def expected_regret(meter: RegretMeter, policy: Policy) -> float:
    """Expected regret per episode; of a mixture, the weighted average of its components'."""
    if isinstance(policy, MixturePolicy):
        pairs = zip(policy.weights, policy.components, strict=True)
        return float(sum(weight * meter.regret(component) for weight, component in pairs))
    return float(meter.regret(policy))


def run_batches(
    mdp: TabularMDP | Simulator, learner: BatchLearner, seeds: RunSeeds, *, name: str = ""
) -> Result:
    """Simulate all batches of ``learner``, called ``name``, until all of its episodes are played.

    A batch is simulated at count level, so the run costs the number of batches, not of users.
    Without a model, every user plays.
    """
    episodes, mechanism = learner.problem.episodes, learner.mechanism
    rng = seeds.generator("environment")
    sampler: Sampler = SimulationSampler(seeds.generator("noise"))
    meter = None if isinstance(mdp, Simulator) else RegretMeter(mdp)
    recorder, earned, batches = RegretRecorder(episodes), list[FloatArray](), list[int]()
    while recorder.episode < episodes:
        batch, left = learner.ask(), episodes - recorder.episode
        if not 1 <= batch.users <= left:
            raise InvalidInputError(
                f"A learner asked for a batch of {batch.users} users with {left} left; "
                f"ask for at least 1 and at most those left."
            )
        recorder.add(batch.users, expected_regret(meter, batch.policy) if meter else 0.0)
        learner.tell(release_batch(mdp, learner, batch, rng, sampler, earned))
        batches.append(batch.users)
    return Result(
        learner=name,
        regret=recorder.curve() if meter else NO_REGRET,
        guarantee=mechanism.guarantee,
        policy=batch.policy,
        episodes=episodes,
        seed=seeds.seed,
        settings=learner.settings,
        extras={"batches": batches, **learner.extras},
        mechanism=mechanism.name,
        noise=noise_deviations(mechanism.noise_variance(episodes)),
        notes=learner.notes,
        returns=None if meter else ReturnCurve.of(np.concatenate(earned)),
    )


def release_batch(
    mdp: TabularMDP | Simulator,
    learner: BatchLearner,
    batch: Batch,
    rng: np.random.Generator,
    sampler: Sampler,
    earned: list[FloatArray] | None = None,
) -> PrivateCounts:
    """What the learner is told of a batch of simulated users.

    Where they play without a model, their returns are added to ``earned``: for the result alone.
    """
    support = batch.policy.support(mdp.shape, learner.problem.start)

    def draw(users: int) -> Counts:
        if isinstance(mdp, Simulator):
            played = sample_trajectories(mdp, batch.policy, users, rng)
            if earned is not None:
                earned.append(mdp.returns(played))
            counts = played.counts(mdp.shape, rng)
        else:
            counts = sample_counts(mdp, batch.policy, users, rng)
        lost = counts.outside(support)
        if lost:
            raise InvalidInputError(
                f"Expected simulated users inside the mask of their policy, {lost} steps are "
                f"outside; the learner's start states or its policy are not the environment's."
            )
        return counts

    released = learner.mechanism.simulate(draw, batch.users, sampler=sampler, support=support)
    return learner.reading(released)
