"""Check a privacy certificate: python verify.py FILE.

One file, standard library, integers only; nothing of the project is imported. A certificate says:
"this release, whose counters carry noise of this distribution, has delta(epsilon) <= bound <=
delta". This program derives from the release how one user moves the counters (`moves_of`), computes
an upper bound of its own and accepts if

    recomputed <= bound <= delta.

What was verified is printed in one sentence (`claim`). Whoever edits a file can make it a proof of
less: compare the sentence with what was claimed, or let `discreet certify --verify` compare it.

**Numbers.** A real number x is known through integers low <= x·2^256 <= high. Every division rounds
outwards. The transcendental functions are `exp` (a Taylor series), `PI` (Machin's formula) and
`normal`, the normal distribution function (a series of positive terms).

**Noise of many values** (binomial, poisson, histogram, table): every move is a pair of
distributions (P, Q); its privacy loss ln P/Q is spread over a grid of losses i·ln(1/x) so that
merging the pieces gives the pair back ("connect the dots": a finer release, hence an upper bound).
Moves are
independent: their polynomials multiply. What is cut off anywhere counts as delta. In the end
delta <= sum of mass_i·(1 - e^epsilon·x^i)+ + (all that was cut off).

**Gaussian noise**: see `excess`. **Pure noise**: rational numbers against e^epsilon from below.

**Work** is bounded: every long loop pays for its steps, of about a microsecond each, and a file
that asks for more than `WORK` of them is refused. So is whatever cannot be computed.

What is not checked: `NOT_COVERED`. The digest is optional and anybody can compute it.
"""

import decimal
import hashlib
import json
import math
import os
import re
import sys
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

BITS = 256
ONE = 1 << BITS
LIMIT = 10**7
"""Sizes beyond this are refused: nobody waits for them."""
WORK = 100 * 10**6
"""Steps of about a microsecond: a minute or two."""
NOT_COVERED = (
    "that what runs is this release and nothing else, and that its code draws the stated noise "
    "(`discreet check mechanism` runs the code and looks)",
    "the trust assumptions of the guarantee",
)
"""What no certificate says anything about."""
Pair = tuple[int, int]
Masses = tuple[int, list[int], int]
"""Index of the first mass, upper bounds on the masses, and the mass cut off so far."""


class Refused(Exception):  # noqa: N818
    """The certificate does not hold, or cannot be read."""


class Unknown(Refused):
    """Of such a release, or of one so large, nothing is known here."""


class _Budget(threading.local):
    """Steps that are left; without limit outside `check`."""

    left: float = math.inf


BUDGET = _Budget()


def spend(steps: float) -> None:
    """Pay for work before it is done."""
    BUDGET.left -= steps
    if BUDGET.left < 0:
        raise Unknown(f"Checking this would take more than the {WORK:,} steps that are allowed.")


# --- numbers -----------------------------------------------------------------------------------


