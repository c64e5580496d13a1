"""Local mechanisms that add noise to a user's own counters: Laplace, Gaussian, bounded.

**Proof.** A user's report is the vector of all counters of one episode plus independent noise. Any
two episodes differ by at most kH units up and kH units down (k statistics, H steps): L1 = 2kH and
L2 = sqrt(2kH). Every report is private by itself: sums, averages and policies are post-processing.

*Laplace*: discrete noise of scale b changes the probability of every report by at most
exp(L1/b), a pure epsilon = L1/b.
*Gaussian*: the 2kH unit shifts of discrete Gaussian noise are composed exactly
(`accounting.discrete_gaussian_sigma`); one user is a batch of one.
*Bounded* (Dagan and Kur 2022): symmetric noise on the integers between -R and R with
P(x) proportional to exp(-exp(1/(1 - (x/R)²))). Values that only one of two neighbours can produce
have an infinite privacy loss; their (doubly exponentially small) probability is part of delta. R is
the least integer for which the exact composition of the 2kH unit shifts keeps (epsilon, delta), on
the integer weights that the samplers draw.

*Several reports of one person* compose: m times as many units (`sensitivity`). Reports are made one
after the other, so a later one may move otherwise than the one before. Unit shifts, and piles of
two, are the worst at every epsilon; larger piles are so at the calibrated one only, and of several
such reports nothing better than a loose bound is known: they are refused.

*Stationary counts.* Laplace and Gaussian noise is added to counters summed over steps (Gaussian
noise at L2 = H·sqrt(2k): units pile up). The composition of bounded noise is computed for unit
shifts only, so bounded reports stay per step and are summed afterwards, which is post-processing.
"""

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from discreet.errors import CalibrationError, UnsupportedError
from discreet.mdp.shape import Shape
from discreet.privacy.accounting.closed_forms import (
    gaussian_sigma,
    need_delta,
)
from discreet.privacy.accounting.distributions import table_pmf
from discreet.privacy.accounting.losses import delta_of_moves
from discreet.privacy.accounting.piles import uneven_piles_delta, worst_gaussian_delta
from discreet.privacy.accounting.search import discrete_gaussian_sigma
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.mechanisms import one_shot
from discreet.privacy.mechanisms.additive import AddedContinually, Design
from discreet.privacy.mechanisms.base import AuditSizes, delivered, guaranteed
from discreet.privacy.mechanisms.noise import (
    Bounded,
    CumulativeNoise,
    Gaussian,
    IndependentNoise,
    Laplace,
    NoiseDistribution,
)
from discreet.privacy.sensitivity import Sensitivity

if TYPE_CHECKING:
    from discreet.privacy.trust import PrivateTrust


def laplace_noise(
    trust: "PrivateTrust", sensitivity: Sensitivity
) -> tuple[NoiseDistribution, Guarantee]:
    """Scale L1/epsilon; printed: 6H/epsilon (002, Table 1), or 3H/epsilon (003 and 004).

    Half of what three statistics need is printed in 003 (Section 5.2) and 004 (Section 5.2), which
    ``calibration="paper"`` means; 002 has it right.
    """
    if trust.printed:
        right = trust.paper == "002"
        scale = (6 if right else 3) * sensitivity.horizon / float(trust.epsilon)
        source = "paper 002 (Laplace)" if right else "papers 003 and 004 (local)"
        return Laplace(scale), delivered(trust, source, sensitivity.l1 / scale)
    return one_shot.laplace_noise(trust, sensitivity)


