"""Random renaming of actions."""

import numpy as np
import pytest

from discreet.errors import InvalidInputError
from discreet.mdp import RandomMDP, make, plan
from discreet.mdp.environments._relabel import relabel_actions
from helpers.properties import given, settings, st


def test_relabelling_a_time_inhomogeneous_mdp_differs_by_step():
    plain, relabelled = make("DemandResponse"), make("DemandResponse", relabel=0)
    assert not plain.stationary
    moved = (plain.transitions != relabelled.transitions).any(axis=(2, 3))
    assert (moved != moved[0]).any()


@pytest.mark.parametrize("seed", [-1, 1.5, True])
def test_a_relabelling_seed_is_a_count(seed):
    with pytest.raises(InvalidInputError, match="relabel"):
        make("RiverSwim", relabel=seed)


def test_no_seed_is_the_same_object():
    mdp = make("RiverSwim")
    assert relabel_actions(mdp, None) is mdp


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_every_state_keeps_its_actions_under_other_names(seed, stationary):
    mdp = RandomMDP(states=3, actions=4, horizon=2, stationary=stationary)
    renamed = relabel_actions(mdp, seed)
    for h in range(2):
        for s in range(3):
            rows = np.column_stack([mdp.rewards[h, s], mdp.transitions[h, s]])
            other = np.column_stack([renamed.rewards[h, s], renamed.transitions[h, s]])
            assert sorted(map(tuple, rows)) == sorted(map(tuple, other))
    assert plan(renamed).value == pytest.approx(plan(mdp).value)
    assert (renamed.name, renamed.reward_kind) == (mdp.name, mdp.reward_kind)
