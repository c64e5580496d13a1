"""Integer noise: two samplers of the same distributions behind one small interface.

A draw of `SecureSampler` protects people: it comes from the operating system's randomness and
cannot be seeded, copied or replayed. Whoever releases something about people draws from it, once
for each release. A draw must never be repeated, neither to choose among several nor after a release
was interrupted: two draws about the same counts average out the noise. `SimulationSampler` is
seeded and fast; what is made with it is stamped as a simulation and protects nobody.

No floating-point noise is ever released (float Laplace on counts leaks through its rounding).
"""

import functools
import importlib
import math
import os
from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple, Protocol

import numpy as np

from discreet import _validate
from discreet._types import FloatArray, IntArray, WordArray
from discreet.errors import InvalidInputError, MissingExtraError

Size = int | tuple[int, ...]
Measurement = Callable[[list[int]], list[int]]
"""Of the secure library: adds its noise to a vector."""

_LARGEST_SCALE = 1e15
"""Beyond it doubles no longer resolve single integers in the bulk of the distribution."""
_SMOOTH_SIGMA = 2.5
"""From here on a sum of n discrete Gaussians is a discrete Gaussian up to 5n·exp(-π²·sigma²) in
total variation (Kairouz, Liu and Steinke, 2021, Proposition 5): below 1e-17 for n = 1e9."""
_ROUNDED_SIGMA = 1e7
"""From here on a rounded normal is within 1/(8·sigma²) < 2e-15 of a discrete Gaussian in total
variation (proof in `mechanisms.toeplitz`)."""
_CHUNK = 1 << 20


class Sampler(Protocol):
    """Draws integer noise. ``secure`` says whether the draws protect real people."""

    @property
    def secure(self) -> bool:
        """True for operating-system randomness that cannot be seeded."""

    def discrete_laplace(self, scale: float, size: Size) -> IntArray:
        """P(x) proportional to exp(-|x| / scale) on the integers."""

    def discrete_gaussian(self, sigma: float, size: Size) -> IntArray:
        """P(x) proportional to exp(-x² / (2 sigma²)) on the integers."""

    def binomial(self, trials: int | IntArray, probability: float, size: Size) -> IntArray:
        """Sum of ``trials`` independent bits (one number, or one for each draw)."""

    def laplace_sum(self, scale: float, users: int, size: Size) -> IntArray:
        """Sum of ``users`` independent discrete Laplace draws."""

    def gaussian_sum(self, sigma: float, users: int, size: Size) -> IntArray:
        """Sum of ``users`` independent discrete Gaussian draws."""

    def table(self, weights: IntArray, size: Size) -> IntArray:
        """Index i with probability exactly ``weights[i] / weights.sum()``."""

    def table_sum(self, weights: IntArray, users: int, size: Size) -> IntArray:
        """Sum of ``users`` independent `table` draws."""

    def scatter(self, balls: int, probability: float, cells: int) -> IntArray:
        """Balls per cell: each falls with ``probability``, and then into any of them alike."""

    def permutation(self, length: int) -> IntArray:
        """A uniformly random order of ``range(length)``."""


def check_scale(**values: float) -> None:
    """Each noise scale is positive and small enough for integers in double precision."""
    _validate.positive(**values)
    _validate.at_most(_LARGEST_SCALE, "use a larger epsilon or a shorter horizon", **values)


def check_trials(trials: int | IntArray) -> None:
    """Trials are nonnegative integers: one number or an array."""
    if not isinstance(trials, np.ndarray):
        _validate.count(0, trials=trials)
    elif not np.issubdtype(trials.dtype, np.integer) or (trials < 0).any():
        raise InvalidInputError("Expected trials to be nonnegative integers.")


def check_weights(weights: IntArray) -> IntArray:
    """Weights of a table are nonnegative integers with a positive sum below 2^62."""
    table = np.asarray(weights)
    if table.ndim != 1 or not np.issubdtype(table.dtype, np.integer) or (table < 0).any():
        raise InvalidInputError("Expected weights to be a vector of nonnegative integers.")
    if not 0 < float(table.sum(dtype=np.float64)) < 2.0**62:
        raise InvalidInputError("Expected weights with a sum between 1 and 2^62.")
    return table.astype(np.int64)


