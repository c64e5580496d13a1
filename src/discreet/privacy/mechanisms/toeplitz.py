"""Central, continual release by the square-root Toeplitz factorisation (Gaussian noise).

Prefix sums are A·x with A the lower-triangular matrix of ones. Factor A = B·C, release the encoded
stream y = C·x + z with Gaussian z, and decode: B·y = A·x + B·z. With B = C = A^(1/2), the Toeplitz
matrix of the series (1-u)^(-1/2), the noise at the worst time is within a small additive constant
of the best possible factorisation (Fichtenberger, Henzinger and Upadhyay 2023; Henzinger, Upadhyay
and Upadhyay 2023): it grows like log(K)/pi, where the tree pays about log2(K).

**Exact grid.** C has irrational entries, and no floating-point noise may be released. So

* b_j = sum over m of w_m·theta_m^j, about 12 exponentials that approximate the coefficients of
  (1-u)^(-1/2) (trapezoidal rule for the integral (1/pi)∫ theta^(j-1/2) (1-theta)^(-1/2) dtheta on a
  logistic grid; the device of Dvijotham, McMahan, Pillutla, Steinke and Thakurta 2024). The product
  of the two norms, hence the noise, is within 0.04% of the square root's for all K up to 1e6;
* c_t are the multiples of 2^-bits that solve (b·c)_t = 1, rounding errors fed back, so that
  |(b·c)_t - 1| <= 2^-bits: decoded counts are off by less than a 1e-7th of themselves;
* y = C·x + z is a vector of multiples of 2^-bits: x are integers, and z is *discrete* Gaussian on
  the grid. Decoding is post-processing: a fixed function of y, in floating point, rounded to
  multiples of 2^-26 (by floor(x + 1/2), which commutes with adding integers).

Noise of a block costs one pass over a state of about 12 numbers per counter: memory does not grow
with K, and block boundaries play no role.

**Proof.** Let user i be replaced. C is lower triangular and z_t is independent of everything before
t. Given all earlier releases, and whatever the later users do in response to them, y_t of the two
neighbours have the same noise and means that differ by c_(t-i)·d, where d is the move of user i:
the later users' data are functions of the releases, hence the same on both sides. So the privacy
loss of an *adaptive* stream is that of one Gaussian release with shifts c_(t-i)·d, as for the
general Gaussian matrix mechanism (Denisov, McMahan, Rush, Smith and Thakurta 2022, Theorem 2.1);
its L2 is at most l2·sqrt(sum of c_t² over t < K), computed on the rounded coefficients.
The analytic Gaussian calibration (Balle and Wang 2018) holds for continuous noise, hence for
continuous noise rounded to the grid (post-processing, because C·x lies on the grid). A discrete
Gaussian of s grid steps is within 1/(8s²) in total variation of a rounded one (below), only the
units·K shifted coordinates matter, and replacing a mechanism by one within total variation tau
costs (1 + e^epsilon)·tau of delta, which is set aside. (From about epsilon = 25 on that cost is too
large, and sigma comes from zero-concentrated privacy, which discrete noise satisfies as it is.)

*Total variation.* With p discrete and q rounded Gaussian, up to the normaliser (off by less than
3·exp(-2·pi²·s²)), q(n)/p(n) is the mean of exp(-u²/2s²)·cosh(n·u/s²) over |u| <= 1/2, hence between
1 - 1/(8s²)/3 and exp(n²/(8s⁴)). A discrete Gaussian is sub-Gaussian, so E exp(n²/8s⁴) is at most
(1 - 1/(4s²))^(-1/2). Half the sum of both deviations is below 1/(8s²) for s >= 2.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.privacy.calibration.closed_forms import gaussian_sigma
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.mechanisms.cumulative import (
    AdditiveStream,
    CumulativeNoise,
    NoiseRun,
    Reach,
    promise,
)
from discreet.privacy.mechanisms.laws import GaussianLaw
from discreet.privacy.mechanisms.printed import no_printed_constants
from discreet.privacy.noise import IntArray, Sampler
from discreet.privacy.release import FloatArray

if TYPE_CHECKING:
    from discreet.privacy.trust import _Private

_SPACING, _MARGIN = 2.0, 6.0
"""Logistic grid of the exponentials: spacing 2, from -6 to log K + 6 (12 to 14 nodes)."""
_GRIDS = (24, 40)
_PIECE = 1 << 20
_RELEASED_BITS = 26
"""Of the released grid: sums up to 2^27 are exact in double precision."""


@dataclass(frozen=True)
class Factors:
    """The factorisation for streams of one length.

    Attributes:
        weights: w_m, with sum one.
        decays: theta_m.
        gaps: 1 - theta_m, kept separately for precision.
        bits: the grid is 2^-bits.
        squares: sum of c_t² over the stream, rounded up.
    """

    episodes: int
    weights: FloatArray
    decays: FloatArray
    gaps: FloatArray
    bits: int
    squares: float

    def encoder(self) -> IntArray:
        """The coefficients c_t for t < episodes, in grid steps."""
        from discreet.privacy.mechanisms._kernels import encoder_piece

        out = np.empty(self.episodes, np.int64)
        state = np.zeros_like(self.weights)
        encoder_piece(self.weights, self.decays, 2.0**self.bits, state, out)
        return out

    def decoder_squares(self, episode: int) -> float:
        """Sum of b_j² over j < episode, in closed form (geometric sums)."""
        gaps = self.gaps[:, None] + self.gaps - self.gaps[:, None] * self.gaps
        logs = np.log1p(-self.gaps)
        sums = -np.expm1(episode * (logs[:, None] + logs)) / gaps
        return float(self.weights @ sums @ self.weights)


@lru_cache(maxsize=16)
def factors(episodes: int, bits: int = _GRIDS[0]) -> Factors:
    """Decoder and encoder for a stream of ``episodes``.

    >>> f = factors(20_000)
    >>> round(math.sqrt(f.squares * f.decoder_squares(20_000)), 2)  # the square root has 4.2186
    4.22
    """
    from discreet.privacy.mechanisms._kernels import encoder_piece

    span = math.log(episodes) + 2 * _MARGIN
    grid = -_MARGIN + _SPACING * (np.arange(math.ceil(span / _SPACING)) + 0.5)
    decays, gaps = 1 / (1 + np.exp(-grid)), 1 / (1 + np.exp(grid))
    weights = np.sqrt(decays * gaps)
    weights /= weights.sum()
    state, squares = np.zeros_like(weights), 0.0
    for first in range(0, episodes, _PIECE):
        piece = np.empty(min(_PIECE, episodes - first), np.int64)
        encoder_piece(weights, decays, 2.0**bits, state, piece)
        squares += float(np.sum(np.ldexp(piece.astype(np.float64), -bits) ** 2))
    return Factors(episodes, weights, decays, gaps, bits, squares * (1 + 1e-12))


@dataclass(frozen=True, kw_only=True)
class ToeplitzNoise(CumulativeNoise):
    """Decoded Gaussian noise, ``steps`` grid steps of sigma on every encoded value."""

    steps: float
    bits: int
    grid_bits: ClassVar[int] = _RELEASED_BITS

    @property
    def factors(self) -> Factors:
        """The factorisation (cached)."""
        return factors(self.episodes, self.bits)

    @property
    def sigma(self) -> float:
        """Standard deviation on an encoded value, in units."""
        return math.ldexp(self.steps, -self.bits)

    def variance(self, episode: int) -> float:
        """sigma² times the sum of b_j² over j < episode."""
        self.check_episode(episode)
        return self.sigma**2 * self.factors.decoder_squares(episode)

    def bound(self, episode: int, failure: float) -> float:
        """Sub-Gaussian with exactly this variance."""
        return GaussianLaw(math.sqrt(self.variance(episode))).bound({1.0: 1.0}, failure)

    def bounds(self, failure: float) -> FloatArray:
        """All at once."""
        decoder, squares = np.zeros(self.episodes), self.factors
        for weight, gap in zip(squares.weights, squares.gaps, strict=True):
            decoder += weight * np.exp(np.arange(self.episodes) * np.log1p(-gap))
        scale = GaussianLaw(self.sigma).bound({1.0: 1.0}, failure)
        bounds: FloatArray = scale * np.sqrt(np.cumsum(decoder**2))
        return bounds

    def start(self, cells: int, sampler: Sampler) -> "ToeplitzRun":
        """One realisation."""
        return ToeplitzRun(self, cells, sampler)


class _EncodedNoise(NoiseRun):
    """The z of a stream, in grid steps."""

    def __init__(self, noise: ToeplitzNoise, cells: int, sampler: Sampler) -> None:
        super().__init__(cells, noise.episodes, sampler)
        self._steps = noise.steps

    def _next(self, first: int, rows: int) -> FloatArray:
        draws = self.sampler.discrete_gaussian(self._steps, (rows, self.cells))
        return draws.astype(np.float64)


class ToeplitzRun(NoiseRun):
    """Fresh noise, and the decoder that turns encoded values into prefix sums."""

    grid_bits: ClassVar[int] = _RELEASED_BITS

    def __init__(self, noise: ToeplitzNoise, cells: int, sampler: Sampler) -> None:
        super().__init__(cells, noise.episodes, sampler)
        self._factors = noise.factors
        self._state = np.zeros((self._factors.weights.size, cells))
        self._encoded = _EncodedNoise(noise, cells, sampler)
        self._encoder: FloatArray | None = None
        # The sparse counters of all users so far: when, where, how much.
        self._times = self._cells = self._amounts = np.empty(0, np.int64)
        self._users = 0

    def _decode(self, encoded: FloatArray) -> FloatArray:
        """B times the next rows (in grid steps of y), in steps of the released grid."""
        from discreet.privacy.mechanisms._kernels import exponential_filter

        out = np.empty_like(encoded)
        decoder = self._factors
        exponential_filter(encoded, decoder.weights, decoder.decays, self._state, out)
        np.multiply(out, math.ldexp(1.0, _RELEASED_BITS - decoder.bits), out=out)
        out += 0.5
        return np.floor(out, out=out)

    def block(self, episodes: int) -> FloatArray:
        """Decoded noise of the next releases: the decoder needs no pieces of its own."""
        return self._next(0, episodes)

    def _next(self, first: int, rows: int) -> FloatArray:
        decoded = self._decode(self._encoded.block(rows))
        return np.ldexp(decoded, -_RELEASED_BITS, out=decoded)

    def add(self, vector: IntArray) -> IntArray:
        """Encode one user's counters, add grid noise, decode: nothing else is released.

        The encoded value is computed in exact integers (grid steps, far below 2^53) from the
        sparse counters of all users so far, so that what is released is a function of y alone.
        """
        fresh = self._encoded.block(1)
        cells = np.flatnonzero(vector)
        self._times = np.append(self._times, np.full(cells.size, self._users))
        self._cells = np.append(self._cells, cells)
        self._amounts = np.append(self._amounts, vector[cells])
        self._users += 1
        released: IntArray = self._decode(fresh + self._encoded_counts())[0].astype(np.int64)
        return released

    def _encoded_counts(self) -> FloatArray:
        if self._encoder is None:
            self._encoder = self._factors.encoder().astype(np.float64)
        steps = self._encoder[self._users - 1 - self._times] * self._amounts
        total = np.bincount(self._cells, weights=steps, minlength=self.cells)
        return np.asarray(total, np.float64)


@dataclass(frozen=True, eq=False, kw_only=True)
class ToeplitzStream(AdditiveStream):
    """Square-root Toeplitz factorisation: the least noise of all central streams here."""

    noise: ToeplitzNoise
    name: ClassVar[str] = "toeplitz"

    @classmethod
    def design(
        cls, trust: "_Private", reach: Reach, episodes: int, **options: Any
    ) -> tuple[CumulativeNoise, Guarantee]:
        """Analytic Gaussian calibration on the rounded encoder, minus the cost of the grid."""
        no_printed_constants(trust, cls.name)
        bits, sigma = _calibrate(trust, reach, episodes)
        noise = ToeplitzNoise(episodes=episodes, steps=math.ldexp(sigma, bits), bits=bits)
        return noise, promise(trust, trust.epsilon, trust.delta)


def _calibrate(trust: "_Private", reach: Reach, episodes: int) -> tuple[int, float]:
    """The grid and the sigma (in units) of an encoded value."""
    epsilon, delta = float(trust.epsilon), float(trust.delta)
    for bits in _GRIDS:
        l2 = reach.l2 * math.sqrt(factors(episodes, bits).squares)
        sigma = gaussian_sigma(l2, epsilon, delta)
        lost = grid_delta(math.ldexp(sigma, bits), reach.units * episodes, epsilon)
        if lost <= delta / 100:
            return bits, gaussian_sigma(l2, epsilon, delta - lost)
    # Very large epsilon: discrete Gaussian noise satisfies rho-zCDP with the same rho = l2²/2sigma²
    # as continuous noise, at no cost of the grid (Canonne, Kamath and Steinke 2020, Theorem 4), and
    # rho-zCDP implies (rho + 2·sqrt(rho·ln(1/delta)), delta)-DP.
    tail = math.log(1 / delta)
    rho = (math.sqrt(epsilon + tail) - math.sqrt(tail)) ** 2
    return bits, l2 / math.sqrt(2 * rho)


def grid_delta(steps: float, shifted: int, epsilon: float) -> float:
    """What discrete instead of rounded Gaussian noise costs in delta, over all shifted values."""
    if steps < 2 or epsilon > 600:
        return math.inf
    return (1 + math.exp(epsilon)) * shifted / (8 * steps**2)
