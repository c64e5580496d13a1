"""Local mechanisms that add noise to a user's own counters: Laplace, Gaussian, bounded.

**Proof.** A user's report is the vector of all counters of one episode plus independent noise. Any
two episodes differ by at most kH units up and kH units down (k statistics, H steps): L1 = 2kH and
L2 = sqrt(2kH). Every report is private by itself: sums, averages and policies are post-processing.

*Laplace*: discrete noise of scale b changes the probability of every report by at most
exp(L1/b), a pure epsilon = L1/b.
*Gaussian*: the 2kH unit shifts of discrete Gaussian noise are composed exactly
(`calibration.discrete_gaussian_sigma`); one user is a batch of one.
*Bounded* (Dagan and Kur 2022): symmetric noise on the integers between -R and R with
P(x) proportional to exp(-exp(1/(1 - (x/R)²))). Values that only one of two neighbours can produce
have an infinite privacy loss; their (doubly exponentially small) probability is part of delta. R is
the least integer for which the exact composition of the 2kH unit shifts keeps (epsilon, delta), on
the integer weights that the samplers draw.

*Stationary counts.* Laplace and Gaussian noise is added to counters summed over steps (Gaussian
noise at L2 = H·sqrt(2k): units pile up). The composition of bounded noise is computed for unit
shifts only, so bounded reports stay per step and are summed afterwards, which is post-processing.

A batch of n users is simulated at the level of its counts: the sum of n users' noise is drawn
directly, which has exactly the distribution of the sum of the real reports.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet._types import BoolArray, IntArray
from discreet.errors import CalibrationError
from discreet.mdp.shape import Shape
from discreet.privacy.accounting.closed_forms import (
    gaussian_delta,
    gaussian_sigma,
    laplace_scale,
    need_delta,
)
from discreet.privacy.accounting.distributions import table_pmf
from discreet.privacy.accounting.losses import delta_of_moves
from discreet.privacy.accounting.piles import worst_gaussian_delta
from discreet.privacy.accounting.search import discrete_gaussian_sigma
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.mechanisms._cumulative import (
    AdditiveRelease,
    AdditiveStream,
    CumulativeNoise,
    IndependentNoise,
    check_exact,
    promise,
)
from discreet.privacy.mechanisms._encoders import (
    AdditiveEncoder,
    cell_mask,
    check_reports,
    support_cells,
)
from discreet.privacy.mechanisms._laws import BoundedLaw, GaussianLaw, LaplaceLaw
from discreet.privacy.mechanisms._printed import delivered, no_printed_constants, printed_in
from discreet.privacy.mechanisms.one_shot import AdditiveBatch, Design
from discreet.privacy.plans import (
    ContinualReportMechanism,
    CountsMechanism,
    Encoder,
    ReportMechanism,
    unflatten,
)
from discreet.privacy.releases import ReportRelease
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.sensitivity import Form, Reach
from discreet.privacy.statistics import Debias, PrivateCounts, check_support, debias, split_rows

if TYPE_CHECKING:
    from discreet.privacy.trust import PrivateTrust


def laplace_law(trust: "PrivateTrust", reach: Reach) -> Design:
    """Scale L1/epsilon; printed: 6H/epsilon (002, Table 1), or 3H/epsilon (003 and 004).

    Half of what three statistics need is printed in 003 (Section 5.2) and 004 (Section 5.2), which
    ``calibration="paper"`` means; 002 has it right.
    """
    if trust.printed:
        printed_in(trust, "laplace", "003", "004", "002")
        right = trust.paper == "002"
        scale = (6 if right else 3) * reach.horizon / float(trust.epsilon)
        source = "paper 002 (Laplace)" if right else "papers 003 and 004 (local)"
        return LaplaceLaw(scale), delivered(trust, source, reach.l1 / scale)
    law = LaplaceLaw(laplace_scale(reach.l1, trust.epsilon))
    return law, promise(trust, trust.epsilon, 0.0)


def gaussian_law(trust: "PrivateTrust", reach: Reach) -> Design:
    """The least sigma that delivers (epsilon, delta); printed (002): H/epsilon."""
    epsilon = float(trust.epsilon)
    if trust.printed:
        printed_in(trust, "gaussian", "002")
        sigma = reach.horizon / epsilon
        delta = worst_gaussian_delta(sigma, reach.cells, epsilon, pile=reach.pile)
        return GaussianLaw(sigma), delivered(trust, "paper 002 (Gaussian)", epsilon, delta)
    sigma = discrete_gaussian_sigma(reach.cells, epsilon, trust.delta, pile=reach.pile)
    return GaussianLaw(sigma), promise(trust, epsilon, trust.delta)


def printed_gaussian_delta(horizon: int, epsilon: float) -> float:
    """The delta of 002's N(0, (H/epsilon)²) on its own statistics, at its own epsilon.

    They are pooled over steps, with transitions of the first H-1 steps only:
    L2² = 2H² + 2H² + 2(H-1)².

    >>> [round(printed_gaussian_delta(h, 1.0), 2) for h in (2, 20)]
    [0.55, 0.64]
    """
    l2 = float(np.sqrt(4 * horizon**2 + 2 * (horizon - 1) ** 2))
    return gaussian_delta(horizon / epsilon, l2, epsilon)


def bounded_law(trust: "PrivateTrust", reach: Reach) -> Design:
    """The least radius whose exact composition delivers (epsilon, delta)."""
    no_printed_constants(trust, "bounded")
    need_delta(trust.delta, "Bounded noise")
    law = BoundedLaw(bounded_radius(reach.units, float(trust.epsilon), float(trust.delta)))
    return law, promise(trust, trust.epsilon, trust.delta)


@lru_cache(maxsize=256)
def bounded_radius(units: int, epsilon: float, delta: float) -> int:
    """The least radius, up to half a percent, for which ``units`` unit shifts keep the promise.

    The noise is symmetric, so shifts up and down lose the same. The logarithm of delta is almost
    linear in the radius: secant steps between a radius that is too small and one that is not, until
    the delivered delta is between 97% and 100% of the wanted one.
    """

    def excess(radius: int) -> float:
        law = BoundedLaw(radius)
        pmf = table_pmf(law.weights, -law.largest)
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


_DESIGNS: dict[str, Callable[["PrivateTrust", Reach], Design]] = {
    "laplace": laplace_law,
    "gaussian": gaussian_law,
    "bounded": bounded_law,
}


class CounterBatch(CountsMechanism, ReportMechanism):
    """A batch whose users report all played counters, each perturbed."""

    @abstractmethod
    def device(self, support: BoolArray) -> Encoder:
        """The encoder that reports all counters of ``support``."""

    def check_sums(self, sums: IntArray, users: int) -> None:
        """Refuse sums that no reports can have (any integer is fine, unless said otherwise)."""

    def estimate(self, users: int) -> Debias:
        """From the sums of all users' reports to unbiased counts: noise has mean zero."""
        return Debias()

    def encoder(self, users: int, *, support: BoolArray | None = None) -> Encoder:
        """What runs on each device; it does not depend on ``users``."""
        return self.device(check_support(support, self.shape))

    def add_up(
        self, reports: IntArray, users: int, support: BoolArray
    ) -> tuple[dict[str, IntArray], Debias]:
        """Add up the reports of ``users`` distinct users."""
        sums = check_reports(reports, users, support_cells(support, self.statistics)).sum(axis=0)
        self.check_sums(sums, users)
        return split_rows(sums, support, self.statistics), self.estimate(users)


