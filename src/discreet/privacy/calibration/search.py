"""The least noise that delivers a guarantee, proved by exact composition and cross-checked.

A noise level depends on (epsilon, delta) and on how many counters move, on nothing else, so the
answers are cached.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from discreet import _validate
from discreet._types import IntArray
from discreet.errors import CalibrationError
from discreet.privacy.calibration.closed_forms import gaussian_sigma
from discreet.privacy.calibration.distributions import NoisePmf, binomial_pmf
from discreet.privacy.calibration.jumps import (
    REACHES,
    WIDEST,
    Weights,
    central_std,
    jump_design,
    jump_weights,
    jumps_deliver,
    jumps_pmf,
    weights_variance,
)
from discreet.privacy.calibration.lattice import discrete_gaussian_delta
from discreet.privacy.calibration.losses import delta_of_moves
from discreet.privacy.calibration.piles import worst_gaussian_delta
from discreet.privacy.calibration.routes import binomial_routes, cross_check, gaussian_routes
from discreet.privacy.sampling.samplers import Sampler


@functools.lru_cache(maxsize=1024)
def discrete_gaussian_sigma(
    cells: int, epsilon: float, delta: float, *, pile: int = 1, singles: int = 0
) -> float:
    """The discrete Gaussian parameter for moves of cells·pile units, at most ``pile`` in a counter.

    With ``singles`` it is for one move: ``cells`` counters by ``pile`` and ``singles`` by one.

    That ``cells`` counters by ``pile`` each are the worst of them is proved in `piles`; where the
    proof does not reach (large epsilons) the noise is raised until a bound on all moves
    holds.

    Starts at the analytic Gaussian (Balle and Wang 2018) and rises, by a few parts in 10,000, until
    the exact composition of the discrete noise keeps the promise.

    >>> round(discrete_gaussian_sigma(36, 1.0, 1e-6), 2)
    25.35
    """
    _validate.count(cells=cells, pile=pile)
    start = gaussian_sigma(math.sqrt(cells * pile**2 + singles), epsilon, delta)

    def found(sigma: float) -> float:
        if singles:
            return discrete_gaussian_delta(sigma, cells, epsilon, pile=pile, singles=singles)
        return worst_gaussian_delta(sigma, cells, epsilon, pile=pile)

    sigma = _least(lambda s: found(s) <= delta, start, 1e-6)
    cross_check(gaussian_routes(sigma, cells, delta, pile=pile, singles=singles), at_most=epsilon)
    return sigma


@functools.lru_cache(maxsize=1024)
def binomial_trials(ups: int, downs: int, epsilon: float, delta: float) -> int:
    """Fair noise bits per counter, in total, when ``ups`` counters rise and ``downs`` fall by one.

    >>> binomial_trials(6, 6, 1.0, 1e-6)
    858
    """
    _validate.count(0, ups=ups, downs=downs)
    _validate.count(moves=ups + downs)
    variance = gaussian_sigma(math.sqrt(ups + downs), epsilon, delta) ** 2

    def excess(trials: int) -> float:
        delivered = delta_of_moves(binomial_pmf(trials, 0.5), ups, downs, epsilon)
        return math.log(max(delivered, 1e-300) / delta)

    high = _least_integer(excess, max(1, round(4 * variance)))
    cross_check(binomial_routes(high, 0.5, ups, downs, delta), at_most=epsilon)
    return high


@dataclass(frozen=True)
class NoiseBits:
    """Noise bits of one user for one counter.

    Attributes:
        bits: how many.
        probability: of a one, for each of them.
        weights: integer weights of 0, 1, ..., ``bits`` ones; empty for independent bits.
    """

    bits: int
    probability: float
    weights: Weights = ()

    def variance(self, users: int) -> float:
        """Variance of all users' noise on one counter."""
        if self.weights:
            return users * weights_variance(self.weights)
        return users * self.bits * self.probability * (1 - self.probability)

    def pmf(self, users: int) -> NoisePmf:
        """The noise of ``users`` users together; where it is centred does not matter."""
        if self.weights:
            return jumps_pmf(self.weights, users)
        return binomial_pmf(users * self.bits, self.probability)

    def draw(self, sampler: Sampler, users: int, size: int) -> IntArray:
        """Ones among the bits of ``users`` users, for ``size`` counters."""
        if not self.weights:
            return sampler.binomial(users * self.bits, self.probability, size)
        table = np.array(self.weights, np.int64)
        return sampler.table(table, size) if users == 1 else sampler.table_sum(table, users, size)

    @property
    def extremes(self) -> tuple[float, float]:
        """Probabilities that all bits of a user are ones, and that all are zeros."""
        if self.weights:
            return self.weights[-1] / sum(self.weights), self.weights[0] / sum(self.weights)
        return self.probability**self.bits, (1 - self.probability) ** self.bits


