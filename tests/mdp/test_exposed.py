"""What an environment of another package lets one read, and how it is mapped to [0, 1]."""

from dataclasses import replace

import numpy as np
import pytest

from discreet.mdp.gymnasium import _padded, _rescaled
from discreet.mdp.tabular import ExposedModel

MODEL = ExposedModel(
    transitions=np.full((2, 1, 2), 0.5),
    rewards=np.array([[-10.0], [20.0]]),
    initial=None,
    low=-10.0,
    high=20.0,
    fixed_rewards=True,
)


def test_rewards_are_mapped_linearly_and_back():
    means, back = _rescaled(MODEL)
    assert means.ravel().tolist() == [0, 1]
    assert [back.original(float(mean), horizon=1) for mean in means.ravel()] == [-10, 20]


def test_rewards_that_fit_already_stay():
    fits = replace(MODEL, rewards=np.array([[0.25], [0.5]]), low=0.0, high=1.0)
    means, back = _rescaled(fits)
    assert means.ravel().tolist() == [0.25, 0.5]
    assert (back.scale, back.offset) == (1.0, 0.0)


def test_a_state_that_was_added_is_never_the_first():
    assert _padded([0.5, 0.5], 3).tolist() == [0.5, 0.5, 0.0]
    assert _padded([0.5, 0.5], 2).tolist() == [0.5, 0.5]
    assert _padded(1, 3) == 1


def test_a_model_is_not_changed_after_it_was_read():
    with pytest.raises(AttributeError):
        MODEL.low = 0.0
