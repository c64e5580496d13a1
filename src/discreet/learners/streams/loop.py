"""The stream rhythm: one episode, one release, one new policy; shared by all stream learners.

A stream learner exists twice. The *reference* (`StreamLearner.next_policy`) reads like the paper
and takes `PrivateCounts`. The *compiled* form is a planner kernel fed with one row of coefficients
per release; `loop_kernels.run_block` fuses it with simulation and noise. Tests prove that both
walk through the same policies on the same random stream.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet._seeds import RunSeeds
from discreet.errors import UnsupportedError
from discreet.learners.base import Problem
from discreet.learners.constants import resolve
from discreet.learners.regret import RegretCurve, record_points
from discreet.learners.result import Result
from discreet.mdp.counts import Counts
from discreet.mdp.planning import RegretMeter
from discreet.mdp.policies import DeterministicPolicy, Policy, StochasticPolicy
from discreet.mdp.tabular import TabularMDP
from discreet.privacy.noise import SimulationSampler
from discreet.privacy.release import PrivateCounts, StreamPlan
from discreet.privacy.sensitivity import STATISTICS
from discreet.privacy.trust import TrustModel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_RESPONSES = {"unit": 0, "cell": 1, "category": 2}
"""What one step of a user adds to the counters (see `privacy.release.StreamBlock`)."""

_BLOCK_BYTES = 1 << 20
"""Noise drawn ahead per block, as much as releases draw at once; it does not change any value."""


class StreamLearner(ABC):
    """From private counts to the next policy. Never sees raw counts, never draws noise.

    Attributes:
        problem: public facts.
        plan: the calibrated release; the learner reads its error bounds.
        rng: breaks ties and draws what the learner itself draws.
        settings: resolved, see `discreet.learners.constants`.
    """

    name: ClassVar[str]
    stochastic: ClassVar[bool] = False

    def __init__(
        self,
        problem: Problem,
        plan: StreamPlan,
        rng: np.random.Generator,
        settings: dict[str, Any],
    ) -> None:
        self.problem = problem
        self.plan = plan
        self.rng = rng
        self.settings = settings
        self._bounds: dict[float, Floats] = {}

    @abstractmethod
    def next_policy(self, counts: PrivateCounts) -> Policy:
        """The policy for the next user, from the counts of all users before."""

    @abstractmethod
    def rows(self, users: Ints) -> Floats:
        """Coefficients of the compiled planner when that many users have been released."""

    @abstractmethod
    def planner(self) -> Any:
        """The compiled planner (see `loop_kernels.planner`)."""

    @abstractmethod
    def memory(self) -> Floats:
        """``[M, H, S, A]``: what the compiled planner keeps, before the first episode."""

    def error_bounds(self, users: Ints, failure: float) -> Floats:
        """What |noise| on one counter stays below, at each of these times (0 before any user)."""
        if self.plan.guarantee.notion == "none":
            return np.zeros(len(users))
        if failure not in self._bounds:
            self._bounds[failure] = np.append(0.0, self.plan.error_bounds(failure))
        chosen: Floats = self._bounds[failure][users]
        return chosen


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
    chosen = resolve(kind.name, settings)
    if chosen["stationary"] is None:
        chosen["stationary"] = mdp.stationary
    stationary = chosen["stationary"]
    if stationary and not mdp.stationary:
        raise UnsupportedError(
            f"stationary=True needs a stationary MDP, and {mdp!r} is not; drop the setting "
            f"(or relabel actions per state, not per step and state)."
        )
    plan = trust.calibrate(mdp.shape, rhythm="stream", episodes=episodes, stationary=stationary)
    problem = Problem(shape=mdp.shape, episodes=episodes, start=mdp.start, stationary=stationary)
    return kind(problem, plan, rng, chosen)


def run_stream(
    kind: type[StreamLearner],
    mdp: TabularMDP,
    trust: TrustModel,
    episodes: int,
    seeds: RunSeeds,
    **settings: Any,
) -> Result:
    """Simulate ``episodes`` users under a stream learner, compiled."""
    learner = make_learner(kind, mdp, trust, episodes, seeds.generator("policy"), settings)
    world = CompiledRun(mdp, learner, seeds)
    curve = RegretTrace(episodes)
    for regrets in world.blocks():
        curve.add(regrets)
    return Result(
        learner=kind.name,
        regret=curve.curve(),
        guarantee=learner.plan.guarantee,
        policy=world.policy(),
        episodes=episodes,
        seed=seeds.seed,
        settings=learner.settings,
        extras={"mechanism": learner.plan.mechanism},
    )


class RegretTrace:
    """Cumulative regret at log-spaced episodes, from blocks of per-episode regrets."""

    def __init__(self, episodes: int) -> None:
        self._points = record_points(episodes)
        self._values: list[float] = []
        self._episode = 0
        self._total = 0.0

    def add(self, regrets: Floats) -> None:
        """The regrets of the next episodes."""
        sums = self._total + np.cumsum(regrets)
        end = self._episode + len(regrets)
        first = len(self._values)
        last = int(np.searchsorted(self._points, end, "right"))
        inside = self._points[first:last] - self._episode - 1
        self._values.extend(sums[inside].tolist())
        self._episode = end
        self._total = float(sums[-1])

    def curve(self) -> RegretCurve:
        """What has been recorded so far."""
        return RegretCurve(self._points[: len(self._values)], np.array(self._values))


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
                self.learner.rows(np.arange(first, first + count)),
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
    release = learner.plan.open(SimulationSampler(seeds.generator("noise")))
    environment = seeds.generator("environment")
    meter = RegretMeter(mdp)
    counts = no_counts(learner.plan)
    for _ in range(episodes):
        policy = learner.next_policy(counts)
        yield policy, meter.regret(policy)
        counts = release.add(play(mdp, policy, environment, learner.rng))


def play(
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
