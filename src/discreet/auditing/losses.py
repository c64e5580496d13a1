"""Exact privacy of independent observations: what an attacker sees of one counter, and of many.

Everything here is written from the definitions alone. It shares no code with `accounting`, which
it exists to contradict. For P, Q the attacker's views under two neighbours (a `Pair`) and
L = log(P/Q) drawn from P,

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
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discreet import _validate
from discreet._types import FloatArray, NumberArray

_NEGLIGIBLE = 1e-30
"""Tails of unbounded noise are cut where less than this probability lies beyond."""
_GRID = 1 << 20
_FEW = 1 << 18
"""Up to this many sums of losses are listed one by one."""
_REACH = 16.0
"""Half-width, in standard deviations, of the window in which losses are added."""
_LARGEST = 50.0
"""A loss above this counts as infinite, one below minus this as minus this: both pessimistic."""


@dataclass(frozen=True, eq=False)
class Pair:
    """The privacy loss log(P/Q) of one observation, drawn from P.

    Attributes:
        losses: finite values of log(P/Q).
        masses: their probabilities under P.
        unseen: probability under P of what cannot happen under Q (an infinite loss).
        unit: if not None, all losses are ``origin + k * unit`` for integers k: sums of them are
            then computed without any rounding of losses.
        origin: see ``unit``.
        bounded: True if the losses listed are all there are (nothing was cut from the tails).
    """

    losses: FloatArray
    masses: FloatArray
    unseen: float = 0.0
    unit: float | None = None
    origin: float = 0.0
    bounded: bool = True

    @property
    def worst(self) -> float:
        """The largest loss: the pure epsilon of this observation."""
        if self.unseen > 0 or not self.bounded:
            return math.inf
        return float(self.losses.max())


class View(ABC):
    """Exact privacy of a release, from what an attacker sees of a data set and its neighbours."""

    @abstractmethod
    def curve(self, epsilon: float, delta: float) -> tuple[float, float]:
        """The exact epsilon at ``delta``, the exact delta at ``epsilon``, over all neighbours."""

    def epsilon(self, delta: float) -> float:
        return self.curve(1.0, delta)[0]

    def delta(self, epsilon: float) -> float:
        return self.curve(epsilon, 0.0)[1]


Composition = Sequence[tuple[Pair, int]]
"""Observations and how often each kind occurs, all independent."""


def laplace(scale: float, shift: int = 1) -> Pair:
    """Discrete Laplace noise, P(x) ∝ exp(-|x|/scale), on a counter that moves by ``shift``.

    The loss is (|x - shift| - |x|) / scale, one of -shift, -shift + 2, ..., shift over scale.

    >>> laplace(2.0).worst
    0.5
    """
    _validate.positive(scale=scale)
    _validate.count(shift=shift)
    decay = math.exp(-1 / scale)
    atom = -math.expm1(-1 / scale) / (1 + decay)  # P(0)
    tail = decay / (1 + decay)  # P(x >= 1) = P(x <= -1)
    inner = np.arange(1, shift)
    masses = np.r_[
        tail * decay ** (shift - 1),  # x >= shift
        (atom * decay**inner)[::-1],  # x = shift-1 ... 1
        atom + tail,  # x <= 0
    ]
    losses = np.asarray((2 * np.arange(shift + 1) - shift) / scale, np.float64)
    return Pair(losses, masses, unit=2 / scale, origin=-shift / scale)


def gaussian(sigma: float, shift: int = 1) -> Pair:
    """Discrete Gaussian noise, P(x) ∝ exp(-x²/(2 sigma²)), on a counter that moves by ``shift``.

    The loss is (shift² - 2·shift·x) / (2 sigma²): linear in x, so sums of losses stay on a lattice.
    """
    _validate.positive(sigma=sigma)
    _validate.count(shift=shift)
    reach = math.ceil(sigma * math.sqrt(-2 * math.log(_NEGLIGIBLE))) + 1
    x = np.arange(-reach, reach + 1)
    weights = np.exp(-(x**2) / (2 * sigma**2))
    unit = shift / sigma**2
    losses = np.asarray(shift**2 / (2 * sigma**2) - x * unit, np.float64)
    masses = (weights / weights.sum())[::-1]
    return Pair(losses[::-1], masses, unit=unit, origin=float(losses[-1]), bounded=False)


def binomial(trials: int, probability: float, shift: int) -> Pair:
    """Binomial noise on a counter that moves by ``shift`` (negative: down).

    P is the value x of the noise, Q the value x + shift. All ``trials`` + 1 values are kept, apart
    from tails beyond any probability that matters, which count as unseen.
    """
    from scipy import stats

    _validate.count(trials=trials)
    _validate.probability(probability=probability)
    noise = stats.binom(trials, probability)
    # Bernstein: P(|x - mean| > t) <= 2 exp(-t²/(2 variance + 2t/3)), negligible at this reach.
    reach = math.ceil(13 * noise.std() + 60)
    low = max(0, math.floor(noise.mean()) - reach)
    high = min(trials, math.ceil(noise.mean()) + reach)
    x = np.arange(low, high + 1)
    masses = noise.pmf(x)
    # Sums of log-ratios of neighbours: differences of log-factorials lose nine digits.
    odds = math.log(probability) - math.log1p(-probability)
    losses = np.zeros(x.size)
    possible = (x - shift >= 0) & (x - shift <= trials)
    kept = x[possible].astype(np.float64)
    for step in range(abs(shift)):
        top = kept - step if shift > 0 else kept + step + 1  # P(top) / P(top - 1)
        rise = np.log((trials - top + 1) / top) + odds
        losses[possible] += rise if shift > 0 else -rise
    beyond = float(noise.cdf(low - 1) + noise.sf(high))
    return Pair(losses[possible], masses[possible], unseen=float(masses[~possible].sum()) + beyond)


def table(masses: FloatArray, shift: int) -> Pair:
    """Any integer noise of bounded support, listed value by value, moved by ``shift``."""
    moved = np.zeros_like(masses)
    if shift > 0:
        moved[shift:] = masses[:-shift]
    else:
        moved[:shift] = masses[-shift:]
    both = (masses > 0) & (moved > 0)
    unseen = float(masses[(masses > 0) & (moved == 0)].sum())
    return Pair(np.log(masses[both]) - np.log(moved[both]), masses[both], unseen)


def thrown(balls: int, out: float, into: float) -> Pair:
    """One ball in a cell hit with probability ``out``, against one in a cell hit with ``into``.

    ``balls`` more are thrown. P is (1 + N_out, N_into), Q is (N_out, 1 + N_into); the loss is
    log((1 + N_out)·into / (N_into·out)). Cells that are hit by more than 60 + 13 standard
    deviations too many or too few count as unseen.
    """
    from scipy import stats

    _validate.count(balls=balls)
    _validate.probability(out=out, into=into, both=out + into)
    if into == 0:
        return Pair(np.zeros(0), np.zeros(0), unseen=1.0)
    here, there = (
        np.arange(
            max(0, math.floor(mean) - math.ceil(13 * math.sqrt(mean) + 60)),
            min(balls, math.ceil(mean) + math.ceil(13 * math.sqrt(mean) + 60)) + 1,
        )
        for mean in (balls * out, balls * into)
    )
    rest = stats.binom(balls - here[:, None], min(1.0, into / (1 - out)))
    joint = stats.binom(balls, out).pmf(here)[:, None] * rest.pmf(there)
    seen = joint[:, there > 0]
    losses = np.add.outer(
        np.log(1.0 + here) - math.log(out), math.log(into) - np.log(there[there > 0])
    )
    kept = seen > 0
    order = np.argsort(losses[kept])
    masses = seen[kept][order]
    return Pair(losses[kept][order], masses, unseen=max(0.0, 1 - float(masses.sum())))


def outcomes(first: Mapping[bytes, float], second: Mapping[bytes, float]) -> Pair:
    """Any two distributions over finitely many outcomes."""
    shared = [key for key in first if second.get(key, 0.0) > 0]
    p = np.array([first[key] for key in shared])
    q = np.array([second[key] for key in shared])
    unseen = math.fsum(mass for key, mass in first.items() if not second.get(key, 0.0) > 0)
    return Pair(np.log(p) - np.log(q), p, unseen)


def pure_epsilon(views: Composition) -> float:
    """The largest total loss: the epsilon at delta = 0 (inf if there is none).

    >>> pure_epsilon([(laplace(36.0), 36)])
    1.0
    """
    return math.fsum(pair.worst * times for pair, times in views if times)


def exact_delta(views: Composition, epsilon: float) -> float:
    """The smallest delta at which the views are (epsilon, delta)-indistinguishable."""
    return _total(views).delta(epsilon)


def exact_epsilon(views: Composition, delta: float) -> float:
    """The smallest epsilon at which the views are (epsilon, delta)-indistinguishable.

    >>> round(exact_epsilon([(gaussian(25.35), 36)], 1e-6), 4)
    0.9999
    """
    if delta == 0:
        return pure_epsilon(views)
    return min(_bisect(_total(views).delta, delta), pure_epsilon(views))


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
    if len(units) != 1 or None in units:  # move every loss to a common grid, pessimistically
        kept = [(_clip(pair), times) for pair, times in views]
        window = _window([(p.losses, p.masses, t) for p, t in kept])
        unit = window / _GRID if window else 1.0
        views = [(_split(pair, unit), times) for pair, times in kept]
    unseen = -math.expm1(math.fsum(t * math.log1p(-p.unseen) for p, t in views))
    # Add the integers k behind the losses ``origin + k * unit``, by fast Fourier transform.
    window = _window([(np.arange(p.masses.size), p.masses, t) for p, t in views])
    size = 1 << max(math.ceil(window), *(p.masses.size for p, _ in views)).bit_length()
    spectrum = np.ones(size // 2 + 1, complex)
    for pair, times in views:
        spectrum *= np.fft.rfft(pair.masses, size) ** times
    masses = np.clip(np.fft.irfft(spectrum, size), 0.0, None)
    mean = math.fsum(t * float(np.arange(p.masses.size) @ p.masses) for p, t in views)
    steps = round(mean) - size // 2 + np.arange(size)
    origin = math.fsum(t * p.origin for p, t in views)
    losses = np.asarray(origin + (views[0][0].unit or 0.0) * steps, np.float64)
    return _Losses(losses, masses[steps % size], unseen)


def _listed(views: Composition) -> _Losses:
    """Few enough to add every loss to every other: nothing is rounded."""
    losses, masses, seen = np.zeros(1), np.ones(1), 1.0
    for pair in (pair for pair, times in views for _ in range(times)):
        losses = np.add.outer(losses, pair.losses).ravel()
        masses = np.multiply.outer(masses, pair.masses).ravel()
        seen *= 1 - pair.unseen
    order = np.argsort(losses)
    return _Losses(losses[order], masses[order], 1 - seen)


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
