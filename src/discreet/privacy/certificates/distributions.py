"""Two kinds of discrete Gaussian noise in one release: coarse counts and fine losses.

Counts move by one, with noise of a few units; losses are counted in units of 1/1024 and move by up
to 1024 units, with noise as much larger. Their privacy losses add up, but the counts' loss takes
few values and the losses' almost all: the sum is not that of one Gaussian release.

**How to call it** (for a calibration that must hold):

    moved = Layers(
        count_sigma=0.45, counts=4,        # sigma of the noise on a count; counts that move by one
        loss_sigma=460.6, loss_shift=1024, losses=2,  # in units; moved losses and by how many units
    )
    layered_delta(moved, 40.0) <= delta    # proven if true (an exact rational, rounded upwards)

`layered_refutation` takes the same arguments and returns a proven *lower* bound: if it exceeds
delta, the claim is false. Between the two lies a part in a thousand or less.

For the H steps of an episode: counts = 4H (transitions and visits; times the levels of a tree),
losses = 2H moved by 1024 (bandit), H moved by 1024 (bandit, centred), or X·A moved by 1024 times
the levels (full information). A mechanism whose losses carry no noise of their own (public losses)
has none here. ``losses=0`` or ``counts=0`` leaves that part out.

**Proof.** Given the sum T of the counts' noise, what remains is a release of the losses alone at
epsilon minus the counts' privacy loss (n - 2T)/(2 sigma²): delta = E[D(epsilon - loss(T))], with D
the delta of the losses. D is bounded by the closed form of `arithmetic`, the distribution of T by
convolution of its n draws (below sigma = 1.5) or by the lemma there; whatever is outside the window
counts whole.
"""

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any, ClassVar

from discreet import _validate
from discreet.privacy.certificates.arithmetic import (
    NO_LOSS,
    PRECISION,
    Atom,
    Shifted,
    arb,
    at_precision,
    ball,
    binomial_atoms,
    clipped,
    connect,
    delta_of_shift,
    excess,
    gathered,
    group_atoms,
    half_line,
    hockey_stick,
    least_share,
    lower,
    poisson_atoms,
    smooth_parts,
    sum_of_draws,
    table_atoms,
    upper,
    window_of_sum,
)

Number = int | float | Fraction


@dataclass(frozen=True, kw_only=True)
class Layers:
    """Noise on counts and losses, and how far one user moves them.

    Attributes:
        count_sigma: parameter of the discrete Gaussian noise on a count.
        counts: how many counts move by one.
        loss_sigma: parameter of the discrete Gaussian noise on a loss, in units.
        loss_shift: by how many units a loss moves.
        losses: how many losses move.
    """

    count_sigma: Number
    counts: int
    loss_sigma: Number
    loss_shift: int
    losses: int

    def __post_init__(self) -> None:
        _validate.count(0, counts=self.counts, losses=self.losses)
        _validate.count(loss_shift=self.loss_shift)
        _validate.positive(count_sigma=self.count_sigma, loss_sigma=self.loss_sigma)

    @property
    def smooth(self) -> bool:
        """Whether the lemma is as good for the counts as a convolution."""
        return self.count_sigma >= Fraction(3, 2) and self.counts > 0

    @property
    def coarse(self) -> Shifted:
        """The counts, as one direction of moves."""
        return Shifted(sigma=Fraction(self.count_sigma), norm=self.counts, cells=self.counts)

    @property
    def fine(self) -> Shifted | None:
        """The losses, as one direction of moves."""
        if not self.losses:
            return None
        sigma = Fraction(self.loss_sigma)
        return Shifted(sigma=sigma, norm=self.losses, cells=self.losses, step=self.loss_shift)

    def counted(self) -> tuple[list[tuple[int, arb]], arb]:
        """Values of the sum of the counts' noise, with at most these probabilities; the rest."""
        if self.smooth:
            return window_of_sum(self.coarse)
        values = sum_of_draws(Fraction(self.count_sigma), self.counts)
        kept = arb(0)
        for _, mass in values:
            kept += mass
        return values, 1 - kept

    def left(self, epsilon: Number, value: int) -> arb:
        """What the counts leave of epsilon when their noise sums to ``value``."""
        sigma = Fraction(self.count_sigma)
        return ball(Fraction(epsilon) - (self.counts - 2 * value) / (2 * sigma * sigma))


