"""Compiled draws of the simulation sampler: the same distributions, several times faster."""

import math

import numpy as np

from discreet._jit import inlined, kernel
from discreet._types import FloatArray, IntArray, WordArray
from discreet.privacy.sampling.samplers import GENERATORS, TAIL, NormalLayers

_CHUNK = 512
"""Words drawn at a time; they stay in the first-level cache."""
_DIGIT_BITS, _DIGIT = 10, 1023
_COLUMN, _CHANCE = np.uint64(1023), np.uint64(10)
_LAYER, _SIGN, _BIT, _PLACE = np.uint64(255), np.uint64(8), np.uint64(1), np.uint64(12)
_PLACES = 2.0**-52


@inlined
def next_word(s0: WordArray, s1: WordArray, s2: WordArray, s3: WordArray, j: int) -> np.uint64:
    """One output of generator j (xoshiro256++, Blackman and Vigna, 2021)."""
    a, b, c, d = s0[j], s1[j], s2[j], s3[j]
    mixed = a + d
    result = ((mixed << np.uint64(23)) | (mixed >> np.uint64(41))) + a
    c ^= a
    d ^= b
    s1[j] = b ^ c
    s0[j] = a ^ d
    s2[j] = c ^ (b << np.uint64(17))
    s3[j] = (d << np.uint64(45)) | (d >> np.uint64(19))
    return np.uint64(result)


@kernel
def fill_words(state: WordArray, out: WordArray) -> None:
    """Words of the generators ``state[4, GENERATORS]`` in turn, a multiple of `GENERATORS` of them.

    A loop over generators that stand side by side vectorises.
    """
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    for start in range(0, out.size, GENERATORS):
        part = out[start : start + GENERATORS]
        for j in range(GENERATORS):
            part[j] = next_word(s0, s1, s2, s3, j)


@inlined
def _from_table(table: WordArray, word: np.uint64) -> int:
    """A value of an alias table of `digit_weights`."""
    column = np.int64(word & _COLUMN)
    entry = table[column]
    stays = (word >> _CHANCE) < (entry >> _CHANCE)
    return int(column if stays else np.int64(entry & _COLUMN))


@kernel
def fill_laplace(state: WordArray, tables: WordArray, terms: int, out: IntArray) -> None:
    """Sums of ``terms`` discrete Laplace draws, digit by digit (see `digit_weights`).

    ``v >> 63`` is -1 for negative v, whose digits below are complements.
    """
    words = np.empty(_CHUNK, np.uint64)
    drawn = np.empty(_CHUNK, np.int64)
    for start in range(0, out.size, _CHUNK):
        part = out[start : start + _CHUNK]
        part[:] = 0
        for _ in range(terms):
            fill_words(state, words)
            table = tables[0]
            for i in range(part.size):
                top = _from_table(table, words[i])
                drawn[i] = (top >> 1) ^ -(top & 1)
            for digit in range(1, tables.shape[0]):
                fill_words(state, words)
                table = tables[digit]
                for i in range(part.size):
                    v, below = drawn[i], _from_table(table, words[i])
                    drawn[i] = (v << _DIGIT_BITS) | ((below ^ (v >> 63)) & _DIGIT)
            for i in range(part.size):
                part[i] += drawn[i]


@kernel
def _fill_normals(
    rng: np.random.Generator,
    words: WordArray,
    layers: NormalLayers,
    asking: IntArray,
    out: FloatArray,
) -> None:
    """A normal draw from each word (see `normal_layers`); those that need a question ask ``rng``.

    They are noted first and asked afterwards: a generator in the first loop would cost more than
    the loop.
    """
    widths, heights, inside = layers
    many = 0
    for i in range(words.size):
        layer = np.int64(words[i] & _LAYER)
        sign = 1.0 - 2.0 * float(np.int64((words[i] >> _SIGN) & _BIT))
        place = words[i] >> _PLACE
        out[i] = sign * (float(np.int64(place)) * (_PLACES * widths[layer]))
        asking[many] = i
        many += int(place >= inside[layer])
    for k in range(many):
        i = asking[k]
        layer = np.int64(words[i] & _LAYER)
        sign = 1.0 if out[i] >= 0.0 else -1.0
        if layer == 0:
            beyond, spare = 1.0, 0.0
            while not 2.0 * spare > beyond * beyond:
                beyond, spare = rng.standard_exponential() / TAIL, rng.standard_exponential()
            out[i] = sign * (TAIL + beyond)
        else:
            height = heights[layer] + rng.random() * (heights[layer + 1] - heights[layer])
            if not height < math.exp(-0.5 * out[i] * out[i]):
                out[i] = rng.standard_normal()


@kernel
def fill_rounded(
    rng: np.random.Generator, state: WordArray, layers: NormalLayers, sigma: float, out: IntArray
) -> None:
    """Rounded normals, which are discrete Gaussians where sigma is large."""
    words, normals = np.empty(_CHUNK, np.uint64), np.empty(_CHUNK)
    asking = np.empty(_CHUNK + 1, np.int64)
    for start in range(0, out.size, _CHUNK):
        part = out[start : start + _CHUNK]
        fill_words(state, words)
        _fill_normals(rng, words, layers, asking, normals)
        for i in range(part.size):
            part[i] = np.int64(np.rint(sigma * normals[i]))


@kernel
def fill_gaussian(
    rng: np.random.Generator, state: WordArray, layers: NormalLayers, sigma: float, out: IntArray
) -> None:
    """Discrete Gaussians by rejection from a rounded normal (see `SimulationSampler`).

    A proposal is kept with probability e^-excess: if a uniform u is at least 1 - e^-excess, which
    is certain for u >= excess.
    """
    wide = math.sqrt(sigma * sigma + sigma / 2)
    words, normals = np.empty(_CHUNK, np.uint64), np.empty(_CHUNK)
    asking, u = np.empty(_CHUNK + 1, np.int64), np.empty(_CHUNK)
    for start in range(0, out.size, _CHUNK):
        part = out[start : start + _CHUNK]
        fill_words(state, words)
        _fill_normals(rng, words, layers, asking, normals)
        fill_words(state, words)
        many = 0
        for i in range(part.size):
            u[i] = float(np.int64(words[i] >> _PLACE)) * _PLACES
            y = np.rint(wide * normals[i])
            part[i] = np.int64(y)
            asking[many] = i
            many += int(not u[i] >= _excess(sigma, normals[i], y))
        for k in range(many):
            i = asking[k]
            normal, chance, y = normals[i], u[i], float(part[i])
            while not chance >= -np.expm1(-_excess(sigma, normal, y)):
                normal, chance = rng.standard_normal(), rng.random()
                y = np.rint(wide * normal)
            part[i] = np.int64(y)


@inlined
def _excess(sigma: float, normal: float, y: float) -> float:
    return 0.25 / sigma - 0.5 * (normal * normal - (y / sigma) ** 2)


@kernel
def fill_bits(rng: np.random.Generator, probability: float, out: IntArray) -> None:
    """Bits that are one with this probability."""
    for i in range(out.size):
        out[i] = 1 if rng.random() < probability else 0
