"""Large draws are compiled: the same distributions as small ones."""

import math

import numpy as np
import pytest
from scipy.stats import chi2

from discreet.privacy.accounting.distributions import discrete_gaussian_pmf, discrete_laplace_pmf
from discreet.privacy.sampling.samplers import _MANY, SimulationSampler

DRAWS = 60_000
assert DRAWS > _MANY


def fits(draws, values, probabilities):
    """Chi-square test of the bins that expect at least 20 draws, false alarm 1e-7."""
    expected = probabilities * draws.size
    bins = expected >= 20
    observed = np.array([(draws == v).sum() for v in values[bins]])
    rest = draws.size - observed.sum()
    left = draws.size - expected[bins].sum()
    statistic = ((observed - expected[bins]) ** 2 / expected[bins]).sum()
    statistic += (rest - left) ** 2 / max(left, 20)
    return chi2.sf(statistic, bins.sum()) > 1e-7


def sampler():
    return SimulationSampler(np.random.default_rng(5))


@pytest.mark.core
@pytest.mark.parametrize("sigma", [1.0, 3.3, 40.0])
def test_gaussians(sigma):
    pmf = discrete_gaussian_pmf(sigma)
    assert fits(sampler().discrete_gaussian(sigma, DRAWS), pmf.values, pmf.probabilities)
    half = discrete_gaussian_pmf(sigma / 1.05)
    assert not fits(sampler().discrete_gaussian(sigma, DRAWS), half.values, half.probabilities)


@pytest.mark.parametrize("scale", [0.4, 3.3, 40.0])
def test_laplaces(scale):
    pmf = discrete_laplace_pmf(scale)
    assert fits(sampler().discrete_laplace(scale, DRAWS), pmf.values, pmf.probabilities)


def test_sums_of_few_laplaces():
    pmf = discrete_laplace_pmf(2.0)
    three = np.convolve(np.convolve(pmf.probabilities, pmf.probabilities), pmf.probabilities)
    values = np.arange(three.size) + 3 * pmf.values[0]
    assert fits(sampler().laplace_sum(2.0, 3, (2, DRAWS // 2)).ravel(), values, three)
    assert not sampler().laplace_sum(2.0, 0, DRAWS).any()


def test_bits_and_seeds():
    bits = sampler().binomial(1, 0.2, (3, DRAWS // 3))
    assert set(np.unique(bits)) == {0, 1}
    assert abs(bits.mean() - 0.2) < 6 * math.sqrt(0.16 / DRAWS)
    assert np.array_equal(bits, sampler().binomial(1, 0.2, (3, DRAWS // 3)))


def test_neighbouring_draws_are_independent():
    for draws in (sampler().discrete_gaussian(9.0, DRAWS), sampler().discrete_laplace(9.0, DRAWS)):
        assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < 6 / math.sqrt(DRAWS)
