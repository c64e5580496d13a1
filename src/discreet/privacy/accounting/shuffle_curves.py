"""Delta of shuffled histograms: compiled curves, the least noise, and its finite batches."""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet import _validate
from discreet._jit import inlined, kernel
from discreet._types import FloatArray
from discreet.device.draws import WORD
from discreet.device.histogram import MessageGroup
from discreet.errors import CalibrationError, InvalidInputError
from discreet.privacy.accounting.closed_forms import (
    NOT_SHUFFLED,
    gaussian_sigma,
    least_epsilon,
    need_delta,
)
from discreet.privacy.accounting.distributions import NoisePmf, binomial_pmf, poisson_pmf
from discreet.privacy.accounting.losses import Composition, Grid
from discreet.privacy.guarantee import rounded_up


@kernel
def poisson_curve(ratios: FloatArray, first: int, masses: FloatArray) -> FloatArray:
    """E (Y_a - x·Y_b)+ for each ratio x >= 1; Y_a and Y_b have ``masses`` from ``first`` on."""
    size = masses.size
    # calls[k] = E (Y - (first + k))+, by sums of positive terms.
    calls = np.zeros(size + 1)
    above = 0.0
    for k in range(size - 1, -1, -1):
        calls[k] = calls[k + 1] + above
        above += masses[k]
    out = np.zeros(ratios.size)
    for i in range(ratios.size):
        total = 0.0
        for j in range(size):
            strike = ratios[i] * (first + j) - first
            k = int(strike)
            if k >= size - 1:
                break
            rest = strike - k  # between integers a call is linear in its strike
            total += masses[j] * (calls[k] * (1.0 - rest) + calls[k + 1] * rest)
        out[i] = total
    return out


@inlined
def least_heads(ratio: float, coins: int) -> int:
    """The least N_a with 1 + N_a > x·N_b, where N_a + N_b = coins."""
    return math.floor((ratio * coins - 1.0) / (1.0 + ratio)) + 1


@inlined
def delta_of_coins(ratio: float, coins: int, heads: int, chance: float) -> float:
    """The delta of ``coins`` coins by its definition; ``chance`` is that of the least heads."""
    total = 0.0
    for k in range(heads, coins + 1):
        odds = (coins - k) / (k + 1.0)
        gain = chance * (1.0 - ratio * odds)
        total += gain
        if gain < 1e-18 * total:
            break
        chance *= odds
    return total


@inlined
def fall(ratio: float, coins: int, heads: int, chance: float) -> float:
    """What one more coin takes from delta: half of the smaller value at the change of sign."""
    here = abs(1.0 - ratio * (coins - heads) / (heads + 1.0))
    below = abs(heads / (coins - heads + 1.0) - ratio)
    return 0.5 * chance * min(here, below)


@kernel
def coins_curve(ratios: FloatArray, first: int, masses: FloatArray) -> FloatArray:
    """Delta at each ratio x >= 1 if the number of coins has ``masses`` from ``first`` on."""
    last = first + masses.size - 1
    out = np.zeros(ratios.size)
    for i in range(ratios.size):
        heads = least_heads(ratios[i], last)
        log = math.lgamma(last + 1.0) - math.lgamma(heads + 1.0) - math.lgamma(last - heads + 1.0)
        chance = math.exp(log - last * math.log(2.0))
        delta = delta_of_coins(ratios[i], last, heads, chance)
        total = masses[-1] * delta
        # From many coins to few, delta only grows: sums, no differences.
        for coins in range(last - 1, first - 1, -1):
            fewer = least_heads(ratios[i], coins)
            kept = heads if fewer < heads else coins + 1 - heads
            chance *= 2.0 * kept / (coins + 1.0)
            heads = fewer
            delta += fall(ratios[i], coins, heads, chance)
            total += masses[coins - first] * delta
        out[i] = total
    return out


