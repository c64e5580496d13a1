"""Weighted sums of discrete Gaussians: a proven pointwise bound, and the delta that follows.

A neighbour moves the counters by an integer vector v; every counter carries discrete Gaussian noise
X of parameter sigma. With N = |v|² the privacy loss is (N - 2<v, X>)/(2 sigma²), so the law of one
integer, <v, X>, decides. Let g be the greatest common divisor of v, w = v/g, M = |w|² and
U = <w, X>; n counters move.

**Lemma.** P(U = u) <= F·exp(-u²/(2 t²))/(t·sqrt(2 pi)) with t = sigma·sqrt(M),
q = exp(-pi² sigma²) and

* F = (1 + 2q/(1-q))^n if every entry of w is 1 or -1;
* F = (1 + 2q/(1-q))^n·(1 + t·sqrt(2 pi)·exp(-2 pi² sigma²/M))
  + t·sqrt(2 pi)·2·exp(-pi² sigma²/8)/(1 - exp(-3 pi² sigma²)) in general.

*Proof.* (a) The x with <w, x> = u are x0 + L with the lattice L = {x : <w, x> = 0} (Bézout), and
|x|² = u²/M + |y|² with y the projection of x along w. So P(U = u) is exp(-u²/(2t²)) times a sum of
exp(-|y|²/(2 sigma²)) over a translate of L, which is largest for L itself (Poisson summation: all
Fourier coefficients are positive). Hence P(U = u) <= P(U = 0)·exp(-u²/(2t²)).

(b) *Entries ±1* (by symmetry all 1, M = n). Poisson summation over L, of determinant sqrt(n), and
over the integers, whose sum Z is at least sigma·sqrt(2 pi), gives
P(U = 0) <= (t·sqrt(2 pi))^-1·sum over the dual lattice of exp(-2 pi² sigma²|y|²). The dual is the
projection of Z^n; choose for each of its points a representative x with |sum x| <= n/2. Then
|y|² = |x|² - (sum x)²/n >= |x|² - |sum x|/2 >= |x|²/2 for integers x, and the sum is at most
(sum over m of exp(-pi² sigma² m²))^n <= (1 + 2q/(1-q))^n.

(c) *In general* P(U = 0) = (1/2 pi)·∫ prod phi(w_i s) ds over |s| <= pi, where phi(s), the
characteristic function, is at most the sum over m of exp(-sigma²(s + 2 pi m)²/2) (Poisson again).
Let d_i be the distance of w_i·s from 2 pi Z. If all d_i <= pi/2 then
phi(w_i s) <= (1 + 2q/(1-q))·exp(-sigma² d_i²/2). Write w_i s = 2 pi m_i ± d_i. If m = 0, d_i is
|w_i s|, and these s contribute at most (1 + 2q/(1-q))^n/(t·sqrt(2 pi)). Else m is no multiple of w
(w is primitive and |s| <= pi), and sum d_i² >= 4 pi²·(M|m|² - <m, w>²)/M >= 4 pi²/M, because the
numerator is a positive integer. If some d_i > pi/2, that factor alone is at most
2·exp(-pi² sigma²/8)/(1 - exp(-3 pi² sigma²)), and all others are at most one. ∎

So delta(eps) <= F·J with J = sum over u of the normal density at u, of deviation t, times
(1 - exp(eps - loss(u)))+. It is summed term by term (`lattice_sum`), or in closed form
(`closed_form`): with h = 1/t, mu = sqrt(N)/sigma, z = mu/2 - eps/mu and f(x) = phi(x) -
e^eps·phi(x - mu) for x <= z, zero beyond, J is the trapezoidal sum of f with step h, and

    |J - ∫ f| <= (h²/8)·(total variation of f'),  ∫ f = Phi(z) - e^eps·Phi(z - mu),

(the trapezoidal rule errs by half the integral of (x-a)(b-x) against f'' on each step). The
variation is at most V(z) + e^eps·V(z - mu) + mu·phi(z), where V(y) = |y|·phi(y) if y <= -1 (phi' is
monotone there) and V(y) = 1 otherwise (in all it is 4·phi(1) < 1).
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from discreet.privacy.certificates.balls import arb, ball, clipped, density, half_line

_LONGEST = 400_000
"""Terms that are summed one by one; beyond, the closed form is tight to ten digits."""
_DEPTH = 70.0
"""The sum ends where its terms have fallen by exp(-35); a geometric series covers the rest."""


@dataclass(frozen=True, kw_only=True)
class Shifted:
    """A direction v of moves, seen through its primitive part.

    Attributes:
        sigma: parameter of the noise on each counter.
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
    energy = arb.pi() ** 2 * ball(self_squared(shifted.sigma))
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


def self_squared(value: Fraction) -> Fraction:
    """The square, exactly."""
    return value * value


def delta_of_shift(shifted: Shifted, epsilon: Fraction) -> tuple[arb, str]:
    """A bound on delta(epsilon) and the method that gave it."""
    if 8 * float(shifted.deviation) <= _LONGEST:
        return excess(shifted) * lattice_sum(shifted, epsilon), "lattice-sum"
    return excess(shifted) * closed_form(shifted, epsilon), "closed-form"


def lattice_sum(shifted: Shifted, epsilon: Fraction) -> arb:
    """J, term by term, with the far tail counted whole."""
    variance, squares = self_squared(shifted.sigma), shifted.squares
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
    return clipped(integral), rough / (8 * ball(self_squared(shifted.sigma) * shifted.norm))


def _variation(y: arb) -> arb:
    """V(y): the total variation of the normal density's derivative up to y, or more."""
    return -y * density(y) if y <= -1 else arb(1)
