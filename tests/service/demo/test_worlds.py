"""Worlds of demonstrations: names that fit the model, and a description that is the model."""

import numpy as np
import pytest

from discreet.errors import UnknownNameError
from discreet.service.demo.users import WORLDS, get_world


@pytest.mark.parametrize("name", sorted(WORLDS))
def test_names_fit_the_model_and_the_description_is_the_model(name):
    world = get_world(name)
    shape = world.mdp.shape
    assert (len(world.states), len(world.actions), len(world.steps)) == (
        shape.states,
        shape.actions,
        shape.horizon,
    )
    told = world.description()
    np.testing.assert_array_equal(told["transitions"], world.mdp.transitions)
    np.testing.assert_array_equal(told["rewards"], world.mdp.rewards)
    assert [told["initial"][s] > 0 for s in world.start] == [True] * len(world.start)


def test_an_unknown_world_gets_a_suggestion():
    with pytest.raises(UnknownNameError, match="treatment"):
        get_world("treatmnt")
