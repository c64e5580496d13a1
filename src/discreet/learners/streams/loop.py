"""The stream rhythm: one episode, one release, one new policy; shared by all stream learners.

A stream learner exists twice. The *reference* (`StreamLearner.next_policy`) reads like the paper
and takes `PrivateCounts`. The *compiled* form is a planner kernel fed with the coefficients of each
release; `privacy.streams.kernels.run_block` asks it for a policy before every simulated user.
Tests prove that both walk through the same policies.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeVar, cast

import numpy as np

from discreet._seeds import RunSeeds
from discreet._types import Floats
from discreet.errors import UnsupportedError
from discreet.learners.base import Problem, StreamLearner
from discreet.learners.regret import RegretRecorder
from discreet.learners.result import Result, noise_deviations
from discreet.mdp.planning import RegretMeter
from discreet.mdp.policies import DeterministicPolicy, Policy, StochasticPolicy
from discreet.mdp.tabular import TabularMDP
from discreet.privacy.sensitivity import STATISTICS
from discreet.privacy.statistics import PrivateCounts
from discreet.privacy.streams.simulation import SimulatedStream, no_counts
from discreet.privacy.trust import Calibration, Local, TrustModel

_COEFFICIENTS = 1 << 12
"""Episodes whose coefficients are computed at once."""


def three_statistics(counts: PrivateCounts) -> tuple[Floats, Floats, Floats]:
    """Transitions, visits and rewards; stream learners need all three."""
    if counts.transitions is None or counts.visits is None or counts.rewards is None:
        raise UnsupportedError(
            f"Stream learners need the statistics {', '.join(STATISTICS)}; one is missing."
        )
    return counts.transitions, counts.visits, counts.rewards


StreamKind = TypeVar("StreamKind", bound=StreamLearner)


def make_learner(
    kind: type[StreamKind],
    mdp: TabularMDP,
    trust: TrustModel,
    episodes: int,
    rng: np.random.Generator,
    settings: Mapping[str, object],
) -> StreamKind:
    """A learner with its release calibrated."""
    chosen = kind.settings_type.choose(settings, learner=kind.name)
    stationary = mdp.stationary if chosen.stationary is None else chosen.stationary
    if stationary and not mdp.stationary:
        raise UnsupportedError(
            f"stationary=True needs a stationary MDP, and {mdp!r} is not; drop the setting "
            f"(or relabel actions per state, not per step and state)."
        )
    plan = _own_print(trust, kind).calibrate(
        mdp.shape, rhythm="stream", episodes=episodes, stationary=stationary
    )
    problem = Problem(shape=mdp.shape, episodes=episodes, start=mdp.start, stationary=stationary)
    return kind(problem, plan, rng, replace(chosen, stationary=stationary))


def _own_print(trust: TrustModel, kind: type[StreamLearner]) -> TrustModel:
    """Local ``calibration="paper"`` means the learner's own paper: 002 and 003 print two scales."""
    if kind.paper and isinstance(trust, Local) and trust.calibration == "paper":
        return replace(trust, calibration=cast(Calibration, f"paper-{kind.paper}"))
    return trust


