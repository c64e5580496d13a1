"""The delta of Gaussian noise in as many digits as it takes, bounded from above.

With r = L2/sigma, x = epsilon/r - r/2 and y = epsilon/r + r/2, Theorem 8 of Balle and Wang (2018)
reads delta = Q(x) - e^epsilon·Q(y), with Q the upper tail of the normal law. Because y² - x² =
2·epsilon, e^epsilon times the density at y is the density at x, so that delta = density(x)·(M(x) -
M(y)), where M = Q/density is the ratio of Mills. For small r both terms agree in all but their last
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
from decimal import Decimal

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

    Args:
        ratio: L2 sensitivity in standard deviations, above zero.
        epsilon: at least zero.

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
    if t >= 2:
        return _by_fraction(t)
    if t >= 0:
        low, high = _by_series(t)
        half = _HALF / _density(t)
        return half - high, half - low
    low, high = _mills(-t)
    one = 1 / _density(t)
    return one - high, one - low


def _tolerance() -> Decimal:
    return Decimal(10) ** (_SPARE - decimal.getcontext().prec)


def _by_series(t: Decimal) -> tuple[Decimal, Decimal]:
    """Bounds of (1/2 - Q(t)) / density, for t from 0 to 2."""
    total = term = t
    odd = 1
    while odd < 2 * t * t or term > _tolerance() * total:
        odd += 2
        term = term * t * t / odd
        total += term
    return total, total + term


def _by_fraction(t: Decimal) -> tuple[Decimal, Decimal]:
    """Two neighbouring convergents, by their recursion."""
    above, below = (Decimal(1), t), (t, t * t + 1)  # 1/t and t/(t² + 1)
    k = 2
    while True:
        # Convergents P_k/Q_k with P_k = t·P_(k-1) + k·P_(k-2), likewise Q_k.
        first = t * below[0] + k * above[0], t * below[1] + k * above[1]
        second = t * first[0] + (k + 1) * below[0], t * first[1] + (k + 1) * below[1]
        above, below, k = first, second, k + 2
        low, high = below[0] / below[1], above[0] / above[1]
        if high - low <= _tolerance() * low:
            return low, high


def in_doubles(value: Decimal) -> float:
    """The least double that is at least ``value``."""
    rounded = float(value)
    return rounded if Decimal(rounded) >= value else math.nextafter(rounded, math.inf)
