"""Privacy-loss distributions: exact composition of shifted integer noise, erring upwards.

When one user is replaced, some counters go up by one and others go down by one. Each moved counter
contributes an independent privacy loss log(P(x)/Q(x)), where P is the noise and Q the noise moved
by one. The losses add up; their distribution under P gives delta(epsilon) as the mean of
max(0, 1 - exp(epsilon - loss)).

*Discretisation* is connect-the-dots (Doroshenko et al. 2022): an atom between two grid points is
split over both so that its mass under P and its mass under Q stay the same. Since the hockey-stick
divergence is convex this can only raise delta. *Composition* is one FFT of exponentially tilted
losses, so that rounding errors are small relative to delta itself, not only relative to one. The
transform covers a window outside which the tilted loss falls with probability at most 1e-13 (by
Chernoff's bound); that probability is added to delta.
"""

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from discreet import _validate
from discreet._types import FloatArray
from discreet.errors import CalibrationError
from discreet.privacy.accounting.closed_forms import least_epsilon
from discreet.privacy.accounting.distributions import NoisePmf
from discreet.privacy.accounting.roots import bracketed_root

_RESOLUTION = 0.005
"""Grid step in root-mean-square losses of one shift: raises their variance by at most 6.3e-6."""
_OUTSIDE_WINDOW = 1e-13
_LARGEST_TRANSFORM = 1 << 25
_LARGEST_TILT = 1e6
_NEGLIGIBLE = 1e-30
"""Probability that may be counted as an infinite loss to keep grids short."""


@dataclass(frozen=True, eq=False)
class Shift:
    """``times`` counters whose noise moves by ``by`` between a dataset and its neighbour."""

    noise: NoisePmf
    by: int = 1
    times: int = 1


def delta_of_moves(
    noise: NoisePmf, ups: int, downs: int, epsilon: float, *, pile: int = 1
) -> float:
    """Exact (never underestimated) delta when ``ups`` counters rise and ``downs`` fall by ``pile``.

    >>> from discreet.privacy.accounting.distributions import binomial_pmf
    >>> 0.98e-6 < delta_of_moves(binomial_pmf(2574, 0.5), 18, 18, 1.0) <= 1e-6
    True
    """
    return max(delta_of_shifts(s, epsilon) for s in _directions(noise, ups, downs, pile))


def epsilon_of_moves(
    noise: NoisePmf, ups: int, downs: int, delta: float, *, pile: int = 1
) -> float:
    """The least epsilon that holds at ``delta``, or ``inf``; see `delta_of_moves`.

    Tables are cut where 1e-30 of the mass remains, which counts as an infinite loss: a pure epsilon
    (delta = 0) of unbounded noise is not found here but in `closed_forms`.
    """
    return max(epsilon_of_shifts(s, delta) for s in _directions(noise, ups, downs, pile))


def _directions(noise: NoisePmf, ups: int, downs: int, pile: int) -> list[list[Shift]]:
    """Both orders of the two datasets; they are the same pair if as many rise as fall."""
    _validate.count(0, ups=ups, downs=downs)
    _validate.count(pile=pile)
    there = [Shift(noise, pile, ups), Shift(noise, -pile, downs)]
    back = [Shift(noise, pile, downs), Shift(noise, -pile, ups)]
    return [there] if ups == downs else [there, back]


def delta_of_shifts(shifts: Sequence[Shift], epsilon: float) -> float:
    """delta(epsilon) of P against Q, where Q moves each counter as ``shifts`` say."""
    _validate.real(epsilon=epsilon)
    return Composition.of(shifts).delta(float(epsilon))


def epsilon_of_shifts(shifts: Sequence[Shift], delta: float) -> float:
    """The least epsilon >= 0 with delta(epsilon) <= delta, or ``inf``."""
    _validate.delta(delta=delta)
    losses = Composition.of(shifts)
    return least_epsilon(losses.delta, delta, largest=max(losses.largest, 0.0))


@dataclass(frozen=True, eq=False)
class Grid:
    """One shift's losses: ``masses[i]`` at ``(first + i)·step``; the rest is an infinite loss."""

    first: int
    masses: FloatArray
    infinite: float
    times: int

    def losses(self, step: float) -> FloatArray:
        """Where the masses are."""
        return np.asarray((self.first + np.arange(self.masses.size)) * step)


