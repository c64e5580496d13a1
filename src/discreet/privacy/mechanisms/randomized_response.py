"""Local randomised response: every counter of an episode is a bit, flipped with probability q.

**Proof.** Per step, each counter of an episode is zero or one, and two episodes differ in at most
2kH of them (k statistics, H steps). Flipping a bit with probability q = 1/(e^e0 + 1) changes the
probability of what is reported by at most (1-q)/q = e^e0, so the whole report is e0·2kH = epsilon
private for e0 = epsilon/(2kH): eps/(6H) for the three statistics. Pure epsilon, no delta.

The analyser takes (y - q)/(1 - 2q), which is unbiased; its variance, q(1-q)/(1-2q)², does not
depend on the bit. The sum over n users, x of whom hold the bit, is x - Binomial(x, q) +
Binomial(n-x, q): that is how a batch is simulated, whatever n is.

*Stationary counts* are sums over steps, not bits: a pooled counter can be H. Reports stay per step,
and the analyser adds them up over steps, which is post-processing.

*Printed* (002): Ber(1/(e^(epsilon/H) - 1)), which is not a probability when epsilon < H·ln 2.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from discreet._types import BoolArray, FloatArray, IntArray
from discreet.errors import CalibrationError, InvalidInputError
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy.accounting import closed_forms
from discreet.privacy.guarantee import Guarantee, rounded_up
from discreet.privacy.mechanisms._devices import FlipEncoder
from discreet.privacy.mechanisms._responses import (
    LISTED,
    ResponseBatch,
    ResponseMechanism,
    ResponseRelease,
)
from discreet.privacy.mechanisms.additive import check_reports, pool_steps, support_cells
from discreet.privacy.mechanisms.base import (
    Certified,
    delivered,
    promise,
    randomised_batch,
)
from discreet.privacy.mechanisms.noise import Tail, bit_log_mgf, check_episode
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.sensitivity import Sensitivity
from discreet.privacy.statistics import (
    Debias,
    PrivateCounts,
    check_support,
    flatten,
    split_rows,
)

if TYPE_CHECKING:
    from discreet.privacy.trust import PrivateTrust


@dataclass(frozen=True)
class FlipTail(Tail):
    """Error of one debiased bit that is flipped with probability ``flip``.

    The error is ±(f - q)/(1 - 2q) with f ~ Bernoulli(q); the sign depends on the true bit, so the
    larger of both moment generating functions is used.
    """

    flip: float

    @property
    def variance(self) -> float:
        """q(1-q)/(1-2q)², whatever the bit."""
        return self.flip * (1 - self.flip) / (1 - 2 * self.flip) ** 2

    @property
    def mgf_limit(self) -> float:
        """Finite everywhere."""
        return 100.0 / math.sqrt(self.variance)

    def log_mgf(self, t: FloatArray) -> FloatArray:
        """The larger of both signs."""
        scaled = t / (1 - 2 * self.flip)
        both = bit_log_mgf(self.flip, scaled), bit_log_mgf(self.flip, -scaled)
        value: FloatArray = np.maximum(*both)
        return value


def flip_probability(trust: "PrivateTrust", sensitivity: Sensitivity) -> tuple[float, Guarantee]:
    """The flip q = 1/(e^(epsilon/units) + 1), rounded up with proof, and what it delivers."""
    if trust.printed:
        return _printed_flip(trust, sensitivity)
    q = closed_forms.flip_probability(trust.epsilon, sensitivity.units)
    return q, promise(trust, trust.epsilon, 0.0)


def _printed_flip(trust: "PrivateTrust", sensitivity: Sensitivity) -> tuple[float, Guarantee]:
    rate = float(trust.epsilon) / sensitivity.horizon
    if rate < math.log(2):
        raise CalibrationError(
            f"Paper 002 flips with probability 1/(e^(epsilon/H) - 1) = {1 / math.expm1(rate):.3g}, "
            f"which is not a probability when epsilon < H·ln 2 = "
            f"{rounded_up(sensitivity.horizon * math.log(2))} (got epsilon={trust.epsilon}); use "
            f"calibration='exact'."
        )
    q = 1 / math.expm1(rate)
    if not 0 < q < 1 or q == 0.5:
        raise CalibrationError(f"Paper 002's flip probability {q:g} leaves nothing to estimate.")
    per_bit = abs(math.log((1 - q) / q))
    return q, delivered(trust, "paper 002 (randomised response)", sensitivity.units * per_bit)


def flip_of_bits(
    trust: "PrivateTrust", shape: Shape, statistics: tuple[str, ...]
) -> tuple[float, Guarantee]:
    """The flip of an episode's bits: per step, also where counters are pooled over steps."""
    return flip_probability(trust, Sensitivity.of(shape.horizon, statistics, stationary=False))


def _certified(mechanism: "RandomizedResponseBatch | RandomizedResponseStream") -> Certified:
    sensitivity = Sensitivity.of(mechanism.shape.horizon, mechanism.statistics, stationary=False)
    return "randomized-response", {"flip": Fraction(mechanism.flip), "units": sensitivity.units}


