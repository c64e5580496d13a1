"""Shuffle by groups: formulas against enumerated views, golden means, batches and their limit."""

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from discreet.errors import CalibrationError, InvalidInputError
from discreet.privacy.accounting import shuffle_curves as kernels
from discreet.privacy.accounting.shuffle_curves import (
    Trials,
    _Curve,
    _finite,
    _limit,
    batch_epsilon,
    check_batch,
    coins_curve,
    group_delta,
    groups_delta,
    groups_mean,
    poisson_curve,
)
from helpers.properties import given, st


def enumerated_view(data, noise, cells, rate, honest):
    """Exact distribution of the histogram over the cells and dummy; only the honest add noise.

    The others send dummies in its place, which is one of the fixed histograms they could add.
    """
    distribution = {(0,) * (cells + 1): 1.0}
    uniform = [(cell, rate / cells) for cell in range(cells)] + [(cells, 1 - rate)]

    def received(distribution, message):
        out = Counter()
        for view, mass in distribution.items():
            for cell, chance in message:
                seen = list(view)
                seen[cell] += 1
                out[tuple(seen)] += mass * chance
        return out

    for user, cell in enumerate(data):
        distribution = received(distribution, [(cell, 1.0)])
        for _ in range(noise):
            distribution = received(distribution, uniform if user < honest else [(cells, 1.0)])
    return distribution


def hockey_stick(one, other, epsilon):
    return sum(max(0.0, p - math.exp(epsilon) * other.get(view, 0.0)) for view, p in one.items())


class Crowd(NamedTuple):
    """Users, each with so many noise messages on cells (with none), of whom so many are honest."""

    users: int
    noise: int
    cells: int
    rate: float
    honest: int


CROWDS = [
    Crowd(users=3, noise=2, cells=3, rate=1.0, honest=3),
    Crowd(users=4, noise=2, cells=3, rate=0.7, honest=4),
    Crowd(users=5, noise=2, cells=3, rate=0.8, honest=3),
    Crowd(users=4, noise=3, cells=4, rate=0.5, honest=4),
    Crowd(users=3, noise=4, cells=2, rate=1.0, honest=3),
    Crowd(users=2, noise=5, cells=3, rate=0.9, honest=1),
]


@pytest.mark.parametrize("crowd", CROWDS, ids=str)
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_delta_of_the_whole_shuffled_view(crowd, epsilon):
    users, noise, cells, rate, honest = crowd
    others = [i % cells for i in range(users - 1)]
    here, there = (enumerated_view([cell, *others], noise, cells, rate, honest) for cell in (0, 1))
    brute = max(hockey_stick(here, there, epsilon), hockey_stick(there, here, epsilon))
    part = Trials(trials=honest * noise, probability=Fraction(rate) / cells)
    assert group_delta(part, epsilon) == pytest.approx(brute, abs=1e-12)


def test_a_user_who_moves_to_none_is_covered():
    """``none`` is a cell like the others: leaving the policy moves one unit as well."""
    here, there = (enumerated_view([cell, 0, 1], 2, 3, 0.9, 3) for cell in (1, 2))
    part = Trials(trials=6, probability=Fraction(0.9) / 3)
    assert group_delta(part, 0.5) == pytest.approx(hockey_stick(here, there, 0.5), abs=1e-12)


def test_two_groups_compose_without_falling_below_the_product_of_views():
    part = Trials(trials=6, probability=Fraction(1, 4), times=2)
    here, there = (enumerated_view([cell, 0, 1], 2, 3, 0.75, 3) for cell in (0, 1))
    pairs = [(p, there.get(view, 0.0)) for view, p in here.items()]
    for epsilon in (0.5, 1.0):
        brute = sum(
            max(0.0, p * s - math.exp(epsilon) * q * t)
            for (p, q), (s, t) in itertools.product(pairs, pairs)
        )
        found = _epsilon_to_delta(part, epsilon)
        assert brute - 1e-12 <= found <= brute * (1 + 2e-3)


def _epsilon_to_delta(part, epsilon):
    """Delta of a batch, through its inverse."""
    low, high = 1e-3, 0.999
    for _ in range(16):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if batch_epsilon([part], middle) > epsilon else (low, middle)
    return high


