"""Noise levels and guarantees that have a formula: Gaussian, Laplace, randomised response.

**The delta of Gaussian noise**, in as many digits as it takes, bounded from above.

With r = L2/sigma, x = epsilon/r - r/2 and y = epsilon/r + r/2, Theorem 8 of Balle and Wang (2018)
reads delta = Q(x) - e^epsilon·Q(y), with Q the normal upper tail. Because y² - x² = 2·epsilon,
e^epsilon times the density at y is the density at x, so that delta = density(x)·(M(x) - M(y)),
where M = Q/density is the ratio of Mills. For small r both terms agree in all but their last
digits, and doubles lose them (4% of delta at epsilon = 2e-11). Here r decides how many digits are
carried.

**Bounds.** From t = 2 on, M(t) = 1/(t + 1/(t + 2/(t + 3/(t + ...)))): the convergents of this
continued fraction (Laplace) lie above and below M in turn, so two neighbours enclose it. Below, the
density at t times the sum of t^(2k+1)/(1·3·5···(2k+1)) is 1/2 - Q(t) (all terms positive; once each
is less than half of the one before, the rest is less than the last). Both run until the enclosure
is narrower than the last ten digits; the upper end is taken of M(x), the lower of M(y). All digits
carried but ten are far more than the roundings of some thousands of operations touch; the last
factor covers them a trillion times.
"""

import decimal
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from discreet import _validate
from discreet.errors import CalibrationError
from discreet.privacy.accounting.roots import bracketed_root, check_delta
from discreet.privacy.guarantee import rounded_up

_DIGITS, _SPARE = 45, 10
_SAFE = Decimal(1) + Decimal(10) ** -20
_HALF = Decimal("0.5")
_PI = Decimal(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899"
    "8628034825342117067982148086513282306647093844609550582231725359408128481117450284"
    "1027019385211055596446229489549303819644288109756659334461284756482337867831652712"
    "0190914564856692346034861045432664821339360726024914127372458700660631558817488152"
    "0920962829254091715364367892590360011330530548820466521384146951941511609"
)


def gaussian_delta_above(ratio: Decimal, epsilon: Decimal) -> Decimal:
    """At least the delta of Gaussian noise, and by a factor of at most 1 + 2e-20.

    ``ratio`` is the L2 sensitivity in standard deviations, above zero.

    >>> f"{gaussian_delta_above(Decimal(6) / Decimal('25.348'), Decimal(1)):.10e}"
    '1.0000595637e-6'
    """
    with decimal.localcontext() as context:
        context.Emin, context.Emax = decimal.MIN_EMIN, decimal.MAX_EMAX
        # M(x) - M(y) is about r·M/x or larger, and x below epsilon/r.
        lost = max(0, -ratio.adjusted()) + max(0, (epsilon / ratio).adjusted()) * 2
        context.prec = _DIGITS + min(lost, 300)
        x, y = epsilon / ratio - ratio / 2, epsilon / ratio + ratio / 2
        gap = _mills(x)[1] - _mills(y)[0]
        return _density(x) * gap * _SAFE


def _density(t: Decimal) -> Decimal:
    return (-t * t / 2).exp() / (2 * _PI).sqrt()


def _mills(t: Decimal) -> tuple[Decimal, Decimal]:
    """A lower and an upper bound of Q(t) over the density at t."""
    if t < 0:
        low, high = _mills(-t)
        one = 1 / _density(t)
        return one - high, one - low
    tolerance = Decimal(10) ** (_SPARE - decimal.getcontext().prec)
    if t < 2:  # the series of (1/2 - Q(t)) / density
        total = term = t
        odd = 1
        while odd < 2 * t * t or term > tolerance * total:
            odd += 2
            term = term * t * t / odd
            total += term
        half = _HALF / _density(t)
        return half - (total + term), half - total
    above, below = (Decimal(1), t), (t, t * t + 1)  # 1/t and t/(t² + 1)
    k = 2
    while True:
        # Convergents P_k/Q_k with P_k = t·P_(k-1) + k·P_(k-2), likewise Q_k.
        first = t * below[0] + k * above[0], t * below[1] + k * above[1]
        second = t * first[0] + (k + 1) * below[0], t * first[1] + (k + 1) * below[1]
        above, below, k = first, second, k + 2
        low, high = below[0] / below[1], above[0] / above[1]
        if high - low <= tolerance * low:
            return low, high


def in_doubles(value: Decimal) -> float:
    """The least double that is at least ``value``."""
    rounded = float(value)
    return rounded if Decimal(rounded) >= value else math.nextafter(rounded, math.inf)


