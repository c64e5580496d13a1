"""Guarantees that follow from a guarantee, each with its reason.

**Shuffle and local privacy imply joint privacy.** What all other users receive is a function of the
release and of their own data. If the release is (epsilon, delta)-DP in one user's episode, so is
what the others receive: the billboard lemma (Hsu, Huang, Roth, Roughgarden and Wu 2014; 001,
Section VII). Numbers and assumptions are those of the release.

**Gaussian noise is concentrated.** Discrete Gaussian noise of sigma on a lattice that contains the
moves satisfies rho-zCDP with rho = |move|²/(2·sigma²) (Canonne, Kamath and Steinke 2020, Theorem
4), coordinates add up, and a stream whose fresh noise covers each move given the past adds up too
(proofs in `mechanisms.tree` and `mechanisms.toeplitz`). Where sigma is drawn on a fine grid, all
moves lie on the grid.
"""

from dataclasses import dataclass, replace
from typing import Any

from discreet.adversarial.noise import deviations_moved
from discreet.privacy.guarantee import ASSUMPTIONS, Guarantee
from discreet.privacy.mechanisms._cumulative import IndependentNoise
from discreet.privacy.mechanisms._laws import GaussianLaw
from discreet.privacy.mechanisms.one_shot import AdditiveBatch
from discreet.privacy.mechanisms.toeplitz import ToeplitzNoise
from discreet.privacy.mechanisms.tree import GridTreeNoise, TreeNoise
from discreet.privacy.plans import BatchMechanism, ContinualMechanism
from discreet.privacy.sensitivity import Reach

_BILLBOARD = "what all other users receive is computed from this release (billboard lemma)"


@dataclass(frozen=True)
class Implied:
    """A guarantee that holds because another one does."""

    guarantee: Guarantee
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**self.guarantee.to_dict(), "reason": self.reason}


def implied(guarantee: Guarantee) -> tuple[Implied, ...]:
    """What follows from it: shuffle and local privacy imply joint privacy.

    >>> [found] = implied(Guarantee(notion="SDP", epsilon=1.0, delta=1e-6))
    >>> print(found.guarantee)
    (1, 1e-06)-JDP, one user's whole episode, replace-one
    """
    if guarantee.notion not in ("SDP", "LDP"):
        return ()
    others = ASSUMPTIONS["JDP"][1]
    joint = replace(guarantee, notion="JDP", assumptions=(*guarantee.assumptions, others))
    return (Implied(joint, _BILLBOARD),)


def concentrated(plan: BatchMechanism | ContinualMechanism) -> float | None:
    """The rho of zero-concentrated privacy that a plan with Gaussian noise delivers, else None."""
    if isinstance(plan, AdditiveBatch) and isinstance(plan.law, GaussianLaw):
        return float(plan.reach.l2**2 / (2 * plan.law.sigma**2))
    noise = getattr(plan, "noise", None)
    if noise is None or not isinstance(plan, ContinualMechanism):
        return None
    reach = Reach.of(plan.shape, plan.statistics, stationary=plan.stationary)
    return _of_stream(noise, reach)


def _of_stream(noise: object, reach: Reach) -> float | None:
    """Half the squared distance of the worst user, in standard deviations of the noise."""
    if isinstance(noise, ToeplitzNoise) or (isinstance(noise, GridTreeNoise) and noise.gridded):
        return float((reach.l2 * deviations_moved(noise)) ** 2 / 2)
    if not isinstance(noise, TreeNoise | IndependentNoise):
        return None
    if not isinstance(noise.law, GaussianLaw):
        return None
    copies = noise.levels if isinstance(noise, TreeNoise) else noise.copies
    return float(copies * reach.l2**2 / (2 * noise.law.sigma**2))
