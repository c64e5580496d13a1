"""Privacy-loss distributions against direct sums, closed forms and their own symmetries."""

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy import fft, stats
from scipy.special import ndtr

from discreet.errors import CalibrationError, InvalidInputError
from discreet.mdp.shape import Shape
from discreet.privacy.accounting.closed_forms import (
    gaussian_delta,
    gaussian_sigma,
    grid_delta,
    grid_sigma,
    zcdp_epsilon,
    zcdp_sigma,
)
from discreet.privacy.accounting.distributions import (
    binomial_pmf,
    discrete_gaussian_pmf,
    table_pmf,
)
from discreet.privacy.accounting.losses import (
    Shift,
    _fast_length,
    delta_of_moves,
    delta_of_shifts,
    epsilon_of_moves,
    epsilon_of_shifts,
)
from discreet.privacy.trust import Central
from helpers.lattices import discrete_laplace_pmf


def enumerated_delta(noise, ups, downs, epsilon):
    """The hockey-stick divergence by brute force over all outcomes of all moved counters."""
    p = np.exp(noise.log_probabilities)
    up = np.concatenate([[0.0], p])  # Q: moved up by one
    stay = np.concatenate([p, [0.0]])
    moved = [(stay, up)] * ups + [(up, stay)] * downs
    total = 0.0
    for outcome in itertools.product(range(stay.size), repeat=ups + downs):
        a = math.prod(pair[0][x] for pair, x in zip(moved, outcome, strict=True))
        b = math.prod(pair[1][x] for pair, x in zip(moved, outcome, strict=True))
        total += max(0.0, a - math.exp(epsilon) * b)
    return total


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.5])
@pytest.mark.parametrize(
    ("noise", "ups", "downs"),
    [
        (binomial_pmf(9, 0.5), 1, 1),
        (binomial_pmf(9, 0.3), 2, 1),
        (binomial_pmf(12, 0.2), 0, 2),
        (table_pmf(np.array([1, 4, 9, 4, 1]), -2), 2, 2),
    ],
)
def test_composition_equals_brute_force_and_never_falls_below(noise, ups, downs, epsilon):
    brute = max(
        enumerated_delta(noise, ups, downs, epsilon),
        enumerated_delta(noise, downs, ups, epsilon),
    )
    found = delta_of_moves(noise, ups, downs, epsilon)
    assert brute - 1e-12 <= found <= brute * 1.001 + 1e-9


@pytest.mark.core
def test_gaussian_moves_follow_the_analytic_curve():
    noise = discrete_gaussian_pmf(25.348)
    for epsilon in (0.1, 0.5, 1.0, 1.5):
        exact = gaussian_delta(25.348, 6.0, epsilon)
        assert delta_of_moves(noise, 18, 18, epsilon) == pytest.approx(exact, rel=2e-3)


