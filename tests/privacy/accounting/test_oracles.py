"""Our epsilons against other roads to them: dp-accounting, closed forms, Rényi divergences."""

import math

import pytest

pytest.importorskip("dp_accounting")


from discreet.privacy.accounting.closed_forms import gaussian_delta, zcdp_epsilon
from discreet.privacy.accounting.distributions import (
    binomial_pmf,
    discrete_gaussian_pmf,
)
from discreet.privacy.accounting.lattice import (
    discrete_gaussian_delta,
    discrete_laplace_delta,
)
from discreet.privacy.accounting.losses import delta_of_moves, epsilon_of_moves
from discreet.privacy.accounting.search import discrete_gaussian_sigma
from helpers.lattices import (
    discrete_gaussian_epsilon,
    discrete_laplace_epsilon,
    discrete_laplace_pmf,
)
from helpers.oracles import library_gaussian, library_laplace, library_table, renyi


@pytest.mark.parametrize(
    ("sigma", "cells", "pile"), [(25.35, 36, 1), (2.0, 12, 1), (62.1, 6, 6), (20.0, 3, 4)]
)
def test_gaussian_noise(sigma, cells, pile):
    exact = discrete_gaussian_epsilon(sigma, cells, 1e-6, pile=pile)
    composed = epsilon_of_moves(discrete_gaussian_pmf(sigma), cells, 0, 1e-6, pile=pile)
    assert exact * (1 - 1e-6) <= composed == pytest.approx(exact, rel=1e-4)
    assert library_gaussian(sigma, cells, 1e-6, pile=pile) == pytest.approx(exact, rel=5e-3)
    assert exact < zcdp_epsilon(cells * pile**2 / (2 * sigma**2), 1e-6)


@pytest.mark.parametrize(("scale", "moves", "delta"), [(36.0, 36, 1e-6), (3.0, 7, 1e-3)])
def test_laplace_noise(scale, moves, delta):
    exact, half = discrete_laplace_epsilon(scale, moves, delta), moves // 2
    composed = epsilon_of_moves(discrete_laplace_pmf(scale), half, moves - half, delta)
    assert exact * (1 - 1e-6) <= composed == pytest.approx(exact, rel=1e-4)
    assert library_laplace(scale, moves, delta) == pytest.approx(exact, rel=5e-3)
    assert exact < moves / scale


@pytest.mark.parametrize(
    ("trials", "probability", "ups", "downs", "delta"),
    [
        (2574, 0.5, 18, 18, 1e-6),
        (20_000, 0.0332727, 18, 18, 1e-6),
        (300, 0.3, 2, 5, 1e-4),
    ],
)
def test_noise_bits(trials, probability, ups, downs, delta):
    noise = binomial_pmf(trials, probability)
    exact = epsilon_of_moves(noise, ups, downs, delta)
    step = max(0.01 * exact / (ups + downs), 1e-3 / math.sqrt(noise.variance))
    found = library_table(noise, ups, downs, delta, step=step)
    assert exact * (1 - 1e-6) <= found <= exact * 1.01 + (ups + downs) * step
    assert exact < renyi(noise, ups, downs, delta) < 1.2 * exact


@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.0, 2.49, 2.51, 10.0])
@pytest.mark.parametrize("cells", [1, 2, 7, 36])
def test_gaussian_lattice_equals_the_composed_losses(sigma, cells):
    for epsilon in (0.2, 1.0, 3.0):
        exact = discrete_gaussian_delta(sigma, cells, epsilon)
        composed = delta_of_moves(discrete_gaussian_pmf(sigma), cells, 0, epsilon)
        assert composed == pytest.approx(exact, rel=5e-3, abs=1e-25)
        assert composed >= exact * (1 - 1e-9) - 1e-25


def test_gaussian_lattice_tends_to_the_analytic_curve():
    for sigma in (20.0, 200.0):
        error = abs(discrete_gaussian_delta(sigma, 4, 0.1) / gaussian_delta(sigma, 2.0, 0.1) - 1)
        assert error < 0.2 / sigma


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 10.0, 40.0])
def test_the_calibrated_noise_delivers_what_was_asked_for(epsilon):
    sigma = discrete_gaussian_sigma(22, epsilon, 1e-6)
    composed = epsilon_of_moves(discrete_gaussian_pmf(sigma), 22, 0, 1e-6)
    assert composed == pytest.approx(epsilon, rel=1e-3)
    assert discrete_gaussian_epsilon(sigma, 22, 1e-6) <= epsilon * (1 + 1e-9)


def test_pure_epsilon_of_laplace():
    assert discrete_laplace_epsilon(36.0, 36, 0.0) == 1.0
    assert discrete_laplace_delta(36.0, 36, 0.9999) > 0
    assert discrete_laplace_delta(36.0, 36, 1.0) == 0