# Noise levels and guarantees that have a formula.
#
# The analytic Gaussian mechanism is Theorem 8 of Balle and Wang (2018): Gaussian noise of standard
# deviation sigma on statistics of L2 sensitivity D is (epsilon, delta)-DP exactly when Phi(D/(2
# sigma) - epsilon·sigma/D) - e^epsilon · Phi(-D/(2 sigma) - epsilon·sigma/D) <= delta.
#
# Parameters of pure mechanisms are doubles that keep the guarantee as exact rational numbers, not
# up to a safety factor: `laplace_scale` and `flip_probability`.


_SMALL_RATIO = 0.05
"""Of L2 to sigma: below it doubles lose more than two digits, and all of them in the end."""


def gaussian_delta(sigma: float, l2: float, epsilon: float) -> float:
    """The delta of Gaussian noise at a given epsilon (exact, Balle and Wang 2018).

    Wide noise has a delta that is the small difference of two larger numbers: there it is
    computed in more digits (`gaussian_delta_above`) and rounded up.

    >>> gaussian_delta(25.348, 6.0, 1.0) <= 1.0001e-6
    True
    """
    _validate.positive(sigma=sigma, l2=l2)
    _validate.real(epsilon=epsilon)
    sigma, l2, epsilon = float(sigma), float(l2), float(epsilon)
    if epsilon < 0:  # the same events, seen from the other side
        return -math.expm1(epsilon) + math.exp(epsilon) * gaussian_delta(sigma, l2, -epsilon)
    ratio = l2 / sigma
    if ratio < _SMALL_RATIO:
        return in_doubles(_delta_above(sigma, l2, epsilon))
    first = log_phi(ratio / 2 - epsilon / ratio)
    second = epsilon + log_phi(-ratio / 2 - epsilon / ratio)
    return max(0.0, math.exp(first) * -math.expm1(min(0.0, second - first)))


def log_phi(x: float) -> float:
    """The logarithm of the normal distribution function, without loading SciPy for one number.

    By `math.erfc`; below -35, where that comes near the least doubles, by the asymptotic series
    1 - 1/x² + 3/x⁴ - 15/x⁶ + ..., whose first term left out is below 1e-15.

    >>> log_phi(0.0) == math.log(0.5), round(log_phi(-40.0), 6)
    (True, -804.608442)
    """
    if x > 0:
        return math.log1p(-math.erfc(x / math.sqrt(2)) / 2)
    if x > -35:
        return math.log(math.erfc(-x / math.sqrt(2)) / 2)
    series, term, square = 0.0, 1.0, x * x
    for odd in range(1, 13, 2):
        term *= -odd / square
        series += term
    return -square / 2 - math.log(-x) - math.log(2 * math.pi) / 2 + math.log1p(series)


def _delta_above(sigma: float, l2: float, epsilon: float) -> Decimal:
    """An upper bound in decimals, of these doubles as they are."""
    return gaussian_delta_above(Decimal(l2) / Decimal(sigma), Decimal(epsilon))


_DELIVERED = 1 - Decimal("1e-11")
"""Of delta: covers the rounding of an L2 norm to a double by the caller."""


def gaussian_sigma(l2: float, epsilon: float, delta: float) -> float:
    """The smallest Gaussian noise that delivers (epsilon, delta) at this L2 sensitivity.

    A root in doubles, raised until `gaussian_delta_above` proves that the double returned keeps the
    guarantee.

    >>> round(gaussian_sigma(6.0, 1.0, 1e-6), 2)
    25.35
    """
    _validate.positive(l2=l2, epsilon=epsilon)
    need_delta(delta, "Gaussian noise")
    l2, epsilon, delta = float(l2), float(epsilon), float(delta)

    def excess(log_sigma: float) -> float:
        return math.log(max(gaussian_delta(math.exp(log_sigma), 1.0, epsilon), 1e-305) / delta)

    low = high = 0.0
    while excess(low) < 0:
        low -= 2.0
    while excess(high) > 0:
        high += 2.0
    # It may stop a hair on the wrong side; the last factor keeps the guarantee true.
    sigma = l2 * math.exp(bracketed_root(excess, low, high, xtol=1e-13)) * (1 + 1e-10)
    step, most = 1e-12, Decimal(delta) * _DELIVERED
    while _delta_above(sigma, l2, epsilon) > most:
        sigma, step = sigma * (1 + step), 2 * step
    return sigma


