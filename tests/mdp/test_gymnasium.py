"""Both directions between Gymnasium and TabularMDP."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

from discreet.errors import InvalidInputError, UnsupportedError
from discreet.mdp import (
    RiverSwim,
    Shape,
    estimate_model,
    from_gymnasium,
    make,
    sample_trajectories,
    simulator,
    solve,
    to_gymnasium,
    uniform_policy,
)
from discreet.mdp.environments.registry import environment_names, make_world
from discreet.mdp.gymnasium import register_environments


def rollout_mean(env, policy, horizon, episodes, seed):
    """Mean original return of a time-dependent policy, simulated by Gymnasium itself."""
    total = 0.0
    state, _ = env.reset(seed=seed)
    for _ in range(episodes):
        for h in range(horizon):
            state, reward, terminated, truncated, _ = env.step(int(policy[h, state]))
            total += reward
            if terminated or truncated:
                break
        state, _ = env.reset()
    return total / episodes


class Table(gymnasium.Env):
    """A table numbered from 10 (states) and 5 (actions); one state is passed and ends episodes."""

    observation_space = spaces.Discrete(3, start=10)
    action_space = spaces.Discrete(2, start=5)
    initial_state_distrib = np.array([1.0, 0.0, 0.0])
    P = {  # noqa: RUF012
        10: {5: [(1.0, 11, 2.0, False)], 6: [(1.0, 11, -2.0, True)]},
        11: {5: [(0.5, 10, 0.0, False), (0.5, 12, 4.0, False)], 6: [(1.0, 12, 0.0, True)]},
        12: {5: [(1.0, 12, 0.0, False)], 6: [(1.0, 12, 0.0, False)]},
    }


@pytest.mark.core
@pytest.mark.parametrize("name", environment_names())
def test_every_environment_is_registered_and_passes_the_checker(name):
    env = gymnasium.make(f"discreet/{name}-v0")
    check_env(env.unwrapped)
    assert env.unwrapped.mdp.name == name
    short = gymnasium.make(f"discreet/{name}-v0", horizon=3).unwrapped.mdp
    np.testing.assert_array_equal(short.rewards, make(name, horizon=3).rewards)


def test_registering_twice_does_no_harm():
    before = dict(gymnasium.registry)
    register_environments()
    assert dict(gymnasium.registry) == before


def test_an_mdp_of_ones_own_passes_the_checker():
    check_env(to_gymnasium(make("DemandResponse")))


def test_parameters_reach_the_environment():
    env = gymnasium.make("discreet/RiverSwim-v0", states=7, horizon=3)
    assert env.observation_space.n == 7
    with pytest.raises(UnsupportedError, match="cannot be rendered"):
        gymnasium.make("discreet/RiverSwim-v0", render_mode="human")


@pytest.mark.core
@pytest.mark.parametrize("first", ["discreet, gymnasium", "gymnasium, discreet"])
def test_registration_works_in_either_order_and_import_stays_light(first):
    code = f"""
import sys
import {first.split(", ", maxsplit=1)[0]}
if "gymnasium" not in sys.modules:
    heavy = {{"numpy", "numba", "scipy", "gymnasium", "matplotlib"}} & set(sys.modules)
    assert not heavy, heavy
