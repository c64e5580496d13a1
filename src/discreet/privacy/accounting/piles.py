"""How many users are counted on, and the worst that one user can move."""

import math
from fractions import Fraction

import numpy as np

from discreet import _validate
from discreet.errors import InvalidInputError
from discreet.privacy.accounting.closed_forms import gaussian_delta
from discreet.privacy.accounting.lattice import discrete_gaussian_delta, sum_of_gaussians


def honest_users(honest: float | Fraction, users: int) -> int:
    """Whole users among ``users`` who are counted on if the fraction ``honest`` is: rounded down.

    The fraction is the decimal that a person wrote: 0.9 of 10 users are 9, and 0.8999999999 are 8.

    Raises:
        InvalidInputError: if nobody is left whose noise could be relied on.

    >>> honest_users(0.9, 10), honest_users(0.8999999999, 10)
    (9, 8)
    """
    _validate.count(users=users)
    _validate.probability(honest=honest)
    count = math.floor(_validate.exact(honest) * users)
    if not count:
        raise InvalidInputError(
            f"Expected at least one honest user, got honest={honest} of users={users}; "
            f"use a larger batch."
        )
    return count


def least_crowd(honest: float | Fraction) -> int:
    """How many users it takes until `honest_users` counts on one of them.

    >>> least_crowd(1.0), least_crowd(0.9), least_crowd(0.3)
    (1, 2, 4)
    """
    _validate.positive(honest=honest)
    return math.ceil(1 / _validate.exact(honest))


def mean_of_all(mean: Fraction, honest: float | Fraction, users: int) -> Fraction:
    """The mean of all users' noise of which those who are counted on add ``mean``.

    >>> mean_of_all(Fraction(300), 0.75, 10)  # seven of ten are counted on
    Fraction(3000, 7)
    """
    return mean * users / honest_users(honest, users)


# Counters that one user can move by several units: full piles are the worst case, with proof.
#
# Pooled over steps, one user moves some counters by up to ``pile`` units, n = cells·pile units in
# all. Under continuous Gaussian noise only the length of the move v counts, so full piles
# (``cells`` counters by ``pile`` each) are the worst. Noise on integers also feels the arithmetic
# of v, so that has to be proved. A pile of one is clear: fewer moved counters are a part of the
# view of more.
#
# **A pile of two** is clear as well: a move by 2 of one counter covers moves by 1 of two counters.
# Add fresh noise to the one: it is then distributed as the sum of the two, and the sum is
# sufficient for a common shift of two discrete Gaussians, so both can be drawn from it without
# knowing the shift. An odd number of single units leaves one of the 2·cells units unspent: spend
# it.
#
# **Theorem.** Let s = pile > 2 and let v be any other move: |v_i| <= s, sum |v_i| <= n, not all
# entries 0 or ±s. Then |v|² <= N = cells·s² - 2(s - 1). Let the noise be discrete Gaussian of
# parameter sigma, D(y) the delta of continuous noise at |v| = sqrt(y) (Balle and Wang 2018), and
# F = max(0.8·N, cells·s·(s - 1)). Then
#
#     delta(v) <= Theta·max(D(N) + s/(2·sigma·sqrt(0.8·N))·top(N), D(F) + top(F)/sigma)
#
# where top(y) = phi(max(x0, 0))·min(1, r/(e·x0) if x0 > 0) for r = sqrt(y)/sigma and x0 = epsilon/r
# - r/2, phi is the normal density, and, if b = log(2n) + 1 is at most 2·pi²·sigma², Theta = 1 +
# exp(-(2·pi²·sigma² - b)/(2s²))·sqrt(b·N/pi)·exp(2.2·n·e^-b). (Entries 0 or ±s only: a part of the
# view of full piles.)
#
# *Proof.* (1) |v|² = s·sum|v_i| - sum|v_i|(s - |v_i|). An entry strictly between 0 and s costs at
# least s - 1. If sum|v_i| = n there are two of them. If it is below n by less than s, there is one,
# and the first term loses s; if by s or more, the first term loses s².
#
# (2) Let g be the greatest common divisor of v, v = g·w, m = |w|², and T = w·Z for noise Z. The
# integer points with w·z = t are a shifted copy of the lattice of points orthogonal to w, of volume
# |w|, whose dual is the projection of the integer points along w. By Poisson summation, and because
# the normalising sum of each coordinate is at least sigma·sqrt(2·pi),
#
#     P(T = t) <= Theta_w·exp(-t²/(2·m·sigma²))/(sigma·sqrt(2·pi·m)),
#     Theta_w = sum over the projections y of exp(-2·pi²·sigma²·|y|²).
#
# (3) Let y = u - q·w != 0 be the projection of an integer point u. Then u is no multiple of w:
# u_i·w_j != u_j·w_i for some i, j, so 1 <= |y_i·w_j - y_j·w_i| <= |y|·sqrt(w_i² + w_j²), and |y|²
# >= 1/(2s²). Hence Theta_w - 1 <= exp(-(2·pi²·sigma² - b)/(2s²))·(sum of exp(-b·|y|²)). The last
# sum is sqrt(b·m/pi) times the integral over 0 <= q <= 1 of the product over i of sum_k exp(-b(k -
# q·w_i)²), and each factor is at most 1 + 2.2·e^-b. At most n entries are not zero, and m <= N:
# Theta_w <= Theta.
#
# (4) With x = -T/(sigma·sqrt(m)) the privacy loss is R²/2 + R·x for R = |v|/sigma, so delta(v) is
# at most Theta times the sum of h·f(x) over a grid of step h = g/(sigma·|v|) = 1/(sigma·sqrt(m)),
# for f(x) = phi(x)·max(0, 1 - exp(epsilon - R²/2 - R·x)). f rises and then falls: where it is
# positive, the sign of f' is plus for x <= 0, and for x > 0 that of (x + R)/x - exp(R²/2 + R·x -
# epsilon), which falls. So the sum is at most the integral D(|v|²) plus h times the largest value,
# which is at most top(|v|²); both D and f at each x grow with |v|.
#
# (5) If |v|² >= 0.8·N and some entry is ±s, then g divides s and a smaller entry, so g <= s/2: the
# first term. If no entry is ±s, |v|² <= (s - 1)·n = cells·s·(s - 1); so in all other cases |v|² <=
# F, and h <= 1/sigma because m >= 1: the second term. qed
#
# Where epsilon is large and sigma small, Theta is useless; then concentrated differential privacy
# (Canonne, Kamath and Steinke 2020: rho = |v|²/(2·sigma²), Proposition 12) covers the other moves,
# at the price of a little more noise.


