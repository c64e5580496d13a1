"""What can be promised at all."""

import math

import pytest

from discreet.errors import InvalidInputError
from discreet.privacy.accounting.roots import check_delta, check_epsilon


@pytest.mark.core
@pytest.mark.parametrize("epsilon", [5e-324, 1e-13, 1, 1e9])
def test_every_representable_epsilon_may_be_asked_for(epsilon):
    check_epsilon(epsilon)


@pytest.mark.core
@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, 1e308])
def test_an_epsilon_that_promises_nothing_is_refused(epsilon):
    with pytest.raises(InvalidInputError, match="epsilon"):
        check_epsilon(epsilon)


@pytest.mark.core
@pytest.mark.parametrize("delta", [0, 1e-300, 1e-6, 0.5])
def test_usual_deltas(delta):
    check_delta(delta)


@pytest.mark.core
@pytest.mark.parametrize("delta", [-1e-9, 1, 1.5, math.nan, 1e-320])
def test_impossible_deltas_are_refused(delta):
    with pytest.raises(InvalidInputError, match="delta"):
        check_delta(delta)
