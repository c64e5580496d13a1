"""Ball arithmetic: numbers that carry a proven enclosure of what they stand for (python-flint).

Every operation on balls encloses the exact result, so the upper end of a bound computed with balls
is a bound. Floats choose windows and indices; whatever they choose, the bound stays true.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar

from discreet.errors import MissingExtraError

try:
    from flint import arb, arb_poly, ctx, fmpq
except ImportError as error:
    raise MissingExtraError("python-flint", "certify") from error

__all__ = ["arb", "arb_poly"]  # handed on

P = ParamSpec("P")
R = TypeVar("R")

PRECISION = 256
"""Bits of a ball's centre: far more than any bound here loses to rounding."""
_LEAST = Fraction(1, 2**400)
"""Far below any delta."""


def at_precision(bits: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Run a function with balls of this many bits, whatever the caller works with."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            before = ctx.prec
            ctx.prec = bits
            try:
                return function(*args, **kwargs)
            finally:
                ctx.prec = before

        return run

    return decorate


def ball(value: int | float | Fraction) -> arb:
    """The ball around an exact number; a float stands for its exact binary value."""
    exactly = Fraction(value)
    return arb(fmpq(exactly.numerator, exactly.denominator))


def exact(end: arb) -> Fraction:
    """The rational value of a ball of radius zero."""
    mantissa, exponent = end.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def upper(value: arb) -> Fraction:
    """The upper end of a ball, exactly; one if nothing better is known.

    What is far below any delta is rounded up: an exact 10^-(10^9) would be a long number.
    """
    if not value.is_finite():
        return Fraction(1)
    return _LEAST if abs(value) <= ball(_LEAST) else exact(value.upper())


def lower(value: arb) -> Fraction:
    """The lower end of a ball around a number that is at least zero, exactly.

    Zero if nothing better is known, or if it is far below any delta (see `upper`).
    """
    return exact(value.lower()) if value.is_finite() and value >= ball(_LEAST) else Fraction(0)


def clipped(value: arb) -> arb:
    """A ball around max(0, x) for every x in the ball."""
    return value.nonnegative_part()


def half_line(value: arb) -> arb:
    """Phi(x), the standard normal distribution function."""
    root: arb = arb(2).sqrt()
    return (-value / root).erfc() / 2


def density(value: arb) -> arb:
    """The standard normal density."""
    return (-value * value / 2).exp() / (2 * arb.pi()).sqrt()


# Weighted sums of discrete Gaussians: a proven pointwise bound, and the delta that follows.
#
# A neighbour moves the counters by an integer vector v; every counter carries discrete Gaussian
# noise X of parameter sigma. With N = |v|² the privacy loss is (N - 2<v, X>)/(2 sigma²), so the
# distribution of one integer, <v, X>, decides. Let g be the greatest common divisor of v, w = v/g,
# M = |w|² and U = <w, X>; n counters move.
#
# **Lemma.** P(U = u) <= F·exp(-u²/(2 t²))/(t·sqrt(2 pi)) with t = sigma·sqrt(M), q = exp(-pi²
# sigma²) and
#
# * F = (1 + 2q/(1-q))^n if every entry of w is 1 or -1;
# * F = (1 + 2q/(1-q))^n·(1 + t·sqrt(2 pi)·exp(-2 pi² sigma²/M))
#   + t·sqrt(2 pi)·2·exp(-pi² sigma²/8)/(1 - exp(-3 pi² sigma²)) in general.
#
# *Proof.* (a) The x with <w, x> = u are x0 + L with the lattice L = {x : <w, x> = 0} (Bézout), and
# |x|² = u²/M + |y|² with y the projection of x along w. So P(U = u) is exp(-u²/(2t²)) times a sum
# of exp(-|y|²/(2 sigma²)) over a translate of L, which is largest for L itself (Poisson summation:
# all Fourier coefficients are positive). Hence P(U = u) <= P(U = 0)·exp(-u²/(2t²)).
#
# (b) *Entries ±1* (by symmetry all 1, M = n). Poisson summation over L, of determinant sqrt(n), and
# over the integers, whose sum Z is at least sigma·sqrt(2 pi), gives P(U = 0) <= (t·sqrt(2
# pi))^-1·sum over the dual lattice of exp(-2 pi² sigma²|y|²). The dual is the projection of Z^n;
# choose for each of its points a representative x with |sum x| <= n/2. Then |y|² = |x|² - (sum
# x)²/n >= |x|² - |sum x|/2 >= |x|²/2 for integers x, and the sum is at most (sum over m of exp(-pi²
# sigma² m²))^n <= (1 + 2q/(1-q))^n.
#
# (c) *In general* P(U = 0) = (1/2 pi)·∫ prod phi(w_i s) ds over |s| <= pi, where phi(s), the
# characteristic function, is at most the sum over m of exp(-sigma²(s + 2 pi m)²/2) (Poisson again).
# Let d_i be the distance of w_i·s from 2 pi Z. If all d_i <= pi/2 then phi(w_i s) <= (1 +
# 2q/(1-q))·exp(-sigma² d_i²/2). Write w_i s = 2 pi m_i ± d_i. If m = 0, d_i is |w_i s|, and these s
# contribute at most (1 + 2q/(1-q))^n/(t·sqrt(2 pi)). Else m is no multiple of w (w is primitive and
# |s| <= pi), and sum d_i² >= 4 pi²·(M|m|² - <m, w>²)/M >= 4 pi²/M, because the numerator is a
# positive integer. If some d_i > pi/2, that factor alone is at most 2·exp(-pi² sigma²/8)/(1 -
# exp(-3 pi² sigma²)), and all others are at most one. ∎
#
# So delta(eps) <= F·J with J = sum over u of the normal density at u, of deviation t, times (1 -
# exp(eps - loss(u)))+. It is summed term by term (`lattice_sum`), or in closed form
# (`closed_form`): with h = 1/t, mu = sqrt(N)/sigma, z = mu/2 - eps/mu and f(x) = phi(x) -
# e^eps·phi(x - mu) for x <= z, zero beyond, J is the trapezoidal sum of f with step h, and
#
#     |J - ∫ f| <= (h²/8)·(total variation of f'),  ∫ f = Phi(z) - e^eps·Phi(z - mu),
#
# (the trapezoidal rule errs by half the integral of (x-a)(b-x) against f'' on each step). The
# variation is at most V(z) + e^eps·V(z - mu) + mu·phi(z), where V(y) = |y|·phi(y) if y <= -1 (phi'
# is monotone there) and V(y) = 1 otherwise (in all it is 4·phi(1) < 1).


_LONGEST = 400_000
"""Terms that are summed one by one; beyond, the closed form is tight to ten digits."""
_DEPTH = 70.0
"""The sum ends where its terms have fallen by exp(-35); a geometric series covers the rest."""


@dataclass(frozen=True, kw_only=True)
class Shifted:
    """A direction v of moves, seen through its primitive part, under noise of ``sigma``.

    Attributes:
        norm: M, the squared norm of v/g.
        step: g, the greatest common divisor of the entries of v.
        cells: n, the most counters that move.
        ones: every entry of v/g is 1 or -1.
    """

    sigma: Fraction
    norm: int
    cells: int
    step: int = 1
    ones: bool = True

    @property
    def squares(self) -> int:
        """N, the squared norm of v."""
        return self.step**2 * self.norm

    @property
    def deviation(self) -> arb:
        """The t of the lemma."""
        return ball(self.sigma) * ball(self.norm).sqrt()


def excess(shifted: Shifted) -> arb:
    """The factor F of the lemma."""
    energy = arb.pi() ** 2 * ball(shifted.sigma**2)
    q = (-energy).exp()
    factor = (1 + 2 * q / (1 - q)) ** shifted.cells
    if shifted.ones:
        return factor
    spread = shifted.deviation * (2 * arb.pi()).sqrt()
    near = (-2 * energy / shifted.norm).exp()
    far = 2 * (-energy / 8).exp() / (1 - (-3 * energy).exp())
    return factor * (1 + spread * near) + spread * far


def least_share(shifted: Shifted) -> arb:
    """For entries ±1: P(U = u) is at least this times the normal density at u.

    With S + 1 the sum over the dual lattice, P(U = u) >= P(U = 0)·exp(-u²/2t²)·(1-S)/(1+S), and
    P(U = 0) >= 1/(sum over u of exp(-u²/2t²)), which exceeds t·sqrt(2 pi) by a factor of at most F
    (t >= sigma), as S + 1 does one.
    """
    factor = excess(shifted)
    return clipped(2 - factor) / (factor * factor)


def delta_of_shift(shifted: Shifted, epsilon: Fraction) -> tuple[arb, str]:
    """A bound on delta(epsilon) and the method that gave it."""
    if 8 * float(shifted.deviation) <= _LONGEST:
        return excess(shifted) * lattice_sum(shifted, epsilon), "lattice-sum"
    return excess(shifted) * closed_form(shifted, epsilon), "closed-form"


def lattice_sum(shifted: Shifted, epsilon: Fraction) -> arb:
    """J, term by term, with the far tail counted whole."""
    variance, squares = shifted.sigma**2, shifted.squares
    spread = shifted.norm * variance
    edge = (Fraction(squares, 2) - epsilon * variance) / shifted.step
    top = math.ceil(edge) - 1
    near = min(0.0, top / math.sqrt(spread))
    bottom = min(top, math.floor(-math.sqrt((near**2 + _DEPTH) * spread)))
    twice, base = ball(2 * spread), ball(epsilon - squares / (2 * variance))
    slope, total = ball(shifted.step / variance), arb(0)
    for u in range(bottom, top + 1):
        total += (-(arb(u) * u) / twice).exp() * clipped(-(base + slope * u).expm1())
    last = bottom - 1
    tail = (-(arb(last) * last) / twice).exp() / (1 - (arb(2 * last - 1) / twice).exp())
    return (total + tail) / (ball(spread) * 2 * arb.pi()).sqrt()


def closed_form(shifted: Shifted, epsilon: Fraction | arb) -> arb:
    """J as an integral of the normal density, plus what the integers can add to it."""
    integral, correction = smooth_parts(shifted, epsilon)
    return integral + correction


def smooth_parts(shifted: Shifted, epsilon: Fraction | arb) -> tuple[arb, arb]:
    """The integral, and the most by which the sum over the integers differs from it."""
    wanted = epsilon if isinstance(epsilon, arb) else ball(epsilon)
    mu = ball(shifted.squares).sqrt() / ball(shifted.sigma)
    z = mu / 2 - wanted / mu
    growth = wanted.exp()
    integral = half_line(z) - growth * half_line(z - mu)
    rough = _variation(z) + growth * _variation(z - mu) + mu * density(z)
    return clipped(integral), rough / (8 * ball(shifted.sigma**2 * shifted.norm))


def _variation(y: arb) -> arb:
    """V(y): the total variation of the normal density's derivative up to y, or more."""
    return -y * density(y) if y <= -1 else arb(1)


# The distribution of a sum of discrete Gaussians: by convolution, or by the lemma above.


_REACH = 17.0
"""Draws beyond this many sigmas (e^-144) are left out, and counted as missing."""


@lru_cache(maxsize=64)
@at_precision(PRECISION)
def one_draw(sigma: Fraction) -> tuple[int, arb_poly]:
    """The largest value r, and balls around the probabilities of -r .. r."""
    reach = math.ceil(_REACH * float(sigma)) + 1
    twice = ball(2 * sigma * sigma)
    weights = [(-(arb(x) * x) / twice).exp() for x in range(reach + 2)]
    # Beyond r the ratio of neighbours is at most exp(-(2r + 3)/(2 sigma²)): a geometric series.
    tail = weights[-1] / (1 - (-arb(2 * reach + 3) / twice).exp())
    centre = sum(weights[1:-1], arb(0))
    total = weights[0] + 2 * centre + 2 * arb(0).union(tail)
    sides = [weight / total for weight in weights[:-1]]
    return reach, arb_poly([sides[abs(x)] for x in range(-reach, reach + 1)])


@lru_cache(maxsize=64)
@at_precision(PRECISION)
def sum_of_draws(sigma: Fraction, draws: int) -> list[tuple[int, arb]]:
    """Values of the sum of ``draws`` draws, and their probabilities.

    These are balls. Probabilities of values that need a draw beyond the window are underestimated:
    what is missing from one must be counted as a loss by an upper bound, and may be left out by a
    lower bound.
    """
    reach, poly = one_draw(sigma)
    whole = poly**draws if draws else arb_poly([1])
    first = -draws * reach
    return [(first + i, mass) for i, mass in enumerate(whole.coeffs())]


@lru_cache(maxsize=64)
@at_precision(PRECISION)
def window_of_sum(shifted: Shifted) -> tuple[list[tuple[int, arb]], arb]:
    """Values of U with upper bounds on their probabilities, and a bound on all others together."""
    deviation = shifted.deviation
    reach = math.ceil(_REACH * float(deviation)) + 1
    twice = 2 * deviation * deviation
    scale = excess(shifted) / (twice * arb.pi()).sqrt()
    sides = [scale * (-(arb(u) * u) / twice).exp() for u in range(reach + 2)]
    tail = 2 * sides[-1] / (1 - (-arb(2 * reach + 3) / twice).exp())
    return [(u, sides[abs(u)]) for u in range(-reach, reach + 1)], tail


# Composition of privacy losses on a grid, with connect-the-dots: the upper bound.
#
# A move of a counter turns one distribution into another: atoms of mass p under P and q under Q.
# The grid has the losses i·ln(1/x) with x = 1 - 2^-m. An atom whose ratio r = q/p lies between
# x^(i+1) and x^i is split in two, of loss i and i+1, so that both masses are kept:
#
#     above = (x^i·p - q)/(x^i - x^(i+1)),   below = p - above.
#
# Merging the halves gives the atom back. So the pair (P, Q) is a post-processing of the split pair,
# whose delta is therefore no smaller, also after composition with anything else (Doroshenko, Ghazi,
# Kamath, Kumar and Manurangsi 2022). Where the order of two balls is not proven, the loss is
# rounded up. Independent moves multiply their polynomials. In the end
#
#     delta(epsilon) <= sum of m_i·(1 - e^epsilon·x^i)+  +  (1 - sum of m_i):
#
# the last term counts every tail, every crop and every infinite loss as delta, so windows need no
# trust.


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


def group_atoms(trials: int, probability: Fraction, depth: float) -> Iterator[Atom]:
    """Atoms of finite loss of one group: 1 + N_a against N_a heads among N_a + N_b coins.

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