def gaussian_epsilon(sigma: float, l2: float, delta: float) -> float:
    """The epsilon that Gaussian noise delivers at a given delta."""
    _validate.positive(sigma=sigma, l2=l2)
    need_delta(delta, "Gaussian noise")
    return least_epsilon(lambda epsilon: gaussian_delta(sigma, l2, epsilon), delta)


_LARGEST_LAPLACE = 2.0**44
"""Of Laplace scales: 500 of them stay below 2^53, where every integer is a double."""


def laplace_scale(l1: float, epsilon: float) -> float:
    """The Laplace scale that delivers a pure epsilon at this L1 sensitivity, rounded up.

    >>> laplace_scale(36, 1), Fraction(laplace_scale(36, 0.7)) * Fraction(7, 10) >= 36
    (36.0, True)
    """
    _validate.positive(l1=l1, epsilon=epsilon)
    wanted = min(_validate.exact(epsilon), Fraction(float(epsilon)))
    scale = float(l1 / epsilon)
    if scale > _LARGEST_LAPLACE:
        raise CalibrationError(
            f"Noise of scale {scale:.3g} for epsilon={float(epsilon)!r} would leave the integers "
            f"that double precision holds exactly; ask for a larger epsilon."
        )
    while Fraction(scale) * wanted < Fraction(l1):
        scale = math.nextafter(scale, math.inf)
    return scale


_LEAST_BIT = Fraction(1, 10**12)
"""Doubles just below 1/2 are 2^-54 apart: from here on rounding costs under 0.03% of epsilon."""
_LARGEST_BIT = 700
"""e^-700 is still a normal double; a larger epsilon gets this one's flip, which keeps more."""
_FRACTION_BITS = 256


def flip_probability(epsilon: float, bits: int = 1) -> float:
    """The least double q with (1-q)/q <= e^(epsilon/bits): what randomised response flips with.

    Proof that the double keeps the guarantee: `_exp_below` returns a rational E <=
    e^(epsilon/bits), and q is raised, compared as an exact rational, until q >= 1/(E + 1); then
    (1-q)/q <= E. That q < 1/2 is checked as well, so reports can always be debiased.

    ``epsilon`` is that of all ``bits`` of a report that can differ between two users.

    Raises:
        CalibrationError: if epsilon/bits is so small that doubles cannot tell q from 1/2.

    >>> flip_probability(1.0, 36) < 0.5
    True
    >>> q = Fraction(flip_probability(1.0))
    >>> float((1 - q) / q) <= math.e
    True
    """
    _validate.positive(epsilon=epsilon)
    _validate.count(bits=bits)
    wanted = min(_validate.exact(epsilon), Fraction(float(epsilon))) / bits
    if wanted < _LEAST_BIT:
        raise CalibrationError(
            f"Expected epsilon >= {rounded_up(_LEAST_BIT * bits, 3)} (1e-12 for each of {bits} "
            f"bits), got epsilon={epsilon!r}: a flip probability that close to 1/2 is no double; "
            f"use a larger epsilon or mechanism='laplace'."
        )
    least = 1 / (_exp_below(min(wanted, Fraction(_LARGEST_BIT))) + 1)
    q = float(least)
    while Fraction(q) < least:
        q = math.nextafter(q, 1.0)
    if not 0.0 < q < 0.5:
        raise CalibrationError(f"No flip probability below 1/2 delivers epsilon={epsilon!r}.")
    return q


def _exp_below(x: Fraction) -> Fraction:
    """A rational E <= e^x for x >= 0, with a relative error below 2^-200 for x <= 700.

    e^x = (e^(x/1024))^1024. All terms of the Taylor series are positive, so cutting it off, and
    rounding every term and every square down to multiples of 2^-256, can only lower the result.
    """
    one = 1 << _FRACTION_BITS
    step = math.floor(x / 1024 * one)
    total = term = one
    for k in range(1, 60):
        term = term * step // (one * k)
        total += term
    for _ in range(10):
        total = total * total // one
    return Fraction(total, one)


def laplace_variance(scale: float) -> float:
    """Variance of the discrete Laplace distribution: 2q/(1-q)² with q = exp(-1/scale).

    >>> round(laplace_variance(36.0) ** 0.5, 1)
    50.9
    """
    _validate.positive(scale=scale)
    if scale < 1e-2:
        return 0.0
    # 2q/(1-q)² = 1/(2 sinh²(1/(2·scale)))
    return 0.5 / math.sinh(0.5 / scale) ** 2


