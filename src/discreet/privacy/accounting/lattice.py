"""Discrete Gaussian and discrete Laplace noise: exact composition without any transform.

For both, the privacy loss of all moved counters together depends on one integer only.

*Gaussian.* Moving n counters by s each has the loss (n·s² - 2·s·T) / (2 sigma²), where T is the sum
of n independent draws. T is itself a discrete Gaussian of parameter sigma·sqrt(n) up to a factor
exp(±10n·exp(-pi²·sigma²)) in every probability (Kairouz, Liu and Steinke 2021, Proposition 5);
below sigma = 2.5, where that could be felt, the n draws are convolved.

*Laplace.* Moving one counter by one has the loss +1/scale (if x <= 0) or -1/scale: a randomised
response with epsilon 1/scale. n moves have the loss (n - 2B)/scale with a binomial B.
"""

import math
from dataclasses import dataclass

import numpy as np

from discreet import _validate
from discreet._types import FloatArray
from discreet.errors import CalibrationError
from discreet.privacy.accounting.distributions import discrete_gaussian_pmf
from discreet.privacy.guarantee import rounded_down
from discreet.privacy.sampling.samplers import check_scale

_SMOOTH = 2.5
_REACH = 12.0
_LARGEST_SUM = 20_000_000


def discrete_gaussian_delta(sigma: float, cells: int, epsilon: float, *, pile: int = 1) -> float:
    """Exact delta when ``cells`` counters with discrete Gaussian noise move by ``pile`` each.

    >>> round(1e6 * discrete_gaussian_delta(25.36, 36, 1.0), 2)
    0.99
    """
    check_scale(sigma=sigma)
    _validate.count(cells=cells, pile=pile)
    _validate.real(epsilon=epsilon)
    values, log = sum_of_gaussians(float(sigma), cells, epsilon * sigma**2 / pile, pile)
    losses = (cells * pile**2 - 2 * pile * values) / (2 * sigma**2)
    return _hockey_stick(losses, log, float(epsilon))


def discrete_laplace_delta(scale: float, moves: int, epsilon: float) -> float:
    """Exact delta when ``moves`` counters with discrete Laplace noise move by one each.

    >>> discrete_laplace_delta(36.0, 36, 1.0)
    0.0
    """
    check_scale(scale=scale)
    _validate.count(moves=moves)
    _validate.real(epsilon=epsilon)
    against = np.arange(moves + 1.0)
    from scipy.special import gammaln

    log = gammaln(moves + 1) - gammaln(against + 1) - gammaln(moves - against + 1)
    log = log - against / scale - moves * math.log1p(math.exp(-1 / scale))
    return _hockey_stick((moves - 2 * against) / scale, log, float(epsilon))


def _hockey_stick(losses: FloatArray, log_masses: FloatArray, epsilon: float) -> float:
    above = losses > epsilon * (1 + 1e-15)
    return float(np.exp(log_masses[above]) @ -np.expm1(epsilon - losses[above]))


def sum_of_gaussians(
    sigma: float, cells: int, least: float = -1e300, pile: int = 1
) -> tuple[FloatArray, FloatArray]:
    """Values and log-probabilities of the sum T of ``cells`` draws, to 12 standard deviations.

    At least where cells·pile/2 - T > ``least``.
    """
    spread = sigma * math.sqrt(cells)
    if spread < _SMOOTH or (sigma < _SMOOTH and cells > 1):
        one = discrete_gaussian_pmf(sigma)
        total = _power(one.probabilities, cells)
        values = np.arange(total.size, dtype=np.float64) + cells * one.first
        with np.errstate(divide="ignore"):
            return values, np.asarray(np.log(total), np.float64)
    # Sum over the integers of exp(-x²/2s²) = s·sqrt(2·pi) up to exp(-2·pi²·s²) < 1e-53.
    bottom = -math.ceil(_REACH * spread)
    top = min(-bottom, math.ceil(cells * pile / 2 - least))
    if top - bottom > _LARGEST_SUM:
        raise CalibrationError(
            f"The noise of sigma={sigma:g} on {cells} counters spreads over too many integers to "
            f"sum exactly; ask for a larger epsilon."
        )
    values = np.arange(bottom, max(bottom, top) + 1, dtype=np.float64)
    return values, -0.5 * (values / spread) ** 2 - math.log(spread * math.sqrt(2 * math.pi))


