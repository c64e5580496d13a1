"""Noise: its distribution on one counter, and over time on a cumulative one.

**Distributions** of integer noise come with the tail bounds that error bounds are made of. Every
bound is a Chernoff bound: for independent centred terms X_i with weights w_i and any t > 0,
P(|sum w_i X_i| > x) <= 2·exp(sum log M(w_i t) - t·x), with M the exact moment generating function
(all are symmetric). Each t gives a proven bound, so the least over a grid is one too.

**Over time.** A `CumulativeNoise` is a distribution over time for one counter (counters are
independent); it knows nothing of MDPs, so that the same code serves transition counts, visits,
rewards and loss vectors. A `NoiseRun` is one realisation, drawn in pieces of a fixed size: how a
caller cuts its blocks never changes a value.

**Exactness.** Blocks hand out noise as doubles, to which true counts are added. Beyond 2^53 doubles
are even: noise loses its low bits there, and count + noise tells the parity of the count, whatever
the scale of the noise. So noise is summed in 64-bit integers, and a mechanism whose noise comes
near 2^53 is not made (`check_exact`): 64 standard deviations must stay below 2^52 steps of the
released grid, which leaves the other 2^52 to the counts. Sums of Laplace draws are the widest, and
exceed 64 standard deviations with a probability below e^-90.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, NamedTuple, Self

import numpy as np

from discreet import _validate
from discreet._types import FloatArray, IntArray, NumberArray, Plain
from discreet.errors import (
    CalibrationError,
    InvalidInputError,
    UnsupportedError,
)
from discreet.privacy.accounting.closed_forms import (
    gaussian_variance,
    laplace_variance,
)
from discreet.privacy.guarantee import rounded_down, rounded_up
from discreet.privacy.mechanisms.base import Certified, worst_times
from discreet.privacy.sampling.samplers import Sampler, Size
from discreet.privacy.sensitivity import Sensitivity

CHERNOFF_GRID = np.geomspace(1e-7, 1 - 1e-7, 512)
"""Values of t, as fractions of the largest one allowed."""


class Tail(ABC):
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


class NoiseDistribution(Tail):
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

    def scaled(self, factor: float) -> "NoiseDistribution":
        """The same kind of noise, ``factor`` times as large."""
        raise UnsupportedError(
            f"Noise of kind {self.kind!r} has no scale; use Laplace or Gaussian."
        )

    def certified(self) -> Certified:
        """As a certificate names it: its own numbers, exactly."""
        raise UnsupportedError(f"Noise of the kind {self.kind!r} is not covered by certificates.")

    def concentrated(self, l2: float, copies: int = 1) -> float | None:
        """Rho of zero-concentrated privacy for a move of this length, ``copies`` times over."""
        return None


@dataclass(frozen=True)
class Laplace(NoiseDistribution):
    """P(x) proportional to exp(-|x| / scale).

    >>> round(Laplace(36.0).variance ** 0.5, 1)
    50.9
    """

    scale: float
    kind: ClassVar[str] = "laplace"

    def __post_init__(self) -> None:
        _validate.positive(scale=self.scale)

    def scaled(self, factor: float) -> Self:
        return type(self)(self.scale * factor)

    @property
    def variance(self) -> float:
        """2q/(1-q)² with q = exp(-1/scale)."""
        return laplace_variance(self.scale)

    @property
    def mgf_limit(self) -> float:
        return 1.0 / self.scale

    def log_mgf(self, t: FloatArray) -> FloatArray:
        """(1-q)² / ((1 - q·e^t)(1 - q·e^-t)), in logarithms: -log(1 - sinh²(t/2)/sinh²(1/2b))."""
        ratio = np.sinh(t / 2) / math.sinh(0.5 / self.scale)
        value: FloatArray = -np.log1p(-(ratio**2))
        return value

    def draw(self, sampler: Sampler, size: Size) -> IntArray:
        return sampler.discrete_laplace(self.scale, size)

    def draw_sum(self, sampler: Sampler, terms: int, size: Size) -> IntArray:
        return sampler.laplace_sum(self.scale, terms, size)

    def certified(self) -> Certified:
        return "discrete-laplace", {"scale": Fraction(self.scale)}


@dataclass(frozen=True)
class Gaussian(NoiseDistribution):
    """P(x) proportional to exp(-x² / (2 sigma²)).

    It is sub-Gaussian: E[exp(tX)] <= exp(t²·sigma²/2) (Canonne, Kamath and Steinke, 2020).
    """

    sigma: float
    kind: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        _validate.positive(sigma=self.sigma)

    def scaled(self, factor: float) -> Self:
        return type(self)(self.sigma * factor)

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
        check_failure(failure)
        value: FloatArray = self.sigma * np.sqrt(
            2 * np.atleast_1d(np.asarray(terms, np.float64)) * math.log(2 / failure)
        )
        return value

    def draw(self, sampler: Sampler, size: Size) -> IntArray:
        return sampler.discrete_gaussian(self.sigma, size)

    def draw_sum(self, sampler: Sampler, terms: int, size: Size) -> IntArray:
        return sampler.gaussian_sum(self.sigma, terms, size)

    def certified(self) -> Certified:
        return "discrete-gaussian", {"sigma": Fraction(self.sigma)}

    def concentrated(self, l2: float, copies: int = 1) -> float | None:
        return float(copies * l2**2 / (2 * self.sigma**2))


@dataclass(frozen=True)
class Bounded(NoiseDistribution):
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
        values, probabilities = self._table()
        return float(probabilities @ values**2)

    @property
    def mgf_limit(self) -> float:
        """Finite everywhere; a hundred standard deviations are enough for the grid."""
        return 100.0 / math.sqrt(self.variance)

    def log_mgf(self, t: FloatArray) -> FloatArray:
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
        return sampler.table(self.weights, size) - self.largest

    def draw_sum(self, sampler: Sampler, terms: int, size: Size) -> IntArray:
        """Sums of ``terms`` draws; many terms go through one multinomial per counter."""
        if terms <= 32:
            return np.asarray(sum(self.draw(sampler, size) for _ in range(terms)), np.int64)
        return sampler.table_sum(self.weights, terms, size) - terms * self.largest

    def certified(self) -> Certified:
        weights = tuple(int(w) for w in self.weights)
        return "table", {"weights": weights, "draws": 1}


@dataclass(frozen=True)
class NoNoise(NoiseDistribution):
    """Zero: what the non-private twin adds. It asks no sampler for anything."""

    kind: ClassVar[str] = "none"

    @property
    def variance(self) -> float:
        return 0.0

    @property
    def mgf_limit(self) -> float:
        return math.inf

    def log_mgf(self, t: FloatArray) -> FloatArray:
        return np.zeros_like(t)

    def draw(self, sampler: Sampler, size: Size) -> IntArray:
        return np.zeros(size, np.int64)

    def draw_sum(self, sampler: Sampler, terms: int, size: Size) -> IntArray:
        return np.zeros(size, np.int64)


@lru_cache(maxsize=32)
def _bounded_weights(radius: int) -> IntArray:
    inside = np.arange(-radius + 1, radius) / radius
    # exp(-exp(.)) relative to its largest value, at zero; far below 2^-60 it is zero anyway.
    log = math.e - np.exp(np.minimum(1 / (1 - inside**2), 20.0))
    density = np.exp(log)
    weights = np.rint(density / density.sum() * 2.0**60).astype(np.int64)
    return np.asarray(weights[weights > 0], np.int64)


def bit_log_mgf(probability: float, t: FloatArray) -> FloatArray:
    """Log E[exp(t·(B - p))] of a centred bit, without overflow."""
    value: FloatArray = np.logaddexp(math.log1p(-probability), math.log(probability) + t)
    return value - probability * t


def check_failure(failure: float) -> None:
    """A failure probability lies strictly between 0 and 1."""
    _validate.positive(failure=failure)
    _validate.delta(failure=failure)


_PIECE = 1 << 18
"""Noise values drawn ahead (2 MB)."""
_STRIP = 1 << 15
"""Fresh draws made at a time (256 KB): two large arrays per piece would be given back to the
operating system and asked for again, page by page, which costs as much as the draws."""


def strips(rows: int, cells: int) -> Iterator[slice]:
    """The rows of a piece in strips of a few draws each, in order."""
    step = max(1, _STRIP // max(1, cells))
    return (slice(start, min(rows, start + step)) for start in range(0, rows, step))


class GridDraws(NamedTuple):
    """Noise that is continuous up to the cost of its grid.

    Attributes:
        ratio: L2 of a unit move of one counter, in standard deviations.
        steps: the least standard deviation of a draw, in grid steps.
        draws: how many draws a move of one counter touches.
    """

    ratio: float
    steps: float
    draws: int


@dataclass(frozen=True, kw_only=True)
class CumulativeNoise(ABC):
    """The noise on one cumulative counter over a stream of ``episodes`` releases."""

    episodes: int
    grid_bits: ClassVar[int] = 0
    """What is released are multiples of 2^-grid_bits: whole numbers, for integer noise."""

    def __post_init__(self) -> None:
        _validate.count(episodes=self.episodes)

    def times(self, asked: IntArray | None) -> IntArray:
        """These numbers of users, or 1, 2, ..., ``episodes``."""
        return np.arange(1, self.episodes + 1) if asked is None else asked

    @property
    def draws_moved(self) -> int:
        """Draws that hide one unit of one user; who does not say it serves no losses."""
        raise UnsupportedError(f"No loss release exists for {type(self).__name__}.")

    @property
    def unit(self) -> float:
        """The step of the released grid."""
        return math.ldexp(1.0, -self.grid_bits)

    @abstractmethod
    def variance(self, episode: int) -> float:
        """Exact variance of the noise released after ``episode`` users."""

    @abstractmethod
    def bound(self, episode: int, failure: float) -> float:
        """What |noise| after ``episode`` users exceeds with probability at most ``failure``."""

    def bounds(self, failure: float, times: IntArray | None = None) -> FloatArray:
        """`bound` after so many users each; after 1, 2, ..., ``episodes`` if none are given."""
        return np.array([self.bound(int(k), failure) for k in self.times(times)])

    def start(self, cells: int, sampler: Sampler) -> "NoiseRun":
        """One realisation on ``cells`` independent counters."""
        return NoiseRun(self, cells, sampler)

    @abstractmethod
    def state(self, cells: int) -> list[IntArray]:
        """What a run keeps between two pieces, before the first one."""

    @abstractmethod
    def rows(self, first: int, rows: int, state: list[IntArray], sampler: Sampler) -> FloatArray:
        """Cumulative noise after releases ``first + 1 .. first + rows``; changes the state."""

    def worst_time(self, users: int) -> int:
        """After how many of ``users`` users the noise is largest."""
        return max(worst_times(users), key=self.variance)

    def padded_variant(self) -> "CumulativeNoise | None":
        """The same noise, padded to look alike at all times (paper 004); None where unknown."""
        return None

    @property
    def facts(self) -> dict[str, Plain]:
        """What a certificate says of the release beyond the mechanism's name and length."""
        return {}

    def certified(self, sensitivity: Sensitivity) -> Certified:
        """What a certificate has to bound, for counters of this sensitivity."""
        raise UnsupportedError(f"{type(self).__name__} is not covered by certificates.")

    def concentrated(self, l2: float) -> float | None:
        """Rho of zero-concentrated privacy: half the squared distance of the worst user."""
        grid = self.on_grid()
        return None if grid is None else float((l2 * grid.ratio) ** 2 / 2)

    def l2(self, sensitivity: Sensitivity) -> float:
        """How far one person moves the counters of a release, in which participations meet."""
        return sensitivity.l2 * math.sqrt(sensitivity.participations)

    def on_grid(self) -> "GridDraws | None":
        """How its draws lie on a grid; None for integers."""
        return None

    def scaled(self, factor: float, *, pile: int = 1) -> "CumulativeNoise":
        """``factor`` times as much noise, on counters that one user moves by ``pile``."""
        raise UnsupportedError(f"{type(self).__name__} has no scale.")

    def check_episode(self, episode: int) -> None:
        """Releases are numbered by the users seen: 1 .. episodes."""
        check_episode(episode, self.episodes)