_EXACT = 50.0
_ORDERS = 1 + np.geomspace(1e-2, 1e4, 600)


def worst_gaussian_delta(sigma: float, cells: int, epsilon: float, *, pile: int = 1) -> float:
    """Delta of discrete Gaussian noise for every move of cells·pile units, at most ``pile`` in one.

    The exact delta of full piles wherever the above shows that nothing is worse, which is the case
    for piles of up to two and at usual calibrations (three statistics, delta = 1e-6: up to
    epsilon = 15); otherwise a bound on all moves.

    >>> worst = worst_gaussian_delta(62.1, 6, 1.0, pile=6)
    >>> worst == discrete_gaussian_delta(62.1, 6, 1.0, pile=6)
    True
    """
    full = discrete_gaussian_delta(sigma, cells, epsilon, pile=pile)
    return full if pile <= 2 else max(full, other_moves_delta(sigma, cells, epsilon, pile))


def other_moves_delta(sigma: float, cells: int, epsilon: float, pile: int) -> float:
    """A bound on delta for all moves but full piles (the theorem, or concentrated DP)."""
    square = cells * pile**2 - 2 * (pile - 1)
    return _moves_delta(sigma, square, cells * pile, epsilon, pile)


def uneven_piles_delta(sigma: float, horizon: int, epsilon: float) -> float:
    """Delta of 002's statistics: H rewards, H visits and H - 1 transitions, pooled over steps.

    Continuous noise feels the length of a move only, |v|² <= N = 4H² + 2(H - 1)². Discrete noise:
    for H = 2 the full move (2, 2, 2, 2, 1, 1) covers all others, as above, and is summed exactly
    (sigma up to 50); otherwise the theorem's (2) to (5) hold as they stand with this N and
    n = 6H - 2. (A move whose entries are all 0 or ±H leaves the transitions alone and is a part of
    the view of the full one, whose entries have no common divisor.) The larger of the two: an upper
    bound above two steps.

    >>> round(uneven_piles_delta(2.0, 2, 1.0), 4)
    0.5516
    """
    square = 4 * horizon**2 + 2 * (horizon - 1) ** 2
    continuous = gaussian_delta(sigma, math.sqrt(square), epsilon)
    if horizon != 2 or sigma > _EXACT:
        return max(continuous, _moves_delta(sigma, square, 6 * horizon - 2, epsilon, horizon))
    (fours, log_fours), (twos, log_twos) = (sum_of_gaussians(sigma, n) for n in (4, 2))
    spread = np.zeros(2 * fours.size - 1)
    spread[::2] = np.exp(log_fours)
    masses = np.convolve(spread, np.exp(log_twos))
    totals = 2 * fours[0] + twos[0] + np.arange(masses.size)
    losses = (square - 2 * totals) / (2 * sigma**2)
    return max(continuous, float(masses @ -np.expm1(np.minimum(0.0, epsilon - losses))))


def _moves_delta(sigma: float, square: int, units: int, epsilon: float, pile: int) -> float:
    """The theorem, for moves of ``units`` in all whose square is at most ``square``."""
    near = _smooth(sigma, square, epsilon, pile / (2 * sigma * math.sqrt(0.8 * square)))
    far = _smooth(sigma, max(0.8 * square, units * (pile - 1)), epsilon, 1 / sigma)
    theta = 1 + _theta_excess(sigma, square, units, pile)
    return min(1.0, theta * max(near, far), zcdp_delta(square / (2 * sigma**2), epsilon))


def zcdp_delta(rho: float, epsilon: float) -> float:
    """Delta of rho-zero-concentrated DP (Canonne, Kamath and Steinke 2020, Proposition 12)."""
    orders = _ORDERS
    log = (orders - 1) * (orders * rho - epsilon + np.log1p(-1 / orders)) - np.log(orders)
    return math.exp(min(0.0, float(log.min())))


def _smooth(sigma: float, square: float, epsilon: float, step: float) -> float:
    """Integral plus ``step`` times the largest value of f, at |v|² = ``square``."""
    ratio = math.sqrt(square) / sigma
    start = epsilon / ratio - ratio / 2
    top = math.exp(-0.5 * max(start, 0.0) ** 2) / math.sqrt(2 * math.pi)
    if start > 0:
        top *= min(1.0, ratio / (math.e * start))
    return gaussian_delta(sigma, math.sqrt(square), epsilon) + step * top


def _theta_excess(sigma: float, square: float, units: int, pile: int) -> float:
    """Theta - 1, or infinity where the theorem says nothing."""
    b, a = math.log(2 * units) + 1, 2 * math.pi**2 * sigma**2
    if b > a:
        return math.inf
    log = (
        (b - a) / (2 * pile**2) + 0.5 * math.log(b * square / math.pi) + 2.2 * units * math.exp(-b)
    )
    return math.exp(log)
