"""Compiled curves of groups, against sums of fractions over all outcomes."""

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.privacy.accounting import shuffle_curves as kernels
from helpers.properties import given, st

RATIOS = np.array([1.0, 1.25, 2.0, 3.5, 9.0])


def raw(kernel):
    """The function behind a compiled one."""
    return getattr(kernel, "py_func", kernel)


def coins_delta(ratio, coins):
    """The sum of ((1 + N_a - x·N_b)/(1 + N_a))+ over all throws of fair coins, exactly."""
    x = Fraction(ratio)
    return sum(
        Fraction(math.comb(coins, k), 2**coins) * max(0, 1 - x * Fraction(coins - k, k + 1))
        for k in range(coins + 1)
    )


@pytest.mark.parametrize("first", [0, 3])
@pytest.mark.parametrize("masses", [[1.0], [0.5, 0.5], [0.1, 0.4, 0.3, 0.15, 0.05]])
def test_calls_on_two_equal_counters(masses, first):
    found = raw(kernels.poisson_curve)(RATIOS, first, np.array(masses))
    values = list(enumerate(masses, first))
    for ratio, value in zip(RATIOS, found, strict=True):
        truth = sum(p * q * max(0.0, a - ratio * b) for a, p in values for b, q in values)
        assert value == pytest.approx(truth, abs=1e-15)


@given(st.floats(1.0, 50.0), st.integers(0, 60))
def test_the_least_heads_that_cost_anything(ratio, coins):
    heads = raw(kernels.least_heads)(ratio, coins)
    assert 1 + heads > ratio * (coins - heads) * (1 - 1e-12)
    assert heads <= ratio * (coins - heads + 1) * (1 + 1e-12)  # one fewer costs nothing


@given(st.floats(1.0, 20.0), st.integers(0, 40))
def test_the_delta_of_so_many_coins(ratio, coins):
    heads = raw(kernels.least_heads)(ratio, coins)
    chance = math.comb(coins, heads) / 2**coins if heads <= coins else 0.0
    found = raw(kernels.delta_of_coins)(ratio, coins, heads, chance)
    assert found == pytest.approx(float(coins_delta(ratio, coins)), rel=1e-12, abs=1e-15)


@given(st.floats(1.0, 12.0), st.integers(1, 40))
def test_one_more_coin_takes_what_is_said(ratio, coins):
    heads = raw(kernels.least_heads)(ratio, coins)
    chance = math.comb(coins, heads) / 2**coins if heads <= coins else 0.0
    fall = coins_delta(ratio, coins) - coins_delta(ratio, coins + 1)
    found = raw(kernels.fall)(ratio, coins, heads, chance)
    assert found == pytest.approx(float(fall), rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("first", [0, 1, 7])
@pytest.mark.parametrize("masses", [[1.0], [0.25, 0.5, 0.25], [0.3, 0.0, 0.6, 0.1]])
def test_a_random_number_of_coins(masses, first):
    found = raw(kernels.coins_curve)(RATIOS, first, np.array(masses))
    for ratio, value in zip(RATIOS, found, strict=True):
        truth = sum(p * float(coins_delta(ratio, n)) for n, p in enumerate(masses, first))
        assert value == pytest.approx(truth, rel=1e-12, abs=1e-15)