class SimulationSampler:
    """Seeded and fast: for research, worth nothing for real users.

    Every draw has the stated distribution up to the rounding of doubles (total variation below
    1e-12 for all scales up to 1e4, growing with the scale as 1e-16·scale after that).

    >>> SimulationSampler(np.random.default_rng(0)).discrete_laplace(2.0, 5).dtype
    dtype('int64')
    """

    secure = False

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def discrete_laplace(self, scale: float, size: Size) -> IntArray:
        """Difference of two geometrics; floor(scale · exponential) is one, for every scale."""
        check_scale(scale=scale)
        up = np.floor(scale * self._rng.standard_exponential(size))
        up -= np.floor(scale * self._rng.standard_exponential(size))
        return np.asarray(up, np.int64)

    def discrete_gaussian(self, sigma: float, size: Size) -> IntArray:
        """Inverse cumulative table below sigma = 1, rejection from a rounded normal above."""
        check_scale(sigma=sigma)
        if sigma < 1.0:
            values, probabilities = _gaussian_table(sigma)
            cumulative = np.cumsum(probabilities)
            index = np.searchsorted(cumulative, self._rng.random(size) * cumulative[-1], "right")
            return np.asarray(values[index], np.int64)
        if sigma >= _ROUNDED_SIGMA:
            return np.rint(sigma * self._rng.standard_normal(size)).astype(np.int64)
        flat = self._rejection(sigma, math.prod((size,) if isinstance(size, int) else size))
        return flat.reshape(size)

    def _rejection(self, sigma: float, count: int) -> IntArray:
        # Propose x ~ N(0, s²) with s² = sigma² + sigma/2 and round it to y. Given y, the target
        # spreads exp(-y²/2sigma²) evenly over the rounding cell; its ratio to the proposal,
        # exp(x²/2s² - y²/2sigma²), is at most exp(1/(8(s² - sigma²))) = exp(1/(4·sigma)), reached
        # at |x| = |y| + 1/2. About exp(-1/(2·sigma)) of the proposals are kept.
        wide = math.sqrt(sigma * sigma + sigma / 2)
        kept = np.empty(count, np.int64)
        done = 0
        while done < count:
            normal = self._rng.standard_normal(
                int(1.1 * math.exp(0.5 / sigma) * (count - done)) + 8
            )
            y = np.rint(wide * normal)
            excess = 0.25 / sigma - 0.5 * (normal**2 - (y / sigma) ** 2)
            accepted = y[self._rng.standard_exponential(normal.size) > excess][: count - done]
            kept[done : done + accepted.size] = accepted
            done += accepted.size
        return kept

    def binomial(self, trials: int | IntArray, probability: float, size: Size) -> IntArray:
        """Sum of ``trials`` independent bits, in time that does not grow with ``trials``."""
        check_trials(trials)
        _validate.probability(probability=probability)
        if isinstance(trials, int) and trials == 1:
            return (self._rng.random(size) < probability).astype(np.int64)
        return np.asarray(self._rng.binomial(trials, probability, size), np.int64)

    def laplace_sum(self, scale: float, users: int, size: Size) -> IntArray:
        """Difference of two negative binomials (each a Poisson with a gamma mean)."""
        check_scale(scale=scale)
        _validate.count(0, users=users)
        mean_of_one = 1.0 / math.expm1(1.0 / scale) if scale > 1e-2 else math.exp(-1.0 / scale)
        up = self._rng.poisson(mean_of_one * self._rng.standard_gamma(users, size))
        down = self._rng.poisson(mean_of_one * self._rng.standard_gamma(users, size))
        return np.asarray(up - down, np.int64)

    def gaussian_sum(self, sigma: float, users: int, size: Size) -> IntArray:
        """One discrete Gaussian when sigma >= 2.5 (error below 5n·e^-61), else a multinomial."""
        check_scale(sigma=sigma)
        _validate.count(0, users=users)
        if users == 0:
            return np.zeros(size, np.int64)
        if sigma >= _SMOOTH_SIGMA:
            return self.discrete_gaussian(sigma * math.sqrt(users), size)
        values, probabilities = _gaussian_table(sigma)
        return self._rng.multinomial(users, probabilities, size) @ values

    def table(self, weights: IntArray, size: Size) -> IntArray:
        """Index i with probability ``weights[i] / weights.sum()``."""
        cumulative = np.cumsum(check_weights(weights))
        draws = self._rng.integers(0, cumulative[-1], size)
        return np.asarray(np.searchsorted(cumulative, draws, "right"), np.int64)

    def table_sum(self, weights: IntArray, users: int, size: Size) -> IntArray:
        """Sum of ``users`` independent `table` draws, through one multinomial."""
        _validate.count(0, users=users)
        table = check_weights(weights)
        index = np.arange(table.size)
        return self._rng.multinomial(users, table / table.sum(), size) @ index

    def scatter(self, balls: int, probability: float, cells: int) -> IntArray:
        """One multinomial, in time that does not grow with ``balls``."""
        _validate.count(cells=cells)
        fallen = self.binomial(balls, probability, 1)[0]
        return np.asarray(self._rng.multinomial(fallen, np.full(cells, 1 / cells)), np.int64)

    def permutation(self, length: int) -> IntArray:
        """A uniformly random order of ``range(length)``."""
        _validate.count(0, length=length)
        return np.asarray(self._rng.permutation(length), np.int64)