import {first}
gymnasium.register_envs(discreet.mdp.gymnasium)
env = gymnasium.make("discreet/RiverSwim-v0")
assert env.reset(seed=1)[0] == 0
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_id_can_name_the_module_that_registers_it():
    code = """
import gymnasium
gymnasium.make("discreet.mdp.gymnasium:discreet/SixArms-v0")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_seeds_decide_episodes():
    env = to_gymnasium(make("Recommender"))

    def episode(seed):
        seen = [env.reset(seed=seed)[0]]
        for h in range(8):
            seen.append(env.step(h % 3)[:2])
        return seen

    assert episode(3) == episode(3)
    assert any(episode(3) != episode(seed) for seed in range(4, 8))


def test_episodes_end_at_the_horizon():
    env = to_gymnasium(make("RiverSwim", horizon=2))
    with pytest.raises(UnsupportedError, match="Expected an action"):
        env.reset(seed=0)
        env.step(2)
    assert env.step(0)[2:] == (False, False, {"step": 1})
    assert env.step(0)[2:] == (True, False, {"step": 2})
    with pytest.raises(UnsupportedError, match="episode is over"):
        env.step(0)


@pytest.mark.parametrize("name", ["RiverSwim", "DemandResponse"])
def test_simulated_returns_match_the_exact_value(name):
    mdp = make(name)
    policy = solve(mdp).policy.actions
    mean = rollout_mean(to_gymnasium(mdp), policy, mdp.horizon, 2000, seed=1)
    # The return of an episode lies in [0, H]: six standard deviations at most.
    assert mean == pytest.approx(solve(mdp).value, abs=6 * mdp.horizon / 2 / np.sqrt(2000))


def test_the_round_trip_gives_the_same_model():
    mdp = make("RiverSwim")
    assert from_gymnasium(to_gymnasium(mdp), horizon=6) is mdp
    assert from_gymnasium("discreet/RiverSwim-v0", horizon=9).horizon == 9
    with pytest.raises(UnsupportedError, match="differs by step"):
        from_gymnasium(to_gymnasium(make("DemandResponse")), horizon=9)


def test_frozen_lake():
    mdp = from_gymnasium("FrozenLake-v1", horizon=100)
    assert mdp.shape.states == 16
    assert mdp.reward_map == (1.0, 0.0)
    assert mdp.reward_kind == "bernoulli"
    # Stationary policies are known to succeed in 74% of episodes of 100 steps; ours may use time.
    assert 0.74 < solve(mdp).value < 0.75
    env = gymnasium.make("FrozenLake-v1")
    mean = rollout_mean(env, solve(mdp).policy.actions, 100, 1000, seed=2)
    assert mean == pytest.approx(solve(mdp).value, abs=6 * 0.5 / np.sqrt(1000))
    safe = from_gymnasium(gymnasium.make("FrozenLake-v1", is_slippery=False), horizon=6)
    assert solve(safe).value == 1
    assert safe.reward_kind == "deterministic"


def test_taxi_in_original_units():
    mdp = from_gymnasium("Taxi-v4" if "Taxi-v4" in gymnasium.registry else "Taxi-v3", horizon=30)
    assert mdp.shape.states == 500
    assert mdp.reward_map == (30.0, -10.0)
    # 7.93 is the mean return of an optimal driver over the 300 starts.
    assert mdp.reward_map.original(solve(mdp).value, 30) == pytest.approx(7.93, abs=1e-6)


def test_cliff_walking_in_original_units():
    name = "CliffWalking-v1" if "CliffWalking-v1" in gymnasium.registry else "CliffWalking-v0"
    mdp = from_gymnasium(name, horizon=20)
    assert mdp.shape.states == 48
    assert mdp.reward_map.original(solve(mdp).value, 20) == pytest.approx(-13)


def test_spaces_that_start_elsewhere_and_endings_on_the_way():
    mdp = from_gymnasium(Table(), horizon=3)
    # State 11 is passed (reward 2) and also ends episodes: a further end state is needed.
    assert mdp.shape.states == 4
    assert mdp.reward_map == (6.0, -2.0)
    original = mdp.reward_map.original(solve(mdp).value, 3)
    assert original == pytest.approx(2 + 0.5 * 2 + 0.5 * 4)
    assert mdp.reward_kind == "bernoulli"


def test_a_missing_start_is_asked_for():
    class Silent(Table):
        initial_state_distrib = None

    with pytest.raises(UnsupportedError, match="pass initial="):
        from_gymnasium(Silent(), horizon=3)
    assert from_gymnasium(Silent(), horizon=3, initial=1).initial.tolist()[1] == 1


@pytest.mark.core
def test_an_environment_without_a_model_gets_one_sentence():
    with pytest.raises(UnsupportedError, match="CartPole-v1 does not expose a finite model"):
        from_gymnasium("CartPole-v1", horizon=10)


def test_wrappers_that_may_change_what_a_model_says_are_refused():
    env = gymnasium.make("FrozenLake-v1")
    plain = from_gymnasium(env, 20)
    watched = from_gymnasium(gymnasium.wrappers.RecordEpisodeStatistics(env), 20)
    np.testing.assert_array_equal(watched.rewards, plain.rewards)
    for wrapper in (gymnasium.wrappers.NormalizeReward, gymnasium.wrappers.TimeAwareObservation):
        with pytest.raises(UnsupportedError, match=f"wrapper {wrapper.__name__} may change"):
            from_gymnasium(wrapper(env), 20)


class Doors(gymnasium.Env):
    """Action 0 ends the episode at a reward of 2, action 1 goes on at -1; no model."""

    observation_space = spaces.Tuple((spaces.Discrete(3, start=1), spaces.MultiDiscrete([2, 4])))
    action_space = spaces.Discrete(2, start=5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seen = 0
        return (3, np.array([1, int(self.np_random.integers(4))])), {}

    def step(self, action):
        assert action in (5, 6)
        self.seen += 1
        return (1, np.array([0, 2])), 2.0 if action == 5 else -1.0, action == 5, False, {}


def doors(**given):
    return simulator(Doors(), **{"horizon": 3, "reward_range": (-1, 2)} | given)


def test_observations_of_several_parts_are_numbered_and_an_episode_that_is_over_stays_so():
    world = doors()
    assert world.shape == Shape(3 * 2 * 4 + 1, 2, 3)
    assert world.start.tolist() == [True] * 24 + [False]
    actions = np.array([[1], [0], [1]]).repeat(25, axis=1)
    found = sample_trajectories(world, actions, 40, np.random.default_rng(0))
    assert {*found.states[:, 0].tolist()} == {20, 21, 22, 23}  # (2, 1, 0) to (2, 1, 3)
    np.testing.assert_array_equal(found.states[:, 1:], [[2, 24, 24]] * 40)
    np.testing.assert_array_equal(found.actions, [[1, 0, 1]] * 40)  # the policy's, to the end
    np.testing.assert_allclose(found.rewards, [[0, 1, 1 / 3]] * 40)
    np.testing.assert_allclose(world.returns(found), 1.0)


@pytest.mark.parametrize("many", [1, 5])
def test_episodes_are_those_of_the_seed_one_by_one_or_in_vectors(many):
    vector = gymnasium.vector.SyncVectorEnv([Doors] * many)
    world = simulator(vector, horizon=3, reward_range=(-1, 2))
    random = uniform_policy(world.shape)
    one, same, other = (
        sample_trajectories(world, random, 13, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one.states, same.states)
    np.testing.assert_array_equal(one.rewards, same.rewards)
    assert (one.states != other.states).any()
    assert len(one) == 13 and world.shape == doors().shape


def test_renamed_actions_do_what_the_originals_did():
    world, seed = doors(), 3
    renamed = world.relabelled(seed)
    random = sample_trajectories(renamed, uniform_policy(world.shape), 60, np.random.default_rng(0))
    paid = random.rewards[:, 0] == 1.0
    for state in range(20, 24):
        here = random.states[:, 0] == state
        ends = {*random.actions[here & paid, 0].tolist()}
        assert len(ends) == 1 and ends.isdisjoint(random.actions[here & ~paid, 0].tolist())
    original = np.random.default_rng(seed).permuted(np.tile([0, 1], (25, 1)), axis=-1)
    np.testing.assert_array_equal(original[random.states[:, 0], random.actions[:, 0]] == 0, paid)


def test_wrappers_of_what_is_played_are_honoured():
    twice = gymnasium.wrappers.TransformReward(Doors(), lambda reward: 2 * reward)
    world = simulator(twice, horizon=3, reward_range=(-2, 4))
    found = sample_trajectories(world, np.zeros((3, 25), int), 2, np.random.default_rng(0))
    assert world.returns(found).tolist() == [4.0, 4.0]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"reward_range": (2, -1)}, "the least and the largest reward"),
        ({"reward_range": (0, np.inf)}, "the least and the largest reward"),
        ({"horizon": 0}, "horizon"),
    ],
)
def test_what_cannot_be_played_is_refused(given, text):
    with pytest.raises(InvalidInputError, match=text):
        doors(**given)
    with pytest.raises(UnsupportedError, match="Expected observations that are Discrete"):
        simulator("CartPole-v1", horizon=3, reward_range=(0, 1))


def test_a_reward_outside_the_declared_range_is_an_error():
    world = doors(reward_range=(-1, 1))
    with pytest.raises(InvalidInputError, match=r"reward_range=\(-1, 1\), as declared, got 2"):
        sample_trajectories(world, np.zeros((3, 25), int), 2, np.random.default_rng(0))


def test_an_estimated_model_is_near_the_model_behind_the_environment():
    mdp = RiverSwim(states=3, horizon=5)
    world = simulator(to_gymnasium(mdp), horizon=5, reward_range=(0, 1))
    found = estimate_model(world, episodes=4000, seed=1)
    assert found.shape == Shape(4, 2, 5)
    np.testing.assert_allclose(found.initial, [*mdp.initial, 0])
    seen = np.s_[:2, :, :3]  # the last step leads to the end, a fifth of the time
    np.testing.assert_allclose(
        found.transitions[0][seen] / found.transitions[0][seen].sum(axis=-1, keepdims=True),
        mdp.transitions[0][:2],
        atol=0.05,
    )
    np.testing.assert_allclose(found.rewards[0, :2], mdp.rewards[0, :2], atol=0.02)
    again = estimate_model(world, episodes=4000, seed=1)
    np.testing.assert_array_equal(found.transitions, again.transitions)
    few = estimate_model(doors(), episodes=1, seed=0)
    assert few.transitions[0, 7, 0, 7] == 1.0  # what nobody did
    assert few.rewards[0, 7, 0] == pytest.approx(1 / 3)  # nothing, in a range from -1 to 2


def test_an_id_without_a_model_asks_for_the_range_of_rewards():
    with pytest.raises(UnsupportedError, match="reward_range="):
        make("Blackjack-v1", horizon=4)
    world = make_world("Blackjack-v1", horizon=4, reward_range=[-1, 1], relabel=0)
    assert world.shape == Shape(705, 2, 4)
    with pytest.raises(InvalidInputError, match="is played"):
        make("Blackjack-v1", horizon=4, reward_range=[-1, 1])
