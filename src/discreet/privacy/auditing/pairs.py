"""What an attacker sees of one counter: two distributions of its noisy value, one per neighbour.

Everything here is written from the definitions alone. It shares no code with `calibration`, which
it exists to contradict.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from discreet import _validate
from discreet._types import FloatArray, IntArray

_NEGLIGIBLE = 1e-30
"""Tails of unbounded noise are cut where less than this probability lies beyond."""


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
    return Pair(
        losses[::-1],
        (weights / weights.sum())[::-1],
        unit=unit,
        origin=float(losses[-1]),
        bounded=False,
    )


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


def flip(probability: float) -> Pair:
    """A bit that is reported wrongly with this probability, on a bit that changes."""
    _validate.probability(probability=probability)
    loss = math.log1p(-probability) - math.log(probability)
    return Pair(
        np.array([-loss, loss]),
        np.array([probability, 1 - probability]),
        unit=2 * loss,
        origin=-loss,
    )


def unary(keep: float, spurious: float) -> Pair:
    """Unary encoding of one category, replaced by another: the two bits that change, jointly."""
    _validate.probability(keep=keep, spurious=spurious)
    p = np.array([a * b for a in (keep, 1 - keep) for b in (spurious, 1 - spurious)])
    q = np.array([a * b for a in (spurious, 1 - spurious) for b in (keep, 1 - keep)])
    return Pair(np.log(p) - np.log(q), p)


def table(masses: FloatArray, shift: int) -> Pair:
    """Any integer noise of bounded support, listed value by value, moved by ``shift``."""
    moved = np.zeros_like(masses)
    if shift > 0:
        moved[shift:] = masses[:-shift]
    else:
        moved[:shift] = masses[-shift:]
    both = (masses > 0) & (moved > 0)
    return Pair(
        np.log(masses[both]) - np.log(moved[both]),
        masses[both],
        unseen=float(masses[(masses > 0) & (moved == 0)].sum()),
    )


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
    first = stats.binom(balls, out)
    here = _around(balls * out, balls)
    rest = stats.binom(balls - here[:, None], min(1.0, into / (1 - out)))
    there = _around(balls * into, balls)
    joint = first.pmf(here)[:, None] * rest.pmf(there)
    seen = joint[:, there > 0]
    losses = np.add.outer(
        np.log(1.0 + here) - math.log(out), math.log(into) - np.log(there[there > 0])
    )
    kept = seen > 0
    order = np.argsort(losses[kept])
    masses = seen[kept][order]
    return Pair(losses[kept][order], masses, unseen=max(0.0, 1 - float(masses.sum())))


def _around(mean: float, most: int) -> IntArray:
    """Values that a binomial of this mean takes, almost surely."""
    reach = math.ceil(13 * math.sqrt(mean) + 60)
    return np.arange(max(0, math.floor(mean) - reach), min(most, math.ceil(mean) + reach) + 1)


def outcomes(first: Mapping[bytes, float], second: Mapping[bytes, float]) -> Pair:
    """Any two distributions over finitely many outcomes."""
    shared = [key for key in first if second.get(key, 0.0) > 0]
    p = np.array([first[key] for key in shared])
    q = np.array([second[key] for key in shared])
    unseen = math.fsum(mass for key, mass in first.items() if not second.get(key, 0.0) > 0)
    return Pair(np.log(p) - np.log(q), p, unseen)