@functools.lru_cache(maxsize=64)
def _gaussian_table(sigma: float) -> tuple[IntArray, FloatArray]:
    """All values whose probability matters in double precision (mass outside below 1e-30)."""
    reach = math.ceil(12 * sigma) + 1
    values = np.arange(-reach, reach + 1, dtype=np.int64)
    weights = np.exp(-0.5 * (values / sigma) ** 2)
    return values, weights / weights.sum()


class SecureSampler:
    """Exact draws that protect real people. It cannot be seeded, copied or replayed.

    Discrete Laplace and discrete Gaussian noise come from OpenDP (extra ``secure``), which samples
    them with exact rational arithmetic (Canonne, Kamath and Steinke, 2020). Bits, tables and
    permutations use exact integer methods on ``os.urandom``.
    """

    secure = True

    def __init__(self) -> None:
        _opendp()  # say now, not in the middle of a study, that it is missing

    def __reduce__(self) -> tuple[type["SecureSampler"], tuple[()]]:
        """Pickling stores no state: there is none."""
        return SecureSampler, ()

    def discrete_laplace(self, scale: float, size: Size) -> IntArray:
        """P(x) proportional to exp(-|x| / scale)."""
        check_scale(scale=scale)
        return _from_opendp(_measurement("make_laplace", "l1_distance", float(scale)), size)

    def discrete_gaussian(self, sigma: float, size: Size) -> IntArray:
        """P(x) proportional to exp(-x² / (2 sigma²))."""
        check_scale(sigma=sigma)
        return _from_opendp(_measurement("make_gaussian", "l2_distance", float(sigma)), size)

    def binomial(self, trials: int | IntArray, probability: float, size: Size) -> IntArray:
        """Sum of ``trials`` bits, each one with exactly this (dyadic) probability.

        A bit is one if a uniform number lies below ``probability``. Both are compared digit by
        digit in base two, all trials at once: about half of them are decided by each digit, so two
        random bits per trial suffice on average.
        """
        check_trials(trials)
        _validate.probability(probability=probability)
        shape = (size,) if isinstance(size, int) else size
        each = np.broadcast_to(trials, shape).ravel()
        draws = [_exact_binomial(int(n), float(probability)) for n in each]
        return np.array(draws, np.int64).reshape(shape)

    def laplace_sum(self, scale: float, users: int, size: Size) -> IntArray:
        """The users' draws, one by one, added up: the cost grows with ``users``."""
        return _summed(users, size, lambda shape: self.discrete_laplace(scale, shape))

    def gaussian_sum(self, sigma: float, users: int, size: Size) -> IntArray:
        """The users' draws, one by one, added up: the cost grows with ``users``."""
        return _summed(users, size, lambda shape: self.discrete_gaussian(sigma, shape))

    def table(self, weights: IntArray, size: Size) -> IntArray:
        """Index i with probability exactly ``weights[i] / weights.sum()``, by rejection."""
        cumulative = np.cumsum(check_weights(weights))
        return np.searchsorted(cumulative, _integers(int(cumulative[-1]), size), "right")

    def table_sum(self, weights: IntArray, users: int, size: Size) -> IntArray:
        """The users' draws, one by one, added up: the cost grows with ``users``."""
        return _summed(users, size, lambda shape: self.table(weights, shape))

    def scatter(self, balls: int, probability: float, cells: int) -> IntArray:
        """Each ball that falls is put into its cell: the cost grows with their number."""
        _validate.count(cells=cells)
        waiting, seen = int(self.binomial(balls, probability, 1)[0]), np.zeros(cells, np.int64)
        while waiting:
            some = min(waiting, _CHUNK)
            seen += np.bincount(_integers(cells, some), minlength=cells)
            waiting -= some
        return seen

    def permutation(self, length: int) -> IntArray:
        """Sort by 64-bit keys, drawn again in the (unlikely) case that two of them are equal."""
        _validate.count(0, length=length)
        while True:
            keys = _words(length)
            order = np.argsort(keys, kind="stable")
            if not (np.diff(keys[order]) == 0).any():
                return order.astype(np.int64)


