"""Rigorous lower bounds on delta: to show that a claim is false, or that noise is the least.

Rounding every privacy loss *down* to the grid can only lower delta, and so can leaving masses
out. So with losses rounded down, masses from below and nothing added for what was cropped,

    delta(epsilon) >= sum of m_i·(1 - e^epsilon·x^i)+.

The grid must be fine: the loss in epsilon is about half a step per move.
"""

import math
from fractions import Fraction

from discreet.privacy.certificates.arithmetic import (
    NO_LOSS,
    PRECISION,
    Losses,
    Shifted,
    arb,
    arb_poly,
    at_precision,
    ball,
    binomial_atoms,
    clipped,
    least_share,
    lower,
    smooth_parts,
)


@at_precision(96)
def binomial_refutation(trials, ups, downs, epsilon, *, fineness=2000):
    """At least this is the delta of fair binomial noise of ``trials`` bits.

    Args:
        trials: bits.
        ups: counters that rise by one.
        downs: counters that fall by one (fair bits lose the same both ways).
        epsilon: at which delta is asked for.
        fineness: grid steps per typical loss of one move.
    """
    half = Fraction(1, 2)
    m = math.ceil(math.log2(fineness * math.sqrt(trials) / 2))
    base = Fraction((1 << m) - 1, 1 << m)
    one = refute_rounded_down(binomial_atoms(trials, half, 1, 45.0), base)
    total = NO_LOSS.times(one.repeated(ups + downs, 1e-16), 0.0)
    return stick_from_below(total, epsilon, base)


def refute_rounded_down(atoms, base):
    """Losses rounded down to the grid of ``base``."""
    step = -math.log(base)
    placed = {}
    for mass, ratio in atoms:
        i = math.floor(-math.log(float(ratio.mid())) / step)
        while not ratio <= ball(base) ** i:  # proven: the loss is at least this
            i -= 1
        placed[i] = placed.get(i, arb(0)) + mass
    first = min(placed)
    masses = [placed.get(i, arb(0)) for i in range(first, max(placed) + 1)]
    return Losses(first, arb_poly(masses))


def stick_from_below(losses, epsilon, base):
    """The delta of the masses that are left."""
    growth, total = ball(epsilon).exp(), arb(0)
    power = ball(base) ** losses.first
    for mass in losses.masses.coeffs():
        total += clipped(mass) * clipped(1 - growth * power)
        power *= ball(base)
    return lower(total)


@at_precision(PRECISION)
def gaussian_refutation(sigma, times, epsilon):
    """At least this is the delta when ``times`` counters with discrete Gaussian noise move by one.

    >>> gaussian_refutation(12.67, 36, Fraction(1)) > Fraction(1, 10**6)  # half the noise
    True
    """
    shifted = Shifted(sigma=Fraction(sigma), norm=times, cells=times)
    integral, correction = smooth_parts(shifted, epsilon)
    return lower(clipped(integral - correction) * least_share(shifted))
