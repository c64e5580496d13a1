"""Exact privacy of independent observations: what an attacker sees of one counter, and of many.

For P, Q the attacker's views under two neighbours (a `Pair`) and
L = log(P/Q) drawn from P,

    delta(eps) = E[(1 - exp(eps - L))_+],    pure eps = ess sup L,

and over independent counters the losses add up. Few of them are added one by one, many by the
composition of the search (`accounting.losses`), which errs upwards. What contradicts the search is
the proof in integers; what is written here from the definitions alone are the pairs.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discreet import _validate
from discreet._types import FloatArray
from discreet.privacy.accounting.closed_forms import least_epsilon
from discreet.privacy.accounting.losses import Composition, ascending

_NEGLIGIBLE = 1e-30
"""Tails of unbounded noise are cut where less than this probability lies beyond."""
_FEW = 1 << 18
"""Up to this many sums of losses are listed one by one."""


@dataclass(frozen=True, eq=False)
class Pair:
    """The privacy loss log(P/Q) of one observation, drawn from P.

    Attributes:
        losses: finite values of log(P/Q).
        masses: their probabilities under P.
        unseen: probability under P of what cannot happen under Q (an infinite loss).
        bounded: True if the losses listed are all there are (nothing was cut from the tails).
    """

    losses: FloatArray
    masses: FloatArray
    unseen: float = 0.0
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


Kinds = Sequence[tuple[Pair, int]]
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
    return Pair(losses, masses)


def gaussian(sigma: float, shift: int = 1) -> Pair:
    """Discrete Gaussian noise, P(x) ∝ exp(-x²/(2 sigma²)), on a counter that moves by ``shift``.

    The loss is (shift² - 2·shift·x) / (2 sigma²): linear in x.
    """
    _validate.positive(sigma=sigma)
    _validate.count(shift=shift)
    reach = math.ceil(sigma * math.sqrt(-2 * math.log(_NEGLIGIBLE))) + 1
    x = np.arange(-reach, reach + 1)
    weights = np.exp(-(x**2) / (2 * sigma**2))
    unit = shift / sigma**2
    losses = np.asarray(shift**2 / (2 * sigma**2) - x * unit, np.float64)
    masses = (weights / weights.sum())[::-1]
    return Pair(losses[::-1], masses, bounded=False)


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


def pure_epsilon(views: Kinds) -> float:
    """The largest total loss: the epsilon at delta = 0 (inf if there is none).

    >>> pure_epsilon([(laplace(36.0), 36)])
    1.0
    """
    return math.fsum(pair.worst * times for pair, times in views if times)


def exact_delta(views: Kinds, epsilon: float) -> float:
    """The smallest delta at which the views are (epsilon, delta)-indistinguishable."""
    return _total(views)[0](epsilon)


def exact_epsilon(views: Kinds, delta: float) -> float:
    """The smallest epsilon at which the views are (epsilon, delta)-indistinguishable.

    >>> round(exact_epsilon([(gaussian(25.35), 36)], 1e-6), 4)
    0.9999
    """
    return exact_curve(views, 0.0, delta)[0]


def exact_curve(views: Kinds, epsilon: float, delta: float) -> tuple[float, float]:
    """Both at once: the epsilon at ``delta``, and the delta at ``epsilon``."""
    pure = pure_epsilon(views)
    if delta == 0 and pure <= epsilon * (1 + 1e-12):
        return pure, 0.0
    delta_at, largest = _total(views)
    found = pure if delta == 0 else min(least_epsilon(delta_at, delta, largest=largest), pure)
    return found, delta_at(epsilon)


def _total(views: Kinds) -> tuple[Callable[[float], float], float]:
    """Delta of all losses together, as a function of epsilon, and the largest finite loss."""
    views = [(pair, times) for pair, times in views if times]
    if math.prod(float(pair.losses.size) ** times for pair, times in views) <= _FEW:
        return _listed(views)
    parts = [(*ascending(p.losses, p.masses, p.unseen), times) for p, times in views]
    total = Composition.of_atoms(parts)
    return total.delta, max(total.largest, 0.0)


def _listed(views: Kinds) -> tuple[Callable[[float], float], float]:
    """Few enough to add every loss to every other: nothing is rounded."""
    losses, masses, seen = np.zeros(1), np.ones(1), 1.0
    for pair in (pair for pair, times in views for _ in range(times)):
        losses = np.add.outer(losses, pair.losses).ravel()
        masses = np.multiply.outer(masses, pair.masses).ravel()
        seen *= 1 - pair.unseen

    def delta(epsilon: float) -> float:
        above = losses > epsilon
        return 1 - seen + float(masses[above] @ -np.expm1(epsilon - losses[above]))

    return delta, max(0.0, float(losses.max(initial=0.0)))
