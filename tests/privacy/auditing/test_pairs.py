"""What an attacker sees of one counter, against the two distributions themselves."""

import math

import numpy as np
import pytest

from discreet.errors import InvalidInputError
from discreet.privacy.auditing import losses
from discreet.privacy.auditing.losses import exact_delta
from helpers.curves import binomial_law, gaussian_law, growth_of, moved, stick, table_law
from helpers.properties import given, st

pytestmark = pytest.mark.core
WEIGHTS = st.lists(st.integers(0, 20), min_size=2, max_size=7).filter(any)


def laplace_law(scale, reach=400):
    weights = {x: math.exp(-abs(x) / scale) for x in range(-reach, reach + 1)}
    total = math.fsum(weights.values())
    return {x: w / total for x, w in weights.items()}


def agrees(pair, law, shift, *, rel=1e-9, both=True):
    """Masses under P and under Q, and delta at several epsilons."""
    there = moved(law, shift)
    finite = [x for x in law if there.get(x)]
    assert pair.masses.sum() == pytest.approx(float(sum(law[x] for x in finite)), rel=rel)
    if both:
        under = float(sum(there[x] for x in finite))
        assert (pair.masses * np.exp(-pair.losses)).sum() == pytest.approx(under, rel=rel)
    for epsilon in (0.0, 0.3, 1.0, 2.5):
        truth = float(stick(law, there, growth_of(epsilon)))
        assert exact_delta([(pair, 1)], epsilon) == pytest.approx(truth, rel=1e-7, abs=1e-14)


@pytest.mark.parametrize("shift", [1, 2, 3])
@pytest.mark.parametrize("scale", [0.5, 2.0, 9.0])
def test_laplace(scale, shift):
    pair = losses.laplace(scale, shift)
    agrees(pair, laplace_law(scale), shift)
    assert pair.worst == pytest.approx(shift / scale)
    assert pair.losses.min() == pytest.approx(-shift / scale)


@pytest.mark.parametrize("shift", [1, 2, 5])
@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.0])
def test_gaussian(sigma, shift):
    pair = losses.gaussian(sigma, shift)
    agrees(pair, gaussian_law(sigma, digits=30), shift, both=False)
    assert pair.worst == math.inf  # no pure epsilon, though the listed losses are finite
    assert pair.masses.sum() == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("shift", [-3, -1, 1, 2])
@pytest.mark.parametrize(("trials", "probability"), [(1, 0.5), (8, 0.5), (12, 0.125), (5, 0.75)])
def test_binomial(trials, probability, shift):
    pair = losses.binomial(trials, probability, shift)
    law = binomial_law(trials, probability)
    if abs(shift) > trials:
        assert (pair.losses.size, pair.unseen) == (0, pytest.approx(1))
        return
    agrees(pair, law, shift)
    unseen = sum(p for x, p in law.items() if x not in moved(law, shift))
    assert pair.unseen == pytest.approx(float(unseen))
    assert pair.worst == math.inf


def test_far_tails_of_a_long_binomial_count_as_unseen():
    pair = losses.binomial(10**8, 0.5, 1)
    assert pair.losses.size < 200_000
    assert 0 < pair.unseen < 1e-30
    assert pair.masses.sum() == pytest.approx(1, rel=1e-6)


@given(WEIGHTS, st.sampled_from([-2, -1, 1, 2]))
def test_a_table(weights, shift):
    law = {x: p for x, p in table_law(weights).items() if p}
    if abs(shift) >= len(weights):
        return
    pair = losses.table(np.array(weights) / sum(weights), shift)
    there = moved(law, shift)
    assert pair.unseen == pytest.approx(float(sum(p for x, p in law.items() if x not in there)))
    if pair.losses.size:
        agrees(pair, law, shift)


@given(WEIGHTS, st.randoms(use_true_random=False))
def test_any_two_distributions(weights, random):
    rival = weights.copy()
    random.shuffle(rival)
    first, second = (
        {bytes([x]): w / sum(ws) for x, w in enumerate(ws) if w} for ws in (weights, rival)
    )
    pair = losses.outcomes(first, second)
    for epsilon in (0.0, 0.5, 2.0):
        truth = stick(first, second, math.exp(epsilon))
        assert exact_delta([(pair, 1)], epsilon) == pytest.approx(truth, abs=1e-12)


def test_an_outcome_of_no_probability_is_impossible():
    pair = losses.outcomes({b"a": 0.5, b"b": 0.5}, {b"a": 1.0, b"b": 0.0})
    assert pair.unseen == 0.5
    assert pair.losses.tolist() == [math.log(0.5)]


@pytest.mark.parametrize("maker", [losses.laplace, losses.gaussian])
def test_losses_on_a_lattice_are_where_it_says(maker):
    pair = maker(0.3)
    steps = (pair.losses - pair.origin) / pair.unit
    assert np.allclose(steps, np.arange(pair.losses.size), atol=1e-9)


def test_the_largest_loss():
    plain = losses.Pair(np.array([-1.0, 2.0]), np.array([0.5, 0.5]))
    assert plain.worst == 2.0
    assert losses.Pair(plain.losses, plain.masses, unseen=1e-300).worst == math.inf
    assert losses.Pair(plain.losses, plain.masses, bounded=False).worst == math.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: losses.laplace(0.0), "scale > 0"),
        (lambda: losses.laplace(1.0, 0), "shift"),
        (lambda: losses.gaussian(-1.0), "sigma > 0"),
        (lambda: losses.gaussian(1.0, -1), "shift"),
        (lambda: losses.binomial(0, 0.5, 1), "trials"),
        (lambda: losses.binomial(3, 1.5, 1), "probability"),
    ],
)
def test_what_is_no_noise_is_refused_by_name(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()
