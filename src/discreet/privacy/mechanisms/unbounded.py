"""Central, continual release of unknown length (Toeplitz, Gaussian noise).

`toeplitz` buys noise for a stream of K releases. Here nothing that is drawn depends on K: the first
t releases are the same whether the stream ends then or goes on. Prefix sums are A·x, and A = B·C
with Toeplitz matrices of the series b and c, (b·c)_t = 1, as there. The square root c_t ~ t^(-1/2)
has columns of infinite norm; a c_t that falls a little faster has not, and the noise sigma·|c| is
finite for ever. (Jacobsen and Fawaz 2025, arXiv 2506.15018, multiply the square root by powers of a
logarithm. A power of t serves streams of up to 2^32 releases as well, and has closed forms.)

* b_j = w_0 + sum over m of w_m·theta_m^j: the exponentials of `toeplitz` for 2^28 releases, each
  weight times (1 - theta_m)^(-1/20), and twice the mass beyond the last one on theta = 1, so that
  b_j ~ j^(-9/20) and c_t ~ t^(-11/20) up to 2^28 releases.
* Every column of C has the same norm, so D is one number, d = 1/|c|, rounded down.

**The norm of c in closed form.** Put s = (1 - u)/u. The series f(u) = (1 - u)·b(u) is
w_0 + sum of w_m·s/(s + tau_m), with tau_m = 1 - theta_m. It has one zero s = -rho_k between any two
neighbours of 0 < tau_1 < tau_2 < ..., and no others. So the series c' = 1/f (exact, unrounded) is

    c'_0 = 1,   c'_t = sum over k of v_k·(1 - rho_k)^t,   v_k = 1/((1 - rho_k)·f'(-rho_k)) > 0:

it falls from 1 to 0, sum of c'_t = 1/w_0, and for every lag l >= 0

    P_l = sum over s >= 0 of c'_s·c'_(s+l)
        = c'_l + sum over j, k of v_j·v_k·p_j·p_k^(l+1)/(1 - p_j·p_k),   p = 1 - rho.

**Rounding.** c_t are multiples of eta = 2^-encoder with |(b·c)_t - 1| <= eta, so the difference of
c and c' is the series c' times the differences of (b·c)_t - 1, at most 2·eta at any t. Over L
releases, L·pile = 2^36, what a counter can take, the sums P_l of the rounded series are at most

    P_l + 2·(2·eta)/w_0 + L·(2·eta)²,

which d counts. Nothing hangs on the accuracy of these numbers: before a stream of K releases is
made, the sum of the squares of its K rounded coefficients is computed in integers, and a stream for
which it exceeded 1/d² would be refused.

**Proof.** That of `toeplitz`, which asks for no more than that a column of C·D, as far as it is
released, has at most norm one. The cost of the grid is set aside for all L releases. People who
return: G(i, j) = d²·(sum of c_s·c_(s+l)) with l = j - i is at most d² times the bound above at lag
l, which falls with l, so the squared length for m participations, b apart, is at most
|v|²·(m + 2·sum over k of (m - k)·min(1, d²·P_kb)); it is compared with the exact one, too.

**Price.** The variance after t releases against that of the plain square root for exactly t
releases: 1.48 at t = 2^10, 1.34 at 2^16 and 2^20, 1.40 at 2^24, 1.59 at 2^28, 2.2 at 2^32, and
3.5 at t = 1 (`python -m research.unbounded`).
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq

from discreet._types import FloatArray, IntArray
from discreet.errors import CalibrationError
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.mechanisms.additive import AddedContinually
from discreet.privacy.mechanisms.noise import CumulativeNoise
from discreet.privacy.mechanisms.toeplitz import (
    LARGEST_COUNT,
    MARGIN,
    ROUNDED_DOWN,
    Factors,
    Grid,
    ToeplitzNoise,
    beyond,
    calibrated,
    exponentials,
)
from discreet.privacy.sensitivity import Sensitivity

if TYPE_CHECKING:
    from discreet.privacy.trust import PrivateTrust

_DESIGNED_FOR, _TILT, _REST = 1 << 28, 1 / 20, 2.0
_LEAST_ENCODER = 22
"""Bits of c_t below which the cost of rounding them would show."""


@dataclass(frozen=True, eq=False)
class EndlessFactors(Factors):
    """The factorisation for streams of any length, of which ``episodes`` releases are made."""

    longest: int = LARGEST_COUNT

    @cached_property
    def series(self) -> "tuple[FloatArray, FloatArray]":
        """rho_k and v_k of the exact series c'."""
        tau, weights = (1 - self.decays)[:-1][::-1], self.weights[:-1][::-1]

        def zero(rho: float) -> float:
            return float(self.weights[-1] - np.sum(weights * rho / (tau - rho)))

        ends = zip(np.append(tau[0] * 1e-15, tau[:-1] * (1 + 1e-12)), tau, strict=True)
        found = [brentq(zero, low, high * (1 - 1e-12), xtol=1e-300) for low, high in ends]
        slopes = [np.sum(weights * tau / (tau - rho) ** 2) for rho in found]
        rates = np.array(found)
        return rates, 1 / ((1 - rates) * np.array(slopes))

    def product(self, lag: int) -> float:
        """At least sum over s of c_s·c_(s+lag), for c exact and rounded, however long."""
        rates, v = self.series
        p = 1 - rates
        later = v * p ** (lag + 1)
        sums = float((v * p) @ (1 / (rates[:, None] + rates - np.outer(rates, rates))) @ later)
        first = float(np.sum(v * p**lag)) if lag else 1.0
        off, weight = 2.0 ** (1 - self.grid.encoder), float(self.weights[-1])
        return (first + sums + 2 * off / weight + self.longest * off**2) / ROUNDED_DOWN

    @cached_property
    def column(self) -> int:
        """The one d, in steps of 2^-grid.column."""
        if self.grid.encoder < _LEAST_ENCODER:
            raise CalibrationError(
                f"Noise over a stream of unknown length is drawn on at least {_LEAST_ENCODER} "
                f"binary digits, got room for {self.grid.encoder}; use a larger epsilon, or "
                f"mechanism='toeplitz' for a length that is known."
            )
        return math.floor(2.0**self.grid.column / math.sqrt(self.product(0)) * ROUNDED_DOWN)

    def columns_of(self, first: int, count: int) -> IntArray:
        return np.full(count, self.column, np.int64)

    def returning(self, participations: int, separation: int) -> float:
        square, total = math.ldexp(self.column, -self.grid.column) ** 2, float(participations)
        for k in range(1, participations):
            product = self.product(k * separation)
            total += 2 * (participations - k) * min(1.0, square * product)
        # Of the releases that are really made nothing but exact sums counts.
        norm = self.encoder_square * self.column**2 / 4.0**self.grid.bits
        if norm > 1 or super().returning(participations, separation) > total:
            raise CalibrationError(
                f"The columns of {self.episodes:,} releases are longer than one, got a squared "
                f"norm of {norm:.9f}; use mechanism='toeplitz'."
            )
        return total


