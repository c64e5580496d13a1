"""Central, continual release by the column-normalised square root (Toeplitz, Gaussian noise).

Prefix sums are A·x with A the lower-triangular matrix of ones. Factor A = B·C with Toeplitz
matrices of the series b and c, (b·c)_t = 1; both near the square root A^(1/2), of the series
(1-u)^(-1/2) (Fichtenberger, Henzinger and Upadhyay 2023; Henzinger, Upadhyay and Upadhyay 2023).
Later users appear in fewer releases, so their columns of C are shorter: that is waste. With
D = diag(d_i), d_i one over the norm of column i, release the encoded stream y = C·D·x + z with
Gaussian z: every user moves y by the same norm, one. Decode: B·y = A·D·x + B·z, so the differences
of B·y are w_t = d_t·x_t + noise, and the running sum of w_t/d_t is A·x plus noise. The noise at the
worst time (about the middle of the stream) is 4.019 times that of one release at
K = 2e4 and 5.260 times at K = 1e6, against 4.219 and 5.464 of the plain square root; no
factorisation at all is below 3.854 and 5.100. At the last release it is 3.3 and 4.2 times.

**Exact grid.** C and D have irrational entries, and no floating-point noise may be released. So

* b_j = sum over m of w_m·theta_m^j, about 10 exponentials that approximate the coefficients of
  (1-u)^(-1/2) (trapezoidal rule for the integral (1/pi)∫ theta^(j-1/2) (1-theta)^(-1/2) dtheta on a
  logistic grid, the arcsine mass beyond both ends on the end points; the device of Dvijotham,
  McMahan, Pillutla, Steinke and Thakurta 2024). Whatever b is, the proof below holds; this one
  costs less than 0.02% in noise;
* c_t are multiples of 2^-24 that solve (b·c)_t = 1, rounding errors fed back, so that
  |(b·c)_t - 1| <= 2^-24: decoded counts are off by less than 3e-7 of themselves;
* d_i are multiples of 2^-16, rounded *down* from one over the norm of the rounded column, or of the
  unrounded one if that is longer: the norm of every column of C·D is at most one, exactly, in
  integers, and so is that of the series 1/b that simulated blocks stand for (below);
* y = C·D·x + z is a vector of multiples of 2^-40: x are integers, and z is *discrete* Gaussian on
  the grid. (Coarser grids serve very large noise and large counts, see `Grid.of`.) All of C·D·x is
  computed in 64-bit integers. A mechanism whose values could reach 2^62 is not made; and privacy
  would not even then depend on it, because integers that wrap around are a function of y.

Decoding is post-processing, in floating point or otherwise: a state of about 12 numbers per counter
whatever K is. Block boundaries play no role.

**Proof.** Let user i be replaced. C·D is lower triangular and z_t is independent of everything
before t. Given all earlier releases, and whatever the later users do in response to them, y_t of
the two neighbours have the same noise and means that differ by c_(t-i)·d_i·v, where v is the move
of user i: the later users' data are functions of the releases, hence the same on both sides. So the
privacy loss of an *adaptive* stream is that of one Gaussian release with shifts c_(t-i)·d_i·v, as
for the general Gaussian matrix mechanism (Denisov, McMahan, Rush, Smith and Thakurta 2022, Theorem
2.1). Its L2 is |v| times the norm of column i of C·D, hence at most |v|, and |v|² <= units·pile
because each counter moves by at most pile and all of them together by at most units.
The analytic Gaussian calibration (Balle and Wang 2018) holds for continuous noise and depends on
the L2 alone, hence it holds for continuous noise rounded to the grid (post-processing, because
C·D·x lies on the grid), however the shifts are piled. A discrete Gaussian of s grid steps is within
1/(8s²) in total variation of a rounded one (below), only the units·K shifted coordinates matter,
and replacing a mechanism by one within total variation tau costs (1 + e^epsilon)·tau of delta,
which is set aside. (Beyond epsilon = 25 that cost is too large, and sigma comes from
zero-concentrated privacy, which discrete noise satisfies as it is.)

**People who return** up to m times, b episodes or more after the time before, at i_1 < ... < i_m
(public, and the same on both sides), moving by v_1, ..., v_m of length |v| at most. The means of y
differ by the sum of d_i·v_p times column i_p of C, of squared length sum over p, q of
G(i_p, i_q)·<v_p, v_q> with G the inner products of columns of C·D. No entry of C is negative, so
neither is G, and this is at most |v|²·(sum of G(i_p, i_q)), whatever the v are. On the diagonal G
is at most one. For l = j - i > 0 and n = K - 1 - j

    G(i, j) = d_i·d_j·sum over s <= n of c_s·c_(s+l) <= d_i·d_j·P_l(n),
    P_l(n) = sum over s <= n of e_s·e_(s+l),   e_s = max over t >= s of c_t,

where e is c, but for the rounding of its last digits, and never rises. So P_l(n) falls with l for
every n; and d_i falls when i does: G(j - l', j) <= R_l = max over n of P_l(n)·d_(j-l)·d_j for all
l' >= l. Two participations p < q lie (q - p)·b apart or more, so the squared length is at most

    |v|²·(m + 2·sum over k = 1 .. m-1 of (m - k)·R_kb)   (`Factors.returning`).

It is m for people who never meet their own noise, and m² if they return at once. The sum of squares
is bounded whatever v_p depends on. Given the past, the loss of y_t is normal of mean a²/2 and
variance a², a the length of its move in sigmas: the path of a Brownian motion with drift, read off
at times that add up to at most the bound; letting it run on to the bound only adds to the view. So
adaptive moves lose no more than fixed ones, and only the m·units·K shifted coordinates pay for the
grid. Blocks: the same for C', and the larger of both is taken.

*Total variation.* With p discrete and q rounded Gaussian, up to the normaliser (off by less than
3·exp(-2·pi²·s²)), q(n)/p(n) is the mean of exp(-u²/2s²)·cosh(n·u/s²) over |u| <= 1/2, hence between
1 - 1/(8s²)/3 and exp(n²/(8s⁴)). A discrete Gaussian is sub-Gaussian, so E exp(n²/8s⁴) is at most
(1 - 1/(4s²))^(-1/2). Half the sum of both deviations is below 1/(8s²) for s >= 2.

**Simulated blocks** hand out decoded noise alone, which a compiled loop adds to true counts. That
is the decoder's answer to C'·D·x + z, with C' of the unrounded series (b·c')_t = 1, whose columns
are up to 2e-7 longer on coarse grids: D counts the longer of both, so that blocks keep the
guarantee by themselves. What is released is decode(y) rounded to multiples of 2^-16 by floor(x +
1/2). That rounding commutes with adding integers (rounding half to even does not), and in exact
arithmetic decode(C·D·x + z) is A·x + decode(z) up to 3e-7·A·x. So count + rounded decode(z) has the
distribution of the real release up to that error and one step of 2^-16 where it crosses a boundary.
Both summands are multiples of 2^-16 below 2^37, so their sum is exact in double precision: the low
bits of a simulated release are those of the noise and tell nothing about the count, as in the real
one. (The sigma of a value is at most 2^26 by `Grid.of`, so that 64 standard deviations at the worst
time stay below 2^35; counts stay below 2^36, or the mechanism is refused.)
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet._types import FloatArray, IntArray
from discreet.errors import CalibrationError, UnsupportedError
from discreet.privacy.accounting.closed_forms import gaussian_sigma, grid_delta, grid_sigma
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.mechanisms.additive import AddedContinually
from discreet.privacy.mechanisms.base import AuditSizes, Certified, guaranteed
from discreet.privacy.mechanisms.noise import (
    CumulativeNoise,
    Gaussian,
    GridDraws,
    NoiseRun,
    Pieces,
)
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.sensitivity import Sensitivity

if TYPE_CHECKING:
    from discreet.privacy.trust import PrivateTrust

_SPACING, _MARGIN = 2.0, 3.0
"""Logistic grid of the exponentials: spacing 2, from about -3 to log K + 3 (8 to 11 nodes)."""
_FINEST, _COARSEST = 40, 22
_LARGEST_STEPS = 48
"""Bits of sigma in grid steps: samplers reach 1e15, a little less than 2^50."""
_RELEASED_BITS = 16
"""What is released is rounded to multiples of 2^-16: sums up to 2^37 are exact in doubles."""
_ROUNDED_DOWN = 1 - 1e-9
"""More than the rounding errors of a million sums, one square root and one division."""
_LARGEST_COUNT = 1 << 36
"""Counts stand beside noise, and both below 2^37."""
_LONGEST = 1 << 25
"""Releases of a stream: four numbers of each are kept."""
_MOST_CERTIFIED = 300_000
"""Episodes whose coefficients fit into the ten megabytes of a certificate."""
_UNROUNDED = 44
"""Bits of the series c' that stands for the unrounded one: rounded a million times finer."""