def test_laplace_moves_are_randomised_response():
    """The loss of one unit shift is ±1/scale: n moves are n randomised responses."""
    scale, moves, epsilon = 5.0, 12, 1.0
    heads = np.arange(moves + 1)
    loss = (moves - 2 * heads) / scale
    weight = stats.binom.pmf(heads, moves, 1 / (1 + math.exp(1 / scale)))
    exact = (weight * np.maximum(0, -np.expm1(epsilon - loss))).sum()
    found = delta_of_moves(discrete_laplace_pmf(scale), moves // 2, moves // 2, epsilon)
    assert found == pytest.approx(exact, rel=1e-9)


def test_epsilon_inverts_delta():
    noise = binomial_pmf(2574, 0.5)
    for delta in (1e-9, 1e-6, 1e-3, 0.05):
        epsilon = epsilon_of_moves(noise, 18, 18, delta)
        assert delta_of_moves(noise, 18, 18, epsilon) == pytest.approx(delta, rel=1e-5)
        assert delta_of_moves(noise, 18, 18, epsilon) <= delta


def test_more_moves_less_noise_and_smaller_epsilon_cost_more():
    noise, less = binomial_pmf(400, 0.5), binomial_pmf(300, 0.5)
    reference = delta_of_moves(noise, 6, 6, 1.0)
    assert delta_of_moves(noise, 7, 7, 1.0) > reference
    assert delta_of_moves(less, 6, 6, 1.0) > reference
    assert delta_of_moves(noise, 6, 6, 0.9) > reference
    assert delta_of_moves(noise, 6, 5, 1.0) < reference


def test_mirrored_noise_gives_the_mirrored_answer():
    light, heavy = binomial_pmf(200, 0.2), binomial_pmf(200, 0.8)
    assert delta_of_moves(light, 3, 3, 0.5) == pytest.approx(
        delta_of_moves(heavy, 3, 3, 0.5), rel=1e-4
    )
    one_way = delta_of_shifts([Shift(light, 1, 4)], 0.5)
    assert delta_of_shifts([Shift(heavy, -1, 4)], 0.5) == pytest.approx(one_way, rel=1e-4)
    assert delta_of_moves(light, 4, 0, 0.5) >= one_way


def test_composition_of_groups_equals_composition_of_all():
    noise = binomial_pmf(500, 0.5)
    together = delta_of_shifts([Shift(noise, 1, 10)], 0.7)
    apart = delta_of_shifts([Shift(noise, 1, 4), Shift(noise, 1, 1), Shift(noise, 1, 5)], 0.7)
    assert together == pytest.approx(apart, rel=1e-9)


def test_tiny_deltas_keep_their_relative_accuracy():
    noise = discrete_gaussian_pmf(40.0)
    assert delta_of_moves(noise, 8, 8, 1.0) == pytest.approx(
        gaussian_delta(40.0, 4.0, 1.0), rel=1e-2
    )
    assert gaussian_delta(40.0, 4.0, 1.0) < 1e-20


def test_piles_move_several_units_of_one_counter():
    noise = discrete_gaussian_pmf(60.0)
    piled = delta_of_moves(noise, 3, 3, 1.0, pile=6)
    assert piled == pytest.approx(gaussian_delta(60.0, 6 * math.sqrt(6), 1.0), rel=2e-2)
    assert piled > delta_of_moves(noise, 18, 18, 1.0)


def test_nothing_moves_nothing_leaks():
    noise = binomial_pmf(10, 0.5)
    assert delta_of_moves(noise, 0, 0, 0.0) == 0.0
    assert epsilon_of_moves(noise, 0, 0, 0.0) == 0.0


def test_bounded_noise_has_an_infinite_epsilon_below_its_edge():
    noise = binomial_pmf(8, 0.5)
    assert epsilon_of_shifts([Shift(noise)], 2.0**-9) == math.inf
    assert epsilon_of_shifts([Shift(noise)], 2.0**-8 + 1e-6) < math.inf


def test_a_thousand_compositions_of_randomised_response():
    """`table_pmf` of one bit: count = n equals n composes, against the exact binomial sum."""
    epsilon0, n = 0.02, 1000
    keep = math.exp(epsilon0) / (1 + math.exp(epsilon0))
    heads = np.arange(n + 1)
    loss = (2 * heads - n) * epsilon0
    weight = stats.binom.pmf(heads, n, keep)
    for epsilon in (0.5, 1.0, 2.0):
        exact = (weight * np.maximum(0, -np.expm1(epsilon - loss))).sum()
        found = delta_of_moves(discrete_laplace_pmf(1 / epsilon0), n // 2, n // 2, epsilon)
        assert found == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("seed", range(25))
def test_random_tables_are_never_underestimated(seed):
    rng = np.random.default_rng(seed)
    noise = table_pmf(rng.integers(0, 30, rng.integers(2, 6)) + np.array(1), 0)
    ups, downs = (int(n) for n in rng.integers(0, 3, 2))
    epsilon = float(rng.uniform(0, 3))
    brute = max(
        enumerated_delta(noise, ups, downs, epsilon),
        enumerated_delta(noise, downs, ups, epsilon),
    )
    found = delta_of_moves(noise, ups, downs, epsilon)
    assert brute - 1e-12 <= found <= brute + 1e-3


def test_noise_that_is_too_narrow_hides_nothing():
    constant = table_pmf(np.array([1]), 0)
    assert delta_of_moves(constant, 1, 1, 5.0) == 1.0
    assert epsilon_of_moves(constant, 1, 1, 0.5) == math.inf
    assert delta_of_moves(binomial_pmf(3, 0.5), 1, 0, 1.0, pile=9) == 1.0
    even = table_pmf(np.array([1, 0, 1, 0, 1]), 0)  # a shift by one lands between the values
    assert delta_of_moves(even, 1, 1, 1.0) == 1.0


def test_lengths_are_those_that_transform_fast():
    sizes = [*range(1, 2000), *np.random.default_rng(0).integers(2000, 10**8, 200)]
    for size in map(int, sizes):
        assert _fast_length(size) == fft.next_fast_len(size, real=True)


# --- Gaussian noise on a grid: its cost against exact sums, and the noise of concentrated priva


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
def test_concentrated_noise_keeps_its_guarantee_and_wastes_nothing(epsilon, delta, square):
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


def test_streams_of_a_very_large_epsilon_take_concentrated_noise():
    trust = Central(60, 1e-6, mechanism="toeplitz")
    plan = trust.calibrate_stream(SHAPE, episodes=50)
    assert plan.noise.sigma == pytest.approx(zcdp_sigma(6.0, 60.0, 1e-6), rel=1e-9)


def test_bad_input_is_named():
    with pytest.raises(CalibrationError, match="Concentrated DP needs delta > 0"):
        zcdp_sigma(1.0, 1.0, 0.0)
    with pytest.raises(InvalidInputError, match="l2"):
        zcdp_sigma(0.0, 1.0, 1e-6)
