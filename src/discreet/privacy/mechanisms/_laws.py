"""Laws of integer noise on one counter, with the tail bounds that error bounds are made of.

Every bound is a Chernoff bound: for independent centred terms X_i with weights w_i and any t > 0,
P(|sum w_i X_i| > x) <= 2·exp(sum log M(w_i t) - t·x), with M the law's exact moment generating
function (the laws are symmetric). Each t gives a proven bound, so the least over a grid is one too.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np

from discreet import _validate
from discreet._types import FloatArray, IntArray, JsonObject, Plain
from discreet.errors import UnknownNameError, UnsupportedError
from discreet.privacy.accounting.closed_forms import gaussian_variance, laplace_variance
from discreet.privacy.sampling.samplers import Sampler, Size

CHERNOFF_GRID = np.geomspace(1e-7, 1 - 1e-7, 512)
"""Values of t, as fractions of the largest one allowed."""


class TailLaw(ABC):
    """A centred error on one counter whose tails are known through its moments."""

    @property
    @abstractmethod
    def mgf_limit(self) -> float:
        """The moment generating function is finite (and evaluated) below this t."""

    @abstractmethod
    def log_mgf(self, t: FloatArray) -> FloatArray:
        """An upper bound on log E[exp(±t·X)] (exact unless said otherwise)."""

    def bound(self, terms: dict[float, float], failure: float) -> float:
        """What |weighted sum| exceeds with probability at most ``failure``.

        Args:
            terms: weight -> number of independent draws that carry it.
            failure: a probability in (0, 1).
        """
        check_failure(failure)
        t = CHERNOFF_GRID * (self.mgf_limit / max(terms))
        total = sum(count * self.log_mgf(weight * t) for weight, count in terms.items())
        return float(np.min((total + math.log(2 / failure)) / t))

    def sum_bounds(self, terms: IntArray, failure: float) -> FloatArray:
        """`bound` of plain sums of ``terms`` draws, for many numbers of draws at once.

        For each t the bound is a line in the number of draws: the answer is their lower envelope.
        """
        check_failure(failure)
        t = CHERNOFF_GRID * self.mgf_limit
        slopes, offsets = self.log_mgf(t) / t, math.log(2 / failure) / t
        best, starts = lower_envelope(slopes, offsets)
        counts = np.atleast_1d(np.asarray(terms, np.float64))
        out = np.empty(counts.shape)
        for first in range(0, counts.size, 1 << 20):  # long streams: bounded memory
            part = counts[first : first + (1 << 20)]
            line = best[np.searchsorted(starts, part, "right") - 1]
            out[first : first + part.size] = part * slopes[line] + offsets[line]
        return out


def lower_envelope(slopes: FloatArray, offsets: FloatArray) -> tuple[IntArray, FloatArray]:
    """The lines slope·x + offset that are least somewhere in x >= 0, and from which x on.

    >>> lines, starts = lower_envelope(np.array([0.0, 1.0, 5.0]), np.array([4.0, 1.0, 0.5]))
    >>> lines.tolist(), starts.tolist()
    ([2, 1, 0], [0.0, 0.125, 3.0])
    """
    lines: list[int] = []
    starts: list[float] = []
    for line in np.lexsort((-slopes, offsets)):  # from the lowest at zero upwards
        while lines:
            top = lines[-1]
            if slopes[line] >= slopes[top]:
                break  # never below what is already there
            cross = (offsets[line] - offsets[top]) / (slopes[top] - slopes[line])
            if cross > starts[-1]:
                lines.append(int(line))
                starts.append(float(cross))
                break
            lines.pop()
            starts.pop()
        if not lines:
            lines, starts = [int(line)], [0.0]
    return np.array(lines), np.array(starts)


class NoiseLaw(TailLaw):
    """Symmetric integer noise on one counter."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def variance(self) -> float:
        """Exact variance of one draw."""

    @abstractmethod
    def draw(self, sampler: Sampler, size: Size) -> IntArray:
        """Independent draws."""

    @abstractmethod
    def draw_sum(self, sampler: Sampler, terms: int, size: Size) -> IntArray:
        """Sums of ``terms`` independent draws each."""

    def scaled(self, factor: float) -> "NoiseLaw":
        """The same kind of noise, ``factor`` times as large."""
        raise UnsupportedError(
            f"Noise of kind {self.kind!r} has no scale; use Laplace or Gaussian."
        )

    def to_dict(self) -> dict[str, Plain]:
        """Plain values for JSON: the kind, and the parameters by name."""
        return {"law": self.kind, **vars(self)}