@dataclass(frozen=True)
class Grid:
    """Encoded values are multiples of 2^-(encoder + column).

    Attributes:
        encoder: c_t are multiples of 2^-encoder.
        column: d_i are multiples of 2^-column.
    """

    encoder: int = 24
    column: int = 16

    @property
    def bits(self) -> int:
        """Of an encoded value."""
        return self.encoder + self.column

    @classmethod
    def of(cls, sigma: float, episodes: int, pile: int) -> "Grid":
        """The finest on which noise of ``sigma`` can be drawn and all encoded counts fit.

        >>> Grid.of(25.0, 20_000, 1).bits, Grid.of(1e6, 20_000, 1).bits
        (40, 28)
        """
        # A counter takes at most pile·(sum of c_t) < pile·2·sqrt(K), and less than 2^61 steps.
        room = 60 - math.ceil(math.log2(2 * math.sqrt(episodes) * pile))
        bits = min(_FINEST, _LARGEST_STEPS - math.ceil(math.log2(sigma)), room)
        if bits < _COARSEST or pile * episodes > _LARGEST_COUNT:
            raise CalibrationError(
                f"Encoded values of sigma={sigma:.3g} over {episodes:,} releases that one user "
                f"moves by up to {pile} do not fit into 64-bit integers; use a larger epsilon, "
                f"a shorter stream, or delta=0."
            )
        column = min(16, max(12, bits - 24))
        return cls(bits - column, column)


