"""The integer methods of both samplers, in all branches: exact distributions, no statistics."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.privacy.sampling import samplers
from discreet.privacy.sampling.samplers import (
    SecureSampler,
    SimulationSampler,
    _exact_binomial,
    _integers,
    _ones_among,
    _summed,
    check_weights,
)
from helpers.curves import exact_binomial, exact_gaussian
from helpers.properties import given, st

pytestmark = pytest.mark.core


class Scripted:
    """Stands for `_ones_among`: every number of ones among fair bits, one script at a time."""

    def __init__(self, script):
        self.script, self.taken, self.sizes = list(script), [], []
        self.probability = Fraction(1)

    def __call__(self, bits):
        place = len(self.taken)
        ones = self.script[place] if place < len(self.script) else 0
        self.taken.append(ones)
        self.sizes.append(bits)
        self.probability *= Fraction(math.comb(bits, ones), 2**bits)
        return ones


def visited(run):
    """The exact distribution of ``run(ones_among)`` over all fair bits."""
    distribution, script = {}, []
    while True:
        drawn = Scripted(script)
        value = run(drawn)
        distribution[value] = distribution.get(value, 0) + drawn.probability
        script = drawn.taken
        while script and script[-1] == drawn.sizes[len(script) - 1]:
            script.pop()
        if not script:
            return distribution
        script[-1] += 1


@pytest.mark.parametrize("trials", [0, 1, 2, 4])
@pytest.mark.parametrize("probability", [0.0, 0.5, 0.25, 0.375, 0.8125, 1.0])
def test_bits_have_exactly_their_probability(monkeypatch, trials, probability):
    """Digit by digit: the distribution of the real code is the binomial, as a fraction."""

    def run(ones_among):
        monkeypatch.setattr(samplers, "_ones_among", ones_among)
        return _exact_binomial(trials, probability)

    truth = {x: p for x, p in exact_binomial(trials, Fraction(probability)).items() if p}
    assert visited(run) == truth


def test_many_trials_are_drawn_in_pieces(monkeypatch):
    monkeypatch.setattr(samplers, "_CHUNK", 3)
    seen = []

    def all_ones(bits):
        seen.append(bits)
        return bits

    monkeypatch.setattr(samplers, "_ones_among", all_ones)
    assert _exact_binomial(8, 0.5) == 0  # a one means: not below the digit
    assert seen == [3, 3, 2]


@pytest.mark.parametrize("bits", [1, 3, 8, 9])
def test_ones_among_fair_bits_are_counted_exactly(monkeypatch, bits):
    """All bytes that the operating system may hand out; what is beyond the last bit is ignored."""
    size = (bits + 7) // 8
    counted = dict.fromkeys(range(bits + 1), 0)
    for number in range(1 << 8 * size):
        monkeypatch.setattr(samplers.os, "urandom", lambda n, k=number: k.to_bytes(n, "little"))
        counted[_ones_among(bits)] += 1
    whole = 1 << 8 * size
    assert {x: Fraction(c, whole) for x, c in counted.items()} == exact_binomial(
        bits, Fraction(1, 2)
    )


@pytest.mark.parametrize("high", [1, 2, 3, 5, 8, 11])
def test_integers_below_are_uniform(monkeypatch, high):
    """Every masked word once: each result equally often, what is too large is rejected."""
    mask = 1 << max(0, (high - 1).bit_length())
    words = np.arange(mask, dtype=np.uint64)[::-1] + np.uint64(2**40)  # high bits do not matter
    monkeypatch.setattr(samplers, "_words", lambda count: np.tile(words, count)[: count * mask])
    drawn = _integers(high, high)
    assert sorted(drawn.tolist()) == list(range(high))


def test_rejected_words_are_replaced(monkeypatch):
    rounds = iter([np.full(12, 7, np.uint64), np.arange(12, dtype=np.uint64)])
    monkeypatch.setattr(samplers, "_words", lambda count: next(rounds)[:count])
    assert _integers(5, 2).tolist() == [0, 1]


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6).filter(any))
def test_tables_have_exactly_their_weights(weights):
    """Every integer below the sum becomes an index, as often as it weighs, in both samplers."""
    total = sum(weights)

    class Every:
        def integers(self, low, high, size):
            assert (low, high) == (0, total)
            return np.arange(total)

    simulated = SimulationSampler(Every()).table(np.array(weights), total)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samplers, "_integers", lambda high, size: np.arange(high))
        secure = object.__new__(SecureSampler).table(np.array(weights), total)
    for drawn in (simulated, secure):
        assert np.bincount(drawn, minlength=len(weights)).tolist() == weights


def test_equal_keys_are_drawn_again(monkeypatch):
    rounds = iter([np.array([5, 5, 1], np.uint64), np.array([9, 2, 4], np.uint64)])
    monkeypatch.setattr(samplers, "_words", lambda count: next(rounds))
    assert object.__new__(SecureSampler).permutation(3).tolist() == [1, 2, 0]


def test_every_order_of_keys_is_an_order(monkeypatch):
    seen = []
    for keys in itertools.permutations((3, 10, 2**63)):
        monkeypatch.setattr(samplers, "_words", lambda count, k=keys: np.array(k, np.uint64))
        seen.append(tuple(object.__new__(SecureSampler).permutation(3).tolist()))
    assert sorted(seen) == sorted(itertools.permutations(range(3)))


@pytest.mark.parametrize("size", [3, (2, 2), ()])
@pytest.mark.parametrize("users", [0, 1, 7])
def test_sums_over_users_hold_everybody_once(monkeypatch, users, size):
    monkeypatch.setattr(samplers, "_CHUNK", 8)
    asked = []

    def draw(shape):
        asked.append(shape[0])
        return np.ones(shape, np.int64)

    total = _summed(users, size, draw)
    assert (total == users).all()
    assert total.shape == ((size,) if isinstance(size, int) else size)
    assert sum(asked) == users
    assert not asked or max(asked) * math.prod(total.shape) <= 8


@pytest.mark.parametrize("probability", [2.0**-60, 0.1, 1 - 2.0**-53])
def test_probabilities_are_read_to_their_last_digit(monkeypatch, probability):
    """With all fair bits zero a trial succeeds at the first one of the probability's digits."""
    sizes = []
    monkeypatch.setattr(samplers, "_ones_among", lambda bits: sizes.append(bits) or bits)
    assert _exact_binomial(1, probability) == 0
    # All ones: never below, and undecided for as long as the digits are ones.
    digits = Fraction(probability)
    leading = 0
    while digits >= Fraction(1, 2):
        leading += 1
        digits = 2 * digits - 1
    assert len(sizes) == leading + (1 if digits else 0)