@at_precision(PRECISION)
def layered_delta(layers: Layers, epsilon: Number) -> Fraction:
    """A proven upper bound on delta(epsilon) of counts and losses together.

    Floats stand for their exact values.

    >>> moved = Layers(count_sigma=0.45, counts=4, loss_sigma=460.6, loss_shift=1024, losses=2)
    >>> 1.052e-6 < layered_delta(moved, 40) < 1.053e-6
    True
    """
    factor = excess(layers.fine) if layers.fine else arb(1)
    total, (masses, missing) = arb(0), layers.counted()
    for value, mass in masses:
        integral, correction = _smooth(layers.fine, layers.left(epsilon, value))
        total += mass * (factor * (integral + correction)).min(arb(1))
    return min(Fraction(1), upper(total + clipped(missing)))


@at_precision(PRECISION)
def layered_refutation(layers: Layers, epsilon: Number) -> Fraction:
    """A proven lower bound on delta(epsilon).

    >>> half = Layers(count_sigma=1, counts=0, loss_sigma=512, loss_shift=1024, losses=1)
    >>> layered_refutation(half, 1) > Fraction(1, 2)  # half the noise on a single loss
    True
    """
    share = least_share(layers.fine) if layers.fine else arb(1)
    total = arb(0)
    for value, mass in layers.counted()[0]:
        integral, correction = _smooth(layers.fine, layers.left(epsilon, value))
        total += clipped(mass) * clipped(integral - correction) * share
    if layers.smooth:
        total *= least_share(layers.coarse) / excess(layers.coarse)
    return lower(total)


def _smooth(fine: Shifted | None, epsilon: arb) -> tuple[arb, arb]:
    """Delta of the losses alone as an integral, and how far from it the truth may be."""
    return (clipped(-epsilon.expm1()), arb(0)) if fine is None else smooth_parts(fine, epsilon)


# What is certified: noise together with the moves of one user, each with its bound.
#
# A `Noise` states a dominating pair in exact numbers and knows how to bound its delta. It knows
# nothing of mechanisms and nothing of calibration. A further one is a class here, a function in
# `verify.py`, and an entry in both tables.


Document = dict[str, Any]
Moves = Document | list[dict[str, int]]
Progress = Callable[[str], None]
Bound = tuple[Fraction, Document]
"""A proven bound on delta(epsilon), and the method by which `verify.py` finds it again."""

_MASS_BITS = 128
_GRID_BITS = 160


@dataclass(frozen=True, kw_only=True)
class Noise(ABC):
    """Noise on counters and the moves of one user."""

    name: ClassVar[str]
    room: ClassVar[Fraction] = Fraction(1, 10**9)
    """What the verifier's roundings and cuts may add to the bound, in parts of delta."""

    moved: ClassVar[tuple[str, ...]] = ()
    """Attributes that say how one user moves the counters; all others are the noise's own."""

    def fields(self) -> Document:
        """The noise's own numbers, exactly."""
        names = [field.name for field in dataclasses.fields(self) if field.name not in self.moved]
        return {name: _exactly(getattr(self, name)) for name in names}

    def moves(self) -> Moves:
        return {name: getattr(self, name) for name in self.moved}

    @abstractmethod
    def bound(self, epsilon: Fraction, delta: Fraction, progress: Progress) -> Bound:
        """A bound, sought until it is at most ``delta`` or no method is left."""


def _exactly(value: object) -> object:
    """As a document says it: fractions as text, tables as lists."""
    if isinstance(value, float | Fraction):
        return str(Fraction(value))
    return list(value) if isinstance(value, tuple) else value


def _shifts(*moves: tuple[int, int]) -> list[dict[str, int]]:
    return [{"shift": shift, "times": times} for shift, times in moves if times]


def _cut(delta: Fraction, digits: int = 12) -> str:
    """A trillionth of delta, or another negative power of ten."""
    return f"1e{math.floor(math.log10(delta)) - digits}"


