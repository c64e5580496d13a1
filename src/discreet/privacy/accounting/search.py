"""The least noise that keeps a guarantee: discrete Gaussian, Laplace, and noise bits of users."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

from discreet import _validate
from discreet._types import IntArray
from discreet.errors import CalibrationError
from discreet.privacy.accounting.closed_forms import (
    gaussian_sigma,
    laplace_scale,
)
from discreet.privacy.accounting.distributions import NoisePmf, binomial_pmf
from discreet.privacy.accounting.lattice import discrete_laplace_delta
from discreet.privacy.accounting.losses import delta_of_moves
from discreet.privacy.accounting.piles import worst_gaussian_delta
from discreet.privacy.sampling.samplers import Sampler

# The least noise that delivers a guarantee, by exact composition.
#
# A noise level depends on (epsilon, delta) and on how many counters move, on nothing else, so the
# answers are cached.


@functools.lru_cache(maxsize=1024)
def discrete_gaussian_sigma(cells: int, epsilon: float, delta: float, *, pile: int = 1) -> float:
    """The discrete Gaussian parameter for moves of cells·pile units, at most ``pile`` in a counter.

    That ``cells`` counters by ``pile`` each are the worst of them is proved in `piles`; where the
    proof does not reach (large epsilons) the noise is raised until a bound on all moves
    holds.

    Starts at the analytic Gaussian (Balle and Wang 2018) and rises, by a few parts in 10,000, until
    the exact composition of the discrete noise keeps the guarantee.

    >>> round(discrete_gaussian_sigma(36, 1.0, 1e-6), 2)
    25.35
    """
    _validate.count(cells=cells, pile=pile)
    start = gaussian_sigma(pile * math.sqrt(cells), epsilon, delta)

    def holds(sigma: float) -> bool:
        return worst_gaussian_delta(sigma, cells, epsilon, pile=pile) <= delta

    return least_value(holds, start, 1e-6)


@functools.lru_cache(maxsize=1024)
@functools.lru_cache(maxsize=1024)
def discrete_laplace_scale(units: int, epsilon: float, delta: float) -> float:
    """The discrete Laplace parameter for ``units`` unit moves, by their exact composition."""
    if delta == 0:
        return laplace_scale(units, epsilon)
    return 1 / response_epsilon(units, epsilon, delta) * (1 + 1e-12)


@functools.lru_cache(maxsize=1024)
def response_epsilon(responses: int, epsilon: float, delta: float) -> float:
    """The largest epsilon of each of ``responses`` pure releases that compose to (epsilon, delta).

    Every pair of distributions with a pure epsilon is a post-processing of randomised response with
    that epsilon, adaptively too, so their exact composition is the worst (Kairouz, Oh and Viswanath
    2015). A discrete Laplace counter that moves by one *is* such a response, of 1/scale. Without
    a delta each gets its equal share.

    >>> response_epsilon(4, 1.0, 0.0), round(response_epsilon(64, 1.0, 1e-6), 4)
    (0.25, 0.0302)
    """
    _validate.count(responses=responses)
    share = float(epsilon) / responses
    if delta == 0:
        return share
    low, high = share, float(epsilon)
    while high > low * (1 + 1e-9):
        middle = 0.5 * (low + high)
        kept = discrete_laplace_delta(1 / middle, responses, epsilon) <= delta * (1 - 1e-9)
        low, high = (middle, high) if kept else (low, middle)
    return low


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

    return least_integer(excess, max(1, round(4 * variance)))


@dataclass(frozen=True)
class NoiseBits:
    """Noise bits of one user for one counter, each a one with ``probability``."""

    bits: int
    probability: float

    def variance(self, users: int) -> float:
        """Variance of all users' noise on one counter."""
        return users * self.bits * self.probability * (1 - self.probability)

    def pmf(self, users: int) -> NoisePmf:
        """The noise of ``users`` users together."""
        return binomial_pmf(users * self.bits, self.probability)

    def draw(self, sampler: Sampler, users: int, size: int) -> IntArray:
        """Ones among the bits of ``users`` users, for ``size`` counters."""
        return sampler.binomial(users * self.bits, self.probability, size)

    @property
    def extremes(self) -> tuple[float, float]:
        """Probabilities that all bits of a user are ones, and that all are zeros."""
        return self.probability**self.bits, (1 - self.probability) ** self.bits


@functools.lru_cache(maxsize=4096)
def noise_bits(users: int, ups: int, downs: int, epsilon: float, delta: float) -> NoiseBits:
    """What each of ``users`` honest users must add so that their noise together suffices.

    >>> noise_bits(20_000, 18, 18, 1.0, 1e-6).bits
    1

    With N = `binomial_trials`, each user adds m = ceil(N/users) bits with p(1-p) = N/(4·users·m):
    fair bits when users divides N, rare ones when there are many users. A lopsided binomial needs
    slightly more variance than N/4; what very rare bits need (a fraction of a per cent) is tried
    for all of them, and checked exactly for this number of users.
    """
    _validate.count(users=users)
    fair = float(binomial_trials(ups, downs, epsilon, delta))

    def holds(trials: float) -> bool:
        return _deliver(spread_bits(trials, users), users, ups, downs, epsilon, delta)

    if spread_bits(fair, users).probability > _LOPSIDED and holds(fair):
        return spread_bits(fair, users)
    enough = max(fair, _rare_trials(ups, downs, epsilon, delta))
    return spread_bits(least_value(holds, enough, 1e-4), users)


_LOPSIDED = 0.4
_RARE = 10_000


@functools.lru_cache(maxsize=1024)
def _rare_trials(ups: int, downs: int, epsilon: float, delta: float) -> float:
    """What replaces N when noise bits are very rare (their number is nearly Poisson)."""
    fair = binomial_trials(ups, downs, epsilon, delta)
    users = _RARE * fair

    def holds(trials: float) -> bool:
        return _deliver(spread_bits(trials, users), users, ups, downs, epsilon, delta)

    return least_value(holds, float(fair), 1e-5)


def spread_bits(trials: float, users: int) -> NoiseBits:
    """The noise of ``trials`` fair bits, in variance, spread evenly over ``users``."""
    count = math.ceil(trials / users - 1e-12)
    return NoiseBits(count, 0.5 * (1 - math.sqrt(max(0.0, 1 - trials / (users * count)))))


def _deliver(
    each: NoiseBits, users: int, ups: int, downs: int, epsilon: float, delta: float
) -> bool:
    noise = binomial_pmf(users * each.bits, each.probability)
    return delta_of_moves(noise, ups, downs, epsilon) <= delta


def least_integer(excess: Callable[[int], float], guess: int) -> int:
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


def least_value(
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
