"""Exact privacy of independent observations: pairs, and their composition."""

import itertools
import math

import numpy as np
import pytest

from discreet.auditing import pairs
from discreet.auditing.pairs import exact_delta, exact_epsilon
from discreet.errors import InvalidInputError
from discreet.privacy.accounting.closed_forms import gaussian_delta, gaussian_epsilon
from helpers.curves import exact_binomial, exact_gaussian, exact_table, growth_of, moved, stick
from helpers.properties import given, st

pytestmark = pytest.mark.core
WEIGHTS = st.lists(st.integers(0, 20), min_size=2, max_size=7).filter(any)


def laplace_noise(scale, reach=400):
    weights = {x: math.exp(-abs(x) / scale) for x in range(-reach, reach + 1)}
    total = math.fsum(weights.values())
    return {x: w / total for x, w in weights.items()}


def agrees(pair, noise, shift, *, rel=1e-9, both=True):
    """Masses under P and under Q, and delta at several epsilons."""
    there = moved(noise, shift)
    finite = [x for x in noise if there.get(x)]
    assert pair.masses.sum() == pytest.approx(float(sum(noise[x] for x in finite)), rel=rel)
    if both:
        under = float(sum(there[x] for x in finite))
        assert (pair.masses * np.exp(-pair.losses)).sum() == pytest.approx(under, rel=rel)
    for epsilon in (0.0, 0.3, 1.0, 2.5):
        truth = float(stick(noise, there, growth_of(epsilon)))
        assert exact_delta([(pair, 1)], epsilon) == pytest.approx(truth, rel=1e-7, abs=1e-14)


@pytest.mark.parametrize("shift", [1, 2, 3])
@pytest.mark.parametrize("scale", [0.5, 2.0, 9.0])
def test_laplace(scale, shift):
    pair = pairs.laplace(scale, shift)
    agrees(pair, laplace_noise(scale), shift)
    assert pair.worst == pytest.approx(shift / scale)
    assert pair.losses.min() == pytest.approx(-shift / scale)


@pytest.mark.parametrize("shift", [1, 2, 5])
@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.0])
def test_gaussian(sigma, shift):
    pair = pairs.gaussian(sigma, shift)
    agrees(pair, exact_gaussian(sigma, digits=30), shift, both=False)
    assert pair.worst == math.inf  # no pure epsilon, though the listed losses are finite
    assert pair.masses.sum() == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("shift", [-3, -1, 1, 2])
@pytest.mark.parametrize(("trials", "probability"), [(1, 0.5), (8, 0.5), (12, 0.125), (5, 0.75)])
def test_binomial(trials, probability, shift):
    pair = pairs.binomial(trials, probability, shift)
    noise = exact_binomial(trials, probability)
    if abs(shift) > trials:
        assert (pair.losses.size, pair.unseen) == (0, pytest.approx(1))
        return
    agrees(pair, noise, shift)
    unseen = sum(p for x, p in noise.items() if x not in moved(noise, shift))
    assert pair.unseen == pytest.approx(float(unseen))
    assert pair.worst == math.inf


def test_far_tails_of_a_long_binomial_count_as_unseen():
    pair = pairs.binomial(10**8, 0.5, 1)
    assert pair.losses.size < 200_000
    assert 0 < pair.unseen < 1e-30
    assert pair.masses.sum() == pytest.approx(1, rel=1e-6)


@given(WEIGHTS, st.sampled_from([-2, -1, 1, 2]))
def test_a_table(weights, shift):
    noise = {x: p for x, p in exact_table(weights).items() if p}
    if abs(shift) >= len(weights):
        return
    pair = pairs.table(np.array(weights) / sum(weights), shift)
    there = moved(noise, shift)
    assert pair.unseen == pytest.approx(float(sum(p for x, p in noise.items() if x not in there)))
    if pair.losses.size:
        agrees(pair, noise, shift)


@given(WEIGHTS, st.randoms(use_true_random=False))
def test_any_two_distributions(weights, random):
    rival = weights.copy()
    random.shuffle(rival)
    first, second = (
        {bytes([x]): w / sum(ws) for x, w in enumerate(ws) if w} for ws in (weights, rival)
    )
    pair = pairs.outcomes(first, second)
    for epsilon in (0.0, 0.5, 2.0):
        truth = stick(first, second, math.exp(epsilon))
        assert exact_delta([(pair, 1)], epsilon) == pytest.approx(truth, abs=1e-12)


def test_an_outcome_of_no_probability_is_impossible():
    pair = pairs.outcomes({b"a": 0.5, b"b": 0.5}, {b"a": 1.0, b"b": 0.0})
    assert pair.unseen == 0.5
    assert pair.losses.tolist() == [math.log(0.5)]


