"""The printed shuffle mechanisms, by calculation and by attack."""

import math

import numpy as np
import pytest

from discreet.mdp.shape import Shape
from discreet.privacy.calibration.search import NoiseBits, noise_bits
from discreet.privacy.errata import (
    integer_messages_delta,
    printed_shuffle,
    printed_total_beta,
    whole_vectors_delta,
)


@pytest.mark.core
def test_integer_messages_at_the_papers_own_size():
    printed = printed_shuffle(Shape(states=4, actions=2, horizon=2), 1, 1e-6)
    nobody, everybody = integer_messages_delta(printed.bits(597_240))
    assert nobody == pytest.approx(0.05, rel=1e-3)
    assert everybody == pytest.approx(0.95, rel=1e-3)


def test_integer_messages_are_caught_in_the_act():
    """Simulate the printed integers: the event that betrays the user has the computed frequency."""
    rng = np.random.default_rng(0)
    users, each = 50, NoiseBits(2, 0.3)
    betrayed = 0
    for _ in range(4000):
        z = rng.binomial(each.bits, each.probability, users)
        z[0] += 1  # the only user with the bit
        betrayed += (z == each.bits + 1).any()
    low, _ = integer_messages_delta(each)
    assert abs(betrayed / 4000 - low) < 6 * math.sqrt(low / 4000)


def test_whole_vectors_link_the_cells_of_one_user():
    each = noise_bits(1000, 18, 18, 1, 1e-6)
    assert whole_vectors_delta(each, 6) == pytest.approx(0.93, abs=0.01)
    assert whole_vectors_delta(each, 18) > 0.999
    assert whole_vectors_delta(each, 1) < whole_vectors_delta(each, 2)


def test_printed_beta_adds_up_to_more_than_beta_in_small_problems():
    assert printed_total_beta(Shape(states=2, actions=2, horizon=5), 1e-6) == 1.5e-6
    assert printed_total_beta(Shape(states=4, actions=2, horizon=5), 1e-6) < 1e-6


def test_printed_bits_switch_at_tau():
    printed = printed_shuffle(Shape(states=4, actions=2, horizon=2), 1, 1e-6)
    assert printed.bits(59_723) == NoiseBits(2, 0.5)
    assert printed.bits(59_724).bits == 1
    assert printed.bits(10) == NoiseBits(math.ceil(printed.tau / 10), 0.5)
