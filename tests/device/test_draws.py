"""Draws: which bytes are read, what they become, and that nothing about them is biased."""

import math
import random
import struct
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.device import ByteDraws, DeviceError
from helpers.devices import Bytes

pytestmark = pytest.mark.core


class Given:
    """Prescribed bytes, all of which must be read."""

    def __init__(self, *words, more=b""):
        self.left = struct.pack(f">{len(words)}I", *words) + more

    def __call__(self, length):
        drawn, self.left = self.left[:length], self.left[length:]
        return drawn


def test_words_above_the_last_multiple_are_rejected_and_drawn_again():
    limit = 2**32 - 2**32 % 3
    source = Given(5, limit, limit - 1, 7)
    assert ByteDraws(source).below(3, 3) == [5 % 3, 2, 7 % 3]
    assert source.left == b""
    source = Given(limit, 2**32 - 1, limit, 1)
    assert ByteDraws(source).below(3, 1) == [1] and source.left == b""


def test_a_bound_that_divides_rejects_nothing():
    source = Given(2**32 - 1, 0)
    assert ByteDraws(source).below(2**20, 2) == [2**20 - 1, 0]
    assert ByteDraws(Given(9)).below(1, 1) == [0]


def test_coins_come_before_places_and_places_are_drawn_for_dummies_too():
    source = Given(99, 100, 0, 11, 12, 13)
    assert ByteDraws(source).noise(5, 100, 3) == [1, 5, 3]
    assert source.left == b""


@given(st.floats(0, 1))
def test_a_reward_is_compared_exactly_with_53_bits(reward):
    edge = math.ceil(Fraction(reward) * 2**53)
    for coin in {max(0, edge - 1), min(edge, 2**53 - 1), 0, 2**53 - 1}:
        block = (coin << 3 | 5).to_bytes(7)
        assert ByteDraws(lambda n, block=block: block[:n]).rewards([reward]) == [int(coin < edge)]


def test_a_reward_of_zero_or_one_is_never_changed_and_takes_its_bytes_all_the_same():
    source = Bytes(1)
    assert ByteDraws(source).rewards([0.0, 1.0, 0, 1] * 50) == [0, 1, 0, 1] * 50
    assert source.asked == [7 * 200]


@given(st.integers(1, 2**20 - 1), st.integers(0, 2**20 - 1))
def test_a_bit_is_one_if_the_bytes_are_below_the_fraction(numerator, drawn):
    """20 bits of both, as digits in base 256."""
    digits = (drawn << 4).to_bytes(3)
    read = []

    def source(length):
        read.append(length)
        at = len(read) - 1
        return digits[at : at + 1]

    assert ByteDraws(source).bits(numerator, 2**20, 1) == [int(drawn < numerator)]
    assert set(read) == {1} and len(read) <= 3


def test_bits_have_exactly_their_probability():
    """All 2^16 pairs of bytes, each as likely as any other."""
    numerator, ones = 12345, 0
    for first in range(256):
        for second in range(256):
            left = [bytes([first]), bytes([second])]
            ones += ByteDraws(lambda _, left=left: left.pop(0)).bits(numerator, 2**16, 1)[0]
    assert ones == numerator


def test_undecided_bits_are_drawn_again_in_order():
    blocks = [bytes([0x40, 0x3F, 0x40, 0x41]), bytes([0x7F, 0x80])]
    source = iter(blocks)
    bits = ByteDraws(lambda n: next(source)[:n]).bits(0x4080, 2**16, 4)
    assert bits == [1, 1, 0, 0]  # 0x407f < 0x4080, 0x3f.., 0x4080 is not below, 0x41..


def chi_square(counts, expected):
    return sum((n - m) ** 2 / m for n, m in zip(counts, expected, strict=True))


@pytest.mark.parametrize("bound", [2, 7, 97])
def test_uniform_draws_are_uniform(bound):
    drawn = ByteDraws(Bytes(bound)).below(bound, 50_000)
    counts = [drawn.count(value) for value in range(bound)]
    statistic = chi_square(counts, [50_000 / bound] * bound)
    # Wilson and Hilferty: the cube root of a chi-square is almost normal; four deviations.
    free = bound - 1
    deviations = ((statistic / free) ** (1 / 3) - (1 - 2 / (9 * free))) / math.sqrt(2 / (9 * free))
    assert abs(deviations) < 4


def test_noise_is_uniform_where_it_is_no_dummy():
    weight, runs = 3 * 2**30, 40_000
    drawn = ByteDraws(Bytes(3)).noise(4, weight, runs)
    expected = [runs * 3 / 16] * 4 + [runs / 4]
    assert chi_square([drawn.count(cell) for cell in range(5)], expected) < 25  # 4 degrees


@pytest.mark.parametrize("source", [lambda n: bytes(n + 1), lambda n: b"", lambda n: [0] * n])
def test_a_source_that_gives_something_else_is_refused(source):
    for draw in (
        lambda draws: draws.below(3, 2),
        lambda draws: draws.rewards([0.5]),
        lambda draws: draws.bits(1, 2, 3),
    ):
        with pytest.raises(DeviceError, match="badRandomness"):
            draw(ByteDraws(source))


def test_the_system_is_the_source_unless_said_otherwise():
    assert ByteDraws().below(2**32, 8) != ByteDraws().below(2**32, 8)
    assert random.Random(0).randbytes(4) == Bytes(0)(4)
