"""What a posterior is drawn from: one draw from each of many generators.

Generators are those of many runs in lockstep, or of one run that draws ahead (`psrl_kernels`). All
loops vectorise. Laws are exact up to rounding (formulas to 1e-14, words of 52 bits):

* normals two by two (Box and Muller, 1958). The angle is drawn in (-pi/4, pi/4); two more bits turn
  it by a multiple of pi/2;
* gammas (Marsaglia and Tsang, 2000): d·(1 + z)³ with d = shape - 1/3 and z = x/(3·sqrt(d)) for a
  normal x, if ln u < 3d·(ln(1 + z) - z + z²/2 - z³/3). For z > -1/2 the right side is at least
  -1.2711·d·z⁴ (Taylor's remainder there), so that u < 1 - 1.2711·d·z⁴ is enough. What is left, one
  in six at shape 1 and hardly any at large shapes, is settled one by one;
* Student's t (Bailey, 1994): sqrt(nu·(U^(-2/nu) - 1))·cos(2·pi·V), without rejection.
"""

import math

import numpy as np

from discreet._jit import inlined
from discreet._types import Floats, FourWords, WordArray
from discreet.privacy.streams.lane_kernels import (
    ONE,
    as_float,
    as_word,
    fused,
    fused_kernel,
    log_of,
    next_word,
    uniform_of,
)

_ROUND = 1.5 * 2.0**52
"""Added to a number below 2^50, it leaves its nearest integer in the last bits."""
_LN2_HIGH, _LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10
_LEAST = 2.0**-53


@fused
def _sine(x: float) -> float:
    """Sin x for |x| <= pi/2, by its series."""
    w = x * x
    p = 1 / 355687428096000.0 + w * (-1 / 121645100408832000.0 + w / 51090942171709440000.0)
    p = -1 / 39916800.0 + w * (1 / 6227020800.0 + w * (-1 / 1307674368000.0 + w * p))
    p = 1 / 120.0 + w * (-1 / 5040.0 + w * (1 / 362880.0 + w * p))
    return x + x * w * (-1 / 6.0 + w * p)


@fused
def _short_sine(x: float, w: float) -> float:
    """Sin x for |x| <= pi/4 and w = x²."""
    p = 1 / 362880.0 + w * (-1 / 39916800.0 + w * (1 / 6227020800.0 - w / 1307674368000.0))
    return x + x * w * (-1 / 6.0 + w * (1 / 120.0 + w * (-1 / 5040.0 + w * p)))


@fused
def _short_cosine(w: float) -> float:
    """Cos x for |x| <= pi/4 and w = x²."""
    p = -1 / 3628800.0 + w * (1 / 479001600.0 - w / 87178291200.0)
    p = -1 / 720.0 + w * (1 / 40320.0 + w * p)
    return 1.0 + w * (-0.5 + w * (1 / 24.0 + w * p))


@fused
def _growth(x: float) -> float:
    """e^x - 1 for 0 <= x < 700, without cancellation: x = k·ln 2 + r and a series in r."""
    shifted = x * 1.4426950408889634 + _ROUND
    k = shifted - _ROUND
    power = as_float((as_word(shifted) << np.uint64(52)) + ONE)
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = 1 / 3628800.0 + r * (1 / 39916800.0 + r / 479001600.0)
    p = 1 / 5040.0 + r * (1 / 40320.0 + r * (1 / 362880.0 + r * p))
    p = 1 / 24.0 + r * (1 / 120.0 + r * (1 / 720.0 + r * p))
    return float((power - 1.0) + power * (r + r * r * (0.5 + r * (1 / 6.0 + r * p))))


@fused
def _exponential(word: np.uint64) -> float:
    """A standard exponential, never below zero by a rounding error."""
    drawn = -log_of(uniform_of(word))
    return float(drawn if drawn > _LEAST else _LEAST)


@inlined
def some_generators(state: WordArray, first: int, count: int) -> FourWords:
    """Consecutive ones of ``state[4, generators]``."""
    last = first + count
    return (
        state[0, first:last],
        state[1, first:last],
        state[2, first:last],
        state[3, first:last],
    )


