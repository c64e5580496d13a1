"""ICU-Sepsis: its arrays, its inadmissible actions, its extra."""

import sys

import gymnasium
import numpy as np
import pytest

from discreet.errors import MissingExtraError, UnsupportedError
from discreet.mdp import (
    Shape,
    admissible_actions,
    evaluate,
    from_gymnasium,
    make,
    plan,
    uniform_policy,
)
from discreet.mdp.environments.icu_sepsis import is_sepsis, read_sepsis


class FakeSepsis(gymnasium.Env):
    """The interface of ICU-Sepsis in small, with its private strategy attribute."""

    def __init__(self, strategy):
        self._inadmissible_action_strategy = strategy
        states, actions = 716, 3
        self.dynamics = {
            "tx_mat": np.zeros((states, actions, states)),
            "r_mat": np.zeros((states, actions, states)),
            "d_0": np.eye(states)[0],
            "admissible_actions": [[0, 1]] + [[0, 1, 2]] * (states - 1),
        }
        self.dynamics["tx_mat"][:, :, 715] = 1
        self.dynamics["tx_mat"][0, 0] = np.eye(states)[714]
        self.dynamics["r_mat"][:, :, 714] = 1


@pytest.mark.parametrize(("strategy", "ahead"), [("mean", [714, 715]), ("terminate", [713])])
def test_inadmissible_actions_do_what_the_environment_says(strategy, ahead):
    mdp = from_gymnasium(FakeSepsis(strategy), horizon=2)
    assert np.flatnonzero(mdp.transitions[0, 0, 2]).tolist() == ahead
    assert mdp.rewards[0, 0].tolist() == [1, 0, 0.5 if strategy == "mean" else 0]


def test_icu_sepsis():
    pytest.importorskip("icu_sepsis")
    mdp = make("ICU-Sepsis")
    env = gymnasium.make("Sepsis/ICU-Sepsis-v2")
    assert mdp.shape == Shape(states=716, actions=25, horizon=20)
    assert mdp.stationary
    allowed = admissible_actions(env)
    best = plan(mdp)
    # Restricting the choice to admissible actions loses nothing.
    values = best.values
    for h in (0, 10, 18, 19):
        q = mdp.rewards[h] + mdp.transitions[h] @ values[h + 1]
        np.testing.assert_allclose(np.where(allowed, q, -1).max(axis=1), values[h], atol=1e-12)
    assert best.value == pytest.approx(0.792216, abs=1e-6)
    assert evaluate(mdp, uniform_policy(mdp.shape)) == pytest.approx(0.685447, abs=1e-6)
    with pytest.raises(UnsupportedError, match="all are admissible"):
        admissible_actions(gymnasium.make("FrozenLake-v1"))


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "icu_sepsis", None)
    with pytest.raises(MissingExtraError, match=r"discreet\[health\]"):
        make("icu-sepsis")


def test_its_arrays_are_recognised_and_read_in_their_own_units():
    env = FakeSepsis("mean")
    assert is_sepsis(env)
    del env.dynamics["d_0"]
    assert not is_sepsis(env)
    assert not is_sepsis(gymnasium.make("FrozenLake-v1").unwrapped)
    env = FakeSepsis("mean")
    env.dynamics["r_mat"] *= -15
    model = read_sepsis(env)
    assert (model.low, model.high, model.fixed_rewards) == (-15.0, 0.0, False)
    assert model.rewards[0].tolist() == [-15, 0, -7.5]
    mdp = from_gymnasium(env, horizon=1)
    assert mdp.reward_map.original(evaluate(mdp, [[0] * 716]), horizon=1) == -15


def test_the_arrays_of_the_environment_stay_as_they_are():
    env = FakeSepsis("terminate")
    before = env.dynamics["tx_mat"].copy()
    read_sepsis(env)
    np.testing.assert_array_equal(env.dynamics["tx_mat"], before)


def test_admissible_actions_are_a_mask_of_states_and_actions():
    mask = admissible_actions(FakeSepsis("mean"))
    assert mask.shape == (716, 3)
    assert np.argwhere(~mask).tolist() == [[0, 2]]