# The noise of shuffle by groups: exact losses, the least mean, and its finite batches.
#
# **The pair.** In one group the analyser sees a histogram over D cells and ``dummy``: the users'
# data cells and T noise messages of honest users, each of which falls into a given cell with
# probability p (and dishonest users' messages, a fixed histogram that is subtracted). Replacing a
# user moves one unit from cell a to cell b. The multinomial probabilities of the noise give
# P(y)/Q(y) = y_a/y_b, so (y_a, y_b) tells everything, and with Y trinomial(T + 1, p, p) or, in the
# limit of many rare messages of mean T·p, with independent Poisson Y of mean m, and x = e^epsilon,
#
#     delta(epsilon) = E (Y_a - x·Y_b)+ / E Y_a.                                              (1)
#
# Proof: P(y) = P(N = y - e_a) and y_a·P(Y = y) = (T + 1)·p·P(N = y - e_a), the same for b; so P -
# x·Q = (y_a - x·y_b)·P(Y = y)/E Y_a. The limit is the same computation with Poisson weights. []
#
# **Coins.** M = N_a + N_b is distributed alike in both worlds and visible; given M, N_a counts
# heads among M fair coins. So delta = E f(M), where f(m) is the delta of 1 + heads against heads
# among m coins. A further coin is post-processing: f falls. By how much is exact: the difference P
# - x·Q over heads obeys u_(m+1)(k) = (u_m(k) + u_m(k-1))/2 and changes its sign once, whence
#
#     f(m) - f(m+1) = min(|u_m(k)|, |u_m(k-1)|)/2 at the change of sign.                       (2)
#
# More noise on average never harms either: independent noise can be added afterwards.
#
# **Finite batches.** M is binomial(T, 2p) in a batch and Poisson(2Tp) in the limit: equal in mean,
# and the binomial is smaller in the convex order. Were f convex, the limit would dominate every
# batch by Jensen's inequality. It is not quite: f(1) = f(2) > f(3) = f(4) at x = 1, and (2) ripples
# like this at every x, because heads are whole. So nothing is claimed for all T at once. One mean
# is calibrated in the limit, and `check_batch` verifies for the T and p of a batch that its curve
# lies below the limit's at every point of the grid on which the limit was calibrated. That
# suffices: the composition uses nothing but the curve, joined by straight lines in x between the
# points of the grid, and delta is convex in x, hence below its own chords and so below the limit's;
# a pair whose curve lies below another's is a post-processing of it (Blackwell), in compositions
# too. (In every case that was tried, from 10 messages to 1e15, the batch is below the limit, by
# about p/m relatively and more.)
#
# **Composition.** Groups are independent. Delta at the points x_i = e^(i·step) gives the masses
# of a privacy loss on the grid: P-mass x_i·(change of slope at x_i), which is connect-the-dots. By
# symmetry of the pair the mass at -i is e^(-i·step) times that at i. What lies beyond the last
# point, and what the tables leave out, counts as an infinite loss.


_RESOLUTION = 0.02
"""Grid step in root-mean-square losses of one group: raises their variance by at most 1e-4."""
_NEGLIGIBLE = 1e-30
"""Curves are followed down to this delta, which then counts as an infinite loss."""
_DELIVERED = 1 - 1e-3
"""Of delta: room for the grids of certificates and for the rounding of doubles; costs 4e-5."""
_ROUNDING = 1e-11
"""Relative error of a curve: sums of up to a million positive terms."""
_DIGITS = 6
_LARGEST_MEAN = 1e9
"""Beyond it a curve takes minutes."""


@dataclass(frozen=True, kw_only=True)
class Trials:
    """What one group of a batch can count on: ``trials`` honest noise messages.

    Attributes:
        trials: T, honest users times noise messages of each.
        probability: p, exactly, that a message falls into a given cell.
        times: so many groups of the batch are like this.
    """

    trials: int
    probability: Fraction
    times: int = 1

    @property
    def mean(self) -> Fraction:
        """Of the noise on one cell."""
        return self.trials * self.probability


@functools.lru_cache(maxsize=256)
def batch_trials(groups: tuple[MessageGroup, ...], reliable: int) -> tuple[Trials, ...]:
    """The noise that ``reliable`` users add, group by group, equal groups together."""
    times: dict[tuple[int, Fraction], int] = {}
    for one in groups:
        if one.cells > 1:  # with nothing but none, nobody can move
            key = reliable * one.noise, Fraction(one.weight, WORD * one.cells)
            times[key] = times.get(key, 0) + 1
    return tuple(
        Trials(trials=trials, probability=probability, times=count)
        for (trials, probability), count in times.items()
    )


