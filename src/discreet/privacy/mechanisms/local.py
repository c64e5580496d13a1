"""Local mechanisms that add noise to a user's own counters: Laplace and Gaussian.

**Proof.** A user's report is the vector of all counters of one episode plus independent noise. Any
two episodes differ by at most kH units up and kH units down (k statistics, H steps): L1 = 2kH and
L2 = sqrt(2kH). Discrete Laplace noise of scale L1/epsilon changes the probability of every report
by at most e^epsilon; Gaussian noise is calibrated at L2 (see `one_shot`: one user is a batch of
one). Every report is private by itself: sums, averages and policies are post-processing.

A batch of n users is simulated at the level of its counts: the sum of n users' noise is drawn
directly, which has exactly the distribution of the sum of the real reports.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy.calibration.closed_forms import gaussian_sigma
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.mechanisms.cumulative import (
    AdditiveStream,
    CumulativeNoise,
    IndependentNoise,
    Reach,
    promise,
)
from discreet.privacy.mechanisms.laws import GaussianLaw, LaplaceLaw, NoiseLaw
from discreet.privacy.noise import Sampler
from discreet.privacy.release import BatchPlan, BoolArray, PrivateCounts, noisy_batch

if TYPE_CHECKING:
    from discreet.privacy.trust import _Private

_Design = tuple[NoiseLaw, Guarantee]


def laplace_law(trust: "_Private", reach: Reach) -> _Design:
    """Scale L1/epsilon: a pure epsilon."""
    law = LaplaceLaw(reach.l1 / float(trust.epsilon))
    return law, promise(trust, trust.epsilon, 0.0)


def gaussian_law(trust: "_Private", reach: Reach) -> _Design:
    """The least sigma that delivers (epsilon, delta) at L2."""
    law = GaussianLaw(gaussian_sigma(reach.l2, trust.epsilon, trust.delta))
    return law, promise(trust, trust.epsilon, trust.delta)


@dataclass(frozen=True, eq=False, kw_only=True)
class AdditiveLocalBatch(BatchPlan):
    """Every user adds noise of ``law`` to each played counter."""

    law: NoiseLaw
    name: ClassVar[str]

    @classmethod
    def design(cls, trust: "_Private", reach: Reach) -> _Design:
        """The noise of one user and what it delivers."""
        raise NotImplementedError

    @classmethod
    def calibrate(
        cls, trust: "_Private", shape: Shape, *, statistics: tuple[str, ...], **_: Any
    ) -> Self:
        """A plan for the statistics of an MDP."""
        law, guarantee = cls.design(trust, Reach.of(shape, statistics, stationary=False))
        return cls(
            shape=shape,
            statistics=statistics,
            mechanism=cls.name,
            guarantee=guarantee,
            law=law,
        )

    def noise_variance(self, users: int) -> dict[str, float]:
        """Variances of the users' noise add up."""
        return dict.fromkeys(self.statistics, users * self.law.variance)

    def release(
        self, counts: Counts, *, sampler: Sampler, played: BoolArray | None = None
    ) -> PrivateCounts:
        """The sum of all users' reports, drawn at once."""
        return noisy_batch(
            self,
            counts,
            lambda _, cells: self.law.draw_sum(sampler, counts.users, cells),
            secure=sampler.secure,
            played=played,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class LaplaceLocalBatch(AdditiveLocalBatch):
    """Discrete Laplace noise of scale L1/epsilon (6H/epsilon for the three statistics)."""

    name: ClassVar[str] = "laplace"

    @classmethod
    def design(cls, trust: "_Private", reach: Reach) -> _Design:
        """Laplace."""
        return laplace_law(trust, reach)


@dataclass(frozen=True, eq=False, kw_only=True)
class GaussianLocalBatch(AdditiveLocalBatch):
    """Discrete Gaussian noise, analytic calibration at L2."""

    name: ClassVar[str] = "gaussian"

    @classmethod
    def design(cls, trust: "_Private", reach: Reach) -> _Design:
        """Gaussian."""
        return gaussian_law(trust, reach)


@dataclass(frozen=True, eq=False, kw_only=True)
class LaplaceLocalStream(AdditiveStream):
    """Laplace reports, one per episode, summed as they come."""

    name: ClassVar[str] = "laplace"

    @classmethod
    def design(
        cls, trust: "_Private", reach: Reach, episodes: int, **_: Any
    ) -> tuple[CumulativeNoise, Guarantee]:
        """Fresh Laplace noise per user."""
        law, guarantee = laplace_law(trust, reach)
        return IndependentNoise(episodes=episodes, law=law), guarantee


@dataclass(frozen=True, eq=False, kw_only=True)
class GaussianLocalStream(AdditiveStream):
    """Gaussian reports, one per episode, summed as they come."""

    name: ClassVar[str] = "gaussian"

    @classmethod
    def design(
        cls, trust: "_Private", reach: Reach, episodes: int, **_: Any
    ) -> tuple[CumulativeNoise, Guarantee]:
        """Fresh Gaussian noise per user."""
        law, guarantee = gaussian_law(trust, reach)
        return IndependentNoise(episodes=episodes, law=law), guarantee
