"""Draws of many generators at once: words against plain integers, laws at their thresholds."""

import math

import numpy as np
import pytest

from discreet.privacy.mechanisms._lane_noise import alias_table
from discreet.privacy.streams.lane_kernels import (
    add_laplace,
    draw_table,
    draw_uniform,
    draw_uniforms,
)
from helpers.plain_kernels import midpoints
from helpers.properties import given, settings, st

MASK = (1 << 64) - 1
WORDS = st.integers(0, MASK)
FIRST_OF_1234 = [
    41943041,
    58720359,
    3588806011781223,
    3591011842654386,
    9228616714210784205,
    9973669472204895162,
]
"""What xoshiro256++ puts out from the state (1, 2, 3, 4), as its authors' code does."""


def rotated(word, bits):
    return (word << bits | word >> 64 - bits) & MASK


def following(state):
    """One step of xoshiro256++ in unbounded integers: the output and the next state."""
    a, b, c, d = state
    out = (rotated((a + d) & MASK, 23) + a) & MASK
    c, d = c ^ a, d ^ b
    return out, (a ^ d, b ^ c, c ^ b << 17 & MASK, rotated(d, 45))


def words(*values):
    """Generators, one per value, whose next output is that word."""
    zero = np.zeros(len(values), np.uint64)
    last = np.array([rotated(value, 41) for value in values], np.uint64)
    return [zero, zero.copy(), zero.copy(), last]


def word_of(uniform):
    """The word whose uniform is nearest to this one; its last bit is zero."""
    return int(uniform * 2**52) << 12


def uniform_of(word):
    return (word >> 12) * 2.0**-52 + 2.0**-53


def columns(states):
    return [np.array(column, np.uint64) for column in zip(*states, strict=True)]


def test_the_plain_step_is_the_published_generator():
    state, outputs = (1, 2, 3, 4), []
    for _ in FIRST_OF_1234:
        out, state = following(state)
        outputs.append(out)
    assert outputs == FIRST_OF_1234


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(WORDS, WORDS, WORDS, WORDS), min_size=1, max_size=5))
def test_every_generator_takes_the_published_step(states):
    compiled, out = columns(states), np.zeros(len(states))
    for _ in range(3):
        draw_uniforms(*compiled, out)
        steps = [following(state) for state in states]
        states = [state for _, state in steps]
        assert out.tolist() == [uniform_of(word) for word, _ in steps]
    for compiled_row, row in zip(compiled, columns(states), strict=True):
        assert np.array_equal(compiled_row, row)


@pytest.mark.parametrize("word", [0, 1 << 12, MASK, 1 << 63, 4095])
def test_uniforms_are_strictly_between_zero_and_one(word):
    out = np.zeros(1)
    draw_uniforms(*words(word), out)
    assert 0.0 < out[0] < 1.0
    assert out[0] == uniform_of(word)


def test_one_generator_draws_what_all_of_them_draw():
    state = np.random.SeedSequence(5).generate_state(12, np.uint64).reshape(4, 3)
    together, out = [row.copy() for row in state], np.zeros(3)
    draw_uniforms(*together, out)
    before = state.copy()
    assert draw_uniform(state, 1) == out[1]
    assert np.array_equal(state[:, [0, 2]], before[:, [0, 2]])
    assert np.array_equal(state[:, 1], np.array(together)[:, 1])


def laplace(scale, *values):
    """What noise the words make."""
    total = np.zeros(len(values))
    add_laplace(*words(*values), scale, total)
    return total


@pytest.mark.parametrize(
    ("scale", "size"),
    [(0.3, 1), (0.3, 3), (1.0, 1), (1.0, 10), (7.5, 2), (7.5, 40), (36.0, 10), (1000.0, 40)],
)
def test_laplace_noise_changes_at_the_thresholds_of_its_law(scale, size):
    """P(|X| >= k) is the u at which the noise reaches k: 2q^k/(1 + q), up to 1e-12 of itself."""
    q = math.exp(-1 / scale)
    threshold = 2 * q**size / (1 + q)
    gap = max(1e-12, 4 * 2.0**-52 / threshold)
    below, above = word_of(threshold * (1 - gap)), word_of(threshold * (1 + gap))
    assert abs(laplace(scale, below)[0]) >= size
    assert abs(laplace(scale, above)[0]) < size


@settings(max_examples=200, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=20), st.floats(0.1, 1e6))
def test_laplace_noise_is_the_inverse_of_its_law(values, scale):
    half = (1 + math.exp(-1 / scale)) / 2
    for word, found in zip(values, laplace(scale, *values), strict=True):
        exact = -scale * math.log(uniform_of(word) * half)
        if abs(exact - round(exact)) > 1e-9 * max(1.0, scale):
            assert abs(found) == max(0, math.floor(exact))


def test_the_last_bit_of_a_word_is_the_sign():
    minus, plus = word_of(0.01), word_of(0.01) | 1
    assert laplace(5.0, minus)[0] == -laplace(5.0, plus)[0] < 0


def test_noise_is_added_to_what_is_there():
    word, total = word_of(0.001) | 1, np.array([100.0, -3.0])
    add_laplace(*words(word, word), 4.0, total)
    drawn = laplace(4.0, word)[0]
    assert drawn > 0
    assert total.tolist() == [100.0 + drawn, -3.0 + drawn]


@pytest.mark.parametrize("weights", [[1, 3], [1, 2, 5, 8], [0, 16], [4, 4, 4, 4], [16]])
def test_a_table_is_drawn_from_with_exactly_its_weights(weights):
    """Every column is a whole number of equal parts, so that counting midpoints is the law."""
    cut, other = alias_table(np.array(weights, np.float64))
    parts = 64 * len(weights)
    out = np.zeros(parts)
    draw_table(*words(*map(word_of, midpoints(parts))), cut, other, out)
    drawn = np.bincount(out.astype(int), minlength=len(weights))
    assert (drawn * sum(weights) == parts * np.array(weights)).all()


def test_the_ends_of_a_table_are_its_first_and_last_column():
    cut, other, out = np.array([1.0, 1.0, 0.25]), np.array([0.0, 0.0, 1.0]), np.zeros(2)
    draw_table(*words(0, MASK), cut, other, out)
    assert out.tolist() == [0.0, 1.0]  # the last column holds another value above its cut
