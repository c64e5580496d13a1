"""Composition of privacy losses on a grid, with connect-the-dots: the upper bound.

A move of a counter turns one distribution into another: atoms of mass p under P and q under Q. The
grid has the losses i·ln(1/x) with x = 1 - 2^-m. An atom whose ratio r = q/p lies between x^(i+1)
and x^i is split in two, of loss i and i+1, so that both masses are kept:

    above = (x^i·p - q)/(x^i - x^(i+1)),   below = p - above.

Merging the halves gives the atom back. So the pair (P, Q) is a post-processing of the split pair,
whose delta is therefore no smaller, also after composition with anything else (Doroshenko, Ghazi,
Kamath, Kumar and Manurangsi 2022). Where the order of two balls is not proven, the loss is rounded
up. Independent moves multiply their polynomials. In the end

    delta(epsilon) <= sum of m_i·(1 - e^epsilon·x^i)+  +  (1 - sum of m_i):

the last term counts every tail, every crop and every infinite loss as delta, so windows need no
trust.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from discreet.privacy.certificates.balls import arb, arb_poly, ball, clipped

Atom = tuple[arb, arb]
"""Mass under P, and the ratio Q/P."""


@dataclass(frozen=True)
class Losses:
    """Masses of a privacy loss on the grid: coefficient i belongs to index ``first`` + i."""

    first: int
    masses: arb_poly

    def times(self, other: "Losses", cut: float) -> "Losses":
        """The loss of two independent moves."""
        return cropped(self.first + other.first, self.masses * other.masses, cut)

    def repeated(self, times: int, cut: float) -> "Losses":
        """The loss of many such moves, by repeated squaring."""
        if times == 1:
            return self
        half = self.repeated(times // 2, cut)
        square = half.times(half, cut)
        return square.times(self, cut) if times % 2 else square


NO_LOSS = Losses(0, arb_poly([1]))


def cropped(first: int, masses: arb_poly, cut: float) -> Losses:
    """Without the ends that weigh at most ``cut`` each."""
    balls = masses.coeffs()
    sizes = [abs(float(mass.mid())) for mass in balls]
    low, high, weight = 0, len(sizes), 0.0
    while low < high - 1 and weight + sizes[low] <= cut:
        weight += sizes[low]
        low += 1
    weight = 0.0
    while high > low + 1 and weight + sizes[high - 1] <= cut:
        high -= 1
        weight += sizes[high]
    return Losses(first + low, arb_poly(balls[low:high]))


def connect(atoms: Iterable[Atom], base: Fraction, cut: float = 0.0) -> Losses:
    """Split atoms of finite loss over the grid of ``base``, without ends of weight ``cut``."""
    kept = list(atoms)
    if not kept:
        return Losses(0, arb_poly([0]))
    step = -math.log(base)
    places = [math.floor(-math.log(float(ratio.mid())) / step) for _, ratio in kept]
    first, last = min(places) - 1, max(places) + 3
    powers = [ball(base) ** i for i in range(first, last + 1)]
    out = [arb(0)] * len(powers)
    for (mass, ratio), place in zip(kept, places, strict=True):
        i = place - first
        while not ratio >= powers[i + 1]:  # proven: the loss is at most the upper point
            i += 1
        share = clipped((powers[i] - ratio) / (powers[i] - powers[i + 1]))
        out[i] += mass * (1 - share)
        out[i + 1] += mass * share
    return cropped(first, arb_poly(out), cut)


def hockey_stick(losses: Losses, epsilon: Fraction, base: Fraction) -> arb:
    """A ball whose upper end is at least delta(epsilon)."""
    masses = losses.masses.coeffs()
    growth, kept, total = ball(epsilon).exp(), arb(0), arb(0)
    power = ball(base) ** losses.first
    for mass in masses:
        kept += mass
        total += mass * clipped(1 - growth * power)
        power *= ball(base)
    return total + clipped(1 - kept)


def binomial_masses(trials: int, probability: Fraction, depth: float) -> tuple[int, list[arb]]:
    """Probabilities of a window of about ``depth`` nats around the mean, by exact ratios."""
    mean, p = float(trials * probability), float(probability)
    reach = math.sqrt(2 * depth * trials * p * (1 - p)) + 2 * depth
    low, high = max(0, math.floor(mean - reach)), min(trials, math.ceil(mean + reach))
    one, other = ball(probability), ball(1 - probability)
    log = arb(trials + 1).lgamma() - arb(low + 1).lgamma() - arb(trials - low + 1).lgamma()
    mass = (log + low * one.log() + (trials - low) * other.log()).exp()
    masses, odds = [mass], one / other
    for x in range(low + 1, high + 1):
        mass = mass * (trials - x + 1) / x * odds
        masses.append(mass)
    return low, masses


def binomial_atoms(trials: int, probability: Fraction, shift: int, depth: float) -> list[Atom]:
    """Atoms of finite loss when a counter under binomial noise moves by ``shift`` (±1)."""
    low, masses = binomial_masses(trials, probability, depth)
    odds = ball(probability / (1 - probability))
    atoms = []
    for x, mass in enumerate(masses, low):
        ratio = arb(x) / (trials - x + 1) / odds if shift > 0 else arb(trials - x) / (x + 1) * odds
        if ratio > 0:
            atoms.append((mass, ratio))
    return atoms


def poisson_atoms(mean: Fraction, shift: int, depth: float) -> list[Atom]:
    """Atoms of finite loss when a counter under Poisson noise moves by ``shift`` (±1)."""
    reach = math.sqrt(2 * depth * float(mean)) + 2 * depth
    low, high = max(0, math.floor(mean - reach)), math.ceil(mean + reach)
    rate = ball(mean)
    mass = (low * rate.log() - rate - arb(low + 1).lgamma()).exp()
    atoms = []
    for x in range(low, high + 1):
        ratio = arb(x) / rate if shift > 0 else rate / (x + 1)
        if ratio > 0:
            atoms.append((mass, ratio))
        mass = mass * rate / (x + 1)
    return atoms


def class_atoms(trials: int, probability: Fraction, depth: float) -> Iterator[Atom]:
    """Atoms of finite loss of one class: 1 + N_a against N_a heads among N_a + N_b coins.

    ``trials`` messages fall into a, and into b, with ``probability`` each; Q/P = N_b/(1 + N_a).
    """
    both = 2 * probability
    first, masses = (trials, [arb(1)]) if both == 1 else binomial_masses(trials, both, depth)
    for coins, weight in enumerate(masses, first):
        low, shares = binomial_masses(coins, Fraction(1, 2), depth)
        for heads, share in enumerate(shares, low):
            if heads < coins:
                yield weight * share, arb(coins - heads) / (heads + 1)


def gathered(atoms: Iterable[Atom], base: Fraction, reach: int) -> list[Atom]:
    """Atoms of one cell of the grid as one: splitting them together or apart is the same.

    ``reach`` bounds the indices; atoms beyond it are left out, which counts as delta in the end.
    """
    step = -math.log(base)
    powers = [ball(base) ** i for i in range(-reach, reach + 2)]
    masses, others = [arb(0)] * len(powers), [arb(0)] * len(powers)
    for mass, ratio in atoms:
        i = math.floor(-math.log(float(ratio.mid())) / step) + reach
        if not 0 <= i < 2 * reach:
            continue
        while not ratio >= powers[i + 1]:  # proven: both points of the cell are where they should
            i += 1
        if ratio <= powers[i]:
            masses[i] += mass
            others[i] += mass * ratio
        else:  # not proven to be in the cell: the loss is rounded up
            masses[i + 1] += mass
            others[i + 1] += mass * powers[i + 1]
    return [(p, q / p) for p, q in zip(masses, others, strict=True) if p > 0]


def table_atoms(weights: tuple[int, ...], draws: int, shift: int, cut: float) -> list[Atom]:
    """Atoms of finite loss when a counter under draws from a table moves by ``shift`` (±1).

    Cropped masses are missing from P, which the last term of delta counts, and from Q, which only
    raises the loss.
    """
    total = sum(weights)
    one = Losses(0, arb_poly([ball(Fraction(weight, total)) for weight in weights]))
    masses = one.repeated(draws, cut).masses.coeffs()
    moved = [arb(0), *masses, arb(0)][1 - shift : len(masses) + 1 - shift]
    return [(p, q / p) for p, q in zip(masses, moved, strict=True) if p > 0 and q > 0]
