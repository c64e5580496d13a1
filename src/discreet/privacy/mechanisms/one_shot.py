"""Central, one release per batch: discrete Gaussian or discrete Laplace noise on every counter.

**What is released.** Transitions and rewards (what learners ask for) in groups of cells, as the
shuffled histogram has them: of every step the cells (s, a, s') of the transitions, (s, a, 1) and
(s, a, 0) of the rewards, and in both ``dropped_out``, for users who have left the policy; without
the transitions of the last step where nobody needs them. Other statistics as plain counts.

**Proof.** Replacing one user's episode moves the counters, for each of k statistics and each of the
H steps, by at most one unit out of one counter and one unit into another, so L1 = 2g and
L2 = sqrt(2g) with g = kH, or kH - 1 without the last transitions
(`discreet.privacy.sensitivity`).

*Laplace.* For integer noise with P(x) proportional to exp(-|x|/b), shifting a counter by one
changes the probability of every output by at most exp(1/b). A neighbour shifts L1 units in all, so
every likelihood ratio is at most exp(L1/b) = e^epsilon for b = L1/epsilon: a pure epsilon.

*Gaussian.* The privacy loss of shifts v under continuous Gaussian noise depends on |v| = L2 only,
and Balle and Wang (2018, Theorem 8) give its delta(epsilon) exactly. The noise is discrete, so this
is only the starting point: `accounting.discrete_gaussian_sigma` composes these shifts of the
discrete distribution exactly and raises sigma until delta(epsilon) <= delta holds for it.

Batches without a person cost her nothing (parallel composition). Who is in m of them moves m times
as many units (`sensitivity`): sigma grows by about sqrt(m), the scale of a pure epsilon by m. With
a delta the m·L1 moves under Laplace noise compose exactly, each a randomised response of epsilon
1/b (`accounting.response_epsilon`), which is less noise from a few participations on. *Together in
one batch* m episodes are no composition: L1 and L2 are m times as large, the Gaussian shifts are
piles of m (`accounting.piles`), and Laplace noise keeps its pure epsilon.

Counters of actions that the batch's public policy cannot play are zero on every neighbour and need
no noise. By the billboard lemma (Hsu et al. 2014) policies computed from the release, and each
user's own state, are jointly differentially private.
"""

from typing import TYPE_CHECKING

from discreet.privacy.accounting.search import discrete_gaussian_sigma, discrete_laplace_scale
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.mechanisms.additive import AddedOnce
from discreet.privacy.mechanisms.base import AuditSizes, guaranteed
from discreet.privacy.mechanisms.noise import Gaussian, Laplace
from discreet.privacy.sensitivity import Sensitivity

if TYPE_CHECKING:
    from discreet.privacy.trust import PrivateTrust

_SIZES = AuditSizes(forms=("", "centred"))


def gaussian_noise(trust: "PrivateTrust", sensitivity: Sensitivity) -> tuple[Gaussian, Guarantee]:
    """The least sigma that delivers (epsilon, delta) for counters of this sensitivity."""
    sigma = discrete_gaussian_sigma(
        sensitivity.cells, trust.epsilon, trust.delta, pile=sensitivity.pile
    )
    return Gaussian(sigma), guaranteed(trust, trust.epsilon, trust.delta)


def laplace_noise(trust: "PrivateTrust", sensitivity: Sensitivity) -> tuple[Laplace, Guarantee]:
    """Scale L1/epsilon; a requested delta is used by several participations alone."""
    delta = float(trust.delta) if sensitivity.participations > 1 else 0.0
    scale = discrete_laplace_scale(sensitivity.l1, float(trust.epsilon), delta)
    return Laplace(scale), guaranteed(trust, trust.epsilon, delta)


gaussian = AddedOnce(gaussian_noise, audit=_SIZES)
"""Discrete Gaussian noise on every counter of the support."""
laplace = AddedOnce(laplace_noise, audit=_SIZES)
"""Discrete Laplace noise on every counter of the support: a pure epsilon."""