def gaussian_variance(sigma: float) -> float:
    """Variance of the discrete Gaussian: sigma² up to 1e-15 from sigma = 2, summed below it."""
    _validate.positive(sigma=sigma)
    if sigma >= 2.0:
        return float(sigma) ** 2
    weights = [(x, math.exp(-0.5 * (x / sigma) ** 2)) for x in range(1, 40)]
    return 2 * sum(x * x * w for x, w in weights) / (1 + 2 * sum(w for _, w in weights))


_PURE = "choose a mechanism with a pure epsilon (laplace)"
NOT_SHUFFLED = "use local trust, which has mechanisms with a pure epsilon; shuffle has none"
"""What to do without a delta under shuffle."""


def need_delta(delta: float, what: str, instead: str = _PURE) -> None:
    """Refuse delta = 0 where a mechanism cannot deliver it."""
    check_delta(delta)
    if delta == 0:
        raise CalibrationError(
            f"{what} needs delta > 0, got delta=0; give a delta well below 1/users, for instance "
            f"1e-6, or {instead}."
        )


def least_epsilon(curve: Callable[[float], float], delta: float, largest: float = 1e6) -> float:
    """The least epsilon >= 0 at which a decreasing ``curve`` of deltas falls to ``delta``.

    ``inf`` if the curve is still above ``delta`` at ``largest``. The answer errs upwards.
    """
    if curve(0.0) <= delta:
        return 0.0
    if curve(largest) > delta:
        return math.inf
    if delta == 0:
        return largest  # a pure guarantee holds from the largest loss on
    high = min(1.0, largest)
    while curve(high) > delta:
        high = min(2 * high, largest)
    low = 0.0 if high <= 1.0 else high / 2
    found = bracketed_root(lambda e: math.log(max(curve(e), 1e-320) / delta), low, high, xtol=1e-10)
    return float(min(high, found + 2e-10))


# Gaussian noise on a grid: what discreteness costs, and the noise that pays for it.
#
# The analytic calibration holds for continuous noise, and for continuous noise rounded to a grid.
# Discrete Gaussian noise of s grid steps is within 1/(8s²) in total variation of rounded noise
# (proof in `mechanisms.toeplitz`), and replacing a mechanism by one within total variation tau
# costs (1 + e^epsilon)·tau of delta. At very large epsilon no grid is fine enough. There discrete
# Gaussian noise is taken as it is: it satisfies rho-zCDP with the same rho = l2²/(2·sigma²) as
# continuous noise (Canonne, Kamath and Steinke 2020, Theorem 4), and rho-zCDP implies (rho +
# 2·sqrt(rho·ln(1/delta)), delta)-DP (Bun and Steinke 2016).


_ROUNDED_UP = 1 + 1e-12
"""Covers the rounding of an L2 norm to a double by the caller, and of the formula (1e-15)."""


def grid_delta(steps: float, shifted: int, epsilon: float) -> float:
    """What discrete instead of rounded Gaussian noise costs in delta, over all shifted values.

    >>> grid_delta(2.0**30, 1000, 1.0) < 1e-15
    True
    """
    if steps < 2 or epsilon > 600:
        return math.inf
    return (1 + math.exp(epsilon)) * shifted / (8 * steps**2)


def grid_sigma(l2: float, epsilon: float, delta: float, *, lost: float, most: float) -> float:
    """Gaussian noise on a grid that costs ``lost`` of delta, if that is at most ``most``.

    Where it is more, sigma comes from zero-concentrated privacy, which grids cost nothing.
    """
    if lost <= most:
        return gaussian_sigma(l2, epsilon, delta - lost)
    return zcdp_sigma(l2, epsilon, delta)


def zcdp_sigma(l2: float, epsilon: float, delta: float) -> float:
    """The noise whose rho + 2·sqrt(rho·ln(1/delta)) is epsilon, with rho = l2²/(2·sigma²).

    Solved for sqrt(rho), and written as a fraction in which nothing cancels:
    sqrt(epsilon + t) - sqrt(t) = epsilon/(sqrt(epsilon + t) + sqrt(t)), with t = ln(1/delta).

    >>> round(zcdp_sigma(6.0, 30.0, 1e-6), 3)
    1.462
    """
    _validate.positive(l2=l2, epsilon=epsilon)
    need_delta(delta, "Concentrated DP")
    tail = math.log(1 / delta)
    roots = math.sqrt(epsilon + tail) + math.sqrt(tail)
    return l2 * roots / (math.sqrt(2) * epsilon) * _ROUNDED_UP


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Epsilon of rho-zero-concentrated DP: rho + 2·sqrt(rho·log(1/delta)) (Bun, Steinke 2016)."""
    need_delta(delta, "Concentrated DP")
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))