@pytest.mark.parametrize(
    ("groups", "epsilon", "mean"),
    [
        (11, 1.0, 393.71),
        (11, 0.1, 28_999.0),
        (11, 2.0, 110.62),
        (9, 1.0, 322.5),
        (39, 1.0, 1393.0),
        (12, 1.0, 429.4),
        (10, 1.0, 358.1),
        (40, 1.0, 1428.5),
    ],
)
def test_golden_means(groups, epsilon, mean):
    found = groups_mean(groups, epsilon, 1e-6)
    assert float(found) == pytest.approx(mean, rel=5e-3)
    assert groups_delta(float(found), groups, epsilon) <= 1e-6
    assert groups_delta(0.9995 * float(found), groups, epsilon) > 1e-6


def test_means_are_decimals_of_six_digits():
    found = groups_mean(11, 1.0, 1e-6)
    assert found == Fraction("393.799")
    assert 10**6 % groups_mean(39, 1.0, 1e-6).denominator == 0


@pytest.mark.parametrize("mean", [18.0, 60.5, 393.74])
def test_both_roads_give_one_curve(mean):
    """Formula (1) with Poisson cells, and coins of Poisson number with formula (2)."""
    ratios = np.exp(np.linspace(0.0, 9 * math.sqrt(2 / mean), 23))
    cells = np.arange(0, int(mean + 14 * math.sqrt(mean) + 60))
    coins = np.arange(0, int(2 * mean + 14 * math.sqrt(2 * mean) + 60))
    one = poisson_curve(ratios, 0, stats.poisson.pmf(cells, mean)) / mean
    other = coins_curve(ratios, 0, stats.poisson.pmf(coins, 2 * mean))
    np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-20)


def test_curves_against_the_definition():
    """The mean of (1 - x·N_b/(1 + N_a))+, summed over both cells without any trick."""
    mean, values = 9.0, np.arange(60)
    masses = stats.poisson.pmf(values, mean)
    a, b = np.meshgrid(values, values, indexing="ij")
    for epsilon in (0.0, 0.7, 2.0):
        gain = np.maximum(0.0, 1 - math.exp(epsilon) * b / (1 + a))
        exact = float((masses[:, None] * masses * gain).sum())
        ratio = np.array([math.exp(epsilon)])
        assert poisson_curve(ratio, 0, masses)[0] / mean == pytest.approx(exact, rel=1e-12)
        assert exact <= groups_delta(mean, 1, epsilon) <= exact * 1.001


def test_kernels_are_the_same_uncompiled():
    masses = stats.poisson.pmf(np.arange(30), 6.0)
    ratios = np.array([1.0, 1.5, 4.0])
    for kernel in (poisson_curve, coins_curve):
        np.testing.assert_allclose(
            kernel.py_func(ratios, 0, masses), kernel(ratios, 0, masses), rtol=1e-13
        )


def test_grid_of_a_curve_returns_its_deltas():
    """Connect-the-dots passes through every point of the curve, on both sides of zero."""
    curve = _limit(60.0)
    grid = curve.grid(1)
    losses = grid.losses(curve.step)
    for i in (0, 5, 80, 200):
        epsilon = i * curve.step
        delta = grid.infinite + float(grid.masses @ np.maximum(0.0, -np.expm1(epsilon - losses)))
        assert delta == pytest.approx(curve.deltas[i], rel=1e-9)
        mirrored = grid.infinite + float(
            grid.masses @ np.maximum(0.0, -np.expm1(-epsilon - losses))
        )
        symmetric = -math.expm1(-epsilon) + math.exp(-epsilon) * curve.deltas[i]
        assert mirrored == pytest.approx(symmetric, rel=1e-9)
    assert grid.masses.sum() + grid.infinite == pytest.approx(1.0, abs=1e-12)


BATCHES = [
    # trials and the share of messages that fall into one of two cells
    (590, Fraction(2, 3)),
    (394, Fraction(1)),
    (1000, Fraction(4, 10)),
    (20_000, Fraction(1, 25)),
    (10**6, Fraction(1, 1250)),
    (10**9, Fraction(8, 10**7)),
    (10**13, Fraction(8, 10**11)),
]


