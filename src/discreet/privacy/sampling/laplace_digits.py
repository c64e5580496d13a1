"""Discrete Laplace noise by the digits of a geometric number: tables of exact probabilities.

With q = exp(-1/scale), P(X = x) is proportional to q^|x|. Three facts make a draw of it:

1. *Sign.* Let G be geometric, P(G = g) = (1-q)·q^g, and let s be one with probability q/(1+q),
   independent of G. Then X = G if s = 0, and X = -1-G otherwise: P(X = x) = (1-q)/(1+q)·q^x for
   x >= 0, and q/(1+q)·(1-q)·q^(-x-1) = (1-q)/(1+q)·q^|x| for x < 0. Nothing is rejected, and
   -1-G is the complement of the bits of G.
2. *Digits.* Written to the base B = 1024, G = y·B^d + z_(d-1)·B^(d-1) + ... + z_0, and q^G is the
   product of q^(y·B^d) and of all q^(z_j·B^j). So the digits are independent: y is geometric with
   ratio q^(B^d), and P(z_j) is proportional to q^(z_j·B^j) on 0 .. B-1.
3. *Tables.* The pair (y, s), as the number 2y + s below B, and every z_j is drawn from an alias
   table (Walker 1977; Vose 1991) of B columns, 2^54 chances each: a random word of 64 bits names a
   column by its low ten bits, and the others decide between the two values of that column.

d is the least with scale/B^d <= 11: then y reaches 512 with a probability below e^-46 < 2^-64, and
such a y is never drawn.

**Exactness.** Probabilities are computed to sixty decimal digits and rounded to multiples of
2^-64, with sum one; the tables hold these multiples exactly. Rounding moves less than
1024·2^-65 = 2^-55 of mass per digit, the cut tail less than 2^-64. So the law of a draw is within
(d + 1)·2^-55 of the stated one in total variation, whatever the scale (d = 1 up to 11,264, and 5
at the largest scale allowed, 1e15).
"""

from decimal import Decimal, localcontext
from functools import lru_cache

import numpy as np

from discreet._types import WordArray

DIGIT_BITS = 10
_BASE = 1 << DIGIT_BITS
_CHANCES = 1 << (64 - DIGIT_BITS)
"""Of one column of a table."""
_LARGEST_TOP = 11
"""Scales up to here need no digits below the first."""


@lru_cache(maxsize=64)
def laplace_tables(scale: float) -> WordArray:
    """Alias tables of (y, sign) and of the digits below, the highest first: ``[d + 1, 1024]``.

    >>> laplace_tables(3.0).shape, laplace_tables(1800.0).shape
    ((1, 1024), (2, 1024))
    """
    return np.array([alias_words(weights) for weights in digit_weights(scale)])


def digit_weights(scale: float) -> list[list[int]]:
    """The probabilities behind `laplace_tables`, in units of 2^-64."""
    below = 0
    while scale > _LARGEST_TOP * _BASE**below:
        below += 1
    with localcontext() as context:
        context.prec = 60
        rate = -1 / Decimal(scale)
        odds = rate.exp()
        tops = _powers((rate * _BASE**below).exp(), _BASE // 2)
        laws = [[mass for top in tops for mass in (top, top * odds)]]
        for digit in reversed(range(below)):
            laws.append(_powers((rate * _BASE**digit).exp(), _BASE))
        return [_rounded(law) for law in laws]


def _powers(ratio: Decimal, count: int) -> list[Decimal]:
    powers = [Decimal(1)]
    for _ in range(count - 1):
        powers.append(powers[-1] * ratio)
    return powers


def _rounded(masses: list[Decimal]) -> list[int]:
    """Multiples of 2^-64 that add up to one; what rounding leaves goes to the largest."""
    unit = (1 << 64) / sum(masses, Decimal(0))
    weights = [int((mass * unit).to_integral_value()) for mass in masses]
    weights[0] += (1 << 64) - sum(weights)
    return weights


def alias_words(weights: list[int]) -> WordArray:
    """Columns as words: how many chances stay in the column, then who gets the others.

    A column that keeps all its chances names itself, so that one chance less changes nothing.
    """
    left = [*weights, *[0] * (_BASE - len(weights))]
    words = np.zeros(_BASE, np.uint64)
    small = [i for i in range(_BASE) if left[i] < _CHANCES]
    large = [i for i in range(_BASE) if left[i] >= _CHANCES]
    while small and large:
        low, high = small.pop(), large.pop()
        words[low] = left[low] << DIGIT_BITS | high
        left[high] -= _CHANCES - left[low]
        (small if left[high] < _CHANCES else large).append(high)
    for full in large + small:
        words[full] = _CHANCES - 1 << DIGIT_BITS | full
    return words