class ScaleLaw(NoiseLaw):
    """A law whose one parameter is a scale."""

    def __post_init__(self) -> None:
        _validate.positive(**vars(self))

    def scaled(self, factor: float) -> Self:
        """The same kind of noise, ``factor`` times as large."""
        return type(self)(**{name: value * factor for name, value in vars(self).items()})


@dataclass(frozen=True)
class LaplaceLaw(ScaleLaw):
    """P(x) proportional to exp(-|x| / scale).

    >>> round(LaplaceLaw(36.0).variance ** 0.5, 1)
    50.9
    """

    scale: float
    kind: ClassVar[str] = "laplace"

    @property
    def variance(self) -> float:
        """2q/(1-q)² with q = exp(-1/scale)."""
        return laplace_variance(self.scale)

    @property
    def mgf_limit(self) -> float:
        """1 / scale."""
        return 1.0 / self.scale

    def log_mgf(self, t: FloatArray) -> FloatArray:
        """(1-q)² / ((1 - q·e^t)(1 - q·e^-t)), in logarithms: -log(1 - sinh²(t/2)/sinh²(1/2b))."""
        ratio = np.sinh(t / 2) / math.sinh(0.5 / self.scale)
        value: FloatArray = -np.log1p(-(ratio**2))
        return value

    def draw(self, sampler: Sampler, size: Size) -> IntArray:
        """Independent draws."""
        return sampler.discrete_laplace(self.scale, size)

    def draw_sum(self, sampler: Sampler, terms: int, size: Size) -> IntArray:
        """Sums of ``terms`` independent draws each."""
        return sampler.laplace_sum(self.scale, terms, size)


@dataclass(frozen=True)
class GaussianLaw(ScaleLaw):
    """P(x) proportional to exp(-x² / (2 sigma²)).

    It is sub-Gaussian: E[exp(tX)] <= exp(t²·sigma²/2) (Canonne, Kamath and Steinke, 2020).
    """

    sigma: float
    kind: ClassVar[str] = "gaussian"

    @property
    def variance(self) -> float:
        """Sigma², up to 1e-15 from sigma = 2."""
        return gaussian_variance(self.sigma)

    @property
    def mgf_limit(self) -> float:
        """Finite everywhere; tails of a hundred sigmas are enough for the grid."""
        return 100.0 / self.sigma

    def log_mgf(self, t: FloatArray) -> FloatArray:
        """The sub-Gaussian upper bound t²·sigma²/2."""
        value: FloatArray = (t * self.sigma) ** 2 / 2
        return value

    def bound(self, terms: dict[float, float], failure: float) -> float:
        """The Chernoff bound in closed form: sigma·sqrt(2·sum of squared weights·ln(2/failure))."""
        check_failure(failure)
        squares = sum(count * weight**2 for weight, count in terms.items())
        return self.sigma * math.sqrt(2 * squares * math.log(2 / failure))

    def sum_bounds(self, terms: IntArray, failure: float) -> FloatArray:
        """In closed form."""
        check_failure(failure)
        value: FloatArray = self.sigma * np.sqrt(
            2 * np.atleast_1d(np.asarray(terms, np.float64)) * math.log(2 / failure)
        )
        return value

    def draw(self, sampler: Sampler, size: Size) -> IntArray:
        """Independent draws."""
        return sampler.discrete_gaussian(self.sigma, size)

    def draw_sum(self, sampler: Sampler, terms: int, size: Size) -> IntArray:
        """Sums of ``terms`` independent draws each."""
        return sampler.gaussian_sum(self.sigma, terms, size)


