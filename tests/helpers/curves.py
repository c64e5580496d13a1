"""Privacy curves by brute force, from the definitions alone, in exact numbers where there are any.

Nothing here knows a privacy loss, a grid or a transform: distributions are dictionaries, and delta
is the sum of (P - e^epsilon·Q)+ over all outcomes.
"""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction


def exact_binomial(trials, probability):
    """{value: probability}, exactly."""
    p = Fraction(probability)
    return {x: math.comb(trials, x) * p**x * (1 - p) ** (trials - x) for x in range(trials + 1)}


def exact_table(weights):
    """{value: probability} of a table of integer weights, exactly."""
    return {x: Fraction(w, sum(weights)) for x, w in enumerate(weights) if w}


def exact_gaussian(sigma, reach=None, digits=60):
    """{value: probability} of a discrete Gaussian, to ``digits`` digits, as fractions."""
    reach = math.ceil(18 * float(sigma)) + 2 if reach is None else reach
    with localcontext() as context:
        context.prec = digits
        twice = 2 * Decimal(Fraction(sigma).numerator) ** 2 / Fraction(sigma).denominator ** 2
        weights = {x: Fraction((-Decimal(x * x) / twice).exp()) for x in range(reach + 1)}
    total = weights[0] + 2 * sum(weights[x] for x in range(1, reach + 1))
    return {x: weights[abs(x)] / total for x in range(-reach, reach + 1)}


def distribution_of_sum(noise, draws):
    """The distribution of a sum of independent draws, by listing all of them."""
    out = {0: Fraction(1)}
    for _ in range(draws):
        found = {}
        for (x, p), (y, q) in itertools.product(out.items(), noise.items()):
            found[x + y] = found.get(x + y, 0) + p * q
        out = found
    return out


def moved(noise, shift):
    """The distribution of a counter that moved."""
    return {x + shift: p for x, p in noise.items()}


def stick(first, second, growth):
    """The sum of (P - growth·Q)+ over all outcomes of P."""
    return sum(max(0, p - growth * second.get(x, 0)) for x, p in first.items())


def growth_of(epsilon):
    """e^epsilon, from above by a hair: a delta computed with it is not too large."""
    return Fraction(math.nextafter(math.exp(epsilon), math.inf))


def delta_of_moves(noise, shifts, epsilon):
    """Delta when independent counters under one noise move by ``shifts``, over all outputs."""
    growth, total = growth_of(epsilon), Fraction(0)
    for outcome in itertools.product(noise, repeat=len(shifts)):
        p = math.prod(noise[x] for x in outcome)
        q = math.prod(noise.get(x - s, 0) for x, s in zip(outcome, shifts, strict=True))
        total += max(0, p - growth * q)
    return total


def dearest(noise, shifts, epsilon):
    """The same over both orders of the two data sets."""
    back = [-shift for shift in shifts]
    return max(delta_of_moves(noise, ways, epsilon) for ways in (shifts, back))
