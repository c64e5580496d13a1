"""Compiled loops publish what the audited rule says, to the last bit."""

import numpy as np
import pytest

from discreet import Central, Local
from discreet._seeds import RunSeeds
from discreet.auditing.paths import by_the_rule
from discreet.learners.continual import planner
from discreet.mdp import RiverSwim
from discreet.mdp.policies import DeterministicPolicy
from discreet.privacy import SimulationSampler
from discreet.privacy.simulation.kernels import NextPolicy, run_block
from discreet.privacy.simulation.users import SimulatedUsers, play_episode
from helpers.compiled import scratch_of

MDP = RiverSwim(states=2, horizon=3, relabel=1)
ACTIONS = np.random.default_rng(1).integers(0, 2, size=(3, 2))
TRUSTS = [
    Central(1, 1e-6, mechanism="toeplitz"),
    Central(1, mechanism="tree-laplace"),
    Central(1, mechanism="tree-signed"),
    Local(1, mechanism="laplace"),
    Local(1, mechanism="randomized-response"),
    Local(1, mechanism="one-step"),
]


@planner
def keep(row, transitions, visits, rewards, memory, model, values, actions, probabilities, rng):
    """A planner that leaves the policy as it is."""


def compiled(plan):
    """What is public after all users of a plan in the compiled loop."""
    stream, shape = SimulatedUsers(MDP, plan, RunSeeds(4)), MDP.shape
    scratch = scratch_of(plan, shape)
    policy = NextPolicy(
        ACTIONS.copy(), np.full(shape.visits, 0.5), np.full((3, 2), -1), np.array([np.nan])
    )
    for _, count, users in stream.blocks():
        rows, out = np.zeros((count, 1)), np.zeros(count)
        rng = np.random.default_rng(0)
        run_block(keep, rows, users, scratch, policy, False, out, rng)
    return stream


@pytest.mark.parametrize("stationary", [False, True])
@pytest.mark.parametrize("trust", TRUSTS, ids=repr)
@pytest.mark.parametrize("episodes", [2, 33, 210])
def test_the_compiled_loop_follows_the_rule_bit_by_bit(trust, stationary, episodes):
    plan = trust.calibrate_stream(MDP.shape, episodes=episodes, stationary=stationary)
    stream = compiled(plan)
    seeds, rng = RunSeeds(4), np.random.default_rng(0)
    environment = seeds.generator("environment")
    policy = DeterministicPolicy(ACTIONS)
    users = [play_episode(MDP, policy, environment, rng) for _ in range(episodes)]
    block = plan.open(SimulationSampler(seeds.generator("noise"))).block(episodes)
    expected = by_the_rule(block, plan, users)[-1]
    assert np.array_equal(stream.raw.everything, np.rint(stream.raw.everything))
    assert np.array_equal(stream.public.everything, expected)
