"""Noise that splits over users: its law, its exact sum, and how much less of it suffices."""

import math

import numpy as np
import pytest

from discreet.privacy.accounting.closed_forms import laplace_variance
from discreet.privacy.accounting.distributions import binomial_pmf, discrete_laplace_pmf
from discreet.privacy.accounting.losses import delta_of_moves
from discreet.privacy.accounting.search import (
    central_std,
    jump_design,
    jump_weights,
    jumps_pmf,
    noise_bits,
    weights_variance,
)


@pytest.mark.parametrize("users", [1, 3, 1000, 10**6])
def test_the_parts_of_laplace_noise_add_up_to_laplace_noise(users):
    scale = 1.2
    weights = jump_weights(1.0, laplace_variance(scale), users, 48)
    total, ideal = jumps_pmf(weights, users), discrete_laplace_pmf(scale)
    for value in range(-15, 16):
        drawn = total.probabilities[value - total.first]
        assert drawn == pytest.approx(ideal.probabilities[value - ideal.first], rel=1e-6)


def test_sums_by_squaring_are_exact():
    """Against independent bits, whose sum is known, and against plain convolution."""
    total = jumps_pmf((1, 2, 1), 500)  # two fair bits each
    fair = binomial_pmf(1000, 0.5)
    centre = fair.log_probabilities[500 - fair.first - 100 : 500 - fair.first + 101]
    mine = total.log_probabilities[-total.first - 100 : -total.first + 101]
    assert np.allclose(mine, centre, rtol=1e-11)
    weights = jump_weights(2.0, 3.0, 7, 4)
    plain = np.ones(1)
    for _ in range(7):
        plain = np.convolve(plain, np.array(weights) / sum(weights))
    short = jumps_pmf(weights, 7)
    assert np.allclose(short.probabilities, plain[28 + short.first : 29 - short.first], rtol=1e-12)


def test_what_the_window_leaves_out_is_charged():
    weights = jump_weights(1.0, 3.0, 1000, 12)
    narrow, wide = jumps_pmf(weights, 1000, 1e-6), jumps_pmf(weights, 1000, 1e-25)
    assert narrow.probabilities.size < wide.probabilities.size
    lost = 1 - math.fsum(narrow.probabilities)
    assert 0 < lost <= narrow.outside


@pytest.mark.core
@pytest.mark.parametrize(
    ("horizon", "epsilon", "before", "now"),
    [
        (2, 10, 3.950, 1.66),
        (6, 10, 4.087, 3.23),
        (1, 10, 3.862, 0.78),
        (1, 1, 10.476, 8.7),
        (2, 5, 3.977, 3.24),
        (6, 20, 4.087, 1.83),
    ],
)
def test_shuffle_noise_is_within_five_per_cent_of_the_best_central_law(
    horizon, epsilon, before, now
):
    moves, users = 3 * horizon, 20_000
    each = noise_bits(users, moves, moves, epsilon, 1e-6)
    assert each.weights
    std = math.sqrt(each.variance(users))
    assert std <= min(now, 1.05 * central_std(2 * moves, epsilon, 1e-6)) < before
    assert delta_of_moves(each.pmf(users), moves, moves, epsilon) <= 1e-6
    # Fails if noise is halved.
    half = jump_weights(1.0, each.variance(users) / 2, users, each.bits // 2)
    assert delta_of_moves(jumps_pmf(half, users), moves, moves, epsilon) > 1e-6


@pytest.mark.parametrize("users", [1, 2, 30, 1000, 10**7])
def test_every_batch_keeps_the_promise(users):
    each = noise_bits(users, 6, 6, 10.0, 1e-6)
    assert delta_of_moves(each.pmf(users), 6, 6, 10.0) <= 1e-6
    assert each.variance(users) < 3.96**2
    if each.weights:
        assert each.weights == each.weights[::-1]  # centred: the mean is half of the bits
        assert len(each.weights) == each.bits + 1
        assert each.extremes[0] == each.weights[-1] / sum(each.weights)


def test_moderate_epsilons_keep_their_bits():
    for moves, epsilon in ((6, 1), (18, 1), (18, 2), (60, 1)):
        assert not noise_bits(20_000, moves, moves, epsilon, 1e-6).weights


def test_few_messages_are_preferred():
    _, _, reach = jump_design(18, 18, 10.0, 1e-6)
    assert reach == 1  # two noise bits: a rare one and a rare zero
    assert jump_design(6, 6, 10.0, 1e-6)[2] <= 4


def test_variance_of_weights():
    assert weights_variance((1, 0, 1)) == 1.0
    assert weights_variance((1, 2, 1)) == 0.5
