"""Shuffle noise that jumps: a user adds nothing almost always, and sometimes several ones.

A user's noise bits for one counter need not be independent: after the shuffler only their sum over
all users is seen, so each user may send *any* number X of ones among a constant number 2t of bits.
The noise is then the sum of n independent copies of X, and a law that splits into n equal parts for
every n (an infinitely divisible one) can be had at every batch size.

Independent bits cannot do what this can. At large epsilon the edge of their support decides: nobody
draws a one with probability (1-p)^(nm), and a counter that is there cannot have fallen, an infinite
loss. All of it must fit into delta, which takes a variance of about log(moves/delta) however large
epsilon is (std 3.9 for 6 moves and delta = 1e-6). X that is as often t+k as t-k has no such edge.

**The law.** X - t is a difference of two negative binomials of shape alpha/n, cut to -t .. t. The
sum over users is, but for the cut, the difference of two negative binomials of shape alpha: for
alpha = 1 discrete Laplace noise, for large alpha the difference of two Poisson variables (Skellam),
close to Gaussian noise with heavier tails, which helps; in between it is better than both.

**Exactness.** X is drawn from integer weights, and delta is computed for exactly these weights: the
n-fold convolution by repeated squaring of positive numbers (no transform, so the tails are accurate
to 1e-13 of themselves), in a window; what falls out of the window is counted as an infinite loss.
"""

import functools
import math

import numpy as np

from discreet._types import FloatArray
from discreet.errors import CalibrationError
from discreet.privacy.calibration.closed_forms import (
    gaussian_sigma,
    gaussian_variance,
    laplace_scale,
    laplace_variance,
)
from discreet.privacy.calibration.distributions import NoisePmf
from discreet.privacy.calibration.losses import delta_of_moves

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
    """Integer weights of X = 0 .. 2·reach for one of ``users`` users.

    Args:
        shape: alpha of the sum over all users.
        variance: of the sum, before the cut.
        users: how many add noise.
        reach: t.
    """
    slope = 2 * shape / variance
    ratio = 0.5 * (2 + slope - math.sqrt(slope * (4 + slope)))  # 2·alpha·r/(1-r)² = variance
    part = _negative_binomial(shape / users, ratio, 8 * reach + 64)
    jumps = np.array([part[: part.size - k] @ part[k:] for k in range(reach + 1)])
    whole = np.rint(jumps / (2 * jumps.sum() - jumps[0]) * _TOTAL).astype(np.int64)
    whole = whole[: int(np.flatnonzero(whole)[-1]) + 1]
    return tuple(np.concatenate([whole[:0:-1], whole]).tolist())


def _negative_binomial(shape: float, ratio: float, size: int) -> FloatArray:
    """P(0), P(1), ...: each is the one before times (k - 1 + shape)/k·ratio."""
    k = np.arange(1, size)
    first = math.exp(shape * math.log1p(-ratio))
    return np.asarray(first * np.cumprod(np.concatenate([[1.0], (k - 1 + shape) / k * ratio])))


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
    """The least of the two central laws: what shuffle noise is held against."""
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
    """The least nominal variance (to 0.1%) that keeps the promise; the answer has been checked."""

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
    """Whether ``users`` users with these weights keep the promise."""
    tail = min(1e-20, 1e-9 * delta)
    return delta_of_moves(jumps_pmf(weights, users, tail), ups, downs, epsilon) <= delta