def check_episode(episode: int, episodes: int) -> None:
    """Releases are numbered by the users seen: 1 .. episodes."""
    _validate.count(episode=episode)
    if episode > episodes:
        raise InvalidInputError(
            f"Expected episode <= {episodes} (the length of the stream), got {episode}; "
            f"calibrate a longer stream."
        )


_EXACT = 2.0**52
"""Half of the integers that doubles hold one by one: for the noise; the rest is for counts."""
_SPREADS = 64
"""Standard deviations that must fit: a Laplace draw exceeds them with probability e^-90."""


def check_exact(variance: float, unit: float = 1.0) -> None:
    """Refuse noise so wide that it would lose its low bits, and betray parities, as a double."""
    spread = math.sqrt(variance) / unit
    if not _SPREADS * spread <= _EXACT:
        most = rounded_down(_EXACT / _SPREADS)
        raise CalibrationError(
            f"Expected noise of a standard deviation up to {most} steps, "
            f"got {rounded_up(spread)}: it would leave the integers that double precision holds "
            f"exactly; use a larger epsilon, or fewer users or releases."
        )


class Pieces:
    """Arrays over time, drawn in pieces of a fixed length and handed out in any lengths."""

    def __init__(
        self,
        draw: Callable[[int, int], tuple[NumberArray, ...]],
        *,
        width: int,
        episodes: int,
        secure: bool,
    ) -> None:
        """``draw(first, rows)`` returns the rows ``first .. first + rows - 1`` of each array."""
        self._draw = draw
        # Secure noise is slow and secret: none is drawn before its time.
        self._piece = 1 if secure else max(1, _PIECE // max(1, width))
        self._episodes = episodes
        self._drawn = self._taken = 0
        self._left: tuple[NumberArray, ...] | None = None

    def take(self, rows: int) -> tuple[NumberArray, ...]:
        """The next ``rows`` rows of each array."""
        _validate.count(0, episodes=rows)
        if self._taken + rows > self._episodes:
            raise InvalidInputError(
                f"Expected at most {self._episodes} releases in this stream; "
                f"calibrate a longer stream (its guarantee covers {self._episodes})."
            )
        parts = [self._left] if self._left is not None else []
        while not parts or self._drawn - self._taken < rows:
            more = min(self._piece, self._episodes - self._drawn)
            parts.append(self._draw(self._drawn, more))
            self._drawn += more
        joined = (
            parts[0] if len(parts) == 1 else tuple(map(np.concatenate, zip(*parts, strict=True)))
        )
        self._taken += rows
        used_up = self._taken == self._drawn
        self._left = None if used_up else tuple(array[rows:] for array in joined)
        return tuple(array[:rows] for array in joined)


class NoiseRun:
    """One realisation of cumulative noise, handed out in blocks or added to users' counters."""

    def __init__(self, noise: CumulativeNoise, cells: int, sampler: Sampler) -> None:
        self.cells, self.sampler, self.noise = cells, sampler, noise
        self._counts, state = np.zeros(cells, np.int64), noise.state(cells)
        self._pieces = Pieces(
            lambda first, rows: (noise.rows(first, rows, state, sampler),),
            width=cells,
            episodes=noise.episodes,
            secure=sampler.secure,
        )

    def block(self, episodes: int) -> FloatArray:
        """Noise after each of the next ``episodes`` releases, ``[episodes, cells]``.

        All values lie on the released grid, so that count plus noise is exact in double precision
        and its low-order bits are those of the noise, whatever the count.
        """
        return self._pieces.take(episodes)[0]

    def add(self, vector: IntArray) -> IntArray:
        """Take one user's counters; what is released after her, in steps of the released grid."""
        bits = self.noise.grid_bits
        noise = np.ldexp(self.block(1)[0], bits)  # refuses first, at the stream's end
        self._counts += vector
        released: IntArray = (self._counts << bits) + noise.astype(np.int64)
        return released


@dataclass(frozen=True, kw_only=True)
class IndependentNoise(CumulativeNoise):
    """Every user adds fresh noise of one distribution: the local model."""

    distribution: NoiseDistribution
    copies: int = 1
    """Draws per user and counter (more than one where reports are pooled after the noise)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_exact(self.variance(self.episodes))

    def variance(self, episode: int) -> float:
        self.check_episode(episode)
        return episode * self.copies * self.distribution.variance

    def bound(self, episode: int, failure: float) -> float:
        """Chernoff bound of a sum of independent draws."""
        self.check_episode(episode)
        return self.distribution.bound({1.0: float(episode * self.copies)}, failure)

    def bounds(self, failure: float, times: IntArray | None = None) -> FloatArray:
        return self.distribution.sum_bounds(self.copies * self.times(times), failure)

    def state(self, cells: int) -> list[IntArray]:
        return [np.zeros(cells, np.int64)]

    def rows(self, first: int, rows: int, state: list[IntArray], sampler: Sampler) -> FloatArray:
        from discreet.privacy.mechanisms._kernels import running_sums

        (total,) = state
        out = np.empty((rows, total.size))
        for strip in strips(rows, total.size):
            part = out[strip]
            if self.copies == 1:
                fresh = self.distribution.draw(sampler, part.shape)
            else:
                fresh = self.distribution.draw_sum(sampler, self.copies, part.shape)
            running_sums(fresh, total, part)  # whole numbers below 2^53, summed as such
        return out

    @property
    def draws_moved(self) -> int:
        return self.copies

    def certified(self, sensitivity: Sensitivity) -> Certified:
        if isinstance(self.distribution, Gaussian) and sensitivity.pile > 1:
            raise UnsupportedError(
                "Gaussian noise on counters that are pooled over steps is not covered by "
                "certificates."
            )
        return self.distribution.certified()

    def concentrated(self, l2: float) -> float | None:
        return self.distribution.concentrated(l2, self.copies)

    def l2(self, sensitivity: Sensitivity) -> float:
        """Every report has noise of its own."""
        return sensitivity.l2

    def scaled(self, factor: float, *, pile: int = 1) -> "IndependentNoise":
        return replace(self, distribution=self.distribution.scaled(factor))


@dataclass(frozen=True, kw_only=True)
class NoCumulativeNoise(CumulativeNoise):
    """Zero, after every release."""

    def variance(self, episode: int) -> float:
        return 0.0

    def bound(self, episode: int, failure: float) -> float:
        return 0.0

    def state(self, cells: int) -> list[IntArray]:
        return [np.zeros(cells, np.int64)]

    def rows(self, first: int, rows: int, state: list[IntArray], sampler: Sampler) -> FloatArray:
        return np.zeros((rows, state[0].size))
