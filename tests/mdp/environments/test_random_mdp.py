"""RandomMDP: what its seed decides, and what it does not."""

import numpy as np
import pytest

from discreet.mdp import make


def test_random_mdp_follows_its_seed_and_switches():
    one, two = (make("RandomMDP", states=4, seed=seed) for seed in (1, 2))
    assert (one.transitions != two.transitions).any()
    assert set(np.unique(one.rewards)) <= {0.0, 1.0}
    assert one.stationary
    assert not make("RandomMDP", horizon=3, stationary=False).stationary


def test_the_same_seed_is_the_same_mdp():
    one, two = (make("RandomMDP", states=3, actions=4, horizon=5, seed=9) for _ in range(2))
    np.testing.assert_array_equal(one.transitions, two.transitions)
    np.testing.assert_array_equal(one.rewards, two.rewards)
    assert one.shape.visits == (5, 3, 4)


def test_a_larger_concentration_spreads_the_moves():
    sharp, flat = (make("RandomMDP", states=6, concentration=c, seed=1) for c in (0.01, 100.0))
    assert sharp.transitions.max(axis=-1).mean() > 0.8
    assert flat.transitions.max(axis=-1).mean() < 0.4


def test_episodes_begin_in_the_first_state_and_rewards_are_certain():
    mdp = make("RandomMDP", states=3)
    assert mdp.initial.tolist() == [1, 0, 0]
    assert mdp.reward_kind == "deterministic"


@pytest.mark.parametrize("stationary", [True, False])
def test_steps_differ_only_if_asked_for(stationary):
    mdp = make("RandomMDP", states=3, horizon=4, stationary=stationary)
    assert (mdp.transitions == mdp.transitions[0]).all() == stationary
