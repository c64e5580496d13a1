"""The ziggurat: its layers are of one area, and draws through it are normal."""

import math

import numpy as np
import pytest
from scipy.stats import chi2, kstest, norm

from discreet.privacy.sampling.samplers import LAYERS, TAIL, SimulationSampler, normal_layers


@pytest.mark.core
def test_layers_have_one_area_and_close_at_the_top():
    widths, heights, inside = normal_layers()
    assert len(widths) == LAYERS + 1
    assert widths[1] == TAIL
    assert widths[-1] == 0.0
    tail = math.sqrt(math.pi / 2) * math.erfc(TAIL / math.sqrt(2))
    area = TAIL * heights[1] + tail
    layers = widths[1:-1] * np.diff(heights[1:])
    np.testing.assert_allclose(layers, area, rtol=1e-11)
    assert widths[0] * heights[1] == pytest.approx(area, rel=1e-15)
    np.testing.assert_allclose(inside / 2.0**52, widths[1:] / widths[:-1], atol=2.0**-51)


def wide(count, seed):
    """Rounded normals on so fine a grid that rounding does not matter."""
    return SimulationSampler(np.random.default_rng(seed)).discrete_gaussian(2.0**40, count) / 2**40


def test_draws_are_normal_in_every_bin_and_in_the_tail():
    draws = wide(2_000_000, 3)
    edges = norm.ppf(np.linspace(0, 1, 401)[1:-1])
    seen = np.bincount(np.searchsorted(edges, draws), minlength=400)
    expected = draws.size / 400
    assert chi2.sf(((seen - expected) ** 2 / expected).sum(), 399) > 1e-7
    beyond = np.abs(draws[np.abs(draws) > TAIL])
    chance = 2 * norm.sf(TAIL)
    assert abs(beyond.size - draws.size * chance) < 6 * math.sqrt(draws.size * chance)
    assert kstest(norm.sf(beyond) / norm.sf(TAIL), "uniform").pvalue > 1e-6


def test_the_borders_of_layers_do_not_show():
    """A wrong question beside the inner rectangles would show right at the widths of layers."""
    draws, widths = np.abs(wide(2_000_000, 4)), normal_layers().widths[1:-1]
    below = np.array([((draws > x - 0.002) & (draws <= x)).sum() for x in widths[::8]])
    above = np.array([((draws > x) & (draws <= x + 0.002)).sum() for x in widths[::8]])
    for seen, sides in ((below, -0.002), (above, 0.0)):
        mass = 2 * (norm.cdf(widths[::8] + sides + 0.002) - norm.cdf(widths[::8] + sides))
        expected = draws.size * mass
        assert chi2.sf(((seen - expected) ** 2 / expected).sum(), len(expected)) > 1e-7


def test_neighbours_and_generators_are_independent():
    draws = wide((3000, 128), 5)
    for view in (draws, np.abs(draws), np.sign(draws)):
        for one, other in ((view[1:], view[:-1]), (view[:, 64:], view[:, :64])):
            correlation = np.corrcoef(one.ravel(), other.ravel())[0, 1]
            assert abs(correlation) < 6 / math.sqrt(one.size)
