"""Simulated users, one after the other: a policy is played, its counts released, the next comes.

`SimulatedUsers.add` is the plain form. `SimulatedUsers.blocks` hands the same users to a compiled
loop: all randomness of the next releases drawn ahead, with the raw counters inside (see `kernels`).
"""

import math
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from discreet._seeds import RunSeeds
from discreet._types import FloatArray
from discreet.errors import UnsupportedError
from discreet.mdp.counts import Counts
from discreet.mdp.policies import DeterministicPolicy, Policy
from discreet.mdp.simulation import Simulator, sample_trajectories
from discreet.mdp.tabular import TabularMDP
from discreet.privacy.mechanisms.base import ContinualMechanism
from discreet.privacy.sampling.samplers import SimulationSampler
from discreet.privacy.sensitivity import STATISTICS
from discreet.privacy.statistics import PrivateCounts

if TYPE_CHECKING:  # compiled modules load when used
    from discreet.privacy.simulation.kernels import Counters, Randomness, TrueModel, Users

_BLOCK_BYTES = 1 << 21
"""Noise drawn ahead per block, as much as releases draw at once; it does not change any value."""


def no_counts(mechanism: ContinualMechanism) -> PrivateCounts:
    """What is known before the first user: nothing, and without noise."""
    cells = _cells(mechanism)
    return PrivateCounts(
        users=0,
        transitions=np.zeros((*cells, mechanism.shape.states)),
        visits=np.zeros(cells),
        rewards=np.zeros(cells),
        noise_variance=dict.fromkeys(STATISTICS, 0.0),
        support=np.ones(cells, np.bool_),
        guarantee=mechanism.guarantee,
    )


World = TabularMDP | Simulator
"""What simulated people live in, with or without a model."""


class SimulatedUsers:
    """The users of one run.

    Args:
        mdp: where they live.
        mechanism: of the release.
        seeds: of the run; users draw from "environment", the release from "noise".
    """

    def __init__(self, mdp: World, mechanism: ContinualMechanism, seeds: RunSeeds) -> None:
        self.mechanism = mechanism
        self.environment = seeds.generator("environment")
        self._mdp = mdp
        self.returns: list[float] = []
        """Of those who played without a model: for the result alone."""
        self._release = mechanism.open(SimulationSampler(seeds.generator("noise")))

    @cached_property
    def raw(self) -> "Counters":
        """What `blocks` have counted so far: for the release alone."""
        return empty_counters(_cells(self.mechanism))

    @cached_property
    def public(self) -> "Counters":
        """What `blocks` have released so far."""
        return empty_counters(_cells(self.mechanism))

    def add(self, policy: Policy, actions: np.random.Generator) -> PrivateCounts:
        """One more user plays ``policy``; what is public afterwards."""
        if not isinstance(self._mdp, Simulator):
            return self._release.add(play_episode(self._mdp, policy, self.environment, actions))
        played = sample_trajectories(self._mdp, policy, 1, self.environment)
        self.returns.append(float(self._mdp.returns(played)[0]))
        everything = np.ones(self._mdp.shape.visits, np.bool_)
        return self._release.add(played.counts(self._mdp.shape, self.environment, everything))

    def blocks(self) -> "Iterator[tuple[int, int, Users]]":
        """All users in blocks: how many came before, how many now, and what a kernel needs."""
        from discreet.privacy.simulation.kernels import Users

        if isinstance(self._mdp, Simulator):
            raise UnsupportedError(f"{self._mdp!r} has no model to compile; its users `add` up.")
        mechanism, model = self.mechanism, true_model(self._mdp)
        draws = 2 * mechanism.shape.horizon + 1
        size = max(1, min(1 << 15, _BLOCK_BYTES // (8 * max(mechanism.cells, draws))))
        for first in range(0, mechanism.episodes, size):
            count = min(size, mechanism.episodes - first)
            # No name for what a block has drawn: its memory is free for the next one.
            yield (
                first,
                count,
                Users(
                    model,
                    self.raw,
                    self.public,
                    self._randomness(count),
                    self.environment.random((count, draws)),
                ),
            )

    def _randomness(self, count: int) -> "Randomness":
        from discreet.privacy.simulation.kernels import RESPONSES, Randomness

        response = RESPONSES[self.mechanism.response]
        moving = self.mechanism.shape.horizon - (not self.mechanism.last_transitions)
        if self.mechanism.guarantee.notion == "none":
            nothing = np.zeros((count, 0))
            steps = np.zeros(0, np.int64)
            return Randomness(nothing, nothing, steps, nothing, 1.0, response, moving)
        block = self._release.block(count)
        return Randomness(
            np.ascontiguousarray(block.noise, np.float64),
            np.ascontiguousarray(block.gains, np.float64),
            np.ascontiguousarray(block.steps, np.int64),
            np.ascontiguousarray(block.centres, np.float64),
            block.scale,
            response,
            moving,
        )


def _cells(mechanism: ContinualMechanism) -> tuple[int, int, int]:
    shape = mechanism.shape
    return (1 if mechanism.stationary else shape.horizon, shape.states, shape.actions)


def empty_counters(cells: tuple[int, int, int]) -> "Counters":
    """Of transitions, visits and rewards in ``cells``, in one array."""
    from discreet.privacy.simulation.kernels import Counters

    pairs, states = math.prod(cells), cells[1]
    everything = np.zeros(pairs * (states + 2))
    transitions, visits, rewards = np.split(everything, [pairs * states, pairs * (states + 1)])
    return Counters(
        everything,
        transitions.reshape(*cells, states),
        visits.reshape(cells),
        rewards.reshape(cells),
    )


def true_model(mdp: TabularMDP) -> "TrueModel":
    """The MDP as the compiled loop takes it."""
    from discreet.privacy.simulation.kernels import TrueModel

    transitions = np.array(mdp.step_transitions, order="C")
    return TrueModel(
        np.cumsum(transitions, axis=-1),
        transitions,
        np.array(mdp.rewards, order="C"),
        np.cumsum(mdp.initial),
        np.array(mdp.initial),
    )


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
            chances = policy.distribution(shape)[h, state]  # type: ignore[union-attr]
            action = _draw(chances, actions.random())
        following = _draw(mdp.transitions[h, state, action], environment.random())
        transitions[h, state, action, following] += 1
        rewards[h, state, action] += environment.random() < mdp.rewards[h, state, action]
        state = following
    return Counts(1, transitions, rewards)


def _draw(probabilities: FloatArray, u: float) -> int:
    return min(int((np.cumsum(probabilities) <= u).sum()), len(probabilities) - 1)
