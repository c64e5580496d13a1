"""Exact privacy of independent observations, from the distribution of their total privacy loss.

For P, Q the attacker's views under two neighbours and L = log(P/Q) drawn from P,

    delta(eps) = E[(1 - exp(eps - L))_+],    pure eps = ess sup L,

and over independent counters the losses add up. Few of them are added one by one; many in one of
two ways:

* on a *lattice*, where nothing is rounded: the loss of discrete Gaussian noise is linear in the
  noise, and that of discrete Laplace noise or of a bit flip takes evenly spaced values, so the sum
  is an ordinary convolution of integers;
* on a *fine grid* (a million points) otherwise. A loss between two grid points is split between
  them such that its probability under P and under Q both stay. In terms of the likelihood ratio
  that is a mean-preserving spread under Q, and delta is convex in the ratio: the result is never
  too small, and too large by less than 1e-6 in epsilon.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from discreet._types import FloatArray, NumberArray
from discreet.privacy.auditing.pairs import Pair

Composition = Sequence[tuple[Pair, int]]
"""Observations and how often each kind occurs, all independent."""

_GRID = 1 << 20
_FEW = 1 << 18
"""Up to this many sums of losses are listed one by one."""
_REACH = 16.0
"""Half-width, in standard deviations, of the window in which losses are added."""
_LARGEST = 50.0
"""A loss above this counts as infinite, one below minus this as minus this: both pessimistic."""


def pure_epsilon(views: Composition) -> float:
    """The largest total loss: the epsilon at delta = 0 (inf if there is none).

    >>> from discreet.privacy.auditing.pairs import laplace
    >>> pure_epsilon([(laplace(36.0), 36)])
    1.0
    """
    return math.fsum(pair.worst * times for pair, times in views if times)


def exact_delta(views: Composition, epsilon: float) -> float:
    """The smallest delta at which the views are (epsilon, delta)-indistinguishable."""
    return _total(views).delta(epsilon)


def exact_epsilon(views: Composition, delta: float) -> float:
    """The smallest epsilon at which the views are (epsilon, delta)-indistinguishable.

    >>> from discreet.privacy.auditing.pairs import gaussian
    >>> round(exact_epsilon([(gaussian(25.35), 36)], 1e-6), 4)
    0.9999
    """
    if delta == 0:
        return pure_epsilon(views)
    epsilon = _bisect(_total(views).delta, delta)
    return min(epsilon, pure_epsilon(views))


def exact_curve(views: Composition, epsilon: float, delta: float) -> tuple[float, float]:
    """Both at once: the epsilon at ``delta``, and the delta at ``epsilon``."""
    pure = pure_epsilon(views)
    if delta == 0 and pure <= epsilon * (1 + 1e-12):
        return pure, 0.0
    total = _total(views)
    found = pure if delta == 0 else min(_bisect(total.delta, delta), pure)
    return found, total.delta(epsilon)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Continuous Gaussian noise, sensitivity over sigma = ``mu`` (Balle and Wang 2018, eq. 6)."""
    from scipy.special import log_ndtr

    above = math.exp(log_ndtr(mu / 2 - epsilon / mu))
    return above - math.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The epsilon of continuous Gaussian noise at ``delta``."""
    if delta <= 0:
        return math.inf
    return _bisect(lambda epsilon: gaussian_delta(mu, epsilon), delta)


def _bisect(delta_at: Callable[[float], float], delta: float) -> float:
    """The upper end of a bracket of width 1e-10 around the epsilon where delta is reached."""
    if delta_at(0.0) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while delta_at(high) > delta:
        low, high = high, 2 * high
        if high > 1e6:
            return math.inf
    while high - low > 1e-10 * max(1.0, high):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_at(middle) > delta else (low, middle)
    return high


class _Losses:
    """The distribution of a total loss, ready to be asked for many epsilons."""

    def __init__(self, losses: FloatArray, masses: FloatArray, unseen: float) -> None:
        positive = losses > 0
        self._losses, masses = losses[positive], masses[positive]
        # delta = P(L > eps) - e^eps Q(L > eps) + P(L = inf), from sums over upper tails
        self._above = np.r_[np.cumsum(masses[::-1])[::-1], 0.0]
        self._below = np.r_[np.cumsum((masses * np.exp(-self._losses))[::-1])[::-1], 0.0]
        self._unseen = unseen

    def delta(self, epsilon: float) -> float:
        """The smallest delta at ``epsilon >= 0``."""
        first = int(np.searchsorted(self._losses, epsilon, "right"))
        if first == self._losses.size:
            return self._unseen
        over = float(self._above[first] - math.exp(epsilon) * self._below[first])
        return self._unseen + max(0.0, over)


def _total(views: Composition) -> _Losses:
    views = [(pair, times) for pair, times in views if times]
    if math.prod(float(pair.losses.size) ** times for pair, times in views) <= _FEW:
        return _listed(views)
    units = {pair.unit for pair, _ in views}
    if len(units) != 1 or None in units:
        views = _on_grid(views)
    unseen = -math.expm1(math.fsum(t * math.log1p(-p.unseen) for p, t in views))
    return _convolve(views, unseen)


def _listed(views: Composition) -> _Losses:
    """Few enough to add every loss to every other: nothing is rounded."""
    losses, masses, seen = np.zeros(1), np.ones(1), 1.0
    for pair in (pair for pair, times in views for _ in range(times)):
        losses = np.add.outer(losses, pair.losses).ravel()
        masses = np.multiply.outer(masses, pair.masses).ravel()
        seen *= 1 - pair.unseen
    order = np.argsort(losses)
    return _Losses(losses[order], masses[order], 1 - seen)


def _convolve(views: Composition, unseen: float) -> _Losses:
    """Add the integers k behind the losses ``origin + k * unit``, by fast Fourier transform."""
    window = _window([(np.arange(p.masses.size), p.masses, t) for p, t in views])
    size = 1 << max(math.ceil(window), *(p.masses.size for p, _ in views)).bit_length()
    spectrum = np.ones(size // 2 + 1, complex)
    for pair, times in views:
        spectrum *= np.fft.rfft(pair.masses, size) ** times
    masses = np.clip(np.fft.irfft(spectrum, size), 0.0, None)
    mean = math.fsum(t * float(np.arange(p.masses.size) @ p.masses) for p, t in views)
    steps = round(mean) - size // 2 + np.arange(size)
    origin = math.fsum(t * p.origin for p, t in views)
    return _Losses(
        np.asarray(origin + (views[0][0].unit or 0.0) * steps, np.float64),
        masses[steps % size],
        unseen,
    )


def _on_grid(views: Composition) -> Composition:
    """Move every loss to a common grid, pessimistically."""
    kept = [(_clip(pair), times) for pair, times in views]
    window = _window([(p.losses, p.masses, t) for p, t in kept])
    unit = window / _GRID if window else 1.0
    return [(_split(pair, unit), times) for pair, times in kept]


def _clip(pair: Pair) -> Pair:
    infinite = pair.losses > _LARGEST
    return Pair(
        np.maximum(pair.losses[~infinite], -_LARGEST),
        pair.masses[~infinite],
        unseen=pair.unseen + float(pair.masses[infinite].sum()),
        bounded=pair.bounded,
    )


def _split(pair: Pair, unit: float) -> Pair:
    """Share each mass between the two nearest grid points, keeping E_P[1] and E_P[exp(-L)]."""
    below = np.floor(pair.losses / unit)
    # Q-mass is P-mass times exp(-loss): solve (1 - w) exp(-low) + w exp(-high) = exp(-loss).
    rise = pair.losses - below * unit
    up = np.expm1(-rise) / math.expm1(-unit)
    first = below.min()
    index = (below - first).astype(np.int64)
    size = int(index.max()) + 2
    masses = np.zeros(size)
    masses += np.bincount(index, pair.masses * (1 - up), size)
    masses += np.bincount(index + 1, pair.masses * up, size)
    losses = (first + np.arange(masses.size)) * unit
    return Pair(losses, masses, pair.unseen, unit, float(first * unit), pair.bounded)


def _window(parts: Sequence[tuple[NumberArray, FloatArray, int]]) -> float:
    """Width that holds a sum of independent values, up to probabilities far below any delta."""
    width = math.fsum(t * float(np.ptp(values)) for values, _, t in parts)
    variance, largest = 0.0, 0.0
    for values, masses, times in parts:
        mean = float(values @ masses) / float(masses.sum())
        variance += times * float(masses @ (values - mean) ** 2)
        largest = max(largest, float(np.ptp(values)))
    return min(width, 2 * (_REACH * math.sqrt(variance) + largest))