def up(a: int, b: int) -> int:
    """a/b, rounded up."""
    return -(-a // b)


def exp(x: Fraction) -> Pair:
    """Integers around e^x·2^256."""
    if x < -178:  # e^-178 < 2^-256
        return 0, 1
    if x > 5000:
        raise Unknown("An exponent is too large to be computed.")
    spend(15 + (x.numerator.bit_length() + x.denominator.bit_length()) // 64)
    if x < 0:
        low, high = exp(-x)
        return ONE * ONE // high, up(ONE * ONE, low)
    halvings = math.ceil(x).bit_length()
    number, over = x.numerator, x.denominator << halvings  # a y = x/2^halvings of at most one
    term = low = ONE
    k = 0
    while term:
        k += 1
        term = term * number // (over * k)
        low += term
    # Each of k terms is short by less than 2 units, and those never reached add up to less than 4.
    high = low + 2 * k + 4
    for _ in range(halvings):
        low, high = low * low >> BITS, (high * high >> BITS) + 1
    return low, high


def _arctan_of_inverse(n: int) -> Pair:
    total, term, k = 0, ONE // n, 0
    while term:
        total += (-1) ** k * (term // (2 * k + 1))
        term //= n * n
        k += 1
    return total - 2 * k - 4, total + 2 * k + 4


_FIFTH, _OTHER = _arctan_of_inverse(5), _arctan_of_inverse(239)
PI = (16 * _FIFTH[0] - 4 * _OTHER[1], 16 * _FIFTH[1] - 4 * _OTHER[0])
PI_SQUARED = Fraction(PI[0], ONE) ** 2  # from below
ROOT_TWO_PI = (math.isqrt(2 * PI[0] << BITS), math.isqrt(2 * PI[1] << BITS) + 1)


def root(x: Fraction) -> Pair:
    """Integers around sqrt(x)·2^256."""
    low = math.isqrt((x.numerator << 2 * BITS) // x.denominator)
    return low, low + 1


def density(x: Fraction) -> int:
    """The normal density at x, from above."""
    return up(exp(-x * x / 2)[1] << BITS, ROOT_TWO_PI[0])


def normal(x: Fraction) -> Pair:
    """Integers around Phi(x)·2^256: 1/2 + density·(x + x³/3 + x⁵/(3·5) + ...)."""
    if x < 0:
        low, high = normal(-x)
        return ONE - high, ONE - low
    if x > 19:  # 1 - Phi(19) < 2^-256
        return ONE - 1, ONE
    spend(150 + 2 * int(x * x))
    scaled = x.numerator * ONE // x.denominator  # a rounded x is enough
    ends = []
    for y, nearest in ((scaled, 0), (scaled + 1, 1)):
        term, k = y, 0
        total = term
        while term > nearest or 2 * k < 2 * (y * y >> 2 * BITS) + 4:
            k += 1
            term = (term * y * y >> 2 * BITS) // (2 * k + 1) + nearest
            total += term
        # The terms left out halve every time. Dividing by e^(x²/2) keeps all digits.
        over = exp(Fraction(y * y, 2 * ONE * ONE))[1 - nearest] * ROOT_TWO_PI[1 - nearest]
        ends.append((total + 2 * nearest) * ONE * ONE // over)
    return ONE // 2 + ends[0] - 1, ONE // 2 + ends[1] + 2


def power(base: Fraction, times: int) -> int:
    """base^times·2^256 from above, for a base of at least one; what exceeds every e^x may stay."""
    out, square = ONE, up(base.numerator * ONE, base.denominator)
    while times:
        if times & 1:
            out = (out * square >> BITS) + 1
        square, times = (square * square >> BITS) + 1, times >> 1
        if max(out, square if times else 0) > ONE << 8000:  # e^5000 < 2^8000
            return ONE << 8000
    return out


# --- noise of many values: connect the dots ----------------------------------------------------


def multiply(a: list[int], b: list[int], bits: int, more: int) -> list[int]:
    """Masses of a sum of two independent numbers: one product of two long integers, rounded."""
    longest = max(a).bit_length() + max(b).bit_length() + min(len(a), len(b)).bit_length()
    width = longest // 8 + 1
    less, most = sorted(width * len(part) / 4 for part in (a, b))
    spend(most * less**0.585 / 100 + 2 * (len(a) + len(b)))  # Karatsuba
    packed = [
        int.from_bytes(b"".join(m.to_bytes(width, "little") for m in part), "little")
        for part in (a, b)
    ]
    size = len(a) + len(b) - 1
    product = (packed[0] * packed[1]).to_bytes(width * size, "little")
    pieces = (product[i * width : (i + 1) * width] for i in range(size))
    return [(int.from_bytes(piece, "little") >> bits) + more for piece in pieces]


def crop(x: Masses, cut: int) -> Masses:
    """Both ends are cut off where they hardly weigh; what they weigh is lost."""
    first, masses, lost = x
    low, high, ends = 0, len(masses), [0, 0]
    while low < high - 1 and ends[0] + masses[low] <= cut:
        ends[0] += masses[low]
        low += 1
    while high > low + 1 and ends[1] + masses[high - 1] <= cut:
        high -= 1
        ends[1] += masses[high]
    return first + low, masses[low:high], lost + sum(ends)


def compose(x: Masses, y: Masses, bits: int, cut: int, more: int = 1) -> Masses:
    """Two independent moves; masses are rounded up (or down, if ``more`` is 0).

    One of them is lost with probability a + b - a·b, which grows with a and with b up to one.
    """
    both = min(x[2], 1 << bits) * min(y[2], 1 << bits) >> bits
    return crop((x[0] + y[0], multiply(x[1], y[1], bits, more), x[2] + y[2] - both), cut)


def repeat(x: Masses, times: int, bits: int, cut: int, more: int = 1) -> Masses:
    """The same move many times, by repeated squaring."""
    if times == 1:
        return x
    half = repeat(x, times // 2, bits, cut, more)
    square = compose(half, half, bits, cut, more)
    return compose(square, x, bits, cut, more) if times % 2 else square


def powers(base: Fraction, first: int, last: int, bits: int) -> dict[int, Pair]:
    """Integers around base^i·2^bits for first <= i <= last."""
    a, b = base.numerator, base.denominator
    spend(2 * (max(0, last) + max(0, -first)))
    out = {0: (1 << bits, 1 << bits)}
    for i in range(1, last + 1):
        out[i] = out[i - 1][0] * a // b, up(out[i - 1][1] * a, b)
    for i in range(-1, first - 1, -1):
        out[i] = out[i + 1][0] * b // a, up(out[i + 1][1] * b, a)
    return out


Distribution = tuple[int, list[int], int]
"""The least value, upper bounds on the probabilities from there on, and the rest's probability."""


def binomial(trials: int, probability: Fraction, bits: int, cut: Fraction) -> Distribution:
    """The number of ones among ``trials`` bits."""
    a, b = probability.numerator, probability.denominator - probability.numerator
    mode = min(math.floor((trials + 1) * probability), trials)
    return unimodal(mode, trials, lambda x: ((trials - x + 1) * a, x * b), bits, cut)


def poisson(mean: Fraction, bits: int, cut: Fraction) -> Distribution:
    """Any number of rare events."""
    a, b = mean.numerator, mean.denominator
    return unimodal(math.floor(mean), None, lambda x: (a, x * b), bits, cut)


def unimodal(
    mode: int, last: int | None, step: Callable[[int], Pair], bits: int, cut: Fraction
) -> Distribution:
    """Exact ratios P(x)/P(x-1) = ``step(x)`` from the mode on, which fall as x grows.

    Normalised by what the window holds at least. ``last`` is the largest value, if there is one.
    """
    one = 1 << bits
    least = max(1, math.floor(cut * one))  # weights are rounded up: none falls below one
    above, below, under, x = [(one, one)], [], False, mode
    while last is None or x < last:
        x += 1
        low, high = above[-1]
        spend(8)
        n, d = step(x)
        above.append((low * n // d, up(high * n, d)))
        if under := above[-1][1] <= least:
            break
    rest = _geometric(above[-1][1], *step(x + 1)) if under else 0
    under, end = False, (one, one)
    for x in range(mode - 1, -1, -1):
        spend(8)
        d, n = step(x + 1)
        end = end[0] * n // d, up(end[1] * n, d)
        below.append(end)
        if under := end[1] <= least:
            break
    rest += _geometric(end[1], *reversed(step(x))) if under else 0
    window = [*reversed(below), *above]
    total = sum(low for low, _ in window)
    return mode - len(below), [up(high * one, total) for _, high in window], up(rest * one, total)


def _geometric(last: int, number: int, over: int) -> int:
    """The sum of all terms after ``last`` if each is at most number/over of the one before."""
    if number >= over:
        raise Refused("The method's cut is too coarse for this binomial.")
    return up(last * number, over - number)


def atoms(
    noise: Distribution, ratio: Callable[[int], Pair]
) -> tuple[list[tuple[int, int, int]], int]:
    """(mass under P, and Q/P as number and denominator); values of infinite loss are lost."""
    first, masses, lost = noise
    found = [(mass, *ratio(x)) for x, mass in enumerate(masses, first)]
    finite = [(mass, number, over) for mass, number, over in found if number > 0 and over > 0]
    return finite, lost + sum(masses) - sum(mass for mass, _, _ in finite)


def dots(parts: list[tuple[int, int, int]], lost: int, base: Fraction, bits: int) -> Masses:
    """Spread each atom over the two nearest points of the grid."""
    out: dict[int, int] = {}
    spread(parts, Grid(base, bits), out)
    return gathered(out, lost)


class Grid:
    """Integers around base^i·2^bits, found when they are asked for."""

    def __init__(self, base: Fraction, bits: int) -> None:
        self.base, self.bits, self.step = base, bits, -math.log(base)
        self.ends, self.powers = (0, 0), powers(base, 0, 0, bits)

    def reach(self, first: int, last: int) -> dict[int, Pair]:
        """All powers from ``first`` to ``last``, and perhaps more."""
        if last - first > LIMIT:
            raise Refused("The method's grid is too fine for this distribution.")
        if first < self.ends[0] or last > self.ends[1]:
            self.ends = min(first, self.ends[0]), max(last, self.ends[1])
            self.powers = powers(self.base, *self.ends, self.bits)
        return self.powers


def spread(parts: list[tuple[int, int, int]], grid: Grid, out: dict[int, int]) -> None:
    """Add each atom to the masses of the two nearest points."""
    if not parts:
        return
    bits = grid.bits  # floats choose a place; where it is wrong the loss is rounded up
    places = [math.floor((math.log(d) - math.log(n)) / grid.step) for _, n, d in parts]
    at = grid.reach(min(places) - 1, max(places) + 3)
    for (mass, number, over), start in zip(parts, places, strict=True):
        ratio, i = (number << bits) // over, start
        while at[i + 1][1] > ratio:
            i += 1
            if i + 1 not in at:
                raise Refused("The method's bits are too few for this distribution.")
        gap = at[i][0] - at[i + 1][1]
        if gap <= 0:
            raise Refused("The method's bits are too few for its base.")
        above = up(mass * max(0, at[i][1] - ratio), gap)
        below = min(mass, up(mass * max(0, ratio + 1 - at[i + 1][0]), gap))
        out[i] = out.get(i, 0) + below
        out[i + 1] = out.get(i + 1, 0) + above


def gathered(out: dict[int, int], lost: int) -> Masses:
    """Masses by index as one list."""
    if not out:
        return 0, [0], lost
    first, last = min(out), max(out)
    return first, [out.get(i, 0) for i in range(first, last + 1)], lost


def connect_the_dots(
    entry: "File", noise: Distribution, ratios: dict[int, Callable[[int], Pair]]
) -> Fraction:
    """The dearer of both directions: the user's data against the neighbour's, and the reverse."""
    base, bits, cut = entry.base(), entry.bits(), entry.cut()
    moves: dict[int, int] = {}
    for shift, times in entry.moves():
        moves[shift] = moves.get(shift, 0) + times
    grids = {s: crop(dots(*atoms(noise, ratios[s]), base, bits), cut) for s in (-1, 1)}
    worst = 0
    for sign in (1,) if moves.get(1) == moves.get(-1) else (1, -1):
        total: Masses = (0, [1 << bits], 0)
        for shift, times in moves.items():
            part = repeat(grids[sign * shift], times, bits, cut)
            total = compose(total, part, bits, cut)
        worst = max(worst, hockey_stick(total, entry.epsilon, base, bits))
    return Fraction(worst, 1 << bits)


def hockey_stick(total: Masses, epsilon: Fraction, base: Fraction, bits: int) -> int:
    """The delta of masses on the grid, from above."""
    first, masses, delta = total
    least = exp(epsilon)[0] >> BITS - bits
    grid = powers(base, 0, max(0, first + len(masses)), bits)
    for i, mass in enumerate(masses, first):
        gain = (1 << bits) - (least * grid[i][0] >> bits) if i >= 0 else 0
        delta += up(mass * gain, 1 << bits) if gain > 0 else 0
    return delta


# --- Gaussian noise ----------------------------------------------------------------------------


def excess(variance: Fraction, cells: int) -> Fraction:
    """A factor F such that P(U = u) <= F·(normal density at u, of variance sigma²·cells).

    U is the sum of ``cells`` discrete Gaussians of parameter sigma. F = (1 + s)^cells with
    s = 2q/(1-q), q = exp(-pi² sigma²), by Poisson summation (docs/understand/certificates.md).
    """
    q = exp(-PI_SQUARED * variance)[1]
    if q >= ONE:
        raise Refused("There is too little noise for this method.")
    factor = power(1 + Fraction(2 * q, ONE - q), cells)
    if factor > ONE << 1000:
        raise Refused("There is too little noise for this method.")
    return Fraction(factor, ONE)


def shifted_delta(variance: Fraction, cells: int, step: int, epsilon: Fraction) -> Fraction:
    """Delta when ``cells`` counters move by ``step``: loss (step²·cells - 2·step·U)/(2 sigma²)."""
    factor = excess(variance, cells)
    if 64 * variance * cells <= 400_000**2:
        return factor * lattice_sum(variance, cells, step, epsilon)
    return factor * closed_form(variance, cells, step, epsilon)


def lattice_sum(variance: Fraction, norm: int, step: int, epsilon: Fraction) -> Fraction:
    """Sum over u of density(u)·(1 - exp(epsilon - loss(u)))+, from its edge downwards."""
    spread = variance * norm
    edge = (Fraction(step * step * norm, 2) - epsilon * variance) / step
    u = math.ceil(edge) - 1
    weight = exp(-u * u / (2 * spread))[1]
    ratio, bend = exp((2 * u - 1) / (2 * spread))[1], exp(-1 / spread)[1]
    against = exp(epsilon - (step * step * norm - 2 * step * u) / (2 * variance))[0]
    fall = exp(-step / variance)[0]
    total, tail = 0, ONE
    while tail > total >> BITS + 50 and weight > 1 << 20:
        spend(2)
        total += weight * max(0, ONE - against)
        weight, ratio = (weight * ratio >> BITS) + 1, (ratio * bend >> BITS) + 1
        against = against * fall >> BITS
        tail = up(weight * ONE, ONE - ratio) if ratio < ONE else ONE
    if ratio >= ONE:  # hardly any noise
        return Fraction(1)
    total = (total >> BITS) + 1 + up(weight * ONE, ONE - ratio)
    return Fraction(total * ONE, root(spread)[0]) / Fraction(ROOT_TWO_PI[0], 1)


def closed_form(variance: Fraction, norm: int, step: int, epsilon: Fraction) -> Fraction:
    """The same sum as an integral, plus an eighth of a step squared times the variation of f'."""
    spend(100)
    mu = tuple(Fraction(end, ONE) for end in root(step * step * norm / variance))
    over = sorted(epsilon / end for end in mu)
    z = mu[0] / 2 - over[1], mu[1] / 2 - over[0]
    growth = exp(epsilon)
    at = mu[1] / 2 - epsilon / mu[1]  # the integral grows with mu
    integral = normal(at)[1] - (growth[0] * max(0, normal(at - mu[1])[0]) >> BITS)
    nearest = Fraction(0) if z[0] <= 0 <= z[1] else min(abs(z[0]), abs(z[1]))
    bell, left = density(nearest), z[0] - mu[1]  # e^epsilon·(density at z - mu) = density at z
    rough = mu[1] * bell + (-z[0] * bell if z[1] <= -1 else ONE)
    rough += -left * bell if z[1] - mu[0] <= -1 else growth[1]
    return (max(0, integral) + rough / (8 * variance * norm)) / ONE


def concentrated(rho: Fraction, epsilon: Fraction, order: Fraction) -> Fraction:
    """Delta of rho-zCDP through the Rényi divergence of one order above 1.

    exp((a-1)(a·rho - epsilon))·(1 - 1/a)^(a-1)/a (Canonne, Kamath and Steinke 2020, Prop. 12), and
    (1 - 1/a)^(a-1) <= exp(1/a - 1).
    """
    if order <= 1:
        raise Refused("The order of a Rényi divergence must be above 1.")
    exponent = (order - 1) * (order * rho - epsilon) - 1 + 1 / order
    return Fraction(exp(exponent)[1], ONE) / order if exponent < 100 else Fraction(1)


def gaussian_masses(variance: Fraction, bits: int, cut: Fraction) -> Distribution:
    """One discrete Gaussian: weights over at least their sum."""
    weights, least = [exp(Fraction(0))], max(1, math.floor(cut * ONE / 4))
    while weights[-1][1] > least and len(weights) < LIMIT:
        weights.append(exp(-(len(weights) ** 2) / (2 * variance)))
    reach = len(weights) - 1
    total = weights[0][0] + 2 * sum(low for low, _ in weights[1:])
    ratio = exp(-(2 * reach + 1) / (2 * variance))[1]
    rest = 2 * _geometric(weights[-1][1], ratio, ONE)
    sides = [up(high << bits, total) for _, high in weights]
    return -reach, sides[:0:-1] + sides, up(rest << bits, total)


# --- one function per noise --------------------------------------------------------------------


def check_binomial(entry: "File") -> Fraction:
    """Every counter carries the sum of ``trials`` bits that are one with ``probability``."""
    trials, p = entry.whole("noise", "trials", most=10**15), entry.ratio("noise", "probability")
    if not 0 < p < 1 or trials * p * (1 - p) > 10**11:
        raise Unknown("Expected a binomial with 0 < probability < 1 and variance <= 1e11.")
    a, b = p.numerator, p.denominator - p.numerator
    noise = binomial(trials, p, entry.bits(), entry.tail())
    ratios: dict[int, Callable[[int], Pair]] = {
        1: lambda x: (x * b, (trials - x + 1) * a),
        -1: lambda x: ((trials - x) * a, (x + 1) * b),
    }
    return connect_the_dots(entry, noise, ratios)


def check_poisson(entry: "File") -> Fraction:
    """Every counter carries Poisson noise of ``mean``."""
    mean = entry.positive("noise", "mean")
    if mean > 10**11:
        raise Unknown("Expected a mean of at most 1e11.")
    a, b = mean.numerator, mean.denominator
    noise = poisson(mean, entry.bits(), entry.tail())
    ratios: dict[int, Callable[[int], Pair]] = {
        1: lambda x: (x * b, a),
        -1: lambda x: (a, (x + 1) * b),
    }
    return connect_the_dots(entry, noise, ratios)


def check_histogram(entry: "File") -> Fraction:
    """A user moves one unit from cell a to cell b in each of ``times`` groups of each kind.

    Each of ``trials`` messages falls into a with ``probability``, into b with the same, else
    elsewhere. Let N_a and N_b be their numbers. M = N_a + N_b has one distribution in both worlds;
    given M, N_a counts heads among M fair coins, and the pair is 1 + N_a against N_a. At (1 + N_a,
    N_b) the ratio Q/P is N_b/(1 + N_a). Exchanging a and b shows that both directions are the same.
    """
    trials, probabilities, times = entry.kinds()
    base, bits, cut = entry.base(), entry.bits(), entry.cut()
    total: Masses = (0, [1 << bits], 0)
    for n, p, count in zip(trials, probabilities, times, strict=True):
        one = crop(group_masses(n, p, Grid(base, bits), entry.tail()), cut)
        total = compose(total, repeat(one, count, bits, cut), bits, cut)
    return Fraction(hockey_stick(total, entry.epsilon, base, bits), 1 << bits)


def group_masses(trials: int, probability: Fraction, grid: Grid, tail: Fraction) -> Masses:
    """The losses of one group on the grid."""
    bits, out = grid.bits, dict[int, int]()
    both = 2 * probability
    first, masses, lost = (
        binomial(trials, both, bits, tail) if both < 1 else (trials, [1 << bits], 0)
    )
    for coins, mass in enumerate(masses, first):
        heads, shares, rest = binomial(coins, Fraction(1, 2), bits, tail)
        spend(6 * len(shares))
        joint = [(mass * share >> bits) + 1 for share in shares]
        lost += (mass * rest >> bits) + 1
        finite = [(m, coins - k, k + 1) for k, m in enumerate(joint, heads) if k < coins]
        lost += sum(joint) - sum(m for m, _, _ in finite)  # nobody in b: no neighbour looks so
        spread(finite, grid, out)
    return gathered(out, lost)


def check_table(entry: "File") -> Fraction:
    """Every counter carries the sum of ``draws`` draws from a table of integer weights.

    Upper bounds on P and lower bounds on Q can only raise (P - e^epsilon·Q)+; what was cut off P
    counts as lost.
    """
    weights, draws = entry.field("noise", "weights"), entry.whole("noise", "draws")
    if (
        not isinstance(weights, list)
        or len(weights) > 10**6
        or not all(type(w) is int and w >= 0 for w in weights)
    ):
        raise Refused("The weights of a table must be at most a million integers >= 0.")
    total, bits, cut = sum(weights), entry.bits(), entry.cut() // (16 * draws)
    if not total:
        raise Refused("The weights of a table must not all be zero.")
    noise = repeat((0, [up(w << bits, total) for w in weights], 0), draws, bits, cut)
    first, lower, _ = repeat((0, [(w << bits) // total for w in weights], 0), draws, bits, cut, 0)
    least, most = dict(enumerate(lower, first)), dict(enumerate(noise[1], noise[0]))
    ratios: dict[int, Callable[[int], Pair]] = {
        1: lambda x: (least.get(x - 1, 0), most[x]),
        -1: lambda x: (least.get(x + 1, 0), most[x]),
    }
    return connect_the_dots(entry, noise, ratios)


def check_discrete_gaussian(entry: "File") -> Fraction:
    """Every counter carries discrete Gaussian noise."""
    variance, ((shift, times),) = entry.variance("sigma"), entry.moves()
    if entry.method == "sum":
        return shifted_delta(variance, times, shift, entry.epsilon)
    bits = entry.bits()
    masses = gaussian_masses(variance, bits, entry.tail())
    first, total, lost = repeat(masses, times, bits, entry.cut())
    delta = Fraction(lost)
    for value, mass in enumerate(total, first):
        left = entry.epsilon - shift * (times * shift - 2 * value) / (2 * variance)
        if left < 0 and mass:
            delta += mass * (1 - Fraction(exp(left)[0], ONE))
    return delta / (1 << bits)


def longest_column(encoder: list[int], columns: list[int]) -> int:
    """Its squared norm; the column of the n-th last user is the first n of ``encoder``, times d."""
    norm = square = 0
    for c, d in zip(encoder, reversed(columns), strict=True):
        square += c * c
        norm = max(norm, d * d * square)
    return norm


def check_gaussian_grid(entry: "File") -> Fraction:
    """Encoded counters carry discrete Gaussian noise of ``sigma`` grid steps, at ``length`` times.

    A unit moves them by a column of integers (grid steps).
    Discrete Gaussian noise is within 1/(24 sigma²) in total variation of rounded normal noise:
    sum (p - q)+ with q/p >= E exp(-u²/(2 sigma²)) >= 1 - 1/(24 sigma²), u uniform on [-1/2, 1/2].
    """
    variance, length = entry.variance("sigma"), entry.whole("noise", "length")
    norm = longest_column(entry.wholes("encoder", length), entry.wholes("columns", length))
    units, cells = (int(entry.moved[name]) for name in ("squares", "cells"))
    if entry.method == "concentrated":
        rho = norm * units / (2 * variance)
        return concentrated(rho, entry.epsilon, entry.ratio("method", "order"))
    mu = Fraction(root(norm * units / variance)[1], ONE)
    at, growth = mu / 2 - entry.epsilon / mu, exp(entry.epsilon)
    smooth = normal(at)[1] - (growth[0] * max(0, normal(at - mu)[0]) >> BITS)
    grid = (ONE + growth[1]) * cells * length / (24 * variance)
    return (max(0, smooth) + grid) / ONE


def check_layered_gaussian(entry: "File") -> Fraction:
    """Coarse counts that move by one, and fine losses that move by ``loss_shift`` units."""
    coarse, fine = entry.variance("count_sigma"), entry.variance("loss_sigma")
    counts, losses, shift = (entry.moved[n] for n in ("counts", "losses", "loss_shift"))
    bits = entry.bits()
    factor = excess(fine, losses)
    if entry.method == "convolved-counts":
        one = gaussian_masses(coarse, bits, entry.tail())
        first, masses, lost = repeat(one, counts, bits, entry.cut())
    else:
        first, masses, lost = gaussian_masses(coarse * counts, bits, entry.tail())
        # The lemma's density is over t·sqrt(2 pi), at most the sum of the weights used here.
        more = excess(coarse, counts) * excess(coarse * counts, 1)
        masses = [math.ceil(mass * more) for mass in masses]
        lost = math.ceil(lost * more)
    delta = Fraction(lost)
    for value, mass in enumerate(masses, first):
        left = entry.epsilon - (counts - 2 * value) / (2 * coarse)
        delta += mass * min(Fraction(1), factor * closed_form(fine, losses, shift, left))
    return delta / (1 << bits)


def check_discrete_laplace(entry: "File") -> Fraction:
    """A move of one unit is a randomised response of odds exp(1/scale)."""
    units = sum(abs(shift) * times for shift, times in entry.moves())
    each = 1 / entry.positive("noise", "scale")
    if entry.method == "responses":
        return responses(entry, Fraction(exp(each)[1], ONE), units)
    return _pure(units * each <= entry.epsilon)


def responses(entry: "File", odds: Fraction, times: int) -> Fraction:
    """Delta of ``times`` randomised responses of these odds, of which k are false.

    Their privacy loss is (times - 2k)·ln(odds), and k is binomial. Whatever changes probabilities
    by at most these odds is no worse, adaptively too (Kairouz, Oh and Viswanath 2015).
    """
    if not 1 < odds < 10**30 or times > LIMIT:
        raise Unknown("Expected odds above 1 and below 1e30, and at most 1e7 responses.")
    bits = entry.bits()
    first, false, lost = binomial(times, 1 / (1 + odds), bits, entry.tail())
    masses = [0] * (2 * len(false) - 1)
    masses[::2] = false[::-1]  # by times - 2k
    least = times - 2 * (first + len(false) - 1)
    total = hockey_stick((least, masses, lost), entry.epsilon, 1 / odds, bits)
    return Fraction(total, 1 << bits)


def check_randomized_response(entry: "File") -> Fraction:
    """Every moved counter is a bit, reported wrongly with probability ``flip``."""
    flip = entry.ratio("noise", "flip")
    if not 0 < flip < 1:
        raise Refused("The flip probability must be between 0 and 1.")
    bits = sum(times for _, times in entry.moves())
    odds = max((1 - flip) / flip, flip / (1 - flip))
    if entry.method == "responses":
        return responses(entry, odds, bits)
    return _pure(power(odds, bits) <= exp(entry.epsilon)[0])


def check_one_step(entry: "File") -> Fraction:
    """A true bit is one with probability ``keep``, a false one with ``flip``; moves swap them."""
    keep, flip = entry.ratio("noise", "keep"), entry.ratio("noise", "flip")
    if not 0 < flip <= keep < 1:
        raise Refused("Expected 0 < flip <= keep < 1.")
    ups = sum(times for shift, times in entry.moves() if shift > 0)
    downs = sum(times for shift, times in entry.moves() if shift < 0)
    rise, fall = keep / flip, (1 - flip) / (1 - keep)
    if entry.method == "responses":  # every report has one of each
        return responses(entry, rise * fall, max(ups, downs))
    one_way, other_way = (power(rise, n) * power(fall, m) for n, m in ((ups, downs), (downs, ups)))
    return _pure(max(one_way, other_way) <= exp(entry.epsilon)[0] * ONE)


def _pure(holds: bool) -> Fraction:
    return Fraction(0) if holds else Fraction(1)


NOISES: dict[str, tuple[Callable[["File"], Fraction], str, str]] = {
    "binomial": (check_binomial, "trials probability", "connect-the-dots"),
    "poisson": (check_poisson, "mean", "connect-the-dots"),
    "histogram": (check_histogram, "trials probability", "connect-the-dots"),
    "table": (check_table, "weights draws", "connect-the-dots"),
    "discrete-gaussian": (check_discrete_gaussian, "sigma", "sum convolution"),
    "gaussian-grid": (check_gaussian_grid, "sigma length encoder columns",
                      "analytic concentrated"),
    "layered-gaussian": (check_layered_gaussian, "count_sigma loss_sigma",
                         "summed-counts convolved-counts"),
    "discrete-laplace": (check_discrete_laplace, "scale", "rational responses"),
    "randomized-response": (check_randomized_response, "flip", "rational responses"),
    "one-step": (check_one_step, "keep flip", "rational responses"),
}  # fmt: skip
"""Noise -> its check, its fields, its methods."""
METHODS = {
    "connect-the-dots": "base bits cut", "convolution": "bits cut", "convolved-counts": "bits cut",
    "summed-counts": "bits cut", "sum": "", "analytic": "", "concentrated": "order",
    "rational": "", "responses": "bits cut",
}  # fmt: skip
"""Method -> its fields."""


# --- reading -----------------------------------------------------------------------------------


class File:
    """A certificate whose fields are all present, all known and all of the right kind."""

    def __init__(self, data: Any) -> None:
        keys = {"format", "release", "noise", "epsilon", "delta", "method", "bound"}
        if not isinstance(data, dict) or not keys <= set(data) <= keys | {"digest"}:
            raise Refused(f"Expected a certificate with the fields {', '.join(sorted(keys))}.")
        if data["format"] != "discreet-certificate/1":
            raise Refused(
                f"Unknown format {short(data['format'])}; this is discreet-certificate/1."
            )
        if "digest" in data and data["digest"] != digest(data):
            raise Refused("The file was edited: its digest does not fit its content.")
        self.data = data
        name = self.field("noise", "name")
        if not isinstance(name, str) or name not in NOISES:
            raise Refused(f"Unknown noise {short(name)}; this program knows {', '.join(NOISES)}.")
        self.check, noise, methods = NOISES[name]
        self.method = self.field("method", "name")
        if self.method not in methods.split():
            raise Refused(f"Unknown method {short(self.method)} for the noise {name!r}.")
        self.only("noise", "name " + noise)
        self.only("method", "name " + METHODS[self.method])
        self.epsilon = rational(data["epsilon"], 100)
        self.delta, self.bound = rational(data["delta"]), rational(data["bound"])
        if not 0 <= self.epsilon <= 5000 or self.bound < 0 or not 0 <= self.delta < 1:
            raise Unknown("Expected epsilon >= 0 (5000 at most), bound >= 0 and delta in [0, 1).")
        self.moved: Any = derived(self)

    def only(self, part: str, names: str) -> None:
        """Refuse unknown fields and missing ones."""
        if not isinstance(self.data[part], dict) or set(self.data[part]) != set(names.split()):
            raise Refused(f"Expected {part!r} to have exactly the fields {names}.")

    def field(self, part: str, name: str) -> Any:
        """A field of the release, the noise or the method."""
        if not isinstance(self.data[part], dict) or name not in self.data[part]:
            raise Refused(f"The field {part}.{name} is missing.")
        return self.data[part][name]

    def whole(self, part: str, name: str, least: int = 1, most: int = LIMIT) -> int:
        """An integer."""
        value = self.field(part, name)
        if type(value) is not int or not least <= value <= most:
            raise Refused(f"Expected {part}.{name} to be an integer from {least} to {most}.")
        return value

    def wholes(self, name: str, count: int) -> list[int]:
        """So many integers of the noise."""
        values: list[int] = self.field("noise", name)
        right = isinstance(values, list) and len(values) == count
        if not right or not all(map(_whole(0, ONE), values)):
            raise Refused(f"Expected noise.{name} to be {count} integers from 0 to 2^{BITS}.")
        spend(count)
        return values

    def ratio(self, part: str, name: str) -> Fraction:
        """An exact rational number."""
        return rational(self.field(part, name), 100)

    def positive(self, part: str, name: str) -> Fraction:
        """A rational number above zero."""
        value = self.ratio(part, name)
        if value <= 0:
            raise Refused(f"Expected {part}.{name} > 0.")
        return value

    def variance(self, name: str) -> Fraction:
        """The square of a sigma."""
        sigma = self.positive("noise", name)
        if not Fraction(1, 10**9) <= sigma <= 10**60:
            raise Refused(f"Expected noise.{name} from 1e-9 to 1e60.")
        return sigma**2

    def moves(self) -> list[Pair]:
        """(by how much, how many counters) of every kind of move."""
        return [(move["shift"], move["times"]) for move in self.moved]

    def kinds(self) -> tuple[list[int], list[Fraction], list[int]]:
        """Trials, probabilities and numbers of all kinds of groups."""
        trials, texts = self.field("noise", "trials"), self.field("noise", "probability")
        times = self.moved["times"]
        if not all(isinstance(x, list) and len(x) == len(times) for x in (trials, texts)):
            raise Refused(f"Expected trials and probability as lists of {len(times)} kinds.")
        if not all(type(n) is int and 0 < n <= 10**18 for n in trials):
            raise Refused("Expected noise.trials from 1 to 1e18.")
        found = [rational(text, 100) for text in texts]
        if not all(0 < 2 * p <= 1 for p in found):
            raise Refused("Expected noise.probability above 0 and at most 1/2.")
        if not all(n * p <= 10**9 for n, p in zip(trials, found, strict=True)):
            raise Unknown("Expected noise of mean 1e9 at most.")
        return trials, found, times

    def bits(self) -> int:
        """The precision of masses."""
        return self.whole("method", "bits", 32, BITS)

    def tail(self) -> Fraction:
        """What may be cut off each end."""
        cut = rational(self.field("method", "cut"))
        if not 0 < cut < 1:
            raise Refused("Expected method.cut > 0 and below 1.")
        return cut

    def cut(self) -> int:
        """What may be cut off each end of a product, in units of 2^-bits."""
        return math.floor(self.tail() * (1 << self.bits()))

    def base(self) -> Fraction:
        """The x of the grid, 1 - 2^-m."""
        base = self.ratio("method", "base")
        over = base.denominator
        if not 0 < base < 1 or base.numerator != over - 1 or over & (over - 1) or over > 1 << 40:
            raise Refused("Expected method.base of the form (2^m - 1)/2^m, m at most 40.")
        return base


def short(value: Any) -> str:
    """Something unknown in a message: one line, printable, not long."""
    return ascii(value)[:40]


def rational(text: Any, digits: int = 400) -> Fraction:
    """An exact number in a string: 3, 3/4 or 7.5e-6."""
    if not isinstance(text, str) or not re.fullmatch(
        r"-?\d{1,1000}(/\d{1,1000}|(\.\d{1,50})?([eE]-?\d{1,3})?)", text, re.ASCII
    ):
        raise Refused(f"Expected an exact rational number in a string, got {short(text)}.")
    try:
        value = Fraction(text)
    except ZeroDivisionError:
        raise Refused(f"Expected an exact rational number, got {short(text)}.") from None
    if max(abs(value.numerator), value.denominator) > 10**digits:
        raise Refused(f"Expected a number of at most {digits} digits, got {short(text)}.")
    return value


def digest(data: dict[str, Any]) -> str:
    """SHA-256 of everything but the digest: against slips, not against an author."""
    rest = {key: value for key, value in data.items() if key != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def recompute(data: Any) -> Fraction:
    """An upper bound on the delta of a certificate's release, whatever bound it states."""
    BUDGET.left = WORK
    try:
        entry = File(data)
        return entry.check(entry)
    except (ArithmeticError, LookupError, RecursionError, MemoryError, ValueError) as error:
        name = type(error).__name__
        raise Refused(f"This cannot be computed with the numbers of the file ({name}).") from None
    finally:
        BUDGET.left = math.inf


def check(data: Any) -> Fraction:
    """The recomputed bound of a certificate that holds; raises `Refused` otherwise."""
    recomputed = recompute(data)
    bound, delta = rational(data["bound"]), rational(data["delta"])
    if bound > delta:
        raise Refused(f"The bound {above(bound)} exceeds delta {above(delta)}.")
    if recomputed > bound:
        raise Refused(
            f"Recomputed, delta(epsilon) is at most {above(recomputed)}, which is above the "
            f"certificate's bound {above(bound)}."
        )
    return recomputed


# --- what it is a proof of -----------------------------------------------------------------------

SIZE = "trust mechanism schedule participations states actions horizon statistics"
LAYERED = "trust mechanism schedule participations widths actions feedback public_losses episodes"
KINDS = {
    "central batch": ("gaussian laplace", SIZE + " last_transitions"),
    "local batch": ("split", SIZE + " last_transitions"),
    "shuffle batch": ("bits histogram", SIZE + " last_transitions users honest"),
    "central continual": ("toeplitz tree-laplace tree-signed",
                          SIZE + " separation episodes stationary"),
    "local continual": ("bounded gaussian laplace one-step randomized-response",
                     SIZE + " episodes stationary"),
    "central layered continual": ("tree-laplace tree-signed", LAYERED),
    "local layered continual": ("bounded gaussian laplace", LAYERED),
}  # fmt: skip
"""Trust and schedule -> mechanisms, and the fields of a release."""
STATISTICS = ("transitions", "visits", "rewards")


def _whole(least: int, most: int) -> Callable[[Any], bool]:
    return lambda x: type(x) is int and least <= x <= most


RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "trust": (lambda x: x in ("central", "local", "shuffle"), "central, local or shuffle"),
    "participations": (_whole(1, LIMIT), f"from 1 to {LIMIT}"),
    "separation": (_whole(1, 10**15), "from 1 to 1e15"),
    **dict.fromkeys(("states", "actions", "horizon"), (_whole(1, LIMIT), f"from 1 to {LIMIT}")),
    "episodes": (_whole(1, 10**15), "from 1 to 1e15"),
    "users": (lambda x: x is None or _whole(1, 10**15)(x), "from 1 to 1e15, or null"),
    "honest": (lambda x: 0 < rational(x, 100) <= 1, "above 0 and at most 1"),
    "levels": (_whole(1, 64), "from 1 to 64"),
    **dict.fromkeys(
        ("last_transitions", "stationary", "public_losses"),
        (lambda x: type(x) is bool, "true or false"),
    ),
    "statistics": (
        lambda x: isinstance(x, list) and [] != x == [name for name in STATISTICS if name in x],
        f"some of {', '.join(STATISTICS)}, in this order",
    ),
    "widths": (
        lambda x: isinstance(x, list) and 1 < len(x) <= LIMIT and all(map(_whole(1, LIMIT), x)),
        "two layers or more",
    ),
    "feedback": (lambda x: x in ("full", "bandit"), "full or bandit"),
}
"""Field of a release -> what it must be."""


def derived(entry: File) -> Any:
    """The moves of one user of the file's release, if it can have the file's noise."""
    release, noise = entry.data["release"], entry.data["noise"]
    kind = f"{entry.field('release', 'trust')} {entry.field('release', 'schedule')}"
    mechanism = entry.field("release", "mechanism")
    if kind not in KINDS or mechanism not in KINDS[kind][0].split():
        known = ", ".join(KINDS[kind][0].split()) if kind in KINDS else "none of that kind"
        raise Unknown(
            f"This program knows no release by {short(mechanism)} ({short(kind)}), only: {known}. "
            "A mechanism of your own is registered with certified_as=, the one of these that it is."
        )
    entry.only("release", KINDS[kind][1] + (" levels" if mechanism == "tree-signed" else ""))
    for name, (holds, rule) in RULES.items():
        if name in release and not holds(release[name]):
            raise Unknown(f"Expected release.{name} to be {rule}, got {short(release[name])}.")
    found = moves_of(release)
    if release["participations"] > 1 and (mechanism in ("bits", "toeplitz") or "widths" in release):
        raise Unknown(f"Of the mechanism {mechanism} only one participation is derived here.")
    if noise["name"] not in found:
        raise Unknown(f"The mechanism {mechanism} has no noise of kind {noise['name']} here.")
    if not found[noise["name"]]:
        raise Unknown("Nothing is released here that a user could move.")
    if noise.get("length", release.get("episodes")) != release.get("episodes"):
        raise Refused("Expected noise.length to be the release's episodes.")
    if "users" in release and (release["users"] is None) != (noise["name"] == "poisson"):
        raise Refused("Expected release.users of a batch, and null of the limit (poisson).")
    # Every user who is counted on adds as much noise as any other; a local report has its own.
    users = release.get("users")
    honest = math.floor(rational(release["honest"]) * users) if users else 1
    trials = noise.get("trials", honest)
    for n in trials if isinstance(trials, list) else [trials]:
        wrong = not honest or type(n) is not int or n % honest != 0
        if wrong or noise.get("draws", honest) != honest:
            raise Refused(f"This noise is not the sum of that of {honest} honest users.")
    return found[noise["name"]]


def moves_of(release: dict[str, Any]) -> dict[str, Any]:
    """Noise -> how one user moves the counters at most, for every noise the release can have.

    Neighbours differ in one user's episode: H steps, k statistics. At every step one unit leaves
    one counter of a statistic and one enters another: kH counters rise by one and kH fall, 2kH
    units in all. (A user who has left the policy counts as nothing: fewer move.)
    Of m participations neighbours differ in all. Batches and local reports have noise of their own:
    everything moves m times. In a tree absolute moves add up, however they lie.
    Of a square root, the norm of one column is computed, and so nothing is said of m > 1.

    - Counters per step: those of different steps are distinct, so no two units meet. Pooled over
      steps (stationary), up to H units pile up on one counter: every integer vector of L1 norm 2kH
      and entries up to H, of squared norm 2kH·H at most.
    - An episode is in at most one noisy node of every level of a tree, so everything moves L times:
      binary (tree-laplace), L = ceil(log2 K), at least one; signed digits, as many as are stated.
      What is released are sums of nodes; with Laplace noise the probability of every output counts,
      so streams may be adaptive. Square root: the noise has its columns.
    - Bits: kH counters up, kH down, like bounded noise.
    - Groups (central batches of transitions and rewards; histograms): a user has one unit in each
      group, a statistic at a step (without the last transitions, if these are left out), and moves
      it to another cell. Of a reward there are two cells, one and zero; who has left has a cell,
      too. Groups of equally many cells have equal messages; a policy with one action per state has
      S·S + 1 cells for transitions, 2S + 1 for rewards and S + 1 for visits.
    - One-step and split: one category of one step is reported, as one bit per category: one rises,
      one falls. Randomised response: 2kH bits change.
    - Layers: transitions and visits per step (k = 2), and losses of up to 1024 units: bandit, once,
      on the H visited pairs of each of the two users; full, after every episode, on all X·A pairs.
    """
    mechanism, widths = release["mechanism"], release.get("widths")
    horizon = release["horizon"] if widths is None else len(widths) - 1
    names = ["transitions", "visits"] if widths is not None else release["statistics"]
    units, levels = 2 * len(names) * horizon, release.get("levels", 1)
    if mechanism == "tree-laplace":
        levels = max(1, (release["episodes"] - 1).bit_length())
    pile = horizon if release.get("stationary") else 1
    m = release["participations"]
    both, pair = shifts((1, units // 2 * m), (-1, units // 2 * m)), shifts((1, m), (-1, m))
    known: dict[str, dict[str, Any]] = {
        "one-step": {"one-step": pair},
        "split": {"one-step": pair},
        "randomized-response": {"randomized-response": shifts((1, units * m))},
        "bounded": {"table": both},
        "bits": {"binomial": both, "table": both},
        "toeplitz": {"gaussian-grid": {"squares": units * pile, "cells": units}},
    }
    if widths is not None and not release["public_losses"]:
        full = sum(widths[:-1]) * release["actions"]
        losses = full if release["feedback"] == "full" else 2 * horizon
        counts = {"counts": units, "losses": losses, "loss_shift": 1024}
        return {"layered-gaussian": counts} if mechanism == "gaussian" else {}
    if mechanism in known:
        return known[mechanism]
    missing = not release.get("last_transitions", True)
    units -= 2 * (missing and "transitions" in names)
    if mechanism == "histogram":
        cells: dict[int, int] = {}
        for name, width in (("transitions", release["states"]), ("rewards", 2), ("visits", 1)):
            steps = horizon - (missing and name == "transitions")
            if name in names and steps:
                size = width * release["states"] + 1
                cells[size] = cells.get(size, 0) + steps * m
        both = shifts((1, units // 2 * m), (-1, units // 2 * m))
        return {"histogram": {"times": [*cells.values()]}, "poisson": both}
    if mechanism == "laplace" or mechanism.startswith("tree-"):
        return {"discrete-laplace": shifts((1, units * levels * m))}
    if pile > 1:  # the Gaussian noise of piles is not bounded here
        return {}
    return {"discrete-gaussian": shifts((1, units * m))}


def shifts(*moves: Pair) -> list[dict[str, int]]:
    """Moves as a file has them."""
    return [{"shift": shift, "times": times} for shift, times in moves if times]


def compare(data: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Refuse a certificate of another release or noise, or of a weaker guarantee."""
    _same(data, wanted, "release")
    for name in ("epsilon", "delta"):
        said, due = rational(data[name]), rational(wanted[name])
        if said > due:
            raise Refused(f"It proves {name} {above(said)}, and {above(due)} was asked for.")
    _same(data, wanted, "noise")


def _same(data: dict[str, Any], wanted: dict[str, Any], part: str) -> None:
    for name in [*wanted[part], *data[part]]:
        said, due = (of[part].get(name, "absent") for of in (data, wanted))
        if said != due:
            raise Refused(
                f"It is a certificate of something else: {part}.{name} is {short(said)}, and "
                f"{short(due)} was asked for."
            )


# --- what was proven -----------------------------------------------------------------------------


def proven(data: dict[str, Any], recomputed: Fraction) -> dict[str, Any]:
    """What `check` has found true: in one sentence, then in exact numbers."""
    return {
        "claim": claim(data),
        "release": data["release"],
        "noise": {
            name: str(Fraction(value)) if _is_rational(name, value) else value
            for name, value in data["noise"].items()
        },
        "moves": File(data).moved,
        **{name: str(rational(data[name])) for name in ("epsilon", "delta", "bound")},
        "recomputed": float(recomputed),
        "not_covered": list(NOT_COVERED),
    }


def claim(data: dict[str, Any]) -> str:
    """What a certificate is a proof of, in one sentence that names every field."""
    release = data["release"]
    if "widths" in release:
        public = "public losses" if release["public_losses"] else "losses"
        what = f"transitions, visits and {public} ({release['feedback']} feedback) of layers of "
        what += f"{_read(release['widths'])} states, {release['actions']} actions"
    else:
        what = f"{', '.join(release['statistics'])} of {release['states']} states, "
        what += f"{release['actions']} actions, {release['horizon']} steps"
    if "episodes" in release:
        what += f", after every one of {release['episodes']} episodes"
        what += ", pooled over steps" if release.get("stationary") else ""
        what += f", by a tree of {release['levels']} levels" if "levels" in release else ""
    else:
        what += "" if release["last_transitions"] else " (no transitions of the last step)"
        users = f"{release['users']} users" if release.get("users") else "any size"
        what += f", in a batch of {users}"
        if "honest" in release:
            what += f", {_honest(rational(release['honest']), release['users'])}"
    notion = {"central": "JDP", "local": "LDP", "shuffle": "SDP"}[release["trust"]]
    noise = [f"{name} {_read(value)}" for name, value in data["noise"].items() if name != "name"]
    pair = f"{above(rational(data['epsilon']))}, {above(rational(data['delta']))}"
    times = release["participations"]
    often = "1 participation" if times == 1 else f"up to {times} participations"
    often += " per person"
    if "separation" in release:
        often += f", {release['separation']} or more episodes apart"
    return (
        f"({pair})-{notion} of {what}, {often}, by the {release['trust']} "
        f"mechanism {release['mechanism']} with "
        f"{data['noise']['name']} noise of {', '.join(noise)}."
    )


def _honest(share: Fraction, users: int | None) -> str:
    """How many users are relied upon: a share of one is all of them."""
    if share == 1:
        return "all of them honest"
    if users:
        return f"at least {math.floor(share * users)} of them honest"
    return f"a share of at least {_read(str(share))} of them honest"


def report(found: dict[str, Any]) -> list[str]:
    """The same for a person, line by line."""
    return [
        f"Verified: {found['claim']}",
        f"Proven is this and nothing else; recomputed, delta({_read(found['epsilon'])}) is at most "
        f"{above(Fraction(found['recomputed']))}:",
        f"  one user moves {described(found['moves'])}",
        *(f"  {name}: {_read(found[name])}" for name in ("epsilon", "delta", "bound")),
        f"Not covered: {'; '.join(found['not_covered'])}.",
    ]


def described(moves: Any) -> str:
    """Moves in words."""
    if isinstance(moves, list):
        return ", ".join(f"{move['shift']:+d} x {move['times']} times" for move in moves)
    return ", ".join(f"{name} {value}" for name, value in moves.items())


def above(value: Fraction) -> str:
    """Nine digits, rounded up."""
    context = decimal.Context(prec=9, rounding=decimal.ROUND_CEILING)
    number = context.divide(decimal.Decimal(value.numerator), decimal.Decimal(value.denominator))
    text = f"{float(number):.9g}"
    return text if decimal.Decimal(text) == number else str(number)  # below the least double


def _is_rational(name: str, value: Any) -> bool:
    return isinstance(value, str) and name != "name"


def _read(value: Any) -> str:
    """An exact number, with its decimals if it is a fraction; long lists by their SHA-256."""
    if isinstance(value, list):
        text = "".join(f"{number}\n" for number in value)
        sha = hashlib.sha256(text.encode()).hexdigest()
        return str(value) if len(text) < 200 else f"({len(value)} numbers of SHA-256 {sha})"
    decimals = f" (about {float(Fraction(value)):.10g})" if "/" in str(value) else ""
    return f"{value}{decimals}"


# --- reading a file ------------------------------------------------------------------------------


def read(path: str) -> Any:
    """The document in a file; numbers with a point and repeated fields are refused."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise Refused("A field occurs twice.")
        return dict(pairs)

    def inexact(text: str) -> None:
        raise Refused(f"Expected exact numbers, got {text}.")

    try:
        with Path(path).open("rb") as file:
            text = file.read(LIMIT + 1)
        if len(text) > LIMIT:
            raise Refused(f"{path} is no certificate: it has more than {LIMIT} bytes.")
        return json.loads(
            text.decode("utf-8"),
            object_pairs_hook=unique,
            parse_float=inexact,
            parse_constant=inexact,
        )
    except OSError as error:
        raise Refused(f"Cannot read {path}: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise Refused(f"{path} is no certificate: it is not JSON.") from None


def main(arguments: list[str]) -> int:
    """0 if the certificate holds; one sentence and 1 if not."""
    if len(arguments) != 1:
        sys.stderr.write("Usage: python verify.py FILE\n")
        return 2
    try:
        data = read(arguments[0])
        found = proven(data, check(data))
    except Refused as error:
        sys.stderr.write(f"Refused: {error}\n")
        return 1
    sys.stdout.write("".join(f"{line}\n" for line in report(found)))
    return 0


if __name__ == "__main__":
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
    except OSError as error:
        sys.stderr.write(f"Nothing is verified: {error}.\n")
        os._exit(1)  # at the exit, what could not be written would be tried again
    raise SystemExit(code)