@dataclass(frozen=True)
class BoundedLaw(NoiseLaw):
    """Bounded noise of Dagan and Kur (2022) on the integers between -radius and radius.

    P(x) proportional to exp(-exp(1/(1 - (x/radius)²))), in integer weights of total about 2^60
    (values whose weight rounds to zero are left out): samplers draw exactly these weights, and the
    calibration composes exactly these weights.
    """

    radius: int
    kind: ClassVar[str] = "bounded"

    def __post_init__(self) -> None:
        _validate.count(2, radius=self.radius)

    @property
    def weights(self) -> IntArray:
        """Integer weights of the values -m .. m, all positive."""
        return _bounded_weights(self.radius)

    @property
    def largest(self) -> int:
        """m, the largest value that is ever drawn."""
        return len(self.weights) // 2

    @property
    def variance(self) -> float:
        """Summed over the table."""
        values, probabilities = self._table()
        return float(probabilities @ values**2)

    @property
    def mgf_limit(self) -> float:
        """Finite everywhere; a hundred standard deviations are enough for the grid."""
        return 100.0 / math.sqrt(self.variance)

    def log_mgf(self, t: FloatArray) -> FloatArray:
        """Summed over the table."""
        values, probabilities = self._table()
        exponents = np.outer(t, values) + np.log(probabilities)
        top = exponents.max(axis=1)
        value: FloatArray = top + np.log(np.exp(exponents - top[:, None]).sum(axis=1))
        return value

    def _table(self) -> tuple[FloatArray, FloatArray]:
        weights = self.weights.astype(np.float64)
        values = np.arange(-self.largest, self.largest + 1, dtype=np.float64)
        return values, weights / weights.sum()

    def draw(self, sampler: Sampler, size: Size) -> IntArray:
        """Independent draws."""
        return sampler.table(self.weights, size) - self.largest

    def draw_sum(self, sampler: Sampler, terms: int, size: Size) -> IntArray:
        """Sums of ``terms`` draws; many terms go through one multinomial per counter."""
        if terms <= 32:
            return np.asarray(sum(self.draw(sampler, size) for _ in range(terms)), np.int64)
        return sampler.table_sum(self.weights, terms, size) - terms * self.largest


@lru_cache(maxsize=32)
def _bounded_weights(radius: int) -> IntArray:
    inside = np.arange(-radius + 1, radius) / radius
    # exp(-exp(.)) relative to its largest value, at zero; far below 2^-60 it is zero anyway.
    log = math.e - np.exp(np.minimum(1 / (1 - inside**2), 20.0))
    density = np.exp(log)
    weights = np.rint(density / density.sum() * 2.0**60).astype(np.int64)
    return np.asarray(weights[weights > 0], np.int64)


LAWS: dict[str, type[NoiseLaw]] = {law.kind: law for law in (LaplaceLaw, GaussianLaw, BoundedLaw)}


def law_from_dict(data: JsonObject) -> NoiseLaw:
    """The inverse of `NoiseLaw.to_dict`."""
    values = dict(data)
    kind = values.pop("law")
    if kind not in LAWS:
        raise UnknownNameError("noise law", str(kind), LAWS)
    return LAWS[kind](**values)


@dataclass(frozen=True)
class FlipTail(TailLaw):
    """Error of one debiased bit that is flipped with probability ``flip``.

    The error is ±(f - q)/(1 - 2q) with f ~ Bernoulli(q); the sign depends on the true bit, so the
    larger of both moment generating functions is used.
    """

    flip: float

    @property
    def variance(self) -> float:
        """q(1-q)/(1-2q)², whatever the bit."""
        return self.flip * (1 - self.flip) / (1 - 2 * self.flip) ** 2

    @property
    def mgf_limit(self) -> float:
        """Finite everywhere."""
        return 100.0 / math.sqrt(self.variance)

    def log_mgf(self, t: FloatArray) -> FloatArray:
        """The larger of both signs."""
        scaled = t / (1 - 2 * self.flip)
        both = bit_log_mgf(self.flip, scaled), bit_log_mgf(self.flip, -scaled)
        value: FloatArray = np.maximum(*both)
        return value


def bit_log_mgf(probability: float, t: FloatArray) -> FloatArray:
    """Log E[exp(t·(B - p))] of a centred bit, without overflow."""
    value: FloatArray = np.logaddexp(math.log1p(-probability), math.log(probability) + t)
    return value - probability * t


def check_failure(failure: float) -> None:
    """A failure probability lies strictly between 0 and 1."""
    _validate.positive(failure=failure)
    _validate.delta(failure=failure)