def _summed(users: int, size: Size, draw: Callable[[tuple[int, ...]], IntArray]) -> IntArray:
    _validate.count(0, users=users)
    shape = (size,) if isinstance(size, int) else tuple(size)
    total = np.zeros(shape, np.int64)
    step = max(1, _CHUNK // max(1, math.prod(shape)))
    for start in range(0, users, step):
        total += draw((min(step, users - start), *shape)).sum(axis=0)
    return total


def _words(count: int) -> WordArray:
    return np.frombuffer(os.urandom(8 * count), np.uint64)


def _integers(high: int, size: Size) -> IntArray:
    """Uniform integers below ``high`` (< 2^62): random bits under a mask, rejected above it."""
    shape = (size,) if isinstance(size, int) else size
    count, mask = math.prod(shape), np.uint64((1 << (high - 1).bit_length()) - 1)
    kept = np.empty(0, np.uint64)
    while kept.size < count:
        words = _words(2 * (count - kept.size) + 8) & mask
        kept = np.concatenate([kept, words[words < np.uint64(high)]])
    return kept[:count].astype(np.int64).reshape(shape)


def _ones_among(bits: int) -> int:
    """Number of ones among ``bits`` fair bits."""
    drawn = int.from_bytes(os.urandom((bits + 7) // 8), "little")
    return (drawn & ((1 << bits) - 1)).bit_count()


def _exact_binomial(trials: int, probability: float) -> int:
    if probability == 1.0:
        return trials
    numerator, denominator = probability.as_integer_ratio()
    successes, undecided = 0, trials
    while undecided and numerator:
        # The next binary digit of the probability, against one fair bit per undecided trial.
        numerator *= 2
        digit, numerator = divmod(numerator, denominator)
        ones = sum(_ones_among(min(_CHUNK, undecided - i)) for i in range(0, undecided, _CHUNK))
        if digit:
            successes += undecided - ones
            undecided = ones
        else:
            undecided -= ones
    return successes


class _OpenDP(NamedTuple):
    """What we use of OpenDP; its prelude would load scikit-learn and polars where they are."""

    domains: ModuleType
    metrics: ModuleType
    measurements: ModuleType


@functools.cache
def _opendp() -> _OpenDP:
    try:
        found = _OpenDP(*(importlib.import_module(f"opendp.{name}") for name in _OpenDP._fields))
    except ImportError:
        raise MissingExtraError("opendp") from None
    importlib.import_module("opendp.mod").enable_features("contrib")
    return found


@functools.lru_cache(maxsize=128)
def _measurement(maker: str, distance: str, scale: float) -> Measurement:
    domains, metrics, measurements = _opendp()
    domain = domains.vector_domain(domains.atom_domain(T="i64"))
    metric = getattr(metrics, distance)(T="i64")
    made: Measurement = getattr(measurements, maker)(domain, metric, scale=scale)
    return made


def _from_opendp(measurement: Measurement, size: Size) -> IntArray:
    shape = (size,) if isinstance(size, int) else size
    count = math.prod(shape)
    drawn = measurement([0] * count) if count else []
    return np.array(drawn, np.int64).reshape(shape)