def gaussian_noise(
    trust: "PrivateTrust", sensitivity: Sensitivity
) -> tuple[NoiseDistribution, Guarantee]:
    """The least sigma that delivers (epsilon, delta); printed (002): H/epsilon."""
    epsilon = float(trust.epsilon)
    if trust.printed:
        horizon, pile = sensitivity.horizon, sensitivity.pile
        sigma = horizon / epsilon
        if pile > 1 and sensitivity.units == 6 * horizon - 2:  # the statistics that 002 prints
            delta = uneven_piles_delta(sigma, horizon, epsilon)
        else:
            delta = worst_gaussian_delta(sigma, sensitivity.cells, epsilon, pile=pile)
        return Gaussian(sigma), delivered(trust, "paper 002 (Gaussian)", epsilon, delta)
    if sensitivity.participations > 1 and sensitivity.pile > 2:  # no one pile is the worst for all
        raise UnsupportedError(
            f"Gaussian reports that are pooled over {sensitivity.pile} steps are calibrated for "
            f"one participation per person, got participations={sensitivity.participations}; use "
            f"stationary=False, or mechanism='laplace'."
        )
    sigma = discrete_gaussian_sigma(sensitivity.cells, epsilon, trust.delta, pile=sensitivity.pile)
    return Gaussian(sigma), guaranteed(trust, epsilon, trust.delta)


def bounded_noise(
    trust: "PrivateTrust", sensitivity: Sensitivity
) -> tuple[NoiseDistribution, Guarantee]:
    """The least radius whose exact composition delivers (epsilon, delta)."""
    need_delta(trust.delta, "Bounded noise")
    noise = Bounded(bounded_radius(sensitivity.units, float(trust.epsilon), float(trust.delta)))
    return noise, guaranteed(trust, trust.epsilon, trust.delta)


@lru_cache(maxsize=256)
def bounded_radius(units: int, epsilon: float, delta: float) -> int:
    """The least radius, up to half a percent, for which ``units`` unit shifts keep the guarantee.

    The noise is symmetric, so shifts up and down lose the same. The logarithm of delta is almost
    linear in the radius: secant steps between a radius that is too small and one that is not, until
    the delivered delta is between 97% and 100% of the wanted one.
    """

    def excess(radius: int) -> float:
        noise = Bounded(radius)
        pmf = table_pmf(noise.weights, -noise.largest)
        lost = delta_of_moves(pmf, units - units // 2, units // 2, epsilon)
        return math.log(max(lost, 1e-300) / delta)

    sigma = gaussian_sigma(units**0.5, epsilon, delta)
    low, above = 1, math.log(1 / delta)  # no noise at all: delta is one
    high = max(2, math.ceil(5 * sigma))
    while (below := excess(high)) > 0:
        low, above = high, below
        high = math.ceil(high + max(1.0, 0.6 * below) * sigma)
        if high > 10**7:
            raise CalibrationError(
                f"Bounded noise for epsilon={epsilon!r} needs a radius above 1e7; ask for a "
                f"larger epsilon or use mechanism='gaussian'."
            )
    delivered_excess = below
    while high - low > 1 and delivered_excess < -0.03:
        guess = math.ceil(low + (high - low) * (above + 0.01) / (above - below))
        middle = min(max(guess, low + 1), high - 1)
        value = excess(middle)
        if value > 0:
            low, above, below = middle, value, below / 2  # the Illinois rule: do not creep
        else:
            high, below, above = middle, value, above / 2
            delivered_excess = value
    return high


def _each(design: Design, *, per_step: bool = False, audit: AuditSizes) -> AddedContinually:
    """Fresh noise per user; ``per_step``: on each of the steps behind a pooled counter."""

    def over_time(
        trust: "PrivateTrust", sensitivity: Sensitivity, episodes: int
    ) -> tuple[CumulativeNoise, Guarantee]:
        noise, guarantee = design(trust, sensitivity)
        copies = sensitivity.pile if per_step else 1
        return IndependentNoise(episodes=episodes, distribution=noise, copies=copies), guarantee

    return AddedContinually(over_time, by_devices=True, audit=audit)


_SLOW = AuditSizes(
    shape=Shape(1, 2, 2), statistics=("visits",), slow=True, long=False, target=False
)
laplace_continual = _each(laplace_noise, audit=AuditSizes(centred_losses=True))
"""Laplace reports."""
gaussian_continual = _each(gaussian_noise, audit=AuditSizes(long=False))
"""Gaussian reports."""
bounded_continual = _each(bounded_noise, per_step=True, audit=_SLOW)
"""Bounded reports; with stationary counts they are pooled after the noise."""
