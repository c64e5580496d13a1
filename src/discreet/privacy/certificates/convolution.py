"""The law of a sum of discrete Gaussians: by convolution, or by the lemma of `sums`."""

import math
from fractions import Fraction
from functools import lru_cache

from discreet.privacy.certificates.balls import PRECISION, arb, arb_poly, at_precision, ball
from discreet.privacy.certificates.sums import Shifted, excess

_REACH = 17.0
"""Draws beyond this many sigmas (e^-144) are left out, and counted as missing."""


@lru_cache(maxsize=64)
@at_precision(PRECISION)
def one_draw(sigma: Fraction) -> tuple[int, arb_poly]:
    """The largest value r, and balls around the probabilities of -r .. r."""
    reach = math.ceil(_REACH * float(sigma)) + 1
    twice = ball(2 * sigma * sigma)
    weights = [(-(arb(x) * x) / twice).exp() for x in range(reach + 2)]
    # Beyond r the ratio of neighbours is at most exp(-(2r + 3)/(2 sigma²)): a geometric series.
    tail = weights[-1] / (1 - (-arb(2 * reach + 3) / twice).exp())
    centre = sum(weights[1:-1], arb(0))
    total = weights[0] + 2 * centre + 2 * arb(0).union(tail)
    sides = [weight / total for weight in weights[:-1]]
    return reach, arb_poly([sides[abs(x)] for x in range(-reach, reach + 1)])


@lru_cache(maxsize=64)
@at_precision(PRECISION)
def sum_of_draws(
    sigma: Fraction, draws: int, times: int = 1, singles: int = 0
) -> list[tuple[int, arb]]:
    """Values of ``times``·(sum of ``draws`` draws) + (sum of ``singles``), and their probabilities.

    These are balls. Probabilities of values that need a draw beyond the window are underestimated:
    what is missing from one must be counted as a loss by an upper bound, and may be left out by a
    lower bound.
    """
    reach, poly = one_draw(sigma)
    whole = poly**draws if draws else arb_poly([1])
    if times > 1:
        spaced = [arb(0)] * (times * whole.degree() + 1)
        spaced[::times] = whole.coeffs()
        whole = arb_poly(spaced)
    whole = whole * poly**singles if singles else whole
    first = -(draws * times + singles) * reach
    return [(first + i, mass) for i, mass in enumerate(whole.coeffs())]


@lru_cache(maxsize=64)
@at_precision(PRECISION)
def window_of_sum(shifted: Shifted) -> tuple[list[tuple[int, arb]], arb]:
    """Values of U with upper bounds on their probabilities, and a bound on all others together."""
    deviation = shifted.deviation
    reach = math.ceil(_REACH * float(deviation)) + 1
    twice = 2 * deviation * deviation
    scale = excess(shifted) / (twice * arb.pi()).sqrt()
    sides = [scale * (-(arb(u) * u) / twice).exp() for u in range(reach + 2)]
    tail = 2 * sides[-1] / (1 - (-arb(2 * reach + 3) / twice).exp())
    return [(u, sides[abs(u)]) for u in range(-reach, reach + 1)], tail