class AdditiveLocalBatch(AdditiveBatch, CounterBatch):
    """Every user adds noise of ``law`` to each played counter."""

    @classmethod
    def form(cls, shape: Shape, statistics: tuple[str, ...], *, last_transitions: bool) -> Form:
        """Plain counts."""
        return Form()

    @classmethod
    def design(cls, trust: "PrivateTrust", reach: Reach) -> Design:
        """The noise of one user."""
        return _DESIGNS[cls.name](trust, reach)

    def noise_variance(self, users: int) -> dict[str, float]:
        """Variances of the users' noise add up."""
        check_exact(users * self.law.variance)
        return dict.fromkeys(self.statistics, users * self.law.variance)

    def noise(self, sampler: Sampler, users: int, cells: int) -> IntArray:
        """The sum of all users' noise, drawn at once."""
        check_exact(users * self.law.variance)
        return self.law.draw_sum(sampler, users, cells)

    def device(self, support: BoolArray) -> AdditiveEncoder:
        """Adds noise on the device."""
        cells = np.flatnonzero(cell_mask(support, self.statistics, stationary=False))
        return AdditiveEncoder(self.shape, self.statistics, cells, False, self.law)


class LaplaceLocalBatch(AdditiveLocalBatch):
    """Discrete Laplace noise of scale L1/epsilon (6H/epsilon for the three statistics)."""

    name: ClassVar[str] = "laplace"


