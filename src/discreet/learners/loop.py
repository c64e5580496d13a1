"""The batch loop: ask, let users run the policy, release, tell. Regret is exact, never realised."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet._seeds import RunSeeds
from discreet.errors import InvalidInputError
from discreet.learners.base import Batch, BatchLearner, Problem
from discreet.learners.regret import RegretCurve, RegretRecorder
from discreet.mdp.counts import Counts
from discreet.mdp.planning import RegretMeter
from discreet.mdp.policies import MixturePolicy, Policy
from discreet.mdp.simulation import sample_counts
from discreet.mdp.tabular import TabularMDP
from discreet.privacy.noise import Sampler, SimulationSampler
from discreet.privacy.release import PrivateCounts


@dataclass(frozen=True, eq=False)
class LoopOutcome:
    """What a batch run leaves: the regret curve, the last policy and the batches' sizes."""

    regret: RegretCurve
    policy: Policy
    batches: list[int]


def public_facts(mdp: TabularMDP, episodes: int, *, stationary: bool = False) -> Problem:
    """What a learner may know of ``mdp`` in advance: its size and where episodes can start."""
    return Problem(shape=mdp.shape, episodes=episodes, start=mdp.initial > 0, stationary=stationary)


def expected_regret(meter: RegretMeter, policy: Policy) -> float:
    """Expected regret per episode; of a mixture, the weighted average of its components'."""
    if isinstance(policy, MixturePolicy):
        pairs = zip(policy.weights, policy.components, strict=True)
        return float(sum(weight * meter.regret(component) for weight, component in pairs))
    return float(meter.regret(policy))


def run_batches(mdp: TabularMDP, learner: BatchLearner, seeds: RunSeeds) -> LoopOutcome:
    """Simulate all batches of ``learner`` until every one of its episodes is played.

    A batch is simulated at count level, so the run costs the number of batches, not of users.
    """
    rng = seeds.generator("environment")
    sampler: Sampler = SimulationSampler(seeds.generator("noise"))
    meter, recorder = RegretMeter(mdp), RegretRecorder(learner.problem.episodes)
    batches: list[int] = []
    while recorder.episode < learner.problem.episodes:
        batch = learner.ask()
        _check(batch, learner.problem.episodes - recorder.episode)
        recorder.add(batch.users, expected_regret(meter, batch.policy))
        learner.tell(_release(mdp, learner, batch, rng, sampler))
        batches.append(batch.users)
    return LoopOutcome(recorder.curve(), batch.policy, batches)


def _release(
    mdp: TabularMDP,
    learner: BatchLearner,
    batch: Batch,
    rng: np.random.Generator,
    sampler: Sampler,
) -> PrivateCounts:
    def draw(users: int) -> Counts:
        return _inside(sample_counts(mdp, batch.policy, users, rng), played)

    played = batch.policy.played(mdp.shape, learner.problem.start)
    return learner.plan.simulate(draw, batch.users, sampler=sampler, played=played)


def _inside(counts: Counts, played: NDArray[np.bool_]) -> Counts:
    """Simulated users follow the policy; a release would drop their other steps in silence."""
    lost = counts.outside(played)
    if lost:
        raise InvalidInputError(
            f"Expected simulated users inside the mask of their policy, {lost} steps are outside; "
            f"the learner's start states or its policy are not those of the environment."
        )
    return counts


def _check(batch: Batch, left: int) -> None:
    if not 1 <= batch.users <= left:
        raise InvalidInputError(
            f"A learner asked for a batch of {batch.users} users with {left} left; "
            f"ask for at least 1 and at most those left."
        )