class _OnGrid(Noise):
    """Noise of many values: connect the dots."""

    digits: ClassVar[int] = 12
    """Ends of a product are cut off at this many digits below delta."""

    @abstractmethod
    def typical_loss(self) -> float:
        """Root mean square of the loss of one move, roughly: it sets the grid."""

    @abstractmethod
    def on_grid(self, epsilon: Fraction, delta: Fraction, base: Fraction) -> Fraction:
        """The bound on one grid."""

    def bound(self, epsilon: Fraction, delta: Fraction, progress: Progress) -> Bound:
        """Grids of 1/64 of the typical loss and finer, while that helps.

        Each halving quarters the slack. Losses of nearly one size (noise close to Laplace) take
        finer grids: what lies just below epsilon must not be carried beyond it.
        """
        start = max(1, math.ceil(-math.log2(min(0.5, self.typical_loss() / 64))))
        best, method = Fraction(1), Document()
        for m in range(start, start + 9):
            base = Fraction((1 << m) - 1, 1 << m)
            progress(f"composing all moves on a grid of 2^-{m}")
            found, before = self.on_grid(epsilon, delta, base), best
            if found < best or not method:
                cut = _cut(delta, self.digits)
                method = {"name": "connect-the-dots", "base": str(base), "bits": _MASS_BITS}
                best, method = found, method | {"cut": cut}
            hopeless = found > delta * Fraction(3, 2) and found > before * Fraction(4, 5)
            if found <= delta or hopeless or (m > start + 3 and found > before * Fraction(99, 100)):
                break
        return best, method


class _Moved(_OnGrid):
    """Counters that move by one."""

    ups: int
    downs: int
    moved = ("ups", "downs")

    @abstractmethod
    def atoms(self, shift: int, depth: float) -> list[Atom]:
        """The pair of one move."""

    def moves(self) -> Moves:
        return _shifts((1, self.ups), (-1, self.downs))

    @at_precision(_GRID_BITS)
    def on_grid(self, epsilon: Fraction, delta: Fraction, base: Fraction) -> Fraction:
        """The dearer of both directions, on one grid."""
        cut, depth = float(Fraction(_cut(delta, self.digits))), 30 - math.log(delta)
        one = {s: connect(self.atoms(s, depth), base, cut) for s in (1, -1)}
        directions = [(self.ups, self.downs), (self.downs, self.ups)]
        worst = Fraction(0)
        for ups, downs in directions[: 1 if self.ups == self.downs else 2]:
            total = NO_LOSS
            for shift, times in ((1, ups), (-1, downs)):
                total = total.times(one[shift].repeated(times, cut), cut) if times else total
            worst = max(worst, upper(hockey_stick(total, epsilon, base)))
        return min(Fraction(1), worst)


@dataclass(frozen=True, kw_only=True)
class BinomialBits(_Moved):
    """Each counter carries ``trials`` bits that are one with ``probability``."""

    trials: int
    probability: Fraction
    ups: int
    downs: int
    name: ClassVar[str] = "binomial"

    def atoms(self, shift: int, depth: float) -> list[Atom]:
        return binomial_atoms(self.trials, self.probability, shift, depth)

    def typical_loss(self) -> float:
        variance = float(self.trials * self.probability * (1 - self.probability))
        return min(1.0, 1 / math.sqrt(variance))


@dataclass(frozen=True, kw_only=True)
class PoissonNoise(_Moved):
    """Each counter carries Poisson noise of ``mean``: a shuffled histogram, whatever the batch."""

    mean: Fraction
    ups: int
    downs: int
    name: ClassVar[str] = "poisson"

    def atoms(self, shift: int, depth: float) -> list[Atom]:
        return poisson_atoms(self.mean, shift, depth)

    def typical_loss(self) -> float:
        return min(1.0, 1 / math.sqrt(self.mean))


@dataclass(frozen=True, kw_only=True)
class HistogramNoise(_OnGrid):
    """Shuffled histograms: in each group a user moves one unit from a cell to another.

    Attributes:
        kinds: (honest noise messages, probability of one cell, groups of this kind).
    """

    kinds: tuple[tuple[int, Fraction, int], ...]
    name: ClassVar[str] = "histogram"

    def fields(self) -> Document:
        return {
            "trials": [trials for trials, _, _ in self.kinds],
            "probability": [str(probability) for _, probability, _ in self.kinds],
        }

    def moves(self) -> Moves:
        """One unit from a cell to another in so many groups of each kind."""
        return {"times": [times for *_, times in self.kinds]}

    def typical_loss(self) -> float:
        """Of one group: two cells move."""
        mean = min(float(trials * probability) for trials, probability, _ in self.kinds)
        return min(1.0, math.sqrt(2 / mean))

    @at_precision(_GRID_BITS)
    def on_grid(self, epsilon: Fraction, delta: Fraction, base: Fraction) -> Fraction:
        cut, depth = float(Fraction(_cut(delta, self.digits))), 30 - math.log(delta)
        reach = math.ceil(4 * depth * self.typical_loss() / -math.log(base))
        total = NO_LOSS
        for trials, probability, times in self.kinds:
            atoms = gathered(group_atoms(trials, probability, depth), base, reach)
            total = total.times(connect(atoms, base, cut).repeated(times, cut), cut)
        return min(Fraction(1), upper(hockey_stick(total, epsilon, base)))