@dataclass(frozen=True, eq=False)
class Composition:
    """Independent losses on grids of one ``step``."""

    step: float
    grids: tuple[Grid, ...]
    hopeless: bool = False
    """True if P and Q have no value in common: the noise is too narrow for the shift."""

    @classmethod
    def of(cls, shifts: Sequence[Shift]) -> "Composition":
        """The losses of moved counters."""
        return cls.of_atoms((*_atoms(s.noise, s.by), s.times) for s in shifts if s.times and s.by)

    @classmethod
    def of_atoms(cls, parts: Iterable[tuple[FloatArray, FloatArray, float, int]]) -> "Composition":
        """Of finite losses in ascending order, their masses, that of infinite losses, how often."""
        atoms = list(parts)
        if not all(losses.size for losses, *_ in atoms):
            return cls(1.0, (), hopeless=True)
        count = sum(times for *_, times in atoms)
        square = sum(times * float(mass @ loss**2) for loss, mass, _, times in atoms)
        step = _RESOLUTION * math.sqrt(square / count) if count and square else 1.0
        smallest = min((float(np.abs(a[0][a[0] != 0]).min(initial=1e9)) for a in atoms), default=0)
        if step <= smallest < 1e9:  # losses on a lattice (Gaussian, Laplace) fall on grid points
            step = smallest / math.ceil(smallest / step)
        return cls(step, tuple(_connect_the_dots(*a, step=step) for a in atoms))

    @property
    def infinite(self) -> float:
        """Probability that some loss is infinite."""
        if self.hopeless:
            return 1.0
        return -math.expm1(sum(g.times * math.log1p(-g.infinite) for g in self.grids))

    @property
    def largest(self) -> float:
        """The largest finite loss."""
        return self.step * sum(g.times * (g.first + g.masses.size - 1) for g in self.grids)

    def delta(self, epsilon: float) -> float:
        """Mean of max(0, 1 - exp(epsilon - loss)), infinite losses counted as one."""
        if epsilon >= self.largest:
            return self.infinite
        tilt = self._tilt(epsilon)
        first, masses = self._compose(tilt)
        losses = (first + np.arange(masses.size)) * self.step
        above = losses > epsilon
        gains = -np.expm1(epsilon - losses[above])
        finite = float((masses[above] * np.exp(tilt * (epsilon - losses[above]))) @ gains)
        untilt = math.exp(self._cumulant(tilt) - tilt * epsilon)
        return min(1.0, self.infinite + untilt * (max(0.0, finite) + 2 * _OUTSIDE_WINDOW))

    def _cumulant(self, tilt: float) -> float:
        """Logarithm of the mean of exp(tilt · loss) over finite losses."""
        total = 0.0
        for grid in self.grids:
            exponents = tilt * grid.losses(self.step)
            top = float(exponents.max())
            total += grid.times * (top + math.log(float(grid.masses @ np.exp(exponents - top))))
        return total

    def _tilt(self, epsilon: float) -> float:
        """The tilt that moves the mean of the composed loss to epsilon (if epsilon is above it)."""

        def excess(tilt: float) -> float:
            total = 0.0
            for grid in self.grids:
                losses = grid.losses(self.step)
                weights = grid.masses * np.exp(tilt * (losses - losses[-1]))
                total += grid.times * float(weights @ losses / weights.sum())
            return total - epsilon

        if excess(0.0) >= 0:
            return 0.0
        high = 1.0
        while excess(high) < 0 and high < _LARGEST_TILT:
            high *= 2
        return bracketed_root(excess, 0.0, high, rtol=1e-2) if high < _LARGEST_TILT else 0.0

    def _window(self, tilt: float) -> tuple[int, int]:
        """First grid index and length of a range that the tilted loss leaves with P <= 1e-13."""
        base, need = self._cumulant(tilt), -math.log(_OUTSIDE_WINDOW / 2)
        spread = self.step * math.sqrt(sum(g.times for g in self.grids)) / _RESOLUTION
        rates = math.sqrt(2 * need) / spread * np.geomspace(0.1, 10, 13)
        high = min((self._cumulant(tilt + r) - base + need) / r for r in rates)
        low = max((base - self._cumulant(tilt - r) - need) / r for r in rates)
        smallest = sum(g.times * g.first for g in self.grids)
        start = max(smallest, math.floor(low / self.step))
        return start, max(1, math.ceil(min(high, self.largest) / self.step) + 1 - start)

    def _compose(self, tilt: float) -> tuple[int, FloatArray]:
        """First grid index and normalised masses of the tilted sum of all losses."""
        first, size = self._window(tilt)
        if size > _LARGEST_TRANSFORM:
            raise CalibrationError(
                f"Composing these losses needs a grid of {size:,} points; "
                f"use fewer moves or a closed form."
            )
        length = _fast_length(size)
        spectrum = np.ones(length // 2 + 1, np.complex128)
        for grid in self.grids:
            losses = grid.losses(self.step)
            weights = grid.masses * np.exp(tilt * (losses - losses[-1]))
            index = (grid.first + np.arange(weights.size)) % length
            folded = np.bincount(index, weights / weights.sum(), minlength=length)
            spectrum *= np.fft.rfft(folded) ** grid.times
        return first, np.roll(np.maximum(np.fft.irfft(spectrum, length), 0.0), -(first % length))


def _fast_length(size: int) -> int:
    """The least length from ``size`` on without prime factors above five: fast to transform.

    The transforms are NumPy's, the same as SciPy's, whose import takes longer than calibrating.

    >>> [_fast_length(size) for size in (1, 7, 11, 121, 1025)]
    [1, 8, 12, 125, 1080]
    """
    best, odd = 1 << (size - 1).bit_length(), 1
    while odd < best:
        factor = odd
        while factor < best:
            best = min(best, factor << (-(-size // factor) - 1).bit_length())
            factor *= 3
        odd *= 5
    return best


@functools.lru_cache(maxsize=32)
def _atoms(noise: NoisePmf, by: int) -> tuple[FloatArray, FloatArray, float]:
    """Finite losses of a shift, their masses under P, and the mass of infinite losses.

    Q(x) = P(x - by). Values that Q cannot produce have an infinite loss; so have, to keep grids
    short, the rarest values up to a probability of 1e-30.
    """
    log = noise.log_probabilities
    gone = np.full(min(abs(by), log.size), -np.inf)
    moved = np.concatenate([gone, log[:-by]] if by > 0 else [log[-by:], gone])
    possible = np.isfinite(log) & np.isfinite(moved)
    infinite = noise.outside + float(np.exp(log[~possible]).sum())
    losses, masses = log[possible] - moved[possible], np.exp(log[possible])
    return ascending(losses, masses, infinite)


def ascending(
    losses: FloatArray, masses: FloatArray, infinite: float
) -> tuple[FloatArray, FloatArray, float]:
    """In order, without the largest: what has a mass of 1e-30 in all counts as infinite."""
    order = np.argsort(losses)
    losses, masses = losses[order], masses[order]
    kept = int((np.cumsum(masses[::-1])[::-1] > _NEGLIGIBLE).sum())
    return losses[:kept], masses[:kept], infinite + float(masses[kept:].sum())


def _connect_the_dots(
    losses: FloatArray, masses: FloatArray, infinite: float, times: int, *, step: float
) -> Grid:
    """Move atoms to the grid, keeping their mass under P and under Q (P-mass · exp(-loss))."""
    # Losses of negligible mass below the bulk may be raised: that is pessimistic too.
    floor = int(np.searchsorted(np.cumsum(masses), _NEGLIGIBLE, "right"))
    losses = np.maximum(losses, losses[min(floor, losses.size - 1)])
    position = losses / step
    below = np.floor(position + 1e-9)
    first = int(below[0])
    index = below.astype(np.int64) - first
    rest = np.clip((position - below) * step, 0.0, step)
    upper = masses * -np.expm1(-rest) / -math.expm1(-step)
    grid = np.zeros(int(index[-1]) + 2)
    grid += np.bincount(index, masses - upper, minlength=grid.size)
    grid += np.bincount(index + 1, upper, minlength=grid.size)
    used = int(np.flatnonzero(grid)[-1]) + 1
    return Grid(first, grid[:used], infinite, times)
