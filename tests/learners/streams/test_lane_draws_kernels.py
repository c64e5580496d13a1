"""Normals, gammas and Student's t from many generators at once: formulas, laws, independence."""

import math

import numpy as np
import pytest
from scipy import stats

from discreet.learners.streams import lane_draws_kernels as kernels
from discreet.learners.streams.lane_draws_kernels import (
    add_students,
    draw_gammas,
    draw_normals,
    shrink_gammas,
)

WIDTH = 20_000


def generators(seed, width=WIDTH):
    state = np.random.SeedSequence(seed).generate_state(4 * width, np.uint64)
    return tuple(row.copy() for row in state.reshape(4, width))


def normals(seed, width=WIDTH):
    first, second = np.zeros(width), np.zeros(width)
    draw_normals(generators(seed, width), generators(seed + 1, width), first, second)
    return first, second


def gammas(shape, seed=5):
    shapes, out = np.full(WIDTH, shape), np.zeros(WIDTH)
    draw_gammas(generators(seed), shapes, normals(seed + 1)[0], out)
    return out


def agrees(sample, law):
    """Kolmogorov and Smirnov: a true law fails once in a million."""
    return stats.kstest(sample, law.cdf).pvalue > 1e-6


@pytest.mark.parametrize(
    ("name", "exact", "places"),
    [
        ("_sine", math.sin, np.linspace(-math.pi / 2, math.pi / 2, 101)),
        ("_growth", math.expm1, np.geomspace(1e-12, 40, 201)),
    ],
)
def test_a_series_is_its_function(name, exact, places):
    series = getattr(kernels, name)
    for x in places.tolist():
        assert series(x) == pytest.approx(exact(x), rel=1e-14, abs=1e-16)


def test_the_short_series_are_sine_and_cosine():
    for x in np.linspace(-math.pi / 4, math.pi / 4, 101).tolist():
        assert kernels._short_sine.py_func(x, x * x) == pytest.approx(math.sin(x), abs=1e-14)
        assert kernels._short_cosine.py_func(x * x) == pytest.approx(math.cos(x), abs=1e-14)


def test_a_uniform_next_to_one_gives_no_root_of_a_negative_number():
    """The logarithm of 1 - 2^-53 may come out above zero."""
    last = np.array([(2**64 - 1)], np.uint64)
    words = (np.zeros(1, np.uint64), np.zeros(1, np.uint64), np.zeros(1, np.uint64), last)
    first, second = np.full(1, np.nan), np.full(1, np.nan)
    draw_normals(tuple(w.copy() for w in words), generators(1, 1), first, second)
    assert abs(first[0]) + abs(second[0]) < 1e-6


def test_normals_are_normal_and_independent():
    first, second = normals(3)
    law = stats.norm()
    assert agrees(first, law)
    assert agrees(second, law)
    for one, other in ((first, second), (first**2, second**2), (abs(first), second)):
        assert abs(np.corrcoef(one, other)[0, 1]) < 5.5 / math.sqrt(WIDTH)
    quarters = np.bincount(2 * (first > 0) + (second > 0), minlength=4)
    assert abs(quarters - WIDTH / 4).max() < 5.5 * math.sqrt(WIDTH * 3 / 16)


@pytest.mark.parametrize("shape", [1.0, 1.7, 9.0, 3000.0, 1e8])
def test_gammas_are_gamma(shape):
    assert agrees(gammas(shape), stats.gamma(shape))


@pytest.mark.parametrize("shape", [0.05, 0.5])
def test_gammas_of_shapes_below_one(shape):
    out, shapes = gammas(1 + shape), np.full(WIDTH, 1 + shape)
    shrink_gammas(generators(9), shapes, out)
    assert agrees(out, stats.gamma(shape))


@pytest.mark.parametrize("d", [2 / 3, 1.0, 5.0, 1e4])
def test_what_is_accepted_at_once_passes_the_exact_test(d):
    """u < 1 - 1.2711·d·z⁴ is enough for ln u < 3d·(ln(1+z) - z + z²/2 - z³/3), if z > -1/2."""
    z = np.linspace(-0.5, 40 / (3 * math.sqrt(d)), 100_001)[1:]
    exact = 3 * d * (np.log1p(z) - z + z**2 / 2 - z**3 / 3)
    assert (1 - 1.2711 * d * z**4 <= np.exp(exact) + 1e-9).all()


@pytest.mark.parametrize("degrees", [2.0, 2.6, 30.0, 1e8])
def test_students_are_students(degrees):
    out = np.zeros(WIDTH)
    everywhere = np.full(WIDTH, degrees)
    add_students(generators(2), generators(4), everywhere, everywhere, out)
    assert agrees(out, stats.t(degrees))


def test_students_are_scaled_and_added():
    plain, shifted = np.zeros(50), np.full(50, 7.0)
    degrees = np.full(50, 3.0)
    add_students(generators(2, 50), generators(4, 50), degrees, degrees, plain)
    add_students(generators(2, 50), generators(4, 50), degrees, 4 * degrees, shifted)
    np.testing.assert_allclose(shifted, 7.0 + 2 * plain, rtol=1e-12)


def test_a_draw_depends_on_its_own_generators_alone():
    shapes, x = np.linspace(1, 3, 60), np.zeros(60)
    states = generators(8, 60)
    draw_normals(generators(1, 30), generators(2, 30), x[:30], x[30:])
    together, alone = np.zeros(60), np.zeros(7)
    draw_gammas(tuple(w.copy() for w in states), shapes, x, together)
    draw_gammas(tuple(w[10:17].copy() for w in states), shapes[10:17], x[10:17], alone)
    assert np.array_equal(alone, together[10:17])