@dataclass(frozen=True, kw_only=True)
class TableNoise(_Moved):
    """Each counter carries the sum of ``draws`` draws from a table of integer ``weights``."""

    weights: tuple[int, ...]
    ups: int
    downs: int
    draws: int = 1
    name: ClassVar[str] = "table"
    digits: ClassVar[int] = 9  # bounded noise ends in huge losses of tiny mass: a long grid
    room: ClassVar[Fraction] = Fraction(1, 10**6)

    def atoms(self, shift: int, depth: float) -> list[Atom]:
        return table_atoms(self.weights, self.draws, shift, math.exp(-depth))

    def typical_loss(self) -> float:
        mean = sum(x * w for x, w in enumerate(self.weights)) / sum(self.weights)
        square = sum((x - mean) ** 2 * w for x, w in enumerate(self.weights)) / sum(self.weights)
        return min(1.0, 1 / math.sqrt(self.draws * square)) if square else 1.0


@dataclass(frozen=True, kw_only=True)
class GaussianMoves(Noise):
    """``times`` counters with discrete Gaussian noise of ``sigma`` move by ``shift`` each."""

    sigma: Fraction
    times: int
    shift: int = 1
    name: ClassVar[str] = "discrete-gaussian"
    moved = ("times", "shift")

    def moves(self) -> Moves:
        return _shifts((self.shift, self.times))

    @at_precision(PRECISION)
    def bound(self, epsilon: Fraction, delta: Fraction, progress: Progress) -> Bound:
        """By the lemma of `sums`; little noise is convolved."""
        progress("summing over the integers")
        times = self.times
        shifted = Shifted(sigma=self.sigma, norm=times, cells=times, step=self.shift)
        if self.sigma < Fraction(8, 5):
            method = {"name": "convolution", "bits": _MASS_BITS, "cut": _cut(delta)}
            return upper(self._convolved(epsilon)), method
        return upper(delta_of_shift(shifted, epsilon)[0]), {"name": "sum"}

    def _convolved(self, epsilon: Fraction) -> arb:
        kept, total = arb(0), arb(0)
        for value, mass in sum_of_draws(self.sigma, self.times):
            loss = self.shift * (self.times * self.shift - 2 * value) / (2 * self.sigma**2)
            kept += mass
            if loss > epsilon:
                total += mass * -ball(epsilon - loss).expm1()
        return total + clipped(1 - kept)