def run_stream(
    kind: type[StreamLearner],
    mdp: TabularMDP,
    trust: TrustModel,
    episodes: int,
    seeds: RunSeeds,
    **settings: object,
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
    plan = learner.plan
    return Result(
        learner=learner.name,
        regret=recorder.curve(),
        guarantee=plan.guarantee,
        policy=policy,
        episodes=plan.episodes,
        seed=seeds.seed,
        settings=learner.settings.to_dict(),
        mechanism=plan.mechanism,
        noise=noise_deviations(plan.noise_variance(plan.episodes)),
    )


class CompiledRun:
    """One run through the compiled loop: simulated users and the learner's memory.

    Blocks go round here and not in `privacy.streams`, which knows no learner: coefficients, memory,
    planner and regret are the learner's. Users, their raw counts and the noise pass from
    `SimulatedStream` to `run_block`, both of privacy, unopened; planners get public counters alone.
    """

    def __init__(self, mdp: TabularMDP, learner: StreamLearner, seeds: RunSeeds) -> None:
        self.learner = learner
        self.stream = SimulatedStream(mdp, learner.plan, seeds)
        self._optimum = RegretMeter(mdp).optimal.value
        self._actions = np.zeros(mdp.shape.visits[:2], np.int64)
        self._probabilities = np.full(mdp.shape.visits, 1 / mdp.shape.actions)

    def blocks(self) -> Iterator[Floats]:
        """Run all episodes; yields the regrets of one block after the other."""
        from discreet.learners.streams.planner_kernels import ROWS, Pointer, check_memory
        from discreet.privacy.streams.kernels import NextPolicy, Scratch, run_block

        learner, shape = self.learner, self.learner.problem.shape
        groups, states, choices = self.stream.public.visits.shape
        model = np.zeros((states + ROWS, groups, states * choices))
        compiled, memory = learner.planner(), learner.memory()
        if compiled is None:
            raise UnsupportedError(f"{learner.name} has no compiled planner.")
        check_memory(compiled, memory, shape.visits, groups)
        scratch = Scratch(memory, model, np.zeros((shape.horizon + 1, shape.states)))
        policy = NextPolicy(
            self._actions, self._probabilities, np.full_like(self._actions, -1), np.array([np.nan])
        )
        planner = Pointer(compiled)
        rows = _Coefficients(learner)
        for first, count, users in self.stream.blocks():
            values = np.zeros(count)
            run_block(
                planner,
                rows.of(first, count),
                users,
                scratch,
                policy,
                learner.stochastic,
                values,
                learner.rng,
            )
            del users  # before the next block is drawn, which then stands in the same memory
            yield np.maximum(0.0, self._optimum - values)

    def policy(self) -> Policy:
        """The policy of the last episode."""
        if self.learner.stochastic:
            return StochasticPolicy(self._probabilities)
        return DeterministicPolicy(self._actions)


class _Coefficients:
    """A learner's coefficients, computed for many episodes at a time: blocks may be short."""

    def __init__(self, learner: StreamLearner) -> None:
        self._learner, self._first = learner, 0
        self._rows: Floats = np.zeros((0, 0))

    def of(self, first: int, count: int) -> Floats:
        if first + count > self._first + len(self._rows):
            last = min(self._learner.plan.episodes, first + max(count, _COEFFICIENTS))
            self._first = first
            self._rows = self._learner.coefficients(np.arange(first, last))
        return self._rows[first - self._first : first - self._first + count]


def run_reference(
    kind: type[StreamLearner],
    mdp: TabularMDP,
    trust: TrustModel,
    episodes: int,
    seeds: RunSeeds,
    **settings: object,
) -> Iterator[tuple[Policy, float]]:
    """The same run, step by step as the papers say; yields each policy and its regret."""
    learner = make_learner(kind, mdp, trust, episodes, seeds.generator("policy"), settings)
    return walk(learner, mdp, seeds)


def walk(
    learner: StreamLearner, mdp: TabularMDP, seeds: RunSeeds
) -> Iterator[tuple[Policy, float]]:
    """Plan, play, release; yields each policy and its regret."""
    stream, meter = SimulatedStream(mdp, learner.plan, seeds), RegretMeter(mdp)
    counts = no_counts(learner.plan)
    for _ in range(learner.plan.episodes):
        policy = learner.next_policy(counts)
        yield policy, meter.regret(policy)
        counts = stream.add(policy, learner.rng)


def choose(q: Floats, rng: np.random.Generator) -> int:
    """An action of the largest Q value, ties (up to rounding) broken uniformly at random."""
    best = np.flatnonzero(q >= q.max() - 1e-12)
    return int(best[0]) if len(best) == 1 else int(best[int(rng.random() * len(best))])
