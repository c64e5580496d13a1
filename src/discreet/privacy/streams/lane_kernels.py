"""Noise for many streams in lockstep, so that the compiler can vectorise it.

Every stream has its own xoshiro256++ generator (Blackman and Vigna, 2021); one call draws once from
all of them. A draw is inverted from one uniform u in (0, 1): with q = exp(-1/scale),

    P(|X| >= k) = 2·q^k/(1 + q) for k >= 1   ⇒   |X| = floor(-scale·ln(u·(1 + q)/2)), at least 0,

and an independent bit is the sign. u has 52 bits and its logarithm is exact to 1e-12, so a draw has
the stated distribution up to about 1e-12·scale in total variation. For simulation only.
"""

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from discreet._jit import BORROWED, as_float, as_word, kernel
from discreet._types import FloatArray, WordArray
from discreet.privacy.sampling.kernels import next_word

__all__ = ["as_float", "as_word", "next_word"]

_LN2 = math.log(2.0)
ONE = np.uint64(0x3FF0000000000000)
"""The bits of 1.0."""
_MANTISSA = np.uint64(0x000FFFFFFFFFFFFF)
_BELOW_ONE = 1.0 - 2.0**-53


def fused(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a formula into its callers.

    The one fast-math licence is to fuse multiply and add: a third faster, not less exact.
    """
    made = numba.njit(forceinline=True, fastmath={"contract"}, error_model="numpy", **BORROWED)
    compiled: Callable[..., Any] = made(function)
    return compiled


def fused_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop over many generators, with the licence of `fused`."""
    made = numba.njit(cache=True, fastmath={"contract"}, error_model="numpy", **BORROWED)
    compiled: Callable[..., Any] = made(function)
    return compiled


@fused
def uniform_of(word: np.uint64) -> float:
    """The first 52 bits as a number in (0, 1): an odd multiple of 2^-53."""
    return float(as_float((word >> np.uint64(12)) | ONE) - _BELOW_ONE)


@fused
def log_of(uniform: float) -> float:
    """The logarithm of a uniform, exact to 1e-14.

    With u = 2^e·m and m in [1, 2), ln u = (e + 1/2)·ln 2 + 2·artanh((m - √2)/(m + √2)).
    """
    u = as_word(uniform)
    exponent = float(np.int64(u >> np.uint64(52))) - 1023.0
    m = as_float((u & _MANTISSA) | ONE)
    z = (m - 1.4142135623730951) / (m + 1.4142135623730951)
    w = z * z
    series = 1 / 11 + w * (1 / 13 + w * (1 / 15 + w * (1 / 17)))
    series = 1 / 3 + w * (1 / 5 + w * (1 / 7 + w * (1 / 9 + w * series)))
    return float((exponent + 0.5) * _LN2 + 2.0 * z * (1.0 + w * series))


@kernel
def draw_uniforms(
    s0: WordArray, s1: WordArray, s2: WordArray, s3: WordArray, out: FloatArray
) -> None:
    """out[j] = a uniform in (0, 1) from generator j."""
    for j in range(out.size):
        out[j] = uniform_of(next_word(s0, s1, s2, s3, j))


@numba.njit(forceinline=True, **BORROWED)
def draw_uniform(state: WordArray, j: int) -> float:
    """A uniform in (0, 1) from generator j of ``state[4, generators]``."""
    return float(uniform_of(next_word(state[0], state[1], state[2], state[3], j)))


@fused_kernel
def add_laplace(
    s0: WordArray, s1: WordArray, s2: WordArray, s3: WordArray, scale: float, total: FloatArray
) -> None:
    """total[j] += a discrete Laplace draw from generator j."""
    half = math.log((1.0 + math.exp(-1.0 / scale)) / 2.0)
    for j in range(total.size):
        word = next_word(s0, s1, s2, s3, j)
        sign = float(np.int64(word & np.uint64(1))) * 2.0 - 1.0
        magnitude = np.floor(-scale * (log_of(uniform_of(word)) + half))
        total[j] += sign * (magnitude if magnitude > 0.0 else 0.0)


@kernel
def draw_table(
    s0: WordArray,
    s1: WordArray,
    s2: WordArray,
    s3: WordArray,
    cut: FloatArray,
    other: FloatArray,
    out: FloatArray,
) -> None:
    """out[j] = a column of an alias table (see `mechanisms._lane_noise`) from generator j."""
    for j in range(out.size):
        word = next_word(s0, s1, s2, s3, j)
        place = uniform_of(word) * cut.size
        column = int(place)
        out[j] = float(column) if place - column < cut[column] else other[column]
