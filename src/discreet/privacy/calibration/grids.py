"""Gaussian noise on a grid: what discreteness costs, and the noise that pays for it.

The analytic calibration holds for continuous noise, and for continuous noise rounded to a grid.
Discrete Gaussian noise of s grid steps is within 1/(8s²) in total variation of rounded noise (proof
in `mechanisms.toeplitz`), and replacing a mechanism by one within total variation tau costs
(1 + e^epsilon)·tau of delta. At very large epsilon no grid is fine enough. There discrete Gaussian
noise is taken as it is: it satisfies rho-zCDP with the same rho = l2²/(2·sigma²) as continuous
noise (Canonne, Kamath and Steinke 2020, Theorem 4), and rho-zCDP implies
(rho + 2·sqrt(rho·ln(1/delta)), delta)-DP (Bun and Steinke 2016).
"""

import math

from discreet import _validate
from discreet.privacy.calibration.closed_forms import gaussian_sigma, need_delta

_ROUNDED_UP = 1 + 1e-12
"""Covers the rounding of an L2 norm to a double by the caller, and of the formula (1e-15)."""


def grid_delta(steps: float, shifted: int, epsilon: float) -> float:
    """What discrete instead of rounded Gaussian noise costs in delta, over all shifted values.

    >>> grid_delta(2.0**30, 1000, 1.0) < 1e-15
    True
    """
    if steps < 2 or epsilon > 600:
        return math.inf
    return (1 + math.exp(epsilon)) * shifted / (8 * steps**2)


def grid_sigma(l2: float, epsilon: float, delta: float, *, lost: float, most: float) -> float:
    """Gaussian noise on a grid that costs ``lost`` of delta, if that is at most ``most``.

    Where it is more, sigma comes from zero-concentrated privacy, which grids cost nothing.
    """
    if lost <= most:
        return gaussian_sigma(l2, epsilon, delta - lost)
    return zcdp_sigma(l2, epsilon, delta)


def zcdp_sigma(l2: float, epsilon: float, delta: float) -> float:
    """The noise whose rho + 2·sqrt(rho·ln(1/delta)) is epsilon, with rho = l2²/(2·sigma²).

    Solved for sqrt(rho), and written as a fraction in which nothing cancels:
    sqrt(epsilon + t) - sqrt(t) = epsilon/(sqrt(epsilon + t) + sqrt(t)), with t = ln(1/delta).

    >>> round(zcdp_sigma(6.0, 30.0, 1e-6), 3)
    1.462
    """
    _validate.positive(l2=l2, epsilon=epsilon)
    need_delta(delta, "Concentrated DP")
    tail = math.log(1 / delta)
    roots = math.sqrt(epsilon + tail) + math.sqrt(tail)
    return l2 * roots / (math.sqrt(2) * epsilon) * _ROUNDED_UP
