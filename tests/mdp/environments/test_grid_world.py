"""GridWorld: walls, slips, holes and the goal."""

import numpy as np
import pytest

from discreet.mdp import make, plan


def test_grid_world_by_hand():
    mdp = make("GridWorld", layout="S.G", slip=0.0, horizon=5)
    assert plan(mdp).value == pytest.approx(3)
    blocked = make("GridWorld", layout="S#G", horizon=5)
    assert plan(blocked).value == 0
    slippery = make("GridWorld", layout="SG", slip=0.2, horizon=2)
    assert plan(slippery).value == pytest.approx(0.8)


def test_a_slip_goes_to_both_sides_equally():
    mdp = make("GridWorld", layout="...|.S.|..G", slip=0.2)
    row = mdp.transitions[0, 4, 0]  # up from the middle
    assert row[[1, 3, 5]].tolist() == pytest.approx([0.8, 0.1, 0.1])
    assert row.sum() == pytest.approx(1)


def test_walls_and_the_border_stop_a_move():
    mdp = make("GridWorld", layout="S#|.G", slip=0.0)
    moves = mdp.transitions[0]
    assert mdp.shape.states == 3  # a wall is no state
    assert (moves[0, [0, 1, 3], 0] == 1).all()
    assert moves[0, 2, 1] == 1


def test_holes_and_goals_are_never_left():
    mdp = make("GridWorld", layout="SOG")
    for state, pay in ((1, 0), (2, 1)):
        assert (mdp.transitions[0, state, :, state] == 1).all()
        assert (mdp.rewards[0, state] == pay).all()


def test_episodes_begin_at_the_start_wherever_it_is():
    assert np.argmax(make("GridWorld", layout="G.|.S").initial) == 3
