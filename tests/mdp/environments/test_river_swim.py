"""RiverSwim and relabelling."""

import numpy as np
import pytest

from discreet.errors import InvalidInputError, UnknownNameError
from discreet.mdp import make, plan


@pytest.mark.core
def test_names_are_case_insensitive_and_unknown_ones_get_a_suggestion():
    assert make("riverSWIM").name == "RiverSwim"
    with pytest.raises(UnknownNameError, match="did you mean 'RiverSwim'"):
        make("RiverSwin")
    with pytest.raises(UnknownNameError, match="did you mean 'states'"):
        make("RiverSwim", state=4)


def test_relabel_is_reproducible_and_keeps_value_and_stationarity():
    plain, one, two = make("RiverSwim"), make("RiverSwim", relabel=3), make("RiverSwim", relabel=3)
    assert one.stationary
    np.testing.assert_array_equal(one.transitions, two.transitions)
    assert (one.transitions != plain.transitions).any()
    assert plan(one).value == pytest.approx(plan(plain).value)


def test_a_chain_needs_two_states():
    with pytest.raises(InvalidInputError, match="states=1"):
        make("RiverSwim", states=1)


def test_the_current_is_that_of_the_paper():
    mdp = make("RiverSwim", states=5)
    moves = mdp.transitions[0]
    assert moves[2, 1].tolist() == [0, 0.05, 0.6, 0.35, 0]
    assert moves[0, 1, :2].tolist() == [0.4, 0.6]
    assert moves[4, 1, 3:].tolist() == [0.4, 0.6]
    assert (moves[np.arange(5), 0, np.maximum(np.arange(5) - 1, 0)] == 1).all()


def test_only_both_ends_pay():
    rewards = make("RiverSwim", states=5).rewards[0]
    assert np.argwhere(rewards > 0).tolist() == [[0, 0], [4, 1]]
    assert (rewards[0, 0], rewards[4, 1]) == (0.005, 1)


def test_two_states_are_the_shortest_river():
    mdp = make("RiverSwim", states=2, horizon=1)
    assert plan(mdp).value == pytest.approx(0.005)