@fused_kernel
def draw_normals(radii: FourWords, turns: FourWords, first: Floats, second: Floats) -> None:
    """first[j] and second[j] = independent standard normals from generators j of both kinds."""
    r0, r1, r2, r3 = radii
    t0, t1, t2, t3 = turns
    for j in range(first.size):
        radius = np.sqrt(2.0 * _exponential(next_word(r0, r1, r2, r3, j)))
        turn = next_word(t0, t1, t2, t3, j)
        angle = (uniform_of(turn) - 0.5) * (math.pi / 2)
        square = angle * angle
        sine = _short_sine(angle, square)
        cosine = _short_cosine(square) * (float(np.int64(turn & np.uint64(2))) - 1.0)
        swapped = (turn & np.uint64(1)) == np.uint64(1)
        first[j] = radius * (sine if swapped else cosine)
        second[j] = radius * (cosine if swapped else sine)


@fused_kernel
def draw_gammas(state: FourWords, shapes: Floats, normals: Floats, out: Floats) -> None:
    """out[j] = a gamma of shape shapes[j] >= 1 from normals[j] and generator j.

    Shapes below one: a gamma of one more, times U^(1/shape).
    """
    s0, s1, s2, s3 = state
    doubtful = 0
    for j in range(out.size):
        d = shapes[j] - 1 / 3
        z = normals[j] / (3.0 * np.sqrt(d))
        u = uniform_of(next_word(s0, s1, s2, s3, j))
        sure = (z > -0.5) & (u < 1.0 - 1.2711 * d * (z * z) * (z * z))
        doubtful += int(not sure)
        # What is in doubt keeps its uniform, as a negative number.
        out[j] = d * (1.0 + z) * (1.0 + z) * (1.0 + z) if sure else -u
    if doubtful > 0:
        for j in range(out.size):
            if out[j] < 0.0:
                out[j] = _settled(s0, s1, s2, s3, j, shapes[j] - 1 / 3, normals[j], -out[j])


@fused
def _settled(
    s0: WordArray,
    s1: WordArray,
    s2: WordArray,
    s3: WordArray,
    j: int,
    d: float,
    normal: float,
    uniform: float,
) -> float:
    """The gamma of this normal if the exact test accepts it, else of the next that it accepts."""
    while True:
        z = normal / (3.0 * np.sqrt(d))
        if z > -1.0:
            exact = 3.0 * d * (np.log1p(z) - z + z * z / 2 - z * z * z / 3)
            if np.log(uniform) < exact:
                return float(d * (1.0 + z) * (1.0 + z) * (1.0 + z))
        radius = np.sqrt(-2.0 * np.log(uniform_of(next_word(s0, s1, s2, s3, j))))
        normal = radius * np.sin(2 * math.pi * uniform_of(next_word(s0, s1, s2, s3, j)))
        uniform = uniform_of(next_word(s0, s1, s2, s3, j))


@fused_kernel
def shrink_gammas(state: FourWords, shapes: Floats, out: Floats) -> None:
    """Gammas of ``shapes[j]`` become gammas of one less: times U^(1/(shapes[j] - 1))."""
    s0, s1, s2, s3 = state
    for j in range(out.size):
        u = uniform_of(next_word(s0, s1, s2, s3, j))
        out[j] *= np.exp(np.log(u) / (shapes[j] - 1.0))


@fused_kernel
def add_students(
    radii: FourWords, turns: FourWords, degrees: Floats, squares: Floats, out: Floats
) -> None:
    """out[j] += sqrt(squares[j]/degrees[j]) times a Student t of ``degrees[j]``."""
    r0, r1, r2, r3 = radii
    t0, t1, t2, t3 = turns
    for j in range(out.size):
        spread = 2.0 * _exponential(next_word(r0, r1, r2, r3, j)) / degrees[j]
        angle = (uniform_of(next_word(t0, t1, t2, t3, j)) - 0.5) * math.pi
        out[j] += np.sqrt(squares[j] * _growth(spread)) * _sine(angle)