class RandomizedResponseBatch(ResponseBatch):
    """Every user flips each bit of her report with probability ``flip``."""

    audit = LISTED
    flips = staticmethod(flip_of_bits)

    def noise_variance(self, users: int) -> dict[str, float]:
        """n·q(1-q)/(1-2q)²."""
        return dict.fromkeys(self.statistics, users * FlipTail(self.flip).variance)

    def release(
        self, counts: Counts, *, sampler: Sampler, support: BoolArray | None = None
    ) -> PrivateCounts:
        """The debiased sum of all users' reports, drawn as two binomials per counter."""
        users, q = counts.users, self.flip

        def randomise(_: str, raw: IntArray) -> IntArray:
            kept = raw - sampler.binomial(raw, q, raw.shape)  # 1 - q would round a small q away
            return kept + sampler.binomial(users - raw, q, raw.shape)

        return randomised_batch(
            self,
            counts,
            randomise,
            secure=sampler.secure,
            support=support,
            estimate=self.estimate(users),
        )

    def certified(self, users: int | None = None) -> Certified:
        """Of one report."""
        return _certified(self)

    def encoder(self, users: int = 1, *, support: BoolArray | None = None) -> FlipEncoder:
        """Flips bits on the device."""
        mask = check_support(support, self.shape)
        return FlipEncoder.of(self.shape, self.statistics, self.flip, mask)

    def add_up(
        self, reports: IntArray, users: int, support: BoolArray
    ) -> tuple[dict[str, IntArray], Debias]:
        """Add up the reports of ``users`` distinct users."""
        sums = check_reports(reports, users, support_cells(support, self.statistics)).sum(axis=0)
        if ((sums < 0) | (sums > users)).any():
            raise InvalidInputError("Expected reports of bits; a report holds another number.")
        return split_rows(sums, support, self.statistics), self.estimate(users)

    def estimate(self, users: int) -> Debias:
        """(sum - n·q)/(1 - 2q)."""
        return Debias(debias_scale(self.flip), dict.fromkeys(self.statistics, users * self.flip))


def debias_scale(flip: float) -> float:
    """What one unit of summed bits is worth: 1/(1 - 2q)."""
    return 1 / (1 - 2 * flip)


class RandomizedResponseStream(ResponseMechanism):
    """Flipped bits, one report per episode, debiased and summed as they come."""

    audit = LISTED
    response: ClassVar[Literal["unit", "cell", "category"]] = "cell"
    flips = staticmethod(flip_of_bits)

    @property
    def bits(self) -> int:
        """Bits in a report: counters per step."""
        return self.cells * (self.shape.horizon if self.stationary else 1)

    @property
    def _copies(self) -> int:
        return self.bits // self.cells

    @property
    def scale(self) -> float:
        """1/(1 - 2q)."""
        return debias_scale(self.flip)

    @property
    def bits_behind(self) -> IntArray:
        """One per step, whoever reports it."""
        return np.full(self.cells, self._copies)

    def noise_variance(self, episode: int) -> dict[str, float]:
        """q(1-q)/(1-2q)² per user and bit, whatever the data."""
        check_episode(episode, self.episodes)
        variance = episode * self._copies * FlipTail(self.flip).variance
        return dict.fromkeys(self.statistics, variance)

    def error_bound(self, episode: int, failure: float) -> float:
        """Chernoff bound of a sum of debiased bits, whatever the data."""
        check_episode(episode, self.episodes)
        return FlipTail(self.flip).bound({1.0: float(episode * self._copies)}, failure)

    def error_bounds(self, failure: float, users: IntArray | None = None) -> FloatArray:
        """All at once."""
        return FlipTail(self.flip).sum_bounds(self._copies * self.times(users), failure)

    def certified(self, users: int | None = None) -> Certified:
        """Of one report."""
        return _certified(self)

    def encoder(self, users: int = 1, *, support: BoolArray | None = None) -> FlipEncoder:
        """What runs on every user's device."""
        everything = np.ones(self.shape.visits, np.bool_)
        return FlipEncoder.of(self.shape, self.statistics, self.flip, everything)

    def open(self, sampler: Sampler) -> "FlipRelease":
        """Start a stream."""
        return FlipRelease(self, sampler, self.bits)


class FlipRelease(ResponseRelease):
    """A running stream of flipped bits."""

    mechanism: RandomizedResponseStream

    def _pool(self, values: IntArray) -> IntArray:
        mechanism = self.mechanism
        if not mechanism.stationary:
            return values
        pooled: IntArray = pool_steps(values, mechanism.shape, mechanism.statistics)
        return pooled

    def _draw(self, rows: int) -> tuple[IntArray, IntArray, IntArray]:
        flips = self.sampler.binomial(1, self.mechanism.flip, (rows, self.mechanism.bits))
        noise = self._accumulate(self._pool(flips))
        return noise, 1 - 2 * flips, np.empty((rows, 0), np.int64)

    def _units(self, counts: Counts, gains: IntArray, step: int) -> IntArray:
        return self._pool(gains * flatten(counts, self.mechanism.statistics, stationary=False))

    def _read(self, report: IntArray) -> tuple[IntArray, IntArray]:
        row = check_reports(report, 1, self.mechanism.bits)[0]
        if ((row != 0) & (row != 1)).any():
            raise InvalidInputError("Expected a report of bits; it holds another number.")
        return self._pool(row), np.empty(0, np.int64)
