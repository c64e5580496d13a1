"""The least noise that keeps a guarantee: discrete Gaussian, binomial, and noise bits of users.

**Noise that jumps.** A user adds nothing almost always, and sometimes several ones.

A user's noise bits for one counter need not be independent: after the shuffler only their sum over
all users is seen, so each user may send *any* number X of ones among a constant number 2t of bits.
The noise is then the sum of n independent copies of X, and a distribution that splits into n equal
parts for every n (an infinitely divisible one) can be had at every batch size.

Independent bits cannot do what this can. At large epsilon the edge of their support decides: nobody
draws a one with probability (1-p)^(nm), and a counter that is there cannot have fallen, an infinite
loss. All of it must fit into delta, which takes a variance of about log(moves/delta) however large
epsilon is (std 3.9 for 6 moves and delta = 1e-6). X that is as often t+k as t-k has no such edge.

**The distribution.** X - t is a difference of two negative binomials of shape alpha/n, cut to
-t .. t. The sum over users is, but for the cut, the difference of two negative binomials of shape
alpha: for alpha = 1 discrete Laplace noise, for large alpha the difference of two Poisson variables
(Skellam), close to Gaussian noise with heavier tails, which helps; in between it is better than
both.

**Exactness.** X is drawn from integer weights, and delta is computed for exactly these weights: the
n-fold convolution by repeated squaring of positive numbers (no transform, so the tails are accurate
to 1e-13 of themselves), in a window; what falls out of the window is counted as an infinite loss.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from discreet import _validate
from discreet._types import FloatArray, IntArray
from discreet.errors import CalibrationError
from discreet.privacy.accounting.closed_forms import (
    gaussian_sigma,
    gaussian_variance,
    laplace_scale,
    laplace_variance,
)
from discreet.privacy.accounting.distributions import NoisePmf, binomial_pmf
from discreet.privacy.accounting.lattice import discrete_laplace_delta
from discreet.privacy.accounting.losses import delta_of_moves
from discreet.privacy.accounting.piles import worst_gaussian_delta
from discreet.privacy.sampling.samplers import Sampler

Weights = tuple[int, ...]

_SHAPES = (1.0, 1.5, 2.0, 3.0, 4.0, 8.0, 1e4)
"""From Laplace to Skellam."""
REACHES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48)
"""Values of t that are tried."""
_MANY = 1_000_000
"""Users of the batch at which the shape and the reach are chosen: the parts are nearly limits."""
_NEAR = 1.02
"""Fewer messages are preferred to the last two per cent of noise."""
WIDEST = 20.0
"""Standard deviation up to which jumps are tried: beyond it they would take long tables."""
_LEAST = 0.05
"""Standard deviation from which the search starts at very large epsilon, where none is needed."""
_TOTAL = 2.0**60


def jump_weights(shape: float, variance: float, users: int, reach: int) -> Weights:
    """Integer weights of X = 0 .. 2·reach (t) for one of ``users`` users.

    ``shape`` (alpha) and ``variance``, before the cut, are those of the sum over all users.
    """
    slope = 2 * shape / variance
    ratio = 0.5 * (2 + slope - math.sqrt(slope * (4 + slope)))  # 2·alpha·r/(1-r)² = variance
    # A negative binomial: P(k) is P(k - 1) times (k - 1 + shape/users)/k·ratio.
    own, k = shape / users, np.arange(1, 8 * reach + 64)
    steps = np.cumprod(np.concatenate([[1.0], (k - 1 + own) / k * ratio]))
    part = np.asarray(math.exp(own * math.log1p(-ratio)) * steps)
    jumps = np.array([part[: part.size - k] @ part[k:] for k in range(reach + 1)])
    whole = np.rint(jumps / (2 * jumps.sum() - jumps[0]) * _TOTAL).astype(np.int64)
    whole = whole[: int(np.flatnonzero(whole)[-1]) + 1]
    return tuple(np.concatenate([whole[:0:-1], whole]).tolist())


def weights_variance(weights: Weights) -> float:
    """Variance of one user's X.

    >>> weights_variance((1, 2, 1))
    0.5
    """
    table = np.array(weights, np.float64)
    offsets = np.arange(table.size) - (table.size - 1) / 2
    return float(table @ offsets**2 / table.sum())


@functools.lru_cache(maxsize=64)
def jumps_pmf(weights: Weights, users: int, tail: float = 1e-20) -> NoisePmf:
    """The sum of X - t over ``users`` users; up to ``tail`` of it may be left out of the table.

    >>> round(jumps_pmf((1, 2, 1), 8).variance, 9)
    4.0
    """
    one = np.array(weights, np.float64)
    one /= one.sum()
    window = _window(one, users, tail)
    total, power, left = np.ones(1), one, users
    while left:
        if left & 1:
            total = _cut(np.convolve(total, power), window)
        left >>= 1
        if left:
            power = _cut(np.convolve(power, power), window)
    used = total[total > 0]  # the ends may underflow, symmetrically
    return NoisePmf(-(used.size // 2), np.log(used), 2 * tail)


def _window(one: FloatArray, users: int, tail: float) -> int:
    """The half-width of a window from which squarings lose at most ``tail`` of the sum.

    What is lost belongs to outcomes in which some block of users that is convolved (fewer than
    4·users blocks in all, none of more than ``users`` users) has a sum outside the window. For each
    block and side Chernoff's bound is at most exp(users·log_mgf(s) - s·window).
    """
    reach = one.size // 2
    rates = np.geomspace(1e-4, 60.0 / reach, 300)
    jumps = np.arange(-reach, reach + 1)
    log_mgf = np.log1p(one @ np.expm1(np.outer(jumps, rates)))
    bound = (users * log_mgf + math.log(8 * users / tail)) / rates
    return min(users * reach, math.ceil(float(bound.min())))


def _cut(masses: FloatArray, window: int) -> FloatArray:
    surplus = masses.size // 2 - window
    return masses[surplus:-surplus] if surplus > 0 else masses


def central_std(moves: int, epsilon: float, delta: float) -> float:
    """The least of the two central mechanisms: what shuffle noise is held against."""
    gaussian = gaussian_variance(gaussian_sigma(math.sqrt(moves), epsilon, delta))
    try:
        laplace = laplace_variance(laplace_scale(moves, epsilon))
    except CalibrationError:  # too wide
        laplace = math.inf
    return math.sqrt(min(gaussian, laplace))


@functools.lru_cache(maxsize=256)
def jump_design(ups: int, downs: int, epsilon: float, delta: float) -> tuple[float, float, int]:
    """Shape, variance and reach: the fewest messages within 2% of the least noise found."""

    def least(shape: float, reach: int, most: float = math.inf) -> tuple[float, float]:
        found = least_variance(shape, reach, _MANY, ups, downs, epsilon, delta, most)
        return (_MANY * weights_variance(jump_weights(shape, found, _MANY, reach)), found)

    best = min((*least(shape, REACHES[-1]), shape) for shape in _SHAPES)
    most = best[0] * _NEAR**2
    for reach in REACHES:
        for shape in dict.fromkeys((best[2], _SHAPES[-1])):
            try:
                variance, found = least(shape, reach, 1.5 * best[1])
            except CalibrationError:
                continue
            if variance <= most:
                return shape, found, reach
    return best[2], best[1], REACHES[-1]


def least_variance(
    shape: float,
    reach: int,
    users: int,
    ups: int,
    downs: int,
    epsilon: float,
    delta: float,
    most: float = math.inf,
) -> float:
    """The least nominal variance (to 0.1%) that keeps the guarantee; the answer was checked."""

    def holds(variance: float) -> bool:
        weights = jump_weights(shape, variance, users, reach)
        return jumps_deliver(weights, users, ups, downs, epsilon, delta)

    start = max(_LEAST, central_std(ups + downs, epsilon, delta)) ** 2
    low, high = 0.5 * start, start
    while not holds(high):
        low, high = high, 1.2 * high
        if high > min(most, 20 * start):
            raise CalibrationError("No jumps of this reach deliver this guarantee.")
    while high > low * 1.001:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def jumps_deliver(
    weights: Weights, users: int, ups: int, downs: int, epsilon: float, delta: float
) -> bool:
    """Whether ``users`` users with these weights keep the guarantee."""
    tail = min(1e-20, 1e-9 * delta)
    return delta_of_moves(jumps_pmf(weights, users, tail), ups, downs, epsilon) <= delta


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
    """Noise bits of one user for one counter, each a one with ``probability``.

    ``weights``: integer weights of 0, 1, ..., ``bits`` ones; empty for independent bits.
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

    Independent bits, unless they carry more than 3% more noise than the best central mechanism;
    then jumps, if these are better. Both are checked exactly for this number of users.

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
    """Bits that come in jumps: small batches reach further than large ones."""
    shape, variance, least = jump_design(ups, downs, epsilon, delta)
    found: list[NoiseBits] = []
    for reach in (r for r in REACHES if r >= least):

        def holds(nominal: float, reach: int = reach) -> bool:
            weights = jump_weights(shape, nominal, users, reach)
            return jumps_deliver(weights, users, ups, downs, epsilon, delta)

        try:
            weights = jump_weights(shape, least_value(holds, variance, 1e-4, 4), users, reach)
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
