"""From a calibrated plan to the law that it stands for: what the plan *says*, not a calibration.

Every reader takes noise parameters from the plan as they are (a double by its exact value) and the
moves of one user from the lemmas of `sensitivity`; `verify.py` derives them from the release again.
"""

from dataclasses import dataclass
from fractions import Fraction

from discreet import _validate
from discreet._types import Plain
from discreet.adversarial.mechanism import LayeredMechanism, loss_reach
from discreet.adversarial.noise import LOSS_UNITS
from discreet.errors import InvalidInputError, UnsupportedError
from discreet.privacy.certificates.distributions import LAWS, Law, LayeredGaussian
from discreet.privacy.mechanisms.base import Mechanism
from discreet.privacy.mechanisms.noise import Gaussian
from discreet.privacy.sensitivity import Reach

Plan = Mechanism | LayeredMechanism


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A release, the law of its noise and the guarantee that it delivers, in exact numbers."""

    release: dict[str, Plain]
    law: Law
    epsilon: Fraction
    delta: Fraction

    def to_dict(self) -> dict[str, Plain]:
        """As a certificate states it."""
        return {
            "release": self.release,
            "law": {"name": self.law.name, **self.law.fields()},
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
        }


def claim_of(plan: Plan, *, users: int | None = None) -> Claim:
    """What a plan promises.

    Args:
        plan: of a batch, of a stream, or of an adversarial learner.
        users: of the batch; shuffled bits need it, their noise depends on it. Classes are certified
            for all batches at once if it is None.
    """
    if not isinstance(plan, Mechanism | LayeredMechanism):
        raise InvalidInputError(
            f"Expected a calibrated plan, got plan={plan!r}; write for instance "
            f"Central(epsilon=1, delta=1e-6).calibrate(Shape(states=4, actions=2, horizon=6))."
        )
    guarantee = plan.guarantee
    if guarantee.notion == "none":
        raise UnsupportedError("A plan without privacy promises nothing that could be certified.")
    if guarantee.claimed is not None:
        raise UnsupportedError(
            "Printed constants are not covered by certificates; use calibration='exact'."
        )
    return Claim(
        release=release_of(plan, users=users),
        law=law_of(plan, users=users),
        epsilon=promised(guarantee.epsilon),
        delta=promised(guarantee.delta),
    )


def promised(value: float) -> Fraction:
    """The smaller of what a person means by a number and what the machine makes of it.

    >>> promised(0.1)
    Fraction(1, 10)
    """
    return min(_validate.exact(value), Fraction(value))  # type: ignore[arg-type]


def law_of(plan: Plan, *, users: int | None = None) -> Law:
    """The law behind a plan's noise; raises where no certificate covers it."""
    if isinstance(plan, LayeredMechanism):
        return _layered(plan)
    name, parameters = plan.certified(users)
    return LAWS[name](**parameters)


def _layered(plan: LayeredMechanism) -> Law:
    noise, size = plan.noise, plan.size
    if noise is None or noise.unit < 1:
        raise UnsupportedError("Layered Toeplitz noise is not covered by certificates.")
    reach = Reach(units=4 * size.horizon, horizon=size.horizon)
    name, counts = noise.certified(reach)
    # A plan does not say whether its users report centred losses: the worst is assumed.
    losses = loss_reach(size, plan.feedback, public=plan.public_losses)
    if not losses:
        return LAWS[name](**counts)
    if name != "discrete-gaussian":
        raise UnsupportedError(
            "Layered plans are covered by certificates with Gaussian noise only."
        )
    # Sigma of a loss in units, and how many noisy losses move.
    if isinstance(plan.loss_law, Gaussian):
        sigma, moved = Fraction(plan.loss_law.sigma), losses
    else:
        levels = counts["times"] // (4 * size.horizon)
        sigma, moved = Fraction(float(counts["sigma"]) * LOSS_UNITS), losses * levels
    return LayeredGaussian(
        count_sigma=counts["sigma"],
        counts=counts["times"],
        loss_sigma=sigma,
        loss_shift=LOSS_UNITS,
        losses=moved,
    )


def release_of(plan: Plan, *, users: int | None = None) -> dict[str, Plain]:
    """What is released, of whom and when: all that the moves of one user depend on, and the shape.

    ``users`` are part of it where the noise depends on the batch.
    """
    if not isinstance(plan, LayeredMechanism):
        return plan.release_facts(users)
    trust = {"JDP": "central", "LDP": "local", "SDP": "shuffle"}[plan.guarantee.notion]
    return {
        "trust": trust,
        "mechanism": plan.mechanism,
        "participations": 1,
        "schedule": "layered continual",
        "widths": list(plan.size.widths),
        "actions": plan.size.actions,
        "feedback": plan.feedback,
        "public_losses": plan.public_losses,
        "episodes": plan.episodes,
    }
