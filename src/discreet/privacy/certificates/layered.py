"""Two kinds of discrete Gaussian noise in one release: coarse counts and fine losses.

Counts move by one, with noise of a few units; losses are counted in units of 1/1024 and move by up
to 1024 units, with noise as much larger. Their privacy losses add up, but the counts' loss takes
few values and the losses' almost all: the sum is not that of one Gaussian release.

**How to call it** (for a calibration that must hold):

    bound = layered_delta(
        count_sigma=0.45, counts=4,        # sigma of the noise on a count; counts that move by one
        loss_sigma=460.6, loss_shift=1024, losses=2,  # in units; moved losses and by how many units
        epsilon=40.0,
    )
    bound <= delta                         # proven if true (an exact rational, rounded upwards)

`layered_refutation` takes the same arguments and returns a proven *lower* bound: if it exceeds
delta, the promise is false. Between the two lies a part in a thousand or less.

For the H steps of an episode: counts = 4H (transitions and visits; times the levels of a tree),
losses = 2H moved by 1024 (bandit), H moved by 1024 (bandit, centred), or X·A moved by 1024 times
the levels (full information). A mechanism whose losses carry no noise law of their own (public
losses) has none here. ``losses=0`` or ``counts=0`` leaves that part out.

**Proof.** Given the sum T of the counts' noise, what remains is a release of the losses alone at
epsilon minus the counts' privacy loss (n - 2T)/(2 sigma²): delta = E[D(epsilon - loss(T))], with D
the delta of the losses. D is bounded by the closed form of `sums`, the law of T by convolution of
its n draws (below sigma = 1.5) or by the lemma there; whatever is outside the window counts whole.
"""

from fractions import Fraction

from discreet import _validate
from discreet.privacy.certificates.balls import (
    PRECISION,
    arb,
    at_precision,
    ball,
    clipped,
    lower,
    upper,
)
from discreet.privacy.certificates.convolution import sum_of_draws, window_of_sum
from discreet.privacy.certificates.sums import Shifted, excess, least_share, smooth_parts

Number = int | float | Fraction


@at_precision(PRECISION)
def layered_delta(
    *,
    count_sigma: Number,
    counts: int,
    loss_sigma: Number,
    loss_shift: int,
    losses: int,
    epsilon: Number,
) -> Fraction:
    """A proven upper bound on delta(epsilon) of counts and losses together.

    Args:
        count_sigma: parameter of the discrete Gaussian noise on a count.
        counts: how many counts move by one.
        loss_sigma: parameter of the discrete Gaussian noise on a loss, in units.
        loss_shift: by how many units a loss moves.
        losses: how many losses move.
        epsilon: at which delta is asked for (floats stand for their exact values).

    >>> bound = layered_delta(
    ...     count_sigma=0.45, counts=4, loss_sigma=460.6, loss_shift=1024, losses=2, epsilon=40
    ... )
    >>> 1.052e-6 < bound < 1.053e-6
    True
    """
    _check(counts, losses, loss_shift, count_sigma=count_sigma, loss_sigma=loss_sigma)
    wanted, sigma = Fraction(epsilon), Fraction(count_sigma)
    fine = _fine(loss_sigma, loss_shift, losses)
    factor = excess(fine) if fine else arb(1)
    total, masses = arb(0), _coarse(sigma, counts)
    kept = arb(0)
    for value, mass in masses:
        kept += mass
        left = ball(wanted - _loss(sigma, counts, value))
        total += mass * _at_most_one(factor * _upper_curve(fine, left))
    return min(Fraction(1), upper(total + clipped(_missing(sigma, counts, kept))))


@at_precision(PRECISION)
def layered_refutation(
    *,
    count_sigma: Number,
    counts: int,
    loss_sigma: Number,
    loss_shift: int,
    losses: int,
    epsilon: Number,
) -> Fraction:
    """A proven lower bound on delta(epsilon); see `layered_delta` for the arguments.

    >>> layered_refutation(  # half the noise on a single loss
    ...     count_sigma=1, counts=0, loss_sigma=512, loss_shift=1024, losses=1, epsilon=1
    ... ) > Fraction(1, 2)
    True
    """
    _check(counts, losses, loss_shift, count_sigma=count_sigma, loss_sigma=loss_sigma)
    wanted, sigma = Fraction(epsilon), Fraction(count_sigma)
    fine = _fine(loss_sigma, loss_shift, losses)
    total = arb(0)
    for value, mass in _coarse(sigma, counts):
        left = ball(wanted - _loss(sigma, counts, value))
        total += clipped(mass) * _lower_curve(fine, left)
    if _smooth(sigma, counts):
        total *= least_share(_counts(sigma, counts)) / excess(_counts(sigma, counts))
    return lower(total)


def _check(counts: int, losses: int, shift: int, **sigmas: Number) -> None:
    _validate.count(0, counts=counts, losses=losses)
    _validate.count(loss_shift=shift)
    _validate.positive(**sigmas)


def _fine(sigma: Number, shift: int, losses: int) -> Shifted | None:
    if not losses:
        return None
    return Shifted(sigma=Fraction(sigma), norm=losses, cells=losses, step=shift)


def _smooth(sigma: Fraction, counts: int) -> bool:
    """Whether the lemma is as good as a convolution."""
    return sigma >= Fraction(3, 2) and counts > 0


def _counts(sigma: Fraction, counts: int) -> Shifted:
    return Shifted(sigma=sigma, norm=counts, cells=counts)


def _loss(sigma: Fraction, counts: int, value: int) -> Fraction:
    return (counts - 2 * value) / (2 * sigma * sigma)


def _coarse(sigma: Fraction, counts: int) -> list[tuple[int, arb]]:
    """Values of the sum of the counts' noise, with at most these probabilities."""
    if _smooth(sigma, counts):
        return window_of_sum(_counts(sigma, counts))[0]
    return sum_of_draws(sigma, counts)


def _missing(sigma: Fraction, counts: int, kept: arb) -> arb:
    """The probability of everything outside the window."""
    return window_of_sum(_counts(sigma, counts))[1] if _smooth(sigma, counts) else 1 - kept


def _upper_curve(fine: Shifted | None, epsilon: arb) -> arb:
    if fine is None:
        return clipped(-epsilon.expm1())
    integral, correction = smooth_parts(fine, epsilon)
    return integral + correction


def _lower_curve(fine: Shifted | None, epsilon: arb) -> arb:
    if fine is None:
        return clipped(-epsilon.expm1())
    integral, correction = smooth_parts(fine, epsilon)
    return clipped(integral - correction) * least_share(fine)


def _at_most_one(value: arb) -> arb:
    return value.min(arb(1))