def _power(pmf: FloatArray, times: int) -> FloatArray:
    """The ``times``-fold convolution, by repeated squaring; sums of positives stay accurate."""
    if times == 1:
        return pmf
    half = _power(pmf, times // 2)
    square = np.convolve(half, half)
    return np.convolve(square, pmf) if times % 2 else square


# Discrete Gaussian noise on two lattices at once: coarse counts and fine losses.
#
# Counts move by one unit of their lattice, losses by up to a thousand of theirs. Together they are
# no discrete Gaussian of one lattice, and not quite a continuous one either: where epsilon is large
# and the noise on counts is about one unit, the curve of the analytic Gaussian mechanism is too
# optimistic (by 7% of delta at epsilon = 40). So the two losses are added up exactly.
#
# **Proof.** *Coarse.* Moving n counters by one each has the loss (n - 2T)/(2·sigma²), T the sum of
# n draws (see `lattice`). Moving fewer counters is post-processing of that.
#
# *Fine.* A draw X of parameter s and a normal Y of the same parameter satisfy P(X + 1 <= y) <= P(Y
# <= y) for all y: the density of Y rises up to zero and falls after it, so each p(T) lies below the
# integral over [T, T + 1] for T < 0 and above it for T >= 0 (the normalisers differ by
# 2·exp(-2·pi²·s²), nothing for s >= 8). The loss (v² - 2vX)/(2s²) of a shift v > 0 falls with X, so
# it is stochastically at most that of the normal, plus v/s². Summed over independent counters, the
# fine loss is at most N(mu²/2, mu²) + slack with mu² = sum of v²/s² and slack = sum of v/s². Both
# grow with every v. This covers *all* vectors of shifts within the reach, not only the largest.
#
# *Both.* delta(epsilon) is the mean of the increasing function max(0, 1 - exp(epsilon - loss)), so
# a stochastically larger loss can only raise it: delta(epsilon) is at most the mean over T of the
# analytic Gaussian curve of mu at epsilon - slack - (n - 2T)/(2·sigma²).


_LONGEST_SUM = 400_000
_FINE = 8.0
_OUTSIDE = 1e-30
"""More than the mass beyond the tables, per counter."""


@dataclass(frozen=True)
class Moved:
    """``cells`` counters with discrete Gaussian noise of ``sigma`` that move by ``by`` each."""

    sigma: float
    cells: int
    by: int = 1

    def __post_init__(self) -> None:
        check_scale(sigma=self.sigma)
        _validate.count(cells=self.cells, by=self.by)

    @property
    def ratio(self) -> float:
        """mu: the L2 of the move in standard deviations."""
        return self.by * math.sqrt(self.cells) / self.sigma

    @property
    def slack(self) -> float:
        """How far the loss can exceed that of continuous noise: sum of v/s²."""
        return self.cells * self.by / self.sigma**2


def two_lattice_delta(coarse: Moved, fine: Moved, epsilon: float) -> float:
    """Never less than the delta of moving both, whatever the moves within the reach.

    >>> both = Moved(25.36, 24), Moved(25.36 * 1024, 12, by=1024)
    >>> round(1e6 * two_lattice_delta(*both, 1.0), 2)
    0.99
    """
    _validate.real(epsilon=epsilon)
    if fine.sigma < _FINE or coarse.by != 1:
        raise CalibrationError(
            f"Expected fine noise of at least {_FINE:g} units and coarse moves by one, got "
            f"sigma={rounded_down(fine.sigma, 6)} and {coarse.by}; use a smaller epsilon."
        )
    left = float(epsilon) - fine.slack
    if 24 * coarse.sigma * math.sqrt(coarse.cells) > _LONGEST_SUM:
        # The sum T is a discrete Gaussian so wide that one step of it is nothing.
        left -= 1 / coarse.sigma**2
        return float(gaussian_curve(math.hypot(coarse.ratio, fine.ratio), np.array([left]))[0])
    totals, log = sum_of_gaussians(coarse.sigma, coarse.cells)
    losses = (coarse.cells - 2 * totals) / (2 * coarse.sigma**2)
    mean = float(np.exp(log) @ gaussian_curve(fine.ratio, left - losses))
    return mean + _OUTSIDE * coarse.cells


def gaussian_curve(ratio: float, epsilons: FloatArray) -> FloatArray:
    """delta(epsilon) of continuous Gaussian noise (Balle and Wang 2018), of any sign of epsilon."""
    from scipy.special import log_ndtr

    first = log_ndtr(ratio / 2 - epsilons / ratio)
    second = epsilons + log_ndtr(-ratio / 2 - epsilons / ratio)
    curve: FloatArray = np.exp(first) * -np.expm1(np.minimum(0.0, second - first))
    return curve