def groups_delta(mean: float, groups: int, epsilon: float) -> float:
    """Delta of ``groups`` groups with Poisson noise of this mean per cell, never below the truth.

    >>> 0.99e-6 < groups_delta(393.8, 11, 1.0) <= 1e-6
    True
    """
    _validate.count(groups=groups)
    _validate.real(epsilon=epsilon)
    return _composed([(_limit(float(mean)), groups)]).delta(float(epsilon))


def batch_epsilon(parts: Sequence[Trials], delta: float) -> float:
    """The epsilon of a batch by its own trinomials: another road to `groups_delta`.

    It goes through coins and (2) instead of (1).
    """
    limit = _limit(float(min(part.mean for part in parts)))
    losses = _composed([(_finite(part, limit), part.times) for part in parts])
    return least_epsilon(losses.delta, delta, largest=max(losses.largest, 0.0))


def group_delta(part: Trials, epsilon: float) -> float:
    """Delta of one group of a batch at epsilon >= 0, without a grid.

    >>> round(group_delta(Trials(trials=2, probability=Fraction(1, 4)), 0.0), 9)  # E f(M), f(2)=1/2
    0.625
    """
    _validate.real(epsilon=epsilon)
    if epsilon < 0:
        raise InvalidInputError(f"Expected epsilon >= 0, got epsilon={epsilon!r}.")
    coins = _coins(part)
    ratio = np.array([math.exp(epsilon)])
    return float(coins_curve(ratio, coins.first, coins.probabilities)[0]) + coins.outside


@functools.lru_cache(maxsize=1024)
def groups_mean(groups: int, epsilon: float, delta: float) -> Fraction:
    """The least mean of the noise on one cell, to six digits, rounded up to an exact rational.

    One user moves a unit in each of ``groups`` groups.

    >>> float(groups_mean(11, 1.0, 1e-6))
    393.799
    """
    _validate.count(groups=groups)
    _validate.positive(epsilon=epsilon)
    need_delta(delta, "Shuffle noise", NOT_SHUFFLED)
    start = gaussian_sigma(math.sqrt(2 * groups), float(epsilon), float(delta)) ** 2

    def excess(mean: float) -> float:
        found = groups_delta(mean, groups, epsilon)
        return math.log(max(found, 1e-300) / (delta * _DELIVERED))

    # No finite loss helps where nothing falls into a cell: e^-mean per group at every epsilon.
    least = math.log(groups / delta) if delta < 0.1 else 1.0
    mean = _rounded_up(_root(excess, max(start, least)))
    while excess(_below(mean)) > 0:
        mean = _rounded_up(float(mean) * (1 + 10.0**-_DIGITS))
    return mean


def check_means(parts: Sequence[Trials], mean: Fraction) -> None:
    """Refuse a batch with less noise than was calibrated: the part of `check_batch` that is free.

    Raises:
        CalibrationError: too little noise.
    """
    for part in parts:
        if part.mean < mean:
            raise CalibrationError(
                f"Expected noise of mean {float(mean):.6g} on every cell, got "
                f"{float(part.mean):.6g}: the groups of this batch are not those of its mechanism."
            )


def check_batch(parts: Sequence[Trials], mean: Fraction) -> None:
    """Refuse a batch whose noise the calibration of ``mean`` does not cover.

    Raises:
        CalibrationError: too little noise, or a curve above that of the limit.
    """
    check_means(parts, mean)
    for part in parts:
        if not _dominated(part.trials, part.probability, mean):
            raise CalibrationError(
                f"{part.trials} noise messages of probability {float(part.probability):.3g} are "
                f"not covered by their limit; use another number of users."
            )


@functools.lru_cache(maxsize=4096)
def _dominated(trials: int, probability: Fraction, mean: Fraction) -> bool:
    """The curve of these trials is nowhere above the limit's, on the limit's own grid."""
    limit = _limit(_below(mean))
    own = _finite(Trials(trials=trials, probability=probability), limit)
    return bool((own.deltas <= limit.deltas * (1 + 1e3 * _ROUNDING)).all())


