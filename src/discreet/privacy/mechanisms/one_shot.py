"""Central, one release per batch: discrete Gaussian or discrete Laplace noise on every counter.

**Proof.** Replacing one user's episode moves, for each of k statistics and each of the H steps, at
most one unit out of one counter and one unit into another, so L1 = 2kH and L2 = sqrt(2kH)
(`discreet.privacy.sensitivity`).

*Laplace.* For integer noise with P(x) proportional to exp(-|x|/b), shifting a counter by one
changes the probability of every output by at most exp(1/b). A neighbour shifts L1 units in all, so
every likelihood ratio is at most exp(L1/b) = e^epsilon for b = L1/epsilon: a pure epsilon.

*Gaussian.* The privacy loss of shifts v under continuous Gaussian noise depends on |v| = L2 only,
and Balle and Wang (2018, Theorem 8) give its delta(epsilon) exactly. The noise is discrete, so this
is only the starting point: `calibration.discrete_gaussian_sigma` composes the 2kH unit shifts of
the discrete distribution exactly and raises sigma until delta(epsilon) <= delta holds for it.

A user belongs to one batch, so all batches together deliver what one of them does (parallel
composition); counters of actions that the batch's public policy cannot play are zero on every
neighbour and need no noise. By the billboard lemma (Hsu et al. 2014) policies computed from the
release, and each user's own state, are jointly differentially private.
"""

from dataclasses import dataclass
from typing import Any

from discreet._types import BoolArray
from discreet.errors import UnsupportedError
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy.calibration.closed_forms import (
    gaussian_variance,
    laplace_epsilon,
    laplace_scale,
    laplace_variance,
)
from discreet.privacy.calibration.lattice import discrete_laplace_epsilon
from discreet.privacy.calibration.routes import Route, gaussian_routes
from discreet.privacy.calibration.search import discrete_gaussian_sigma
from discreet.privacy.guarantee import ASSUMPTIONS, Guarantee
from discreet.privacy.plans import BatchPlan, noisy_batch
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.sensitivity import sensitivity
from discreet.privacy.statistics import PrivateCounts


@dataclass(frozen=True, eq=False, kw_only=True)
class GaussianBatch(BatchPlan):
    """Discrete Gaussian noise of parameter ``sigma`` on every played counter."""

    sigma: float

    @classmethod
    def calibrate(
        cls, trust: Any, shape: Shape, *, statistics: tuple[str, ...], **_: Any
    ) -> "GaussianBatch":
        """The least sigma that delivers (epsilon, delta) for these statistics."""
        moved = sensitivity(shape.horizon, statistics)
        return cls(
            shape=shape,
            statistics=statistics,
            mechanism="gaussian",
            guarantee=_guarantee(trust, trust.delta),
            sigma=discrete_gaussian_sigma(2 * moved.moves, trust.epsilon, trust.delta),
        )

    def noise_variance(self, users: int) -> dict[str, float]:
        """The same for every counter and every number of users."""
        return dict.fromkeys(self.statistics, gaussian_variance(self.sigma))

    def accountings(self, users: int, *, with_library: bool = False) -> list[Route]:
        """Lattice, privacy-loss distribution, analytic Gaussian and bounds."""
        cells = sensitivity(self.shape.horizon, self.statistics).l1
        return gaussian_routes(self.sigma, cells, self.guarantee.delta, with_library=with_library)

    def release(
        self, counts: Counts, *, sampler: Sampler, played: BoolArray | None = None
    ) -> PrivateCounts:
        """Counts plus discrete Gaussian noise."""
        return noisy_batch(
            self,
            counts,
            lambda _, n: sampler.discrete_gaussian(self.sigma, n),
            secure=sampler.secure,
            played=played,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class LaplaceBatch(BatchPlan):
    """Discrete Laplace noise of scale ``scale`` on every played counter: a pure epsilon."""

    scale: float

    @classmethod
    def calibrate(
        cls, trust: Any, shape: Shape, *, statistics: tuple[str, ...], **_: Any
    ) -> "LaplaceBatch":
        """Scale L1/epsilon; a requested delta is not used."""
        moved = sensitivity(shape.horizon, statistics)
        return cls(
            shape=shape,
            statistics=statistics,
            mechanism="laplace",
            guarantee=_guarantee(trust, 0.0),
            scale=laplace_scale(moved.l1, trust.epsilon),
        )

    def noise_variance(self, users: int) -> dict[str, float]:
        """The same for every counter and every number of users."""
        return dict.fromkeys(self.statistics, laplace_variance(self.scale))

    def accountings(self, users: int, *, with_library: bool = False) -> list[Route]:
        """The pure epsilon by its formula and by the exact lattice."""
        moves = sensitivity(self.shape.horizon, self.statistics).l1
        return [
            Route("L1 / scale", laplace_epsilon(self.scale, moves)),
            Route("exact lattice", discrete_laplace_epsilon(self.scale, moves, 0.0)),
        ]

    def release(
        self, counts: Counts, *, sampler: Sampler, played: BoolArray | None = None
    ) -> PrivateCounts:
        """Counts plus discrete Laplace noise."""
        return noisy_batch(
            self,
            counts,
            lambda _, n: sampler.discrete_laplace(self.scale, n),
            secure=sampler.secure,
            played=played,
        )


def _guarantee(trust: Any, delta: float) -> Guarantee:
    if trust.calibration == "paper":
        raise UnsupportedError(
            "None of the papers prints a central mechanism for batches; use calibration='exact'."
        )
    return Guarantee(
        notion="JDP",
        epsilon=float(trust.epsilon),
        delta=float(delta),
        assumptions=ASSUMPTIONS["JDP"],
    )
