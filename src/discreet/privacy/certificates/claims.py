"""From a calibrated plan to the law that it stands for: what the plan *says*, not a calibration.

Every reader takes noise parameters from the plan as they are (a double by its exact value) and the
moves of one user from the lemmas of `sensitivity`; `verify.py` derives them from the release again.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Any

from discreet import _validate
from discreet._types import Plain
from discreet.adversarial.mechanism import LayeredMechanism, loss_reach
from discreet.adversarial.noise import LOSS_UNITS
from discreet.device.draws import WORD
from discreet.errors import InvalidInputError, UnsupportedError
from discreet.privacy.certificates.distributions import (
    BinomialBits,
    FlippedBits,
    GaussianGrid,
    GaussianMoves,
    HistogramNoise,
    LaplaceMoves,
    Law,
    LayeredGaussian,
    OneStep,
    PiledGaussian,
    PoissonNoise,
    TableNoise,
    coefficients_digest,
)
from discreet.privacy.mechanisms._cumulative import (
    AdditiveStream,
    CumulativeNoise,
    IndependentNoise,
)
from discreet.privacy.mechanisms._laws import BoundedLaw, GaussianLaw, LaplaceLaw, NoiseLaw
from discreet.privacy.mechanisms.histogram import HistogramBatch, deterministic
from discreet.privacy.mechanisms.one_shot import AdditiveBatch
from discreet.privacy.mechanisms.one_step import KEEP, OneStepBatch, OneStepStream
from discreet.privacy.mechanisms.randomized_response import (
    RandomizedResponseBatch,
    RandomizedResponseStream,
)
from discreet.privacy.mechanisms.shuffle import ShuffleBatch
from discreet.privacy.mechanisms.split import SplitBatch
from discreet.privacy.mechanisms.toeplitz import ToeplitzNoise
from discreet.privacy.mechanisms.tree import GridTreeNoise, TreeNoise
from discreet.privacy.plans import BatchMechanism, ContinualMechanism
from discreet.privacy.sensitivity import STATISTICS, Reach

Plan = BatchMechanism | ContinualMechanism | LayeredMechanism


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
    if not isinstance(plan, BatchMechanism | ContinualMechanism | LayeredMechanism):
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
    if isinstance(plan, ShuffleBatch):
        return _shuffle(plan, users)
    if isinstance(plan, HistogramBatch):
        return _classes(plan, users)
    for kind, read in _READERS:
        if isinstance(plan, kind):
            return read(plan)
    raise UnsupportedError(f"The mechanism {plan.mechanism!r} is not covered by certificates.")


def _reach(plan: BatchMechanism | ContinualMechanism) -> Reach:
    stationary = bool(getattr(plan, "stationary", False))
    return Reach.of(plan.shape, plan.statistics, stationary=stationary)


def _shuffle(plan: ShuffleBatch, users: int | None) -> Law:
    if users is None:
        raise InvalidInputError("Shuffle noise depends on the batch: give users=...")
    bits = plan.bits(users)
    if bits.weights:  # every user draws the number of ones from a table
        return TableNoise(
            weights=tuple(int(w) for w in bits.weights),
            ups=plan.moves,
            downs=plan.moves,
            draws=plan.reliable(users),
        )
    return BinomialBits(
        trials=plan.reliable(users) * bits.bits,
        probability=Fraction(bits.probability),
        ups=plan.moves,
        downs=plan.moves,
    )


def _classes(plan: HistogramBatch, users: int | None) -> Law:
    """The messages of a batch's reliable users, or, for every batch, the limit of many rare ones.

    A deterministic policy: whatever is played, only D changes, and with it K.
    """
    if users is None:
        return PoissonNoise(mean=plan.mean, ups=plan.moves, downs=plan.moves)
    classes = plan.classes(users, deterministic(plan.shape))
    times = Counter(one.cells for one in classes)
    kinds = {one.cells: Fraction(one.weight, WORD * one.cells) for one in classes}
    noise = {one.cells: plan.reliable(users) * one.noise for one in classes}
    return HistogramNoise(kinds=tuple((noise[d], kinds[d], times[d]) for d in times))


def _noise(law: NoiseLaw, reach: Reach, copies: int = 1, *, pooled: bool = False) -> Law:
    """Independent noise of one law on counters of this reach, each there ``copies`` times.

    On ``pooled`` counters units may be piled up in any way.
    """
    if isinstance(law, LaplaceLaw):
        return LaplaceMoves(scale=Fraction(law.scale), units=reach.units * copies)
    if isinstance(law, BoundedLaw):
        ups = reach.units * copies // 2  # bounded noise is symmetric and per step
        weights = tuple(int(w) for w in law.weights)
        return TableNoise(weights=weights, ups=ups, downs=reach.units * copies - ups)
    if not isinstance(law, GaussianLaw):
        raise UnsupportedError(f"Noise of the kind {law.kind!r} is not covered by certificates.")
    if pooled and reach.pile > 1:
        return PiledGaussian(
            sigma=Fraction(law.sigma), total=reach.units, largest=reach.pile, copies=copies
        )
    times, singles = reach.piles * copies, reach.singles * copies
    return GaussianMoves(sigma=Fraction(law.sigma), times=times, shift=reach.pile, singles=singles)


def _stream(plan: AdditiveStream) -> Law:
    return _cumulative(plan.noise, _reach(plan))


def _cumulative(noise: CumulativeNoise, reach: Reach) -> Law:
    if isinstance(noise, ToeplitzNoise):
        return toeplitz_law(noise, reach)
    law = getattr(noise, "law", None)
    if not isinstance(law, NoiseLaw):
        raise UnsupportedError(f"{type(noise).__name__} is not covered by certificates.")
    if isinstance(noise, GridTreeNoise) and isinstance(law, GaussianLaw):
        raise UnsupportedError(
            "Averaged and padded trees with Gaussian nodes are calibrated on what they reveal, "
            "which certificates do not cover; use mechanism='tree-gaussian' or 'toeplitz'."
        )
    if isinstance(noise, TreeNoise):  # every release is a function of the noisy nodes
        return _noise(law, reach, copies=noise.levels, pooled=True)
    if not isinstance(noise, IndependentNoise):
        raise UnsupportedError(f"{type(noise).__name__} is not covered by certificates.")
    return _noise(law, reach, pooled=True)


def toeplitz_law(noise: ToeplitzNoise, reach: Reach) -> GaussianGrid:
    """The grid of the column-normalised square root, with the exact norm of its longest column.

    Column i has the entries d_i·c_0, d_i·c_1, ..., d_i·c_(K-1-i), in grid steps. The SHA-256 is
    that of all c_t, then all d_i. Python's integers: nothing can overflow.
    """
    encoder: list[int] = noise.factors.encoder().tolist()
    columns: list[int] = noise.factors.columns.tolist()
    longest, norm = 0, sum(c * c for c in encoder)
    for d, last in zip(columns, reversed(encoder), strict=True):
        longest, norm = max(longest, d * d * norm), norm - last * last
    return GaussianGrid(
        sigma=Fraction(noise.steps),
        length=noise.episodes,
        squared_norm=longest,
        coefficients=coefficients_digest(chain(encoder, columns)),
        squares=reach.units * reach.pile,
        cells=reach.units,
    )


def _layered(plan: LayeredMechanism) -> Law:
    noise, size = plan.noise, plan.size
    if noise is None or isinstance(noise, ToeplitzNoise):
        raise UnsupportedError("Layered Toeplitz noise is not covered by certificates.")
    reach = Reach(units=4 * size.horizon, horizon=size.horizon)
    counts = _cumulative(noise, reach)
    # A plan does not say whether its users report centred losses: the worst is assumed.
    losses = loss_reach(size, plan.feedback, public=plan.public_losses)
    if not losses:
        return counts
    if not isinstance(counts, GaussianMoves):
        raise UnsupportedError(
            "Layered plans are covered by certificates with Gaussian noise only."
        )
    sigma, times = _loss_noise(plan, counts, losses)
    return LayeredGaussian(
        count_sigma=counts.sigma,
        counts=counts.times,
        loss_sigma=sigma,
        loss_shift=LOSS_UNITS,
        losses=times,
    )


def _loss_noise(plan: LayeredMechanism, counts: GaussianMoves, losses: int) -> tuple[Fraction, int]:
    """Sigma of a loss in units, and how many noisy losses move."""
    if isinstance(plan.loss_law, GaussianLaw):
        return Fraction(plan.loss_law.sigma), losses
    levels = counts.times // (4 * plan.size.horizon)
    return Fraction(float(counts.sigma) * LOSS_UNITS), losses * levels


def _flipped(plan: RandomizedResponseBatch | RandomizedResponseStream) -> Law:
    reach = Reach.of(plan.shape, plan.statistics, stationary=False)
    return FlippedBits(flip=Fraction(plan.flip), units=reach.units)


_READERS: tuple[tuple[type[BatchMechanism | ContinualMechanism], Callable[[Any], Law]], ...] = (
    (AdditiveBatch, lambda p: _noise(p.law, p.reach)),
    (OneStepBatch, lambda p: OneStep(keep=Fraction(KEEP), flip=Fraction(p.flip))),
    (SplitBatch, lambda p: OneStep(keep=Fraction(KEEP), flip=Fraction(p.flip))),
    (OneStepStream, lambda p: OneStep(keep=Fraction(KEEP), flip=Fraction(p.flip))),
    (RandomizedResponseBatch, _flipped),
    (RandomizedResponseStream, _flipped),
    (AdditiveStream, _stream),
)


def release_of(plan: Plan, *, users: int | None = None) -> dict[str, Plain]:
    """What is released, of whom and when: all that the moves of one user depend on, and the shape.

    ``users`` are part of it where the noise depends on the batch.
    """
    trust = {"JDP": "central", "LDP": "local", "SDP": "shuffle"}[plan.guarantee.notion]
    out: dict[str, Plain] = {"trust": trust, "mechanism": plan.mechanism, "participations": 1}
    if isinstance(plan, LayeredMechanism):
        return out | {
            "schedule": "layered continual",
            "widths": list(plan.size.widths),
            "actions": plan.size.actions,
            "feedback": plan.feedback,
            "public_losses": plan.public_losses,
            "episodes": plan.episodes,
        }
    shape = plan.shape
    out |= {"states": shape.states, "actions": shape.actions, "horizon": shape.horizon}
    out |= {"statistics": [name for name in STATISTICS if name in plan.statistics]}
    if isinstance(plan, ContinualMechanism):
        stream = {"episodes": plan.episodes, "stationary": plan.stationary}
        return out | {"schedule": "continual", **stream}
    out |= {"schedule": "batch", "last_transitions": plan.last_transitions}
    if isinstance(plan, ShuffleBatch | HistogramBatch):
        out |= {"users": users, "honest": str(_validate.exact(plan.honest))}
    return out