@dataclass(frozen=True, eq=False)
class Factors:
    """The factorisation for streams of one length.

    Attributes:
        weights: w_m, with sum one.
        decays: theta_m.
    """

    episodes: int
    grid: Grid
    weights: FloatArray
    decays: FloatArray

    @cached_property
    def encoder(self) -> IntArray:
        """The coefficients c_t for t < episodes, in steps of 2^-grid.encoder."""
        return self._series(self.grid.encoder)

    def _series(self, bits: int) -> IntArray:
        from discreet.privacy.mechanisms._kernels import encoder_series

        out = np.empty(self.episodes, np.int64)
        encoder_series(self.weights, self.decays, 2.0**bits, out)
        return out

    @property
    def rates(self) -> FloatArray:
        """w_m·(1 - theta_m): minus the differences of b_j are sums of rates·theta^(j-1)."""
        return self.weights * (1 - self.decays)

    @cached_property
    def columns(self) -> IntArray:
        """d_i of every user i, in steps of 2^-grid.column: by the norms of shorter prefixes."""
        # c_t <= 2^24 steps and sum of c_t² < 8·2^48: exact in 64 bits.
        squares = np.cumsum(self.encoder**2).astype(np.float64)
        unrounded = np.ldexp(self._series(_UNROUNDED), self.grid.encoder - _UNROUNDED)
        np.maximum(squares, np.cumsum(unrounded**2), out=squares)
        columns = np.floor(2.0**self.grid.bits / np.sqrt(squares[::-1]) * _ROUNDED_DOWN)
        return np.asarray(columns, np.int64)

    @cached_property
    def gains(self) -> FloatArray:
        """1/d_i: what an encoded unit of user i counts in the decoder."""
        gains: FloatArray = 2.0**self.grid.column / self.columns
        return gains

    @cached_property
    def variances(self) -> FloatArray:
        """Variance of the decoded noise after 1, 2, ... releases, for encoded noise of one."""
        from discreet.privacy.mechanisms._kernels import decoded_variances

        out = np.empty(self.episodes)
        decoded_variances(self.rates, self.decays, self.gains, out)
        return out

    @property
    def worst(self) -> float:
        """Standard deviation at the worst time, relative to one release of everything."""
        return math.sqrt(float(self.variances.max()))

    def returning(self, participations: int, separation: int) -> float:
        """The largest squared norm of a sum of so many columns, each so far from the next.

        >>> round(factors(1000).returning(2, 100), 3), factors(1000).returning(1, 1)
        (2.712, 1.0)
        """
        return _returning(self, participations, separation)

    def column_square(self) -> Fraction:
        """The largest squared norm of a column of C·D: exact, and at most one."""
        prefix = np.cumsum(self.encoder**2)[::-1].tolist()
        largest = max(d * d * n for d, n in zip(self.columns.tolist(), prefix, strict=True))
        return Fraction(largest, 1 << 2 * self.grid.bits)


