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