@dataclass(frozen=True, eq=False)
class _Curve:
    """Delta of one group at epsilon = 0, step, 2·step, ..., without what tables leave out."""

    step: float
    deltas: FloatArray
    outside: float

    @property
    def ratios(self) -> FloatArray:
        """e^epsilon at the points."""
        return np.asarray(np.exp(self.step * np.arange(self.deltas.size)))

    @property
    def infinite(self) -> float:
        """P-mass that counts as an infinite loss."""
        return float(self.deltas[-1]) + self.outside

    def grid(self, times: int) -> Grid:
        """Connect-the-dots: slopes between the points, masses where they change."""
        ratios = self.ratios
        slopes = np.append(np.diff(self.deltas) / np.diff(ratios), 0.0)
        right = np.maximum(ratios[1:] * np.diff(slopes), 0.0)
        left = (right / ratios[1:])[::-1]
        centre = max(0.0, 1.0 - self.infinite - float(right.sum() + left.sum()))
        masses = np.concatenate([left, [centre], right])
        used = np.flatnonzero(masses)
        first, last = int(used[0]), int(used[-1]) + 1
        return Grid(first + 1 - self.deltas.size, masses[first:last], self.infinite, times)


def _composed(curves: Sequence[tuple[_Curve, int]]) -> Composition:
    return Composition(curves[0][0].step, tuple(curve.grid(times) for curve, times in curves))


def _step(mean: float) -> float:
    _validate.positive(mean=mean)
    if mean > _LARGEST_MEAN:
        raise CalibrationError(
            f"Noise of mean {rounded_up(mean, 3)} per cell is too much to compose exactly (at most "
            f"{_LARGEST_MEAN:g}); ask for a larger epsilon."
        )
    return _RESOLUTION * math.sqrt(2 / mean)


@functools.lru_cache(maxsize=8)
def _limit(mean: float) -> _Curve:
    """Poisson noise on every cell, by (1)."""
    step, noise = _step(mean), poisson_pmf(mean)
    last = noise.first + noise.probabilities.size
    longest = math.log(last / max(1, noise.first))  # no finite loss of the table is larger
    ratios = np.exp(step * np.arange(math.ceil(longest / step) + 2))
    deltas = poisson_curve(ratios, noise.first, noise.probabilities) / mean
    followed = int((deltas > _NEGLIGIBLE).sum())
    return _Curve(step, deltas[: max(2, followed + 1)], 2 * noise.outside)


def _finite(part: Trials, limit: _Curve) -> _Curve:
    """The noise messages of a batch, by coins and (2), at the points of its limit."""
    coins = _coins(part)
    deltas = coins_curve(limit.ratios, coins.first, coins.probabilities)
    return _Curve(limit.step, deltas, coins.outside)


def _coins(part: Trials) -> NoisePmf:
    """The distribution of N_a + N_b."""
    both = 2 * part.probability
    if both >= 1:  # two cells and no dummy: every message falls into one of them
        return NoisePmf(part.trials, np.zeros(1))
    return binomial_pmf(part.trials, float(both))


def _root(excess: Callable[[float], float], start: float) -> float:
    """Where a decreasing function changes its sign, in a few steps, from a guess nearby."""
    low, high = start, start
    above = below = excess(start)
    while below > 0:
        low, above, high = high, below, high * 1.02
        below = excess(high)
    while above <= 0:
        high, below, low = low, above, low / 1.02
        above = excess(low)
    while high > low * (1 + 2e-7):
        share = min(max(above / (above - below), 1e-3), 1 - 1e-3)
        middle = low * (high / low) ** share
        value = excess(middle)
        low, above, high, below = (
            (middle, value, high, below) if value > 0 else (low, above, middle, value)
        )
    return high


def _rounded_up(value: float) -> Fraction:
    """The least decimal of six digits that is not below ``value``."""
    unit = Fraction(10) ** (math.floor(math.log10(value)) + 1 - _DIGITS)
    return math.ceil(Fraction(value) / unit) * unit


def _below(mean: Fraction) -> float:
    """The largest double that is at most ``mean``."""
    number = float(mean)
    return number if Fraction(number) <= mean else math.nextafter(number, 0.0)
