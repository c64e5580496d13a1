"""The audit's arithmetic against an oracle that enumerates, and against closed forms."""

import itertools
import math

import numpy as np
import pytest

from discreet.privacy.auditing import losses
from discreet.privacy.auditing.losses import (
    exact_delta,
    exact_epsilon,
    gaussian_delta,
    gaussian_epsilon,
)


def enumerate_delta(noises, shifts, epsilon):
    """delta by listing every joint output of several counters: no losses, no transforms."""
    total = 0.0
    supports = [sorted(noise) for noise in noises]
    for p in itertools.product(*supports):
        here = math.prod(noise[x] for noise, x in zip(noises, p, strict=True))
        there = math.prod(
            noise.get(x - shift, 0.0) for noise, x, shift in zip(noises, p, shifts, strict=True)
        )
        total += max(0.0, here - math.exp(epsilon) * there)
    return total


def binomial(n, p):
    return {k: math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)}


def laplace(scale, reach):
    weights = {x: math.exp(-abs(x) / scale) for x in range(-reach, reach + 1)}
    norm = (1 + math.exp(-1 / scale)) / (1 - math.exp(-1 / scale))
    return {x: w / norm for x, w in weights.items()}


def gaussian(sigma, reach):
    weights = {x: math.exp(-(x**2) / (2 * sigma**2)) for x in range(-reach, reach + 1)}
    return {x: w / sum(weights.values()) for x, w in weights.items()}


@pytest.mark.core
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.0])
@pytest.mark.parametrize(("trials", "probability"), [(6, 0.5), (9, 0.2)])
def test_binomial_bits_match_enumeration(trials, probability, epsilon):
    noise = binomial(trials, probability)
    views = [
        (losses.binomial(trials, probability, 1), 2),
        (losses.binomial(trials, probability, -1), 2),
    ]
    expected = enumerate_delta([noise] * 4, (1, 1, -1, -1), epsilon)
    assert exact_delta(views, epsilon) == pytest.approx(expected, rel=1e-5)
    assert exact_delta(views, epsilon) >= expected * (1 - 1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.5])
def test_laplace_matches_enumeration(epsilon):
    views = [(losses.laplace(0.8), 2), (losses.laplace(0.8, 2), 1)]
    expected = enumerate_delta([laplace(0.8, 20)] * 3, (1, -1, 2), epsilon)
    assert exact_delta(views, epsilon) == pytest.approx(expected, rel=1e-6, abs=1e-10)


@pytest.mark.parametrize("shift", [1, 2])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0])
def test_gaussian_matches_enumeration(shift, epsilon):
    views = [(losses.gaussian(1.3, shift), 2)]
    expected = enumerate_delta([gaussian(1.3, 20)] * 2, (shift, -shift), epsilon)
    assert exact_delta(views, epsilon) == pytest.approx(expected, rel=1e-9)


def test_piled_laplace_losses_are_listed_with_their_probabilities():
    pair = losses.laplace(2.0, 3)
    noise = laplace(2.0, 200)
    for loss, mass in zip(pair.losses, pair.masses, strict=True):
        expected = sum(p for x, p in noise.items() if math.isclose((abs(x - 3) - abs(x)) / 2, loss))
        assert mass == pytest.approx(expected, rel=1e-12)


def test_tables_compose():
    noise = {-1: 0.25, 0: 0.5, 1: 0.25}
    views = [(losses.table(np.array([0.25, 0.5, 0.25]), 1), 2)]
    for epsilon in (0.0, 0.4, 1.0):
        expected = enumerate_delta([noise] * 2, (1, 1), epsilon)
        assert exact_delta(views, epsilon) == pytest.approx(expected, rel=1e-6)


def test_discrete_gaussian_tends_to_the_analytic_curve():
    exact = exact_epsilon([(losses.gaussian(217.8), 36)], 1e-6)
    assert exact == pytest.approx(gaussian_epsilon(6 / 217.8, 1e-6), rel=1e-6)
    assert gaussian_delta(6 / 217.8, exact) == pytest.approx(1e-6, rel=1e-4)


def test_pure_guarantees_need_no_delta():
    views = [(losses.laplace(36.0), 36)]
    assert exact_epsilon(views, 0.0) == 1.0
    assert exact_epsilon(views, 1e-6) < 1.0
    assert exact_epsilon([(losses.gaussian(5.0), 1)], 0.0) == math.inf


def test_outcomes_that_only_one_neighbour_can_produce():
    pair = losses.outcomes({b"a": 0.9, b"b": 0.1}, {b"a": 1.0})
    assert pair.unseen == pytest.approx(0.1)
    assert exact_epsilon([(pair, 1)], 0.05) == math.inf
    assert exact_delta([(pair, 1)], 5.0) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("horizon", "bits", "epsilon"), [(2, 859, 1.0), (6, 2574, 1.0), (6, 718, 2.0), (20, 8578, 1.0)]
)
def test_golden_shuffle_bits(horizon, bits, epsilon):
    moves = 3 * horizon
    views = [(losses.binomial(bits, 0.5, 1), moves), (losses.binomial(bits, 0.5, -1), moves)]
    assert epsilon * 0.998 < exact_epsilon(views, 1e-6) <= epsilon


def test_variance_matching_alone_is_not_enough_for_rare_bits():
    """p with n·p(1-p) = N/4 is lopsided: the same variance delivers less."""
    p = (1 - math.sqrt(1 - 859 / 8590)) / 2
    views = [(losses.binomial(8590, p, 1), 6), (losses.binomial(8590, p, -1), 6)]
    assert 1.0015 < exact_epsilon(views, 1e-6) < 1.003
