"""Simulated users of a stream: the plain form and the compiled one are the same users."""

import numpy as np
import pytest

from discreet import Central, Local, NoPrivacy
from discreet._seeds import RunSeeds
from discreet.learners.continual import planner
from discreet.mdp import RiverSwim
from discreet.mdp.policies import DeterministicPolicy, StochasticPolicy
from discreet.privacy.simulation.kernels import NextPolicy, run_block
from discreet.privacy.simulation.users import SimulatedUsers, no_counts, play_episode
from helpers.compiled import scratch_of

MDP = RiverSwim(states=3, horizon=4, relabel=2)
ACTIONS = np.random.default_rng(5).integers(0, 2, size=(4, 3))
TRUSTS = [
    NoPrivacy(),
    Central(1, 1e-6),
    Central(1, mechanism="tree-laplace"),
    Local(2, mechanism="laplace"),
    Local(2, mechanism="randomized-response"),
    Local(2, mechanism="one-step"),
]


@planner
def keep(row, transitions, visits, rewards, memory, model, values, actions, probabilities, rng):
    """A planner that leaves the policy as it is, and notes the visits that it was shown."""
    memory[0, 0, 0, 0] = visits.sum()


def plan_of(trust, episodes, stationary, **more):
    return trust.calibrate_stream(MDP.shape, episodes=episodes, stationary=stationary, **more)


def compiled(plan, policy, stochastic, rng):
    """Play all users of a plan in the compiled loop."""
    stream, shape = SimulatedUsers(MDP, plan, RunSeeds(3)), MDP.shape
    scratch = scratch_of(plan, shape)
    values = []
    for _, count, users in stream.blocks():
        out = np.zeros(count)
        rows = np.zeros((count, 1))
        run_block(keep, rows, users, scratch, policy, stochastic, out, rng)
        values.append(out)
    return stream, np.concatenate(values), scratch


def deterministic():
    return NextPolicy(
        ACTIONS.copy(), np.full(MDP.shape.visits, 0.5), np.full((4, 3), -1), np.array([np.nan])
    )


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("block", [7, 1000])
@pytest.mark.parametrize("stationary", [False, True])
@pytest.mark.parametrize("trust", TRUSTS, ids=repr)
def test_the_compiled_release_is_the_plain_one(monkeypatch, trust, stationary, block, last):
    """In one block and in nine: no user gets the draws of another block's."""
    plan = plan_of(trust, 60, stationary, last_transitions=last)
    draws = max(plan.cells, 2 * MDP.horizon + 1)
    monkeypatch.setattr("discreet.privacy.simulation.users._BLOCK_BYTES", 8 * block * draws)
    assert len(list(SimulatedUsers(MDP, plan, RunSeeds(3)).blocks())) == -(-60 // block)
    stream, _, _ = compiled(plan, deterministic(), False, np.random.default_rng(0))
    plain = SimulatedUsers(MDP, plan, RunSeeds(3))
    for _ in range(60):
        counts = plain.add(DeterministicPolicy(ACTIONS), np.random.default_rng(0))
    np.testing.assert_allclose(stream.public.transitions, counts.transitions, atol=1e-9)
    np.testing.assert_allclose(stream.public.visits, counts.visits, atol=1e-9)
    np.testing.assert_allclose(stream.public.rewards, counts.rewards, atol=1e-9)


def test_stochastic_policies_draw_from_the_learners_generator():
    plan = plan_of(NoPrivacy(), 40, False)
    policy = deterministic()
    policy.probabilities[:] = [0.25, 0.75]
    one, other = np.random.default_rng(8), np.random.default_rng(8)
    stream, _, _ = compiled(plan, policy, True, one)
    plain = SimulatedUsers(MDP, plan, RunSeeds(3))
    for _ in range(40):
        counts = plain.add(StochasticPolicy(policy.probabilities), other)
    assert np.array_equal(stream.public.transitions, counts.transitions)
    assert one.random() == other.random()


def test_the_planner_is_shown_what_is_public_and_not_what_is_counted():
    plan = plan_of(Central(1, mechanism="tree-laplace"), 30, False)
    stream, _, scratch = compiled(plan, deterministic(), False, np.random.default_rng(0))
    assert stream.raw.visits.sum() == 30 * MDP.horizon
    assert scratch.memory[0, 0, 0, 0] not in (0.0, 29.0 * MDP.horizon)


def test_without_privacy_everything_counted_is_public():
    plan = plan_of(NoPrivacy(), 25, True)
    stream, _, scratch = compiled(plan, deterministic(), False, np.random.default_rng(0))
    assert np.array_equal(stream.raw.everything, stream.public.everything)
    assert scratch.memory[0, 0, 0, 0] == 24 * MDP.horizon


def test_values_are_exact():
    from discreet.mdp import evaluate

    _, values, _ = compiled(
        plan_of(NoPrivacy(), 10, False), deterministic(), False, np.random.default_rng(0)
    )
    np.testing.assert_allclose(values, evaluate(MDP, DeterministicPolicy(ACTIONS)))


def test_nothing_is_known_before_the_first_user():
    plan = plan_of(Central(1, 1e-6), 10, True)
    counts = no_counts(plan)
    assert counts.users == 0
    assert counts.transitions.shape == (1, 3, 2, 3)
    assert not counts.transitions.any()
    assert set(counts.noise_variance.values()) == {0.0}


def test_one_episode_has_one_transition_per_step():
    rng = np.random.default_rng(0)
    counts = play_episode(MDP, DeterministicPolicy(ACTIONS), rng, rng)
    assert counts.users == 1
    assert np.array_equal(counts.transitions.sum(axis=(1, 2, 3)), np.ones(4))
    assert (counts.rewards <= counts.transitions.sum(axis=-1)).all()