@pytest.mark.parametrize(("trials", "both"), BATCHES)
def test_batches_lie_below_their_limit(trials, both):
    part = Trials(trials=trials, probability=both / 2)
    check_batch([part], part.mean)
    limit = _limit(float(part.mean))
    gap = limit.deltas / _finite(part, limit).deltas - 1
    assert gap.min() > (0.1 * float(part.probability / part.mean) if both > 1e-4 else -1e-9)


def test_small_batches_lie_below_their_limit():
    for trials, both in itertools.product((8, 13, 30, 61), (Fraction(1), Fraction(2, 3))):
        part = Trials(trials=trials, probability=both / 2)
        check_batch([part], part.mean)


def test_delta_of_coins_is_not_convex_in_their_number():
    """Why no batch is taken to be covered without `check_batch`."""
    falls = [group_delta(Trials(trials=t, probability=Fraction(1, 2)), 0.0) for t in range(1, 6)]
    assert falls == pytest.approx([1 / 2, 1 / 2, 3 / 8, 3 / 8, 5 / 16])


def test_too_little_noise_is_refused():
    part = Trials(trials=20_000, probability=Fraction("393.73") / 20_000)
    with pytest.raises(CalibrationError, match=r"mean 393\.74.*got 393\.73"):
        check_batch([part], Fraction("393.74"))


def test_a_batch_above_its_limit_is_refused(monkeypatch):
    """Were a curve ever above the limit's, the batch would not be released."""
    part = Trials(trials=777, probability=Fraction(1, 10))
    limit = _limit(77.7)
    low = _Curve(limit.step, limit.deltas * 0.99, limit.outside)
    monkeypatch.setattr("discreet.privacy.accounting.shuffle_curves._limit", lambda mean: low)
    with pytest.raises(CalibrationError, match="777 noise messages"):
        check_batch([part], part.mean)


def test_the_mean_spends_all_of_delta_and_batches_need_no_more():
    mean = groups_mean(11, 1.0, 1e-6)
    assert 0.998e-6 < groups_delta(float(mean), 11, 1.0) <= 1e-6
    part = Trials(trials=20_000, probability=mean / 20_000, times=11)
    assert batch_epsilon([part], 1e-6) <= 1.0
    assert batch_epsilon([part], 1e-6) == pytest.approx(1.0, abs=2e-4)


def test_large_epsilons_need_something_in_every_cell():
    """An empty cell betrays its user at every epsilon: the mean never falls below ln(k/delta)."""
    found = groups_mean(11, 700.0, 1e-6)
    assert math.log(11e6) <= float(found) <= math.log(11e6) * 1.001


def test_small_epsilons_follow_the_gaussian_distribution():
    found = float(groups_mean(11, 0.01, 1e-6))
    assert found == pytest.approx(2_064_750, rel=3e-4)
    with pytest.raises(CalibrationError, match="larger epsilon"):
        groups_mean(11, 1e-5, 1e-6)


def test_more_groups_smaller_deltas_and_epsilons_need_more():
    base = groups_mean(4, 1.0, 1e-6)
    assert groups_mean(5, 1.0, 1e-6) > base
    assert groups_mean(4, 0.9, 1e-6) > base
    assert groups_mean(4, 1.0, 1e-7) > base


@pytest.mark.parametrize(
    ("groups", "epsilon", "delta", "error"),
    [
        (0, 1.0, 1e-6, InvalidInputError),
        (11, 0.0, 1e-6, InvalidInputError),
        (11, 1.0, 0.0, CalibrationError),
        (11, 1.0, 1.0, InvalidInputError),
    ],
)
def test_bad_requests_are_refused(groups, epsilon, delta, error):
    with pytest.raises(error):
        groups_mean(groups, epsilon, delta)
    with pytest.raises(InvalidInputError, match="epsilon >= 0"):
        group_delta(Trials(trials=3, probability=Fraction(1, 3)), -0.1)


# --- Compiled curves of groups, against sums of fractions over all outcomes


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