class GaussianLocalBatch(AdditiveLocalBatch):
    """Discrete Gaussian noise, calibrated exactly."""

    name: ClassVar[str] = "gaussian"


class BoundedLocalBatch(AdditiveLocalBatch):
    """Bounded noise of Dagan and Kur: no report is further than the radius from the truth."""

    name: ClassVar[str] = "bounded"


@dataclass(frozen=True, eq=False, kw_only=True)
class AdditiveLocalStream(AdditiveStream, ContinualReportMechanism):
    """One report per episode, summed as they come."""

    noise: IndependentNoise
    per_step: ClassVar[bool] = False
    """Reports are never pooled before the noise: its composition is known for unit shifts only."""

    @classmethod
    def design(
        cls, trust: "PrivateTrust", reach: Reach, episodes: int, **_: float
    ) -> tuple[CumulativeNoise, Guarantee]:
        """Fresh noise per user, on each of the ``pile`` steps behind a counter if ``per_step``."""
        law, guarantee = _DESIGNS[cls.name](trust, reach)
        copies = reach.pile if cls.per_step else 1
        return IndependentNoise(episodes=episodes, law=law, copies=copies), guarantee

    @property
    def pooled_on_device(self) -> bool:
        """True if devices sum their counters over steps before the noise."""
        return self.stationary and self.noise.copies == 1

    def encoder(self) -> AdditiveEncoder:
        """What runs on every user's device."""
        steps = self.shape.horizon if self.stationary and not self.pooled_on_device else 1
        cells = np.arange(self.cells * steps)
        return AdditiveEncoder(
            self.shape, self.statistics, cells, self.pooled_on_device, self.noise.law
        )

    def open(self, sampler: Sampler) -> "LocalRelease":
        """Start a stream."""
        return LocalRelease(self, sampler)


class LocalRelease(AdditiveRelease, ReportRelease):
    """A running stream of reports, simulated (`add`, blocks) or real (`add_report`)."""

    plan: AdditiveLocalStream

    def __init__(self, plan: AdditiveLocalStream, sampler: Sampler) -> None:
        super().__init__(plan, sampler)
        self._sums = np.zeros(plan.cells, np.int64)

    def add_report(self, report: IntArray) -> PrivateCounts:
        """Take one more user's encoded report."""
        plan = self.plan
        row = check_reports(report, 1, plan.encoder().cells.size)[0]
        self.use("add_report")
        if self.episode == plan.episodes:
            self._run.block(plan.episodes + 1)  # raises: the stream is over
        if plan.stationary and not plan.pooled_on_device:
            row = pool_steps(row, plan.shape, plan.statistics)
        self._sums += row
        self.episode += 1
        values = debias(self._sums, plan.noise.unit, 0.0)
        return unflatten(values, plan, self.episode, secure=self.sampler.secure)

    def sums(self) -> dict[str, IntArray]:
        """The reports, added up."""
        return {"reports": self._sums}


def pool_steps(values: IntArray, shape: Shape, statistics: tuple[str, ...]) -> IntArray:
    """Sum counters over steps: ``[..., per-step cells]`` to ``[..., pooled cells]``."""
    parts, start = [], 0
    for name in statistics:
        size = int(np.prod(shape.transitions if name == "transitions" else shape.visits))
        part = values[..., start : start + size]
        parts.append(part.reshape(*values.shape[:-1], shape.horizon, -1).sum(axis=-2))
        start += size
    return np.concatenate(parts, axis=-1)


class LaplaceLocalStream(AdditiveLocalStream):
    """Laplace reports."""

    name: ClassVar[str] = "laplace"


class GaussianLocalStream(AdditiveLocalStream):
    """Gaussian reports."""

    name: ClassVar[str] = "gaussian"


class BoundedLocalStream(AdditiveLocalStream):
    """Bounded reports; with stationary counts they are pooled after the noise."""

    name: ClassVar[str] = "bounded"
    per_step = True