@dataclass(frozen=True, kw_only=True)
class PiledGaussian(Noise):
    """Any integer vector of moves, of L1 norm ``total`` and entries up to ``largest``.

    Every counter is there ``copies`` times (the levels of a tree), with noise of its own.
    """

    sigma: Fraction
    total: int
    largest: int
    copies: int = 1
    name: ClassVar[str] = "piled-gaussian"
    moved = ("total", "largest", "copies")

    @at_precision(PRECISION)
    def bound(self, epsilon: Fraction, delta: Fraction, progress: Progress) -> Bound:
        """All piles full; then every other norm and divisor that zCDP does not dispose of.

        The proof is in `verify.check_piled_gaussian`.
        """
        cells = self.total // self.largest * self.copies
        full = Shifted(sigma=self.sigma, norm=cells, cells=cells, step=self.largest)
        worst = upper(delta_of_shift(full, epsilon)[0])
        rest = self.total * self.largest - (self.largest - 1) if self.largest > 1 else 0
        small, order = self._small_norms(epsilon, min(worst, delta), rest)
        for g in range(1, self.largest):
            for norm in range(small // g**2 + 1, rest // g**2 + 1):
                progress(f"directions of squared norm {norm * g**2} and divisor {g}")
                other = Shifted(
                    sigma=self.sigma,
                    norm=norm * self.copies,
                    cells=min(norm, self.total // g) * self.copies,
                    step=g,
                    ones=False,
                )
                worst = max(worst, upper(delta_of_shift(other, epsilon)[0]))
        return worst, {"name": "all-directions", "small_norms": small, "order": str(order)}

    def _small_norms(self, epsilon: Fraction, delta: Fraction, rest: int) -> tuple[int, Fraction]:
        """The largest squared norm that zCDP disposes of, and the order at which it does."""
        low, high, order = 0, rest + 1, Fraction(2)
        while high - low > 1:
            middle = (low + high) // 2
            rho = middle * self.copies / (2 * self.sigma**2)
            guess = best_order(rho, epsilon)
            if upper(concentrated(rho, epsilon, guess)) <= delta:
                low, order = middle, guess
            else:
                high = middle
        return low, order


def best_order(rho: Fraction, epsilon: Fraction) -> Fraction:
    """The order of the Rényi divergence that gives the least delta, to a part in 64.

    The logarithm of `concentrated` has the slope 2·a·rho - rho - epsilon - 1/a - 1/a^2, which grows
    with the order a: its root is found by halving.
    """
    cost, asked = float(rho), float(epsilon)
    low, high = 1.0, max(1.0, (cost + asked + 2) / (2 * cost))
    for _ in range(60):
        a = (low + high) / 2
        rises = 2 * a * cost - cost - asked - 1 / a - 1 / a**2 > 0
        low, high = (low, a) if rises else (a, high)
    return 1 + Fraction(max(1, round(64 * (low - 1))), 64)


def concentrated(rho: Fraction, epsilon: Fraction, order: Fraction) -> arb:
    """Delta of rho-zCDP (Canonne, Kamath and Steinke 2020, Proposition 12) at one order."""
    exponent = (order - 1) * (order * rho - epsilon) - 1 + 1 / order
    return ball(exponent).exp() / ball(order)


@dataclass(frozen=True, kw_only=True)
class GaussianGrid(Noise):
    """Encoded counters on an integer grid: any factorisation with integer columns.

    Attributes:
        sigma: parameter of the discrete Gaussian noise, in grid steps.
        length: times at which a counter is released.
        encoder: the coefficients of the longest column.
        columns: by what the column of each user is multiplied.
        squares: the largest squared norm of one user's move, in units.
        cells: counters that one user moves at most.
    """

    sigma: Fraction
    length: int
    encoder: tuple[int, ...]
    columns: tuple[int, ...]
    squares: int
    cells: int
    name: ClassVar[str] = "gaussian-grid"
    moved = ("squares", "cells")

    @property
    def squared_norm(self) -> int:
        """Of the longest column, exactly."""
        squares = accumulate(c * c for c in self.encoder)
        return max(d * d * n for d, n in zip(reversed(self.columns), squares, strict=True))

    @at_precision(PRECISION)
    def bound(self, epsilon: Fraction, delta: Fraction, progress: Progress) -> Bound:
        """Normal noise plus the price of the grid; zCDP where that is cheaper."""
        ratio = Fraction(self.squared_norm * self.squares) / self.sigma**2
        order = best_order(ratio / 2, epsilon)
        simple = upper(concentrated(ratio / 2, epsilon, order))
        best = upper(self._analytic(ratio, epsilon))
        if best <= simple:
            return best, {"name": "analytic"}
        return simple, {"name": "concentrated", "order": str(order)}

    def _analytic(self, ratio: Fraction, epsilon: Fraction) -> arb:
        """Balle and Wang (2018), plus (1 + e^epsilon) times the distance to rounded noise.

        Discrete and rounded normal noise, p and q: the distance is the sum of (p - q)+, and
        q/p >= E exp(-u²/(2 sigma²)) >= 1 - 1/(24 sigma²) for u uniform on [-1/2, 1/2].
        """
        mu, wanted = ball(ratio).sqrt(), ball(epsilon)
        z = mu / 2 - wanted / mu
        smooth = clipped(half_line(z) - wanted.exp() * half_line(z - mu))
        return smooth + (1 + wanted.exp()) * ball(self.cells * self.length / (24 * self.sigma**2))


@dataclass(frozen=True, kw_only=True)
class LayeredGaussian(Layers, Noise):
    """Coarse counts that move by one and fine losses that move by many units (`layered`)."""

    name: ClassVar[str] = "layered-gaussian"
    moved = ("counts", "losses", "loss_shift")

    def bound(self, epsilon: Fraction, delta: Fraction, progress: Progress) -> Bound:
        progress("summing over the noise of the counts")
        found = layered_delta(self, epsilon)
        name = "convolved-counts" if self.count_sigma < Fraction(3, 2) else "summed-counts"
        return found, {"name": name, "bits": _MASS_BITS, "cut": _cut(delta)}


@dataclass(frozen=True, kw_only=True)
class AdaptiveGaussian(Noise):
    """Integer moves of which only the sum of ``squares`` is known; a later one may be chosen."""

    sigma: Fraction
    squares: int
    name: ClassVar[str] = "adaptive-gaussian"
    moved = ("squares",)

    @at_precision(PRECISION)
    def bound(self, epsilon: Fraction, delta: Fraction, progress: Progress) -> Bound:
        rho = self.squares / (2 * self.sigma**2)
        order = best_order(rho, epsilon)
        found = upper(concentrated(rho, epsilon, order))
        return found, {"name": "concentrated", "order": str(order)}


class _Pure(Noise):
    """Moves of a pure epsilon each: delta is zero, or that of their exact composition."""

    @abstractmethod
    def keeps(self, epsilon: Fraction) -> bool:
        """Whether every likelihood ratio is at most e^epsilon."""

    @abstractmethod
    def responses(self) -> tuple[arb, int]:
        """Logarithm of the odds of one move, and how many there are."""

    @at_precision(PRECISION)
    def bound(self, epsilon: Fraction, delta: Fraction, progress: Progress) -> Bound:
        """Exact rationals against e^epsilon from below, else a sum over the false responses."""
        if self.keeps(epsilon) or delta == 0:
            return Fraction(0 if self.keeps(epsilon) else 1), {"name": "rational"}
        each, times = self.responses()
        total, base = arb(0), (1 + each.exp()).log() * times
        for k in range(times // 2 + 1):
            gain = clipped(-(ball(epsilon) - each * (times - 2 * k)).expm1())
            total += arb(math.comb(times, k)) * (each * (times - k) - base).exp() * gain
        method = {"name": "responses", "bits": _MASS_BITS, "cut": _cut(delta)}
        return upper(total), method


@dataclass(frozen=True, kw_only=True)
class LaplaceMoves(_Pure):
    """Counters with discrete Laplace noise of ``scale`` move by ``units`` in all."""

    units: int
    scale: Fraction
    name: ClassVar[str] = "discrete-laplace"
    moved = ("units",)

    def moves(self) -> Moves:
        return _shifts((1, self.units))

    def keeps(self, epsilon: Fraction) -> bool:
        return self.units / self.scale <= epsilon

    def responses(self) -> tuple[arb, int]:
        return ball(1 / self.scale), self.units


@dataclass(frozen=True, kw_only=True)
class FlippedBits(_Pure):
    """Randomised response: ``units`` bits differ, each is flipped with probability ``flip``."""

    units: int
    flip: Fraction
    name: ClassVar[str] = "randomized-response"
    moved = ("units",)

    def moves(self) -> Moves:
        return _shifts((1, self.units))

    def keeps(self, epsilon: Fraction) -> bool:
        odds = max((1 - self.flip) / self.flip, self.flip / (1 - self.flip))
        return bool(ball(odds).log() * self.units <= ball(epsilon))

    def responses(self) -> tuple[arb, int]:
        return ball(max((1 - self.flip) / self.flip, self.flip / (1 - self.flip))).log(), self.units


@dataclass(frozen=True, kw_only=True)
class OneStep(_Pure):
    """Unary encoding of one category: true bits are one with ``keep``, others with ``flip``."""

    keep: Fraction
    flip: Fraction
    reports: int = 1
    name: ClassVar[str] = "one-step"
    moved = ("reports",)

    def moves(self) -> Moves:
        return _shifts((1, self.reports), (-1, self.reports))

    def keeps(self, epsilon: Fraction) -> bool:
        each, reports = self.responses()
        return bool(each * reports <= ball(epsilon))

    def responses(self) -> tuple[arb, int]:
        return ball(self.keep / self.flip * (1 - self.flip) / (1 - self.keep)).log(), self.reports


NOISES: dict[str, type[Noise]] = {
    noise.name: noise
    for noise in (
        BinomialBits,
        PoissonNoise,
        HistogramNoise,
        TableNoise,
        GaussianMoves,
        PiledGaussian,
        GaussianGrid,
        LayeredGaussian,
        AdaptiveGaussian,
        LaplaceMoves,
        FlippedBits,
        OneStep,
    )
}