@lru_cache(maxsize=64)
def _returning(factors: Factors, participations: int, separation: int) -> float:
    m = min(participations, -(-factors.episodes // separation))
    total = float(m)
    if m > 1:
        columns = np.ldexp(factors.columns.astype(np.float64), -factors.grid.column)
        bits = (factors.grid.encoder, _UNROUNDED)
        series = [np.abs(np.ldexp(factors._series(n).astype(np.float64), -n)) for n in bits]
        falling = [np.maximum.accumulate(c[::-1])[::-1] for c in series]
        for k in range(1, m):
            lag = k * separation
            products = (np.cumsum(e[: e.size - lag] * e[lag:]) for e in falling)
            worst = max(float(np.max(p * (columns[:-lag] * columns[lag:])[::-1])) for p in products)
            total += 2 * (m - k) * min(1.0, worst / _ROUNDED_DOWN)
    return total


def _exponentials(episodes: int) -> tuple[FloatArray, FloatArray]:
    """Weights and decays of the decoder: the arcsine law of theta, on a few points."""
    top = math.log(episodes) + _MARGIN
    nodes = math.ceil((top + _MARGIN) / _SPACING)
    grid = top - _SPACING * (np.arange(nodes)[::-1] + 0.5)
    decays = 1 / (1 + np.exp(-grid))
    weights = np.sqrt(decays * (1 - decays)) * _SPACING / math.pi
    weights[-1] += 2 / math.pi * math.asin(1 / math.sqrt(1 + math.exp(top)))  # what lies beyond
    weights[0] += 1 - weights.sum()
    return weights, decays


@lru_cache(maxsize=4)
def factors(episodes: int, grid: Grid = Grid()) -> Factors:  # noqa: B008 (frozen)
    """Decoder and encoder for a stream of ``episodes``.

    >>> round(factors(20_000).worst, 3)  # the plain square root has 4.219
    4.019
    """
    if episodes > _LONGEST:
        raise CalibrationError(
            f"Expected at most {_LONGEST:,} releases, got {episodes:,}, for which this mechanism "
            f"would keep {episodes >> 25} GB of coefficients; release once per batch, or use "
            f"delta=0, whose tree keeps none."
        )
    return Factors(episodes, grid, *_exponentials(episodes))


@dataclass(frozen=True, kw_only=True)
class ToeplitzNoise(CumulativeNoise):
    """Decoded Gaussian noise, ``steps`` grid steps of sigma on every encoded value."""

    steps: float
    grid: Grid = Grid()
    grid_bits: ClassVar[int] = _RELEASED_BITS

    @property
    def factors(self) -> Factors:
        """The factorisation (cached)."""
        return factors(self.episodes, self.grid)

    @property
    def sigma(self) -> float:
        """Standard deviation on an encoded value, in units."""
        return math.ldexp(self.steps, -self.grid.bits)

    def variance(self, episode: int) -> float:
        """sigma² times the exact variance of the decoder's output at this time."""
        self.check_episode(episode)
        return self.sigma**2 * float(self.factors.variances[episode - 1])

    def worst_time(self, users: int) -> int:
        """About the middle of the stream."""
        return int(self.factors.variances.argmax()) + 1

    def on_grid(self) -> GridDraws:
        """Every column has norm one."""
        return GridDraws(1 / self.sigma, self.steps, self.episodes)

    def certified(self, sensitivity: Sensitivity) -> Certified:
        """The grid with all c_t and d_i, in its steps: column i is d_i·c_0, d_i·c_1, ..."""
        if sensitivity.participations > 1:
            raise UnsupportedError(
                "Of the square root certificates cover one participation, not "
                f"{sensitivity.participations}: they do not compute norms of sums of columns."
            )
        if self.episodes > _MOST_CERTIFIED:
            raise UnsupportedError(
                f"A certificate holds all coefficients of a square root, of at most "
                f"{_MOST_CERTIFIED:,} episodes, got {self.episodes:,}."
            )
        return "gaussian-grid", {
            "sigma": Fraction(self.steps),
            "length": self.episodes,
            "encoder": tuple(self.factors.encoder.tolist()),
            "columns": tuple(self.factors.columns.tolist()),
        }

    def _returning(self, sensitivity: Sensitivity) -> float:
        return self.factors.returning(sensitivity.participations, sensitivity.separation)

    def l2(self, sensitivity: Sensitivity) -> float:
        return math.sqrt(sensitivity.squares * self._returning(sensitivity))

    def bound(self, episode: int, failure: float) -> float:
        """Sub-Gaussian with exactly this variance, and rounded."""
        noise = Gaussian(math.sqrt(self.variance(episode)))
        return noise.bound({1.0: 1.0}, failure) + self.unit / 2

    def bounds(self, failure: float, times: IntArray | None = None) -> FloatArray:
        scale = Gaussian(self.sigma).bound({1.0: 1.0}, failure)
        variances = self.factors.variances[self.times(times) - 1]
        bounds: FloatArray = scale * np.sqrt(variances) + self.unit / 2
        return bounds

    def scaled(self, factor: float, *, pile: int = 1) -> "ToeplitzNoise":
        """``factor`` times as much noise, on the finest grid that takes it."""
        sigma = self.sigma * factor
        grid = Grid.of(sigma, self.episodes, pile)
        return replace(self, steps=math.ldexp(sigma, grid.bits), grid=grid)

    def state(self, cells: int) -> list[IntArray]:
        """A run has its own."""
        return []

    def rows(self, first: int, rows: int, state: list[IntArray], sampler: Sampler) -> FloatArray:
        """A run decodes."""
        raise NotImplementedError

    def start(self, cells: int, sampler: Sampler) -> "ToeplitzRun":
        """One realisation."""
        return ToeplitzRun(self, cells, sampler)


class ToeplitzRun(NoiseRun):
    """Fresh noise, and the decoder that turns encoded values into prefix sums."""

    def __init__(self, noise: ToeplitzNoise, cells: int, sampler: Sampler) -> None:
        super().__init__(noise, cells, sampler)
        self._factors = noise.factors
        self._state = np.zeros((self._factors.weights.size + 1, cells))
        self._fresh = Pieces(
            lambda _, rows: (sampler.discrete_gaussian(noise.steps, (rows, cells)),),
            width=cells,
            episodes=noise.episodes,
            secure=sampler.secure,
        )
        self._decoded = 0
        # The sparse vectors of all users so far: when, where, how much (d_i·x_i).
        self._times = self._cells = self._amounts = np.empty(0, np.int64)

    def fresh(self, episodes: int) -> IntArray:
        """The next rows of z, in grid steps."""
        return self._fresh.take(episodes)[0]

    def decode(self, encoded: IntArray) -> FloatArray:
        """Prefix sums behind the next rows (in grid steps), in steps of the released grid."""
        from discreet.privacy.mechanisms._kernels import decode_rows

        out, decoder = np.empty(encoded.shape), self._factors
        gains = decoder.gains[self._decoded : self._decoded + len(encoded)]
        scale = math.ldexp(1.0, _RELEASED_BITS - decoder.grid.bits)
        decode_rows(encoded, decoder.rates, decoder.decays, gains, scale, self._state, out)
        self._decoded += len(encoded)
        return out

    def block(self, episodes: int) -> FloatArray:
        """Decoded noise of the next releases: the decoder needs no pieces of its own."""
        decoded = self.decode(self.fresh(episodes))
        decoded *= math.ldexp(1.0, -_RELEASED_BITS)
        return decoded

    def add(self, vector: IntArray) -> IntArray:
        """Encode one user's counters, add grid noise, decode: nothing else is released.

        C·D·x is computed in exact integers from the sparse counters of all users so far, so that
        what is released is a function of y alone.
        """
        fresh = self.fresh(1)  # refuses, before anything changes, when the stream is over
        time, cells = self._decoded, np.flatnonzero(vector)
        amounts = vector[cells].astype(np.int64) * self._factors.columns[time]
        self._times = np.append(self._times, np.full(cells.size, time))
        self._cells = np.append(self._cells, cells)
        self._amounts = np.append(self._amounts, amounts)
        released: IntArray = self.decode(fresh + self.encoded(time))[0].astype(np.int64)
        return released

    def encoded(self, time: int) -> IntArray:
        """Row ``time`` of C·D·x, in grid steps."""
        from discreet.privacy.mechanisms._kernels import encode_row

        row = np.zeros(self.cells, np.int64)
        encode_row(self._factors.encoder, time, self._times, self._cells, self._amounts, row)
        return row


def square_root(
    trust: "PrivateTrust", sensitivity: Sensitivity, episodes: int
) -> tuple[CumulativeNoise, Guarantee]:
    """Analytic Gaussian calibration on the rounded encoder, minus the cost of the grid."""
    epsilon, delta = float(trust.epsilon), float(trust.delta)
    most = sensitivity.participations * math.sqrt(sensitivity.squares)
    grid = Grid.of(gaussian_sigma(most, epsilon, delta), episodes, sensitivity.pile)
    l2 = ToeplitzNoise(episodes=episodes, steps=1.0, grid=grid).l2(sensitivity)
    sigma = gaussian_sigma(l2, epsilon, delta)
    # Losses in finer units may be streamed on a coarser grid, but never on fewer steps than these.
    steps = min(math.ldexp(sigma, grid.bits), 2.0 ** (_LARGEST_STEPS - 1))
    lost = grid_delta(steps, sensitivity.units * episodes, epsilon)
    sigma = grid_sigma(l2, epsilon, delta, lost=lost, most=delta / 100)
    noise = ToeplitzNoise(episodes=episodes, steps=math.ldexp(sigma, grid.bits), grid=grid)
    return noise, guaranteed(trust, trust.epsilon, trust.delta, apart=sensitivity.apart)


toeplitz = AddedContinually(square_root, audit=AuditSizes(centred_losses=True))
"""Column-normalised square root: the least noise of all central continual mechanisms."""
