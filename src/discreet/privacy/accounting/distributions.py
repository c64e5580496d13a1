"""Probability tables of integer noise, with accurate logarithms far into the tails."""

import functools
import math
from dataclasses import dataclass

import numpy as np

from discreet import _validate
from discreet._types import FloatArray, IntArray
from discreet.errors import CalibrationError, InvalidInputError
from discreet.privacy.sampling.samplers import check_scale, check_weights

_REACH = 12.0
"""Tables reach 12 standard deviations: a Gaussian leaves 4e-33 outside."""
_OUTSIDE = 1e-31
"""More than any of the tables below leaves outside (Gaussian tail, exp(-75), Bernstein)."""
_LARGEST_TABLE = 2_000_000


@dataclass(frozen=True, eq=False)
class NoisePmf:
    """Integer noise: ``log_probabilities[i]`` belongs to the value ``first + i``.

    Attributes:
        first: the smallest value in the table.
        log_probabilities: logarithms of P(first), P(first + 1), ...
        outside: a bound on the probability of values outside the table. They count as an infinite
            privacy loss, so whatever is computed from a table errs on the safe side.
    """

    first: int
    log_probabilities: FloatArray
    outside: float = 0.0

    @property
    def values(self) -> IntArray:
        """The integers of the table."""
        return self.first + np.arange(self.log_probabilities.size, dtype=np.int64)

    @functools.cached_property
    def probabilities(self) -> FloatArray:
        """P(x) for each of `values`."""
        return np.asarray(np.exp(self.log_probabilities))

    @functools.cached_property
    def variance(self) -> float:
        """Variance of the noise."""
        mean = self.probabilities @ self.values
        return float(self.probabilities @ (self.values - mean) ** 2)


def discrete_gaussian_pmf(sigma: float) -> NoisePmf:
    """P(x) proportional to exp(-x² / (2 sigma²))."""
    check_scale(sigma=sigma)
    reach = math.ceil(_REACH * sigma) + 1
    _check_table(2 * reach, "sigma", sigma)
    log = -0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2
    return NoisePmf(-reach, log - math.log(np.exp(log).sum()), _OUTSIDE)


def binomial_pmf(trials: int, probability: float) -> NoisePmf:
    """Sum of ``trials`` bits; the table is cut only beyond 12 standard deviations (plus 100).

    >>> round(binomial_pmf(100, 0.5).variance, 9)
    25.0
    """
    _validate.count(trials=trials)
    _validate.probability(probability=probability)
    if probability in (0, 1):
        raise InvalidInputError(
            f"Expected 0 < probability < 1, got probability={probability!r}; "
            f"certain bits are no noise."
        )
    mean, spread = trials * probability, math.sqrt(trials * probability * (1 - probability))
    low = max(0, math.floor(mean - _REACH * spread) - 100)
    high = min(trials, math.ceil(mean + _REACH * spread) + 100)
    _check_table(high - low, "trials", trials)
    # Log-ratios of neighbours, summed: far more accurate than differences of log-gammas.
    x = np.arange(low + 1, high + 1, dtype=np.float64)
    ratios = np.log((trials - x + 1) / x) + math.log(probability) - math.log1p(-probability)
    log = np.concatenate([[0.0], np.cumsum(ratios)])
    log -= log.max()
    log -= math.log(np.exp(log).sum())
    return NoisePmf(low, log, 0.0 if high - low == trials else _OUTSIDE)


def poisson_pmf(mean: float) -> NoisePmf:
    """Poisson noise; the table is cut beyond 12 standard deviations (plus 150).

    >>> round(poisson_pmf(25.0).variance, 9)
    25.0
    """
    _validate.positive(mean=mean)
    spread = math.sqrt(mean)
    low = max(0, math.floor(mean - _REACH * spread))
    high = math.ceil(mean + _REACH * spread) + 150
    _check_table(high - low, "mean", mean)
    ratios = math.log(mean) - np.log(np.arange(low + 1, high + 1, dtype=np.float64))
    log = np.concatenate([[0.0], np.cumsum(ratios)])
    log -= log.max()
    return NoisePmf(low, log - math.log(np.exp(log).sum()), _OUTSIDE)


def table_pmf(weights: IntArray, first: int) -> NoisePmf:
    """Noise drawn from a table of integer weights (see `Sampler.table`)."""
    table = check_weights(weights)
    with np.errstate(divide="ignore"):
        return NoisePmf(first, np.log(table) - math.log(int(table.sum())))


def _check_table(size: int, name: str, value: float) -> None:
    if size > _LARGEST_TABLE:
        raise CalibrationError(
            f"The noise of {name}={value:g} spreads over more than {_LARGEST_TABLE:,} integers: "
            f"too much to compose exactly; ask for a larger epsilon."
        )
