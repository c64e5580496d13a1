"""The size of a problem."""

import pytest

from discreet.errors import InvalidInputError
from discreet.mdp import RandomMDP
from discreet.mdp.shape import Shape
from helpers.properties import given, st

SIZES = st.integers(1, 50)


@given(SIZES, SIZES, SIZES)
def test_arrays_have_these_shapes(states, actions, horizon):
    shape = Shape(states=states, actions=actions, horizon=horizon)
    assert shape.visits == (horizon, states, actions)
    assert shape.transitions == (*shape.visits, states)


def test_a_model_has_the_shape_of_its_arrays():
    mdp = RandomMDP(states=3, actions=4, horizon=5)
    assert mdp.shape == Shape(3, 4, 5)
    assert mdp.rewards.shape == mdp.shape.visits
    assert mdp.transitions.shape == mdp.shape.transitions


@pytest.mark.parametrize("name", ["states", "actions", "horizon"])
@pytest.mark.parametrize("value", [0, -1, 2.0, True, "two", None])
def test_sizes_are_positive_integers(name, value):
    with pytest.raises(InvalidInputError, match=f"Expected {name} to be an integer >= 1"):
        Shape(**{"states": 2, "actions": 2, "horizon": 2, name: value})


def test_a_shape_is_a_key():
    assert len({Shape(2, 3, 4), Shape(2, 3, 4), Shape(2, 4, 3)}) == 2
    with pytest.raises(AttributeError):
        Shape(2, 3, 4).states = 5