def test_the_largest_loss():
    plain = pairs.Pair(np.array([-1.0, 2.0]), np.array([0.5, 0.5]))
    assert plain.worst == 2.0
    assert pairs.Pair(plain.losses, plain.masses, unseen=1e-300).worst == math.inf
    assert pairs.Pair(plain.losses, plain.masses, bounded=False).worst == math.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pairs.laplace(0.0), "scale > 0"),
        (lambda: pairs.laplace(1.0, 0), "shift"),
        (lambda: pairs.gaussian(-1.0), "sigma > 0"),
        (lambda: pairs.gaussian(1.0, -1), "shift"),
        (lambda: pairs.binomial(0, 0.5, 1), "trials"),
        (lambda: pairs.binomial(3, 1.5, 1), "probability"),
    ],
)
def test_what_is_no_noise_is_refused_by_name(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()


# The audit's arithmetic against an oracle that enumerates, and against closed forms.


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
        (pairs.binomial(trials, probability, 1), 2),
        (pairs.binomial(trials, probability, -1), 2),
    ]
    expected = enumerate_delta([noise] * 4, (1, 1, -1, -1), epsilon)
    assert exact_delta(views, epsilon) == pytest.approx(expected, rel=1e-5)
    assert exact_delta(views, epsilon) >= expected * (1 - 1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.5])
def test_laplace_matches_enumeration(epsilon):
    views = [(pairs.laplace(0.8), 2), (pairs.laplace(0.8, 2), 1)]
    expected = enumerate_delta([laplace(0.8, 20)] * 3, (1, -1, 2), epsilon)
    assert exact_delta(views, epsilon) == pytest.approx(expected, rel=1e-6, abs=1e-10)


@pytest.mark.parametrize("shift", [1, 2])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0])
def test_gaussian_matches_enumeration(shift, epsilon):
    views = [(pairs.gaussian(1.3, shift), 2)]
    expected = enumerate_delta([gaussian(1.3, 20)] * 2, (shift, -shift), epsilon)
    assert exact_delta(views, epsilon) == pytest.approx(expected, rel=1e-9)


def test_piled_laplace_losses_are_listed_with_their_probabilities():
    pair = pairs.laplace(2.0, 3)
    noise = laplace(2.0, 200)
    for loss, mass in zip(pair.losses, pair.masses, strict=True):
        expected = sum(p for x, p in noise.items() if math.isclose((abs(x - 3) - abs(x)) / 2, loss))
        assert mass == pytest.approx(expected, rel=1e-12)


def test_tables_compose():
    noise = {-1: 0.25, 0: 0.5, 1: 0.25}
    views = [(pairs.table(np.array([0.25, 0.5, 0.25]), 1), 2)]
    for epsilon in (0.0, 0.4, 1.0):
        expected = enumerate_delta([noise] * 2, (1, 1), epsilon)
        assert exact_delta(views, epsilon) == pytest.approx(expected, rel=1e-6)


def test_discrete_gaussian_tends_to_the_analytic_curve():
    exact = exact_epsilon([(pairs.gaussian(217.8), 36)], 1e-6)
    assert exact == pytest.approx(gaussian_epsilon(217.8, 6.0, 1e-6), rel=1e-5)
    assert gaussian_delta(217.8, 6.0, exact) == pytest.approx(1e-6, rel=1e-4)


def test_pure_guarantees_need_no_delta():
    views = [(pairs.laplace(36.0), 36)]
    assert exact_epsilon(views, 0.0) == 1.0
    assert exact_epsilon(views, 1e-6) < 1.0
    assert exact_epsilon([(pairs.gaussian(5.0), 1)], 0.0) == math.inf


def test_outcomes_that_only_one_neighbour_can_produce():
    pair = pairs.outcomes({b"a": 0.9, b"b": 0.1}, {b"a": 1.0})
    assert pair.unseen == pytest.approx(0.1)
    assert exact_epsilon([(pair, 1)], 0.05) == math.inf
    assert exact_delta([(pair, 1)], 5.0) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("horizon", "bits", "epsilon"), [(2, 859, 1.0), (6, 2574, 1.0), (6, 718, 2.0), (20, 8578, 1.0)]
)
def test_golden_shuffle_bits(horizon, bits, epsilon):
    moves = 3 * horizon
    views = [(pairs.binomial(bits, 0.5, 1), moves), (pairs.binomial(bits, 0.5, -1), moves)]
    assert epsilon * 0.998 < exact_epsilon(views, 1e-6) <= epsilon


def test_variance_matching_alone_is_not_enough_for_rare_bits():
    """p with n·p(1-p) = N/4 is lopsided: the same variance delivers less."""
    p = (1 - math.sqrt(1 - 859 / 8590)) / 2
    views = [(pairs.binomial(8590, p, 1), 6), (pairs.binomial(8590, p, -1), 6)]
    assert 1.0015 < exact_epsilon(views, 1e-6) < 1.003