# --- rejection of rounded normals ----------------------------------------------------------------


@pytest.mark.parametrize("sigma", [1.0, 1.5, 3.7, 100.0, 1e6])
def test_the_proposal_of_gaussians_covers_the_target(sigma):
    """No ratio of target to proposal exceeds its bound: nothing is accepted too rarely."""
    wide = math.sqrt(sigma * sigma + sigma / 2)
    normal = np.linspace(-12, 12, 400_001)
    y = np.rint(wide * normal)
    excess = 0.25 / sigma - 0.5 * (normal**2 - (y / sigma) ** 2)
    assert excess.min() >= -1e-9 / sigma
    assert excess.min() < 0.1 / sigma + 1e-3  # and the bound is nearly reached


@pytest.mark.parametrize("sigma", [1.0, 2.0])
def test_accepted_proposals_have_the_distribution_of_the_target(sigma):
    """The density of proposals times their acceptance, integrated over each rounding cell."""
    wide = math.sqrt(sigma * sigma + sigma / 2)
    distribution = {}
    for y in range(-20, 21):
        x = np.linspace(y - 0.5, y + 0.5, 20_001)
        normal = x / wide
        accept = np.exp(-(0.25 / sigma - 0.5 * (normal**2 - (y / sigma) ** 2)))
        distribution[y] = float(np.trapezoid(np.exp(-(normal**2) / 2) * accept, x))
    total = sum(distribution.values())
    truth = exact_gaussian(sigma)
    for y, mass in distribution.items():
        assert mass / total == pytest.approx(float(truth[y]), abs=1e-12)


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.0])
def test_floors_of_exponentials_are_geometric(scale):
    """P(floor(scale·E) = k) = e^(-k/scale)·(1 - e^(-1/scale)): the difference of two is Laplace."""
    ratio = math.exp(-1 / scale)
    geometric = {k: ratio**k * (1 - ratio) for k in range(800)}
    for x in range(-5, 6):
        mass = math.fsum(
            p * geometric[k + abs(x)] for k, p in geometric.items() if k + abs(x) in geometric
        )
        assert mass == pytest.approx(math.tanh(0.5 / scale) * math.exp(-abs(x) / scale), rel=1e-9)


@pytest.mark.parametrize("weights", [[2**61, 2**61], [2**62 - 1, 1]])
def test_weights_that_are_too_many_are_refused(weights):
    with pytest.raises(ValueError, match=r"between 1 and 2\^62"):
        check_weights(np.array(weights))
    assert check_weights(np.array([2**61, 1])).sum() == 2**61 + 1