@functools.lru_cache(maxsize=4096)
def noise_bits(users: int, ups: int, downs: int, epsilon: float, delta: float) -> NoiseBits:
    """What each of ``users`` honest users must add so that their noise together suffices.

    Independent bits, unless they carry more than 3% more noise than the best central law; then
    `jumps`, if these are better. Both are checked exactly for this number of users.

    >>> noise_bits(20_000, 18, 18, 1.0, 1e-6).bits, noise_bits(20_000, 6, 6, 10.0, 1e-6).bits
    (1, 6)
    """
    plain = _independent_bits(users, ups, downs, epsilon, delta)
    best = central_std(ups + downs, epsilon, delta)
    if best > WIDEST or math.sqrt(plain.variance(users)) <= 1.03 * best:
        return plain
    jumping = _jumping_bits(users, ups, downs, epsilon, delta)
    return min((b for b in (plain, jumping) if b), key=lambda b: b.variance(users))


def _jumping_bits(
    users: int, ups: int, downs: int, epsilon: float, delta: float
) -> NoiseBits | None:
    """Bits that come in jumps: small batches reach further than large ones with the same law."""
    shape, variance, least = jump_design(ups, downs, epsilon, delta)
    found: list[NoiseBits] = []
    for reach in (r for r in REACHES if r >= least):

        def holds(nominal: float, reach: int = reach) -> bool:
            weights = jump_weights(shape, nominal, users, reach)
            return jumps_deliver(weights, users, ups, downs, epsilon, delta)

        try:
            weights = jump_weights(shape, _least(holds, variance, 1e-4, 4), users, reach)
        except CalibrationError:
            continue
        found.append(NoiseBits(len(weights) - 1, 0.5, weights))
        if found[-1].variance(users) <= 1.05 * variance:
            return found[-1]
    return min(found, key=lambda b: b.variance(users), default=None)


def _independent_bits(users: int, ups: int, downs: int, epsilon: float, delta: float) -> NoiseBits:
    """Bits that are drawn one by one.

    With N = `binomial_trials`, each user adds m = ceil(N/users) bits with p(1-p) = N/(4·users·m):
    fair bits when users divides N, rare ones when there are many users. A lopsided binomial needs
    slightly more variance than N/4; what very rare bits need (a fraction of a per cent) is tried
    for all of them, and checked exactly for this number of users.
    """
    _validate.count(users=users)
    fair = float(binomial_trials(ups, downs, epsilon, delta))

    def holds(trials: float) -> bool:
        return _deliver(_spread(trials, users), users, ups, downs, epsilon, delta)

    if _spread(fair, users).probability > _LOPSIDED and holds(fair):
        return _spread(fair, users)
    enough = max(fair, _rare_trials(ups, downs, epsilon, delta))
    return _spread(_least(holds, enough, 1e-4), users)


_LOPSIDED = 0.4
_RARE = 10_000


@functools.lru_cache(maxsize=1024)
def _rare_trials(ups: int, downs: int, epsilon: float, delta: float) -> float:
    """What replaces N when noise bits are very rare (their number is nearly Poisson)."""
    fair = binomial_trials(ups, downs, epsilon, delta)
    users = _RARE * fair

    def holds(trials: float) -> bool:
        return _deliver(_spread(trials, users), users, ups, downs, epsilon, delta)

    return _least(holds, float(fair), 1e-5)


def _spread(trials: float, users: int) -> NoiseBits:
    """The noise of ``trials`` fair bits, in variance, spread evenly over ``users``."""
    count = math.ceil(trials / users - 1e-12)
    return NoiseBits(count, 0.5 * (1 - math.sqrt(max(0.0, 1 - trials / (users * count)))))


def _deliver(
    each: NoiseBits, users: int, ups: int, downs: int, epsilon: float, delta: float
) -> bool:
    noise = binomial_pmf(users * each.bits, each.probability)
    return delta_of_moves(noise, ups, downs, epsilon) <= delta


def _least_integer(excess: Callable[[int], float], guess: int) -> int:
    """The least n with excess(n) <= 0 for a decreasing function, from a guess nearby.

    Above 100,000 it may be one part in 100,000 too large.
    """
    low, high, step = guess, guess, max(1, guess // 500)
    above = below = excess(guess)
    while below > 0:
        low, above, high = high, below, high + step
        below, step = excess(high), 4 * step
    step = max(1, guess // 500)
    while above <= 0:
        if low == 1:
            return 1
        high, below, low = low, above, max(1, low - step)
        above, step = excess(low), 4 * step
    while high - low > max(1, high // 100_000):
        secant = math.ceil(low + (high - low) * above / (above - below))
        middle = min(max(secant, low + 1), high - 1)
        value = excess(middle)
        if value > 0:  # halving the far end keeps the secant from creeping (Illinois)
            low, above, below = middle, value, below / 2
        else:
            high, below, above = middle, value, above / 2
    return high


def _least(
    holds: Callable[[float], bool], start: float, tolerance: float, most: float = 1e6
) -> float:
    """The least value from ``start`` to ``most`` times it (to a tolerance) with ``holds`` true.

    The returned value itself has been checked.
    """
    if holds(start):
        return start
    low, high, growth = start, start * 1.001, 1.001
    while not holds(high):
        low, growth = high, growth**2
        high *= growth
        if high > most * start:
            raise CalibrationError("No noise level delivers this guarantee; use a larger epsilon.")
    while high > low * (1 + tolerance):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
