"""Gaussian noise on a grid: its cost against exact sums, and the noise of concentrated privacy."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.special import ndtr

from discreet.errors import CalibrationError, InvalidInputError
from discreet.mdp.shape import Shape
from discreet.privacy.accounting.closed_forms import gaussian_sigma
from discreet.privacy.accounting.losses import grid_delta, grid_sigma, zcdp_sigma
from discreet.privacy.accounting.routes import zcdp_epsilon
from discreet.privacy.trust import Central

SHAPE = Shape(states=4, actions=2, horizon=6)


def variation(steps):
    """Total variation between a discrete Gaussian and a rounded one, summed."""
    values = np.arange(-int(40 * steps), int(40 * steps) + 1)
    discrete = np.exp(-(values**2) / (2 * steps**2))
    rounded = ndtr((values + 0.5) / steps) - ndtr((values - 0.5) / steps)
    return float(np.abs(discrete / discrete.sum() - rounded).sum() / 2)


@pytest.mark.parametrize("steps", [2.0, 3.7, 10.0, 300.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_the_cost_of_a_grid_covers_the_exact_variation(steps, epsilon):
    exact = (1 + math.exp(epsilon)) * variation(steps)
    assert exact <= grid_delta(steps, 1, epsilon) < 8 * exact
    assert grid_delta(steps, 7, epsilon) == pytest.approx(7 * grid_delta(steps, 1, epsilon))


@pytest.mark.parametrize(("steps", "epsilon"), [(1.99, 1.0), (1e9, 601.0)])
def test_where_nothing_is_proved_a_grid_costs_everything(steps, epsilon):
    assert grid_delta(steps, 1, epsilon) == math.inf


def spent(l2_squared, sigma, delta):
    """Rho + 2·sqrt(rho·ln(1/delta)) in sixty digits, of the double sigma as it is."""
    with localcontext() as context:
        context.prec = 60
        rho = Decimal(l2_squared) / (2 * Decimal(sigma) ** 2)
        return rho + 2 * (rho * (1 / Decimal(delta)).ln()).sqrt()


@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 1.0, 25.0, 77.7, 599.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-6, 0.5])
@pytest.mark.parametrize("square", [1, 2, 36, 12345])
def test_concentrated_noise_keeps_its_promise_and_wastes_nothing(epsilon, delta, square):
    sigma = zcdp_sigma(math.sqrt(square), epsilon, delta)
    assert spent(square, sigma, delta) <= Decimal(epsilon)
    assert spent(square, sigma * (1 - 1e-11), delta) > Decimal(epsilon)
    assert zcdp_epsilon(square / (2 * sigma**2), delta) == pytest.approx(epsilon, rel=1e-9)


def test_a_cheap_grid_pays_from_delta():
    plain = gaussian_sigma(6.0, 1.0, 1e-6)
    assert grid_sigma(6.0, 1.0, 1e-6, lost=0.0, most=1e-8) == plain
    paid = grid_sigma(6.0, 1.0, 1e-6, lost=1e-8, most=1e-8)
    assert paid == gaussian_sigma(6.0, 1.0, 1e-6 - 1e-8) > plain


def test_a_dear_grid_is_left_to_concentrated_privacy():
    assert grid_sigma(6.0, 30.0, 1e-6, lost=2e-8, most=1e-8) == zcdp_sigma(6.0, 30.0, 1e-6)


@pytest.mark.parametrize("name", ["toeplitz", "tree-honaker", "tree-iid"])
def test_streams_of_a_very_large_epsilon_take_concentrated_noise(name):
    trust = Central(60, 1e-6, mechanism=name)
    plan = trust.calibrate(SHAPE, schedule="continual", episodes=50)
    sigma = plan.noise.sigma if name == "toeplitz" else plan.noise.distribution.sigma
    least = zcdp_sigma(6.0, 60.0, 1e-6)  # one column of norm one; trees have longer ones
    assert sigma == pytest.approx(least, rel=1e-9) if name == "toeplitz" else sigma > least


def test_bad_input_is_named():
    with pytest.raises(CalibrationError, match="Concentrated DP needs delta > 0"):
        zcdp_sigma(1.0, 1.0, 0.0)
    with pytest.raises(InvalidInputError, match="l2"):
        zcdp_sigma(0.0, 1.0, 1e-6)
