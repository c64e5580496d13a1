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

from dataclasses import dataclass
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
    fine = layers.fine
    factor = excess(fine) if fine else arb(1)
    total, (masses, missing) = arb(0), layers.counted()
    for value, mass in masses:
        total += mass * _at_most_one(factor * _upper_curve(fine, layers.left(epsilon, value)))
    return min(Fraction(1), upper(total + clipped(missing)))


@at_precision(PRECISION)
def layered_refutation(layers: Layers, epsilon: Number) -> Fraction:
    """A proven lower bound on delta(epsilon).

    >>> half = Layers(count_sigma=1, counts=0, loss_sigma=512, loss_shift=1024, losses=1)
    >>> layered_refutation(half, 1) > Fraction(1, 2)  # half the noise on a single loss
    True
    """
    total = arb(0)
    for value, mass in layers.counted()[0]:
        total += clipped(mass) * _lower_curve(layers.fine, layers.left(epsilon, value))
    if layers.smooth:
        total *= least_share(layers.coarse) / excess(layers.coarse)
    return lower(total)


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
