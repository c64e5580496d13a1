"""Discrete Gaussian and discrete Laplace noise: exact composition without any transform.

For both, the privacy loss of all moved counters together depends on one integer only.

*Gaussian.* Moving n counters by s each has the loss (n·s² - 2·s·T) / (2 sigma²), where T is the sum
of n independent draws. T is itself a discrete Gaussian of parameter sigma·sqrt(n) up to a factor
exp(±10n·exp(-pi²·sigma²)) in every probability (Kairouz, Liu and Steinke 2021, Proposition 5);
below sigma = 2.5, where that could be felt, the n draws are convolved. If k more counters move by
one, the integer is U = s·T + T', T' the sum of their draws. P(U = u) is the sum over t of two
Gaussian densities, itself Gaussian in t with the variance v = sigma²·n·k/(n·s² + k) around some
centre; by Poisson summation it differs from the integral, the density of a Gaussian of variance
sigma²(n·s² + k) at u, by a factor of at most 1 ± 2.1·exp(-2·pi²·v) (s = 2, k >= 2: v >= sigma²/3).

*Laplace.* Moving one counter by one has the loss +1/scale (if x <= 0) or -1/scale: a randomised
response with epsilon 1/scale. n moves have the loss (n - 2B)/scale with a binomial B.
"""

import math

import numpy as np

from discreet import _validate
from discreet._types import FloatArray
from discreet.errors import CalibrationError
from discreet.privacy.calibration.closed_forms import least_epsilon, need_delta
from discreet.privacy.calibration.distributions import discrete_gaussian_pmf
from discreet.privacy.sampling.samplers import check_scale

_SMOOTH = 2.5
_REACH = 12.0
_LARGEST_SUM = 20_000_000


def discrete_gaussian_delta(
    sigma: float, cells: int, epsilon: float, *, pile: int = 1, singles: int = 0
) -> float:
    """Exact delta when ``cells`` counters with discrete Gaussian noise move by ``pile`` each.

    ``singles`` more move by one.

    >>> round(1e6 * discrete_gaussian_delta(25.36, 36, 1.0), 2)
    0.99
    """
    check_scale(sigma=sigma)
    _validate.count(cells=cells, pile=pile)
    _validate.real(epsilon=epsilon)
    _validate.count(0, singles=singles)
    if singles:
        values, log = _mixed_sum(float(sigma), cells, pile, singles)
        losses = (cells * pile**2 + singles - 2 * values) / (2 * sigma**2)
        return _hockey_stick(losses, log, float(epsilon))
    values, log = _sum_of_gaussians(float(sigma), cells, epsilon * sigma**2 / pile, pile)
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


def discrete_gaussian_epsilon(
    sigma: float, cells: int, delta: float, *, pile: int = 1, singles: int = 0
) -> float:
    """The least epsilon at ``delta``; see `discrete_gaussian_delta`."""
    need_delta(delta, "Gaussian noise")
    return least_epsilon(
        lambda e: discrete_gaussian_delta(sigma, cells, e, pile=pile, singles=singles), delta
    )


def discrete_laplace_epsilon(scale: float, moves: int, delta: float) -> float:
    """The least epsilon at ``delta``; at delta = 0 it is the pure moves/scale."""
    _validate.delta(delta=delta)
    return least_epsilon(
        lambda e: discrete_laplace_delta(scale, moves, e), delta, largest=moves / scale
    )


def _hockey_stick(losses: FloatArray, log_masses: FloatArray, epsilon: float) -> float:
    above = losses > epsilon * (1 + 1e-15)
    return float(np.exp(log_masses[above]) @ -np.expm1(epsilon - losses[above]))


def sum_of_gaussians(sigma: float, cells: int) -> tuple[FloatArray, FloatArray]:
    """Values and log-probabilities of the sum of ``cells`` draws, up to 12 standard deviations."""
    return _sum_of_gaussians(sigma, cells, -1e300, 1)


def _sum_of_gaussians(
    sigma: float, cells: int, least: float, pile: int
) -> tuple[FloatArray, FloatArray]:
    """Values and log-probabilities of the sum T, at least where cells·pile/2 - T > ``least``."""
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


def _mixed_sum(sigma: float, cells: int, pile: int, singles: int) -> tuple[FloatArray, FloatArray]:
    """Values and log-probabilities of pile·T + T', sums of ``cells`` and of ``singles`` draws."""
    norm = cells * pile**2 + singles
    if sigma < _SMOOTH or sigma**2 * cells * singles < 2 * norm:
        return _convolved(sigma, cells, pile, singles)
    spread = sigma * math.sqrt(norm)
    reach = math.ceil(_REACH * spread)
    if 2 * reach > _LARGEST_SUM:
        raise CalibrationError(
            f"The noise of sigma={sigma:g} on {cells + singles} counters spreads over too many "
            f"integers to sum exactly; ask for a larger epsilon."
        )
    values = np.arange(-reach, reach + 1, dtype=np.float64)
    return values, -0.5 * (values / spread) ** 2 - math.log(spread * math.sqrt(2 * math.pi))


def _convolved(sigma: float, cells: int, pile: int, singles: int) -> tuple[FloatArray, FloatArray]:
    one = discrete_gaussian_pmf(sigma)
    coarse = _power(one.probabilities, cells)
    spaced = np.zeros((coarse.size - 1) * pile + 1)
    spaced[::pile] = coarse
    total = np.convolve(spaced, _power(one.probabilities, singles))
    values = np.arange(total.size, dtype=np.float64) + one.first * (cells * pile + singles)
    with np.errstate(divide="ignore"):
        return values, np.asarray(np.log(total), np.float64)


def _power(pmf: FloatArray, times: int) -> FloatArray:
    """The ``times``-fold convolution, by repeated squaring; sums of positives stay accurate."""
    if times == 1:
        return pmf
    half = _power(pmf, times // 2)
    square = np.convolve(half, half)
    return np.convolve(square, pmf) if times % 2 else square
