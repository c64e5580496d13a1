"""Roots: the same to the last bit as SciPy's, on functions of the kind that calibration has."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import CalibrationError, InvalidInputError
from discreet.privacy.accounting.closed_forms import gaussian_delta
from discreet.privacy.accounting.roots import bracketed_root, check_delta, check_epsilon

pytestmark = pytest.mark.core

FUNCTIONS = {
    "cube": (lambda x: x**3 - 2 * x - 5, 1.0, 4.0),
    "cosine": (lambda x: math.cos(x) - x, -1.0, 2.0),
    "steep": (lambda x: math.tanh(80 * (x - 0.7)), -3.0, 9.0),
    "jump": (lambda x: -1.0 if x < 0.123 else 2.0, 0.0, 1.0),
    "falling": (lambda x: 1e3 * math.exp(-x) - 1e-3, 0.0, 40.0),
}


def evaluations(solve, function, *ends, **tolerances):
    """The root, and every place where the function was asked."""
    asked = []

    def watched(x):
        asked.append(x)
        return function(x)

    return solve(watched, *ends, **tolerances), asked


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("tolerances", [{}, {"xtol": 1e-13}, {"xtol": 1e-10}, {"rtol": 1e-2}])
def test_every_step_is_that_of_scipy(name, tolerances):
    from scipy.optimize import brentq

    function, low, high = FUNCTIONS[name]
    for ends in ((low, high), (high, low)):
        ours = evaluations(bracketed_root, function, *ends, **tolerances)
        assert ours == evaluations(brentq, function, *ends, **tolerances)


@given(st.floats(0.05, 8.0), st.floats(1e-12, 1e-3))
def test_gaussian_noise_is_found_as_scipy_finds_it(epsilon, delta):
    from scipy.optimize import brentq

    def excess(log_sigma):
        return math.log(max(gaussian_delta(math.exp(log_sigma), 1.0, epsilon), 1e-305) / delta)

    ends = (-6.0, 12.0)
    assert bracketed_root(excess, *ends, xtol=1e-13) == brentq(excess, *ends, xtol=1e-13)


def test_a_root_at_an_end_is_that_end():
    assert bracketed_root(lambda x: x, 0.0, 2.0) == 0.0
    assert bracketed_root(lambda x: x - 2.0, 0.0, 2.0) == 2.0


def test_no_change_of_sign_is_refused():
    with pytest.raises(CalibrationError, match="change of sign"):
        bracketed_root(lambda x: x * x + 1, 0.0, 1.0)


def test_what_is_too_flat_is_refused():
    with pytest.raises(CalibrationError, match="No root was found"):
        bracketed_root(lambda x: (x - 0.3) ** 9, -1.0, 5.0, xtol=1e-15)


# --- What can be guaranteed at all


@pytest.mark.core
@pytest.mark.parametrize("epsilon", [5e-324, 1e-13, 1, 1e9])
def test_every_representable_epsilon_may_be_asked_for(epsilon):
    check_epsilon(epsilon)


@pytest.mark.core
@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, 1e308])
def test_an_epsilon_that_guarantees_nothing_is_refused(epsilon):
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
