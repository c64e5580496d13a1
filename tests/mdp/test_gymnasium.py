"""Both directions between Gymnasium and TabularMDP."""

import itertools
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

from discreet.errors import UnsupportedError
from discreet.mdp import (
    from_gymnasium,
    make,
    plan,
    to_gymnasium,
)
from discreet.mdp.environments.registry import environment_names
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
    policy = plan(mdp).policy.actions
    mean = rollout_mean(to_gymnasium(mdp), policy, mdp.horizon, 2000, seed=1)
    # The return of an episode lies in [0, H]: six standard deviations at most.
    assert mean == pytest.approx(plan(mdp).value, abs=6 * mdp.horizon / 2 / np.sqrt(2000))


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
    assert 0.74 < plan(mdp).value < 0.75
    env = gymnasium.make("FrozenLake-v1")
    mean = rollout_mean(env, plan(mdp).policy.actions, 100, 1000, seed=2)
    assert mean == pytest.approx(plan(mdp).value, abs=6 * 0.5 / np.sqrt(1000))
    safe = from_gymnasium(gymnasium.make("FrozenLake-v1", is_slippery=False), horizon=6)
    assert plan(safe).value == 1
    assert safe.reward_kind == "deterministic"


def test_taxi_in_original_units():
    mdp = from_gymnasium("Taxi-v4" if "Taxi-v4" in gymnasium.registry else "Taxi-v3", horizon=30)
    assert mdp.shape.states == 500
    assert mdp.reward_map == (30.0, -10.0)
    # 7.93 is the mean return of an optimal driver over the 300 starts.
    assert mdp.reward_map.original(plan(mdp).value, 30) == pytest.approx(7.93, abs=1e-6)


def test_cliff_walking_in_original_units():
    name = "CliffWalking-v1" if "CliffWalking-v1" in gymnasium.registry else "CliffWalking-v0"
    mdp = from_gymnasium(name, horizon=20)
    assert mdp.shape.states == 48
    assert mdp.reward_map.original(plan(mdp).value, 20) == pytest.approx(-13)


def test_spaces_that_start_elsewhere_and_endings_on_the_way():
    mdp = from_gymnasium(Table(), horizon=3)
    # State 11 is passed (reward 2) and also ends episodes: a further end state is needed.
    assert mdp.shape.states == 4
    assert mdp.reward_map == (6.0, -2.0)
    original = mdp.reward_map.original(plan(mdp).value, 3)
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


def test_a_reward_wrapper_changes_the_rewards_and_other_wrappers_are_refused():
    env = gymnasium.make("FrozenLake-v1")
    plain = from_gymnasium(env, 20)
    paid = from_gymnasium(gymnasium.wrappers.TransformReward(env, lambda r: 10 * r - 1), 20)
    units = paid.rewards * paid.reward_map.scale + paid.reward_map.offset
    over = np.array(
        [row[s, 0] == 1 for s, row in enumerate(np.moveaxis(plain.transitions[0], 2, 1))]
    )
    assert units[:, ~over] == pytest.approx(10 * plain.rewards[:, ~over] - 1)
    assert units[:, over] == pytest.approx(0)
    clipped = gymnasium.wrappers.ClipReward(gymnasium.wrappers.RecordEpisodeStatistics(env), 0, 0.5)
    assert from_gymnasium(clipped, 20).rewards.max() == pytest.approx(plain.rewards.max() / 2)
    for wrapper in (gymnasium.wrappers.NormalizeReward, gymnasium.wrappers.TimeAwareObservation):
        with pytest.raises(UnsupportedError, match=f"{wrapper.__name__} changes more than rewards"):
            from_gymnasium(wrapper(env), 20)
    drift = itertools.count()
    with pytest.raises(UnsupportedError, match="for the same reward"):
        from_gymnasium(gymnasium.wrappers.TransformReward(env, lambda r: r + next(drift)), 20)
    own = gymnasium.wrappers.TransformReward(to_gymnasium(make("RiverSwim")), abs)
    with pytest.raises(UnsupportedError, match="use mdp"):
        from_gymnasium(own, 6)
