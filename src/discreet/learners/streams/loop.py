"""The stream rhythm: one episode, one release, one new policy; shared by all stream learners.

A stream learner exists twice. The *reference* (`StreamLearner.next_policy`) reads like the paper
and takes `PrivateCounts`. The *compiled* form is a planner kernel fed with one row of coefficients
per release; `loop_kernels.run_block` fuses it with simulation and noise. Tests prove that both
walk through the same policies on the same random stream.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from discreet._seeds import RunSeeds
from discreet.errors import UnsupportedError
from discreet.learners.base import Floats, Ints, Problem, StreamLearner
from discreet.learners.regret import RegretCurve, RegretRecorder
from discreet.learners.result import Result, noise_deviations
from discreet.mdp.counts import Counts
from discreet.mdp.planning import RegretMeter
from discreet.mdp.policies import DeterministicPolicy, Policy, StochasticPolicy
from discreet.mdp.tabular import TabularMDP
from discreet.privacy.plans import StreamPlan
from discreet.privacy.sampling.samplers import SimulationSampler
from discreet.privacy.sensitivity import STATISTICS
from discreet.privacy.statistics import PrivateCounts
from discreet.privacy.trust import TrustModel

_RESPONSES = {"unit": 0, "cell": 1, "category": 2}
"""What one step of a user adds to the counters (see `privacy.streams.release.StreamBlock`)."""

_BLOCK_BYTES = 1 << 20
"""Noise drawn ahead per block, as much as releases draw at once; it does not change any value."""


def three_statistics(counts: PrivateCounts) -> tuple[Floats, Floats, Floats]:
    """Transitions, visits and rewards; stream learners need all three."""
    if counts.transitions is None or counts.visits is None or counts.rewards is None:
        raise UnsupportedError(
            f"Stream learners need the statistics {', '.join(STATISTICS)}; one is missing."
        )
    return counts.transitions, counts.visits, counts.rewards


def no_counts(plan: StreamPlan) -> PrivateCounts:
    """What is known before the first user: nothing, and without noise."""
    shape = plan.shape
    cells = (1 if plan.stationary else shape.horizon, shape.states, shape.actions)
    return PrivateCounts(
        users=0,
        transitions=np.zeros((*cells, shape.states)),
        visits=np.zeros(cells),
        rewards=np.zeros(cells),
        noise_variance=dict.fromkeys(STATISTICS, 0.0),
        played=np.ones(cells, np.bool_),
        guarantee=plan.guarantee,
    )


def make_learner(
    kind: type[StreamLearner],
    mdp: TabularMDP,
    trust: TrustModel,
    episodes: int,
    rng: np.random.Generator,
    settings: dict[str, Any],
) -> StreamLearner:
    """A learner with its release calibrated."""
    chosen = kind.settings_type.choose(settings, learner=kind.name)
    stationary = mdp.stationary if chosen.stationary is None else chosen.stationary
    if stationary and not mdp.stationary:
        raise UnsupportedError(
            f"stationary=True needs a stationary MDP, and {mdp!r} is not; drop the setting "
            f"(or relabel actions per state, not per step and state)."
        )
    plan = trust.calibrate(mdp.shape, rhythm="stream", episodes=episodes, stationary=stationary)
    problem = Problem(shape=mdp.shape, episodes=episodes, start=mdp.start, stationary=stationary)
    return kind(problem, plan, rng, replace(chosen, stationary=stationary))


def run_stream(
    kind: type[StreamLearner],
    mdp: TabularMDP,
    trust: TrustModel,
    episodes: int,
    seeds: RunSeeds,
    **settings: Any,
) -> Result:
    """Simulate ``episodes`` users under a stream learner, compiled if it has a planner."""
    learner = make_learner(kind, mdp, trust, episodes, seeds.generator("policy"), settings)
    recorder = RegretRecorder(episodes)
    if learner.planner() is None:
        for played, regret in walk(learner, mdp, seeds):
            recorder.add(1, regret)
            policy = played
    else:
        compiled = CompiledRun(mdp, learner, seeds)
        for regrets in compiled.blocks():
            recorder.add_each(regrets)
        policy = compiled.policy()
    return stream_result(learner, recorder.curve(), policy, seeds)


def stream_result(
    learner: StreamLearner, regret: RegretCurve, policy: Policy, seeds: RunSeeds, **extras: Any
) -> Result:
    """What a run leaves."""
    plan = learner.plan
    return Result(
        learner=learner.name,
        regret=regret,
        guarantee=plan.guarantee,
        policy=policy,
        episodes=plan.episodes,
        seed=seeds.seed,
        settings=learner.settings.to_dict(),
        extras={"mechanism": plan.mechanism, **extras},
        mechanism=plan.mechanism,
        noise=noise_deviations(plan.noise_variance(plan.episodes)),
    )


class CompiledRun:
    """One run through the compiled loop: the world, the release and the learner's memory."""

    def __init__(self, mdp: TabularMDP, learner: StreamLearner, seeds: RunSeeds) -> None:
        shape = mdp.shape
        self.learner = learner
        self._environment = seeds.generator("environment")
        self._release = learner.plan.open(SimulationSampler(seeds.generator("noise")))
        self._silent = learner.plan.guarantee.notion == "none"
        transitions = np.array(mdp.step_transitions, order="C")
        self._world = (
            np.cumsum(transitions, axis=-1),
            transitions,
            np.array(mdp.rewards, order="C"),
            np.cumsum(mdp.initial),
            np.array(mdp.initial),
        )
        self._optimum = RegretMeter(mdp).optimal.value
        cells = (1 if learner.plan.stationary else shape.horizon, shape.states, shape.actions)
        self._counts = (*_counters(cells), *_counters(cells))  # true, released
        self._memory = learner.memory()
        self._model = np.zeros((*cells, shape.states + 3))
        self._values = np.zeros((shape.horizon + 1, shape.states))
        self._actions = np.zeros(shape.visits[:2], np.int64)
        self._last = np.full(shape.visits[:2], -1, np.int64)
        self._probabilities = np.full(shape.visits, 1 / shape.actions)
        self._current = np.array([-1.0])

    def blocks(self) -> Iterator[Floats]:
        """Run all episodes; yields the regrets of one block after the other."""
        from discreet.learners.streams.loop_kernels import run_block

        plan = self.learner.plan
        size = max(1, min(8192, _BLOCK_BYTES // (8 * plan.cells)))
        kernel = self.learner.planner()
        for first in range(0, plan.episodes, size):
            count = min(size, plan.episodes - first)
            randomness = self._randomness(count)
            regrets = np.zeros(count)
            run_block(
                kernel,
                *self._world,
                self.learner.coefficients(np.arange(first, first + count)),
                *randomness,
                _RESPONSES[plan.response],
                *self._counts,
                self._memory,
                self._model,
                self._values,
                self._actions,
                self._last,
                self._probabilities,
                self.learner.stochastic,
                self._optimum,
                self._current,
                regrets,
                self._environment,
                self.learner.rng,
            )
            yield regrets

    def _randomness(self, count: int) -> tuple[Floats, Floats, Ints, Floats, float]:
        """Noise, gains, steps, centres and scale of the next releases (see `StreamBlock`)."""
        if self._silent:
            nothing = np.zeros((count, 0))
            return nothing, nothing, np.zeros(0, np.int64), nothing, 1.0
        block = self._release.block(count)
        return (
            np.ascontiguousarray(block.noise, np.float64),
            np.ascontiguousarray(block.gains, np.float64),
            np.ascontiguousarray(block.steps, np.int64),
            np.ascontiguousarray(block.centres, np.float64),
            block.scale,
        )

    def policy(self) -> Policy:
        """The policy of the last episode."""
        if self.learner.stochastic:
            return StochasticPolicy(self._probabilities)
        return DeterministicPolicy(self._actions)


def _counters(cells: tuple[int, int, int]) -> tuple[Floats, Floats, Floats, Floats]:
    """All counters of a release in one array, and its parts: transitions, visits, rewards."""
    pairs, states = math.prod(cells), cells[1]
    everything = np.zeros(pairs * (states + 2))
    transitions, visits, rewards = np.split(everything, [pairs * states, pairs * (states + 1)])
    parts = transitions.reshape(*cells, states), visits.reshape(cells), rewards.reshape(cells)
    return (everything, *parts)


def run_reference(
    kind: type[StreamLearner],
    mdp: TabularMDP,
    trust: TrustModel,
    episodes: int,
    seeds: RunSeeds,
    **settings: Any,
) -> Iterator[tuple[Policy, float]]:
    """The same run, step by step as the papers say; yields each policy and its regret."""
    learner = make_learner(kind, mdp, trust, episodes, seeds.generator("policy"), settings)
    return walk(learner, mdp, seeds)


def walk(
    learner: StreamLearner, mdp: TabularMDP, seeds: RunSeeds
) -> Iterator[tuple[Policy, float]]:
    """Plan, play, release; yields each policy and its regret."""
    release = learner.plan.open(SimulationSampler(seeds.generator("noise")))
    environment = seeds.generator("environment")
    meter = RegretMeter(mdp)
    counts = no_counts(learner.plan)
    for _ in range(learner.plan.episodes):
        policy = learner.next_policy(counts)
        yield policy, meter.regret(policy)
        counts = release.add(play_episode(mdp, policy, environment, learner.rng))


def play_episode(
    mdp: TabularMDP,
    policy: Policy,
    environment: np.random.Generator,
    actions: np.random.Generator,
) -> Counts:
    """One user's episode, with the draws in the order of the compiled loop."""
    shape = mdp.shape
    transitions = np.zeros(shape.transitions, np.int64)
    rewards = np.zeros(shape.visits, np.int64)
    state = _draw(mdp.initial, environment.random())
    for h in range(shape.horizon):
        if isinstance(policy, DeterministicPolicy):
            action = int(policy.actions[h, state])
        else:
            action = _draw(policy.distribution(shape)[h, state], actions.random())  # type: ignore[union-attr]
        following = _draw(mdp.transitions[h, state, action], environment.random())
        transitions[h, state, action, following] += 1
        rewards[h, state, action] += environment.random() < mdp.rewards[h, state, action]
        state = following
    return Counts(1, transitions, rewards)


def _draw(probabilities: Floats, u: float) -> int:
    return min(int((np.cumsum(probabilities) <= u).sum()), len(probabilities) - 1)


def choose(q: Floats, rng: np.random.Generator) -> int:
    """An action of the largest Q value, ties (up to rounding) broken uniformly at random."""
    best = np.flatnonzero(q >= q.max() - 1e-12)
    return int(best[0]) if len(best) == 1 else int(best[int(rng.random() * len(best))])
