"""Central, one release per batch: discrete Gaussian or discrete Laplace noise on every counter.

**What is released.** Transitions and rewards (what learners ask for) in half units, rewards
centred, with the number of users who have left the policy, and without the transitions of the last
step where nobody needs them (with a single step they are kept: nothing else tells the visits).
Other statistics as plain counts.

**Proof.** Replacing one user's episode moves the plain counters, for each of k statistics and each
of the H steps, by at most one unit out of one counter and one unit into another, so L1 = 2kH and
L2 = sqrt(2kH). In half units it moves at most a counters by 2 and b by 1, with a and b as in the
lemma of `discreet.privacy.sensitivity`, and nothing else moves further; L1 = 2a + b,
L2 = sqrt(4a + b).

*Laplace.* For integer noise with P(x) proportional to exp(-|x|/b), shifting a counter by one
changes the probability of every output by at most exp(1/b). A neighbour shifts L1 units in all, so
every likelihood ratio is at most exp(L1/b) = e^epsilon for b = L1/epsilon: a pure epsilon.

*Gaussian.* The privacy loss of shifts v under continuous Gaussian noise depends on |v| = L2 only,
and Balle and Wang (2018, Theorem 8) give its delta(epsilon) exactly. The noise is discrete, so this
is only the starting point: `calibration.discrete_gaussian_sigma` composes these shifts of the
discrete distribution exactly and raises sigma until delta(epsilon) <= delta holds for it.

A user belongs to one batch, so all batches together deliver what one of them does (parallel
composition); counters of actions that the batch's public policy cannot play are zero on every
neighbour and need no noise. By the billboard lemma (Hsu et al. 2014) policies computed from the
release, and each user's own state, are jointly differentially private.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from discreet._types import BoolArray, IntArray
from discreet.errors import UnsupportedError
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy.accounting.closed_forms import laplace_epsilon, laplace_scale
from discreet.privacy.accounting.lattice import discrete_laplace_epsilon
from discreet.privacy.accounting.routes import Route, gaussian_routes
from discreet.privacy.accounting.search import discrete_gaussian_sigma
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.mechanisms._cumulative import (
    check_exact,
    promise,
)
from discreet.privacy.mechanisms._laws import GaussianLaw, LaplaceLaw, NoiseLaw
from discreet.privacy.plans import (
    HALF,
    BatchSize,
    CountsMechanism,
    DesignedBatch,
    Fields,
    noisy_batch,
)
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.sensitivity import Form, Reach
from discreet.privacy.statistics import PrivateCounts

if TYPE_CHECKING:
    from discreet.privacy.trust import PrivateTrust

Design = tuple[NoiseLaw, Guarantee]
"""The law of the noise on one counter, and what it delivers."""


@dataclass(frozen=True, eq=False, kw_only=True)
class AdditiveBatch(CountsMechanism, DesignedBatch):
    """Noise of ``law`` on every played counter."""

    law: NoiseLaw

    @classmethod
    @abstractmethod
    def design(cls, trust: "PrivateTrust", reach: Reach) -> Design:
        """The noise that delivers the trust model's promise for counters of this reach."""

    @classmethod
    def _designed(cls, trust: "PrivateTrust", size: BatchSize) -> Fields:
        shape, statistics = size.shape, size.statistics
        form = cls.form(shape, statistics, last_transitions=size.last_transitions)
        law, guarantee = cls.design(trust, form.reach(shape.horizon, statistics))
        check_exact(law.variance)
        return {"guarantee": guarantee, "law": law, **form._asdict()}

    @classmethod
    def form(cls, shape: Shape, statistics: tuple[str, ...], *, last_transitions: bool) -> Form:
        """Whether rewards are centred and the last step has transitions."""
        return Form.of(shape.horizon, statistics, last_transitions=last_transitions)

    @property
    def reach(self) -> Reach:
        """How far one user moves the released integers."""
        form = Form(self.centred, self.last_transitions)
        return form.reach(self.shape.horizon, self.statistics)

    def noise_variance(self, users: int) -> dict[str, float]:
        """The same for every counter and every number of users."""
        unit = HALF.scale if self.centred else 1.0
        return dict.fromkeys(self.statistics, unit**2 * self.law.variance)

    def release(
        self, counts: Counts, *, sampler: Sampler, support: BoolArray | None = None
    ) -> PrivateCounts:
        """Counts plus noise."""

        def draw(_: str, cells: int) -> IntArray:
            return self.noise(sampler, counts.users, cells)

        return noisy_batch(self, counts, draw, secure=sampler.secure, support=support)

    def noise(self, sampler: Sampler, users: int, cells: int) -> IntArray:
        """Independent noise on each of ``cells`` counters of a batch of ``users``."""
        return self.law.draw(sampler, cells)


class CentralBatch(AdditiveBatch):
    """The same noise whatever the users, calibrated exactly."""

    @classmethod
    def _designed(cls, trust: "PrivateTrust", size: BatchSize) -> Fields:
        if trust.printed:
            raise UnsupportedError(
                "None of the papers prints a central mechanism for batches; use "
                "calibration='exact'."
            )
        return super()._designed(trust, size)


class GaussianBatch(CentralBatch):
    """Discrete Gaussian noise on every played counter."""

    law: GaussianLaw
    name: ClassVar[str] = "gaussian"

    @classmethod
    def design(cls, trust: "PrivateTrust", reach: Reach) -> Design:
        """The least sigma that delivers (epsilon, delta) for these statistics."""
        moved, singles = reach.piles, reach.singles
        sigma = discrete_gaussian_sigma(
            moved, trust.epsilon, trust.delta, pile=reach.pile, singles=singles
        )
        return GaussianLaw(sigma), promise(trust, trust.epsilon, trust.delta)

    def accountings(self, users: int, *, with_library: bool = False) -> list[Route]:
        """Lattice, privacy-loss distribution, analytic Gaussian and bounds."""
        reach = self.reach
        return gaussian_routes(
            self.law.sigma,
            reach.piles,
            self.guarantee.delta,
            pile=reach.pile,
            singles=reach.singles,
            with_library=with_library,
        )


class LaplaceBatch(CentralBatch):
    """Discrete Laplace noise on every played counter: a pure epsilon."""

    law: LaplaceLaw
    name: ClassVar[str] = "laplace"

    @classmethod
    def design(cls, trust: "PrivateTrust", reach: Reach) -> Design:
        """Scale L1/epsilon; a requested delta is not used."""
        law = LaplaceLaw(laplace_scale(reach.l1, trust.epsilon))
        return law, promise(trust, trust.epsilon, 0.0)

    def accountings(self, users: int, *, with_library: bool = False) -> list[Route]:
        """The pure epsilon by its formula and by the exact lattice."""
        scale, units = self.law.scale, self.reach.units
        return [
            Route("L1 / scale", laplace_epsilon(scale, units)),
            Route("exact lattice", discrete_laplace_epsilon(scale, units, 0.0)),
        ]
