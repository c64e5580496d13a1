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
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from discreet._types import BoolArray, FloatArray, IntArray
from discreet.errors import CalibrationError, InvalidInputError
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy.accounting import closed_forms
from discreet.privacy.guarantee import Guarantee, rounded_up
from discreet.privacy.mechanisms._cumulative import check_episode, promise
from discreet.privacy.mechanisms._devices import FlipEncoder
from discreet.privacy.mechanisms._encoders import check_reports
from discreet.privacy.mechanisms._laws import FlipTail
from discreet.privacy.mechanisms._printed import delivered, printed_in
from discreet.privacy.mechanisms._responses import ResponseBatch, ResponseMechanism, ResponseRelease
from discreet.privacy.mechanisms.local import CounterBatch, pool_steps
from discreet.privacy.plans import randomised_batch
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.sensitivity import Reach
from discreet.privacy.statistics import Debias, PrivateCounts, flatten

if TYPE_CHECKING:
    from discreet.privacy.trust import PrivateTrust


def flip_probability(trust: "PrivateTrust", reach: Reach) -> tuple[float, Guarantee]:
    """The flip q = 1/(e^(epsilon/units) + 1), rounded up with proof, and what it delivers."""
    if trust.printed:
        printed_in(trust, "randomized-response", "002")
        return _printed_flip(trust, reach)
    q = closed_forms.flip_probability(trust.epsilon, reach.units)
    return q, promise(trust, trust.epsilon, 0.0)


def _printed_flip(trust: "PrivateTrust", reach: Reach) -> tuple[float, Guarantee]:
    rate = float(trust.epsilon) / reach.horizon
    if rate < math.log(2):
        raise CalibrationError(
            f"Paper 002 flips with probability 1/(e^(epsilon/H) - 1) = {1 / math.expm1(rate):.3g}, "
            f"which is not a probability when epsilon < H·ln 2 = "
            f"{rounded_up(reach.horizon * math.log(2))} (got epsilon={trust.epsilon}); use "
            f"calibration='exact'."
        )
    q = 1 / math.expm1(rate)
    if not 0 < q < 1 or q == 0.5:
        raise CalibrationError(f"Paper 002's flip probability {q:g} leaves nothing to estimate.")
    per_bit = abs(math.log((1 - q) / q))
    return q, delivered(trust, "paper 002 (randomised response)", reach.units * per_bit)


def flip_of_bits(
    trust: "PrivateTrust", shape: Shape, statistics: tuple[str, ...]
) -> tuple[float, Guarantee]:
    """The flip of an episode's bits: per step, also where counters are pooled over steps."""
    return flip_probability(trust, Reach.of(shape, statistics, stationary=False))


class RandomizedResponseBatch(ResponseBatch, CounterBatch):
    """Every user flips each bit of her report with probability ``flip``."""

    name: ClassVar[str] = "randomized-response"
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

    def device(self, support: BoolArray) -> FlipEncoder:
        """Flips bits on the device."""
        return FlipEncoder.of(self.shape, self.statistics, self.flip, support)

    def check_sums(self, sums: IntArray, users: int) -> None:
        """Sums of bits."""
        if ((sums < 0) | (sums > users)).any():
            raise InvalidInputError("Expected reports of bits; a report holds another number.")

    def estimate(self, users: int) -> Debias:
        """(sum - n·q)/(1 - 2q)."""
        return Debias(debias_scale(self.flip), dict.fromkeys(self.statistics, users * self.flip))


def debias_scale(flip: float) -> float:
    """What one unit of summed bits is worth: 1/(1 - 2q)."""
    return 1 / (1 - 2 * flip)


class RandomizedResponseStream(ResponseMechanism):
    """Flipped bits, one report per episode, debiased and summed as they come."""

    name: ClassVar[str] = "randomized-response"
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

    def encoder(self) -> FlipEncoder:
        """What runs on every user's device."""
        everything = np.ones(self.shape.visits, np.bool_)
        return FlipEncoder.of(self.shape, self.statistics, self.flip, everything)

    def open(self, sampler: Sampler) -> "FlipRelease":
        """Start a stream."""
        return FlipRelease(self, sampler, self.bits)


class FlipRelease(ResponseRelease):
    """A running stream of flipped bits."""

    plan: RandomizedResponseStream

    def _pool(self, values: IntArray) -> IntArray:
        plan = self.plan
        if not plan.stationary:
            return values
        pooled: IntArray = pool_steps(values, plan.shape, plan.statistics)
        return pooled

    def _draw(self, rows: int) -> tuple[IntArray, IntArray, IntArray]:
        flips = self.sampler.binomial(1, self.plan.flip, (rows, self.plan.bits))
        noise = self._accumulate(self._pool(flips))
        return noise, 1 - 2 * flips, np.empty((rows, 0), np.int64)

    def _units(self, counts: Counts, gains: IntArray, step: int) -> IntArray:
        return self._pool(gains * flatten(counts, self.plan.statistics, stationary=False))

    def _read(self, report: IntArray) -> tuple[IntArray, IntArray]:
        row = check_reports(report, 1, self.plan.bits)[0]
        if ((row != 0) & (row != 1)).any():
            raise InvalidInputError("Expected a report of bits; it holds another number.")
        return self._pool(row), np.empty(0, np.int64)
