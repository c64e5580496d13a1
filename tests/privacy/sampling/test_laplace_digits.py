"""Discrete Laplace noise by digits: exact tables, and draws that follow them."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from discreet.privacy.sampling.kernels import fill_laplace
from discreet.privacy.sampling.samplers import (
    GENERATORS,
    SimulationSampler,
    alias_words,
    digit_weights,
    laplace_tables,
)

SCALES = [0.05, 0.4, 3.3, 11.0, 11.1, 40.0, 1800.0, 3e5]


def behind(words):
    """How many of the 2^64 words give each value."""
    chances = np.zeros(1024, object)
    for column, word in enumerate(words.tolist()):
        stays, other = word >> 10, word & 1023
        chances[column] += stays
        chances[other] += (1 << 54) - stays
    return chances


@pytest.mark.core
@pytest.mark.parametrize("scale", SCALES)
def test_tables_hold_the_weights_one_by_one(scale):
    for words, weights in zip(laplace_tables(scale), digit_weights(scale), strict=True):
        assert behind(words).tolist() == weights + [0] * (1024 - len(weights))
        assert sum(weights) == 1 << 64


def test_an_alias_table_of_few_values():
    weights = [1 << 63, 1 << 62, (1 << 62) - 1, 1]
    assert behind(alias_words(weights)).tolist() == weights + [0] * 1020


@pytest.mark.parametrize("scale", SCALES)
def test_weights_are_within_the_stated_distance_of_the_exact_distribution(scale):
    """Total variation of the top digit with its sign, and of each digit, below 2^-55."""
    tables = digit_weights(scale)
    with localcontext() as context:
        context.prec = 80
        for place, weights in enumerate(tables):
            ratio = (-(Decimal(1024) ** (len(tables) - 1 - place)) / Decimal(scale)).exp()
            if place == 0:
                odds = (-1 / Decimal(scale)).exp()
                masses = [ratio**y * sign for y in range(512) for sign in (Decimal(1), odds)]
                total = (1 + odds) / (1 - ratio)
            else:
                masses = [ratio**z for z in range(1024)]
                total = sum(masses)
            exact = [mass / total for mass in masses]
            apart = sum(abs(Decimal(w) / 2**64 - p) for w, p in zip(weights, exact, strict=True))
            assert apart / 2 < Decimal(2) ** -55


def every(tables):
    """The distribution of the digits put together, as fractions of the words."""
    distribution = {}
    weights = [behind(words) for words in tables]
    for top, mass in enumerate(weights[0]):
        if mass:
            distribution[(top >> 1) ^ -(top & 1)] = Fraction(int(mass), 1 << 64)
    for digit in weights[1:]:
        wider = {}
        for value, mass in distribution.items():
            for below in range(1024):
                place = below if value >= 0 else 1023 - below
                wider[value * 1024 + place] = mass * Fraction(int(digit[below]), 1 << 64)
        distribution = wider
    return distribution


@pytest.mark.parametrize("scale", [2.0, 15.0])
def test_digits_together_are_discrete_laplace(scale):
    distribution = every(laplace_tables(scale))
    assert sum(distribution.values()) == 1
    for x in (-40, -3, -1, 0, 1, 2, 17):
        expected = math.tanh(0.5 / scale) * math.exp(-abs(x) / scale)
        assert float(distribution[x]) == pytest.approx(expected, rel=1e-12)


def test_words_become_values_as_the_tables_say():
    """The compiled loop, word by word: columns, chances, complements of negative numbers."""
    tables, scale = laplace_tables(1800.0), 1800.0
    state = np.random.default_rng(1).integers(0, 1 << 64, (4, GENERATORS), np.uint64)
    words = _words(state.copy(), 1024)
    out = np.empty(512, np.int64)
    fill_laplace(state, tables, 1, out)
    expected = []
    for high, low in zip(words[:512], words[512:], strict=True):
        top, below = _value(tables[0], high), _value(tables[1], low)
        whole = (top >> 1) * 1024 + below
        expected.append(-1 - whole if top & 1 else whole)
    assert out.tolist() == expected
    assert scale * 0.5 < np.abs(out).mean() < scale * 1.5


def _value(table, word):
    entry = int(table[word & 1023])
    return word & 1023 if word >> 10 < entry >> 10 else entry & 1023


def _words(state, count):
    """xoshiro256++ of all generators in turn, in plain integers."""
    states = [[int(part[j]) for part in state] for j in range(state.shape[1])]
    mask, out = (1 << 64) - 1, []

    def turned(x, k):
        return (x << k | x >> (64 - k)) & mask

    while len(out) < count:
        for s in states:
            out.append((turned((s[0] + s[3]) & mask, 23) + s[0]) & mask)
            t = s[1] << 17 & mask
            s[2] ^= s[0]
            s[3] ^= s[1]
            s[1] ^= s[2]
            s[0] ^= s[3]
            s[2] ^= t
            s[3] = turned(s[3], 45)
    return out


def test_the_plain_words_are_those_of_the_published_generator():
    """What xoshiro256++ puts out from the state (1, 2, 3, 4), as its authors' code does."""
    assert _words(np.array([[1], [2], [3], [4]], np.uint64), 6) == [
        41943041,
        58720359,
        3588806011781223,
        3591011842654386,
        9228616714210784205,
        9973669472204895162,
    ]


@pytest.mark.parametrize("scale", [0.4, 40.0, 1800.0])
def test_bins_of_many_draws(scale):
    """Chi-square against exact probabilities in 40 bins, false alarm 1e-7; half the scale fails."""
    draws = SimulationSampler(np.random.default_rng(7)).discrete_laplace(scale, 400_000)
    assert _fits(draws, scale)
    assert not _fits(draws, scale / 1.02)


def _fits(draws, scale):
    edges = np.unique(np.round(scale * np.linspace(-3, 3, 39)))
    q = math.exp(-1 / scale)

    def below(x):  # P(X < x)
        return q ** (1 - x) / (1 + q) if x <= 0 else 1 - q**x / (1 + q)

    masses = np.diff([0.0, *(below(x) for x in edges), 1.0])
    seen = np.bincount(np.searchsorted(edges, draws, "right"), minlength=edges.size + 1)
    statistic = ((seen - masses * draws.size) ** 2 / (masses * draws.size)).sum()
    return chi2.sf(statistic, edges.size) > 1e-7


def test_counters_times_and_digits_are_independent():
    """No correlation between neighbours in either direction, of signs, sizes and low digits."""
    draws = SimulationSampler(np.random.default_rng(8)).discrete_laplace(1800.0, (3000, 96))
    for view in (np.sign(draws + 0.5), np.abs(draws), draws & 1023, draws):
        for one, other in (
            (view[1:], view[:-1]),
            (view[:, 1:], view[:, :-1]),
            (view[:, 64:], view[:, :32]),  # the same generator again
        ):
            correlation = np.corrcoef(one.ravel().astype(float), other.ravel().astype(float))[0, 1]
            assert abs(correlation) < 6 / math.sqrt(one.size)
    sizes = np.corrcoef(np.abs(draws).ravel(), np.sign(draws + 0.5).ravel())[0, 1]
    assert abs(sizes) < 6 / math.sqrt(draws.size)


def test_draws_follow_from_the_seed_alone():
    one, same = (SimulationSampler(np.random.default_rng(9)) for _ in range(2))
    first = one.discrete_laplace(1800.0, 20_000)
    assert np.array_equal(first, same.discrete_laplace(1800.0, (200, 100)).ravel())
    assert not np.array_equal(first, one.discrete_laplace(1800.0, 20_000))