@lru_cache(maxsize=8)
def factors(episodes: int, grid: Grid = Grid(), longest: int = LARGEST_COUNT) -> EndlessFactors:  # noqa: B008 (frozen)
    """Decoder and encoder, for the first ``episodes`` releases of a stream.

    >>> round(factors(20_000).worst, 3)  # `toeplitz` for exactly so many has 4.019
    4.925
    """
    weights, decays = exponentials(_DESIGNED_FOR)
    top = math.log(_DESIGNED_FOR) + MARGIN
    weights[-1] -= beyond(top)
    rest = _REST * beyond(top) * math.exp(top * _TILT)
    tilted = np.append(weights * (1 - decays) ** -_TILT, rest)
    return EndlessFactors(episodes, grid, tilted / tilted.sum(), np.append(decays, 1.0), longest)


@dataclass(frozen=True, kw_only=True)
class EndlessNoise(ToeplitzNoise):
    """Decoded Gaussian noise; that of the first releases does not depend on ``episodes``.

    Attributes:
        releases: L, for which the rounding of c is counted.
    """

    releases: int = LARGEST_COUNT

    @property
    def factors(self) -> EndlessFactors:
        return factors(self.episodes, self.grid, self.releases)


def endless(
    trust: "PrivateTrust", sensitivity: Sensitivity, episodes: int
) -> tuple[CumulativeNoise, Guarantee]:
    """Noise that is the same for streams of every length."""
    longest = LARGEST_COUNT // sensitivity.pile
    return calibrated(
        partial(EndlessNoise, releases=longest), trust, sensitivity, episodes, longest
    )


unbounded = AddedContinually(endless)
"""For streams of unknown length: a fifth more noise than if the length were known."""
