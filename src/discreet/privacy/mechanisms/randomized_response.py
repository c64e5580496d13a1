"""Local randomised response: every counter of an episode is a bit, flipped with probability q.

**Proof.** Per step, each counter of an episode is zero or one, and two episodes differ in at most
2kH of them (k statistics, H steps). Flipping a bit with probability q = 1/(e^e0 + 1) changes the
probability of what is reported by at most (1-q)/q = e^e0, so the whole report is e0·2kH = epsilon
private for e0 = epsilon/(2kH): eps/(6H) for the three statistics. Pure epsilon, no delta.

The analyser takes (y - q)/(1 - 2q), which is unbiased; its variance, q(1-q)/(1-2q)², does not
depend on the bit.

*Stationary counts* are sums over steps, not bits: a pooled counter can be H. Reports stay per step,
and the analyser adds them up over steps, which is post-processing.

*Printed* (002): Ber(1/(e^(epsilon/H) - 1)), which is not a probability when epsilon < H·ln 2.

**Streams of answers** (`ResponseMechanism`, also of `one_step`). What such a user adds to a counter
is affine in her data: ``offset + gain · unit``, all of them integers, with random offset and gain
drawn before her episode (see `NoiseBlock`). So the randomness of many releases can be drawn ahead,
and a compiled learner stays a compiled learner.

The state of a stream is the sum of all users' answers, a vector of integers. What is public is
``scale·(state - centre)``, where the centre depends on how many users there are and, if each
reports one step, on how many reported which: a function of the integers alone. (Debiased answers
summed in floating point would tell who visited what: ``offset + gain`` and a plain offset of the
same value round differently.)
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from discreet._types import FloatArray, IntArray
from discreet.errors import CalibrationError, UnsupportedError
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy.accounting import closed_forms
from discreet.privacy.accounting.search import response_epsilon
from discreet.privacy.guarantee import Guarantee, rounded_up
from discreet.privacy.mechanisms.additive import pool_steps
from discreet.privacy.mechanisms.base import (
    AuditSizes,
    Certified,
    ContinualMechanism,
    ContinualRelease,
    NoiseBlock,
    Request,
    delivered,
    guaranteed,
)
from discreet.privacy.mechanisms.noise import Pieces, Tail, bit_log_mgf, check_episode
from discreet.privacy.mechanisms.registry import MechanismSpec
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.sensitivity import Sensitivity
from discreet.privacy.statistics import debias

if TYPE_CHECKING:
    from discreet.privacy.trust import PrivateTrust


LISTED = AuditSizes(
    shape=Shape(states=1, actions=2, horizon=2), statistics=("rewards",), episodes=1
)
"""So small that all outcomes can be listed."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ResponseMechanism(ContinualMechanism):
    """A stream of answers that are integers, with an affine function that takes their bias out.

    ``flip`` is the probability that a bit is false.
    """

    flip: float

    @property
    @abstractmethod
    def scale(self) -> float:
        """What one unit of the summed answers is worth."""

    @property
    @abstractmethod
    def bits_behind(self) -> IntArray:
        """``int64[cells]``: bits behind each counter in the report of one user who reports it."""

    def centres(self, users: IntArray, reporters: IntArray) -> FloatArray:
        """Mean of the summed answers of counters that nobody visits, ``[n, cells]``.

        Args:
            users: ``int64[n]``, how many have answered at each of n times.
            reporters: ``int64[n, H]``, how many of them reported each step.
        """
        return self.flip * (users[:, None] * self.bits_behind).astype(np.float64)


class ResponseRelease(ContinualRelease):
    """A running stream of randomised responses."""

    mechanism: ResponseMechanism

    def __init__(self, mechanism: ResponseMechanism, sampler: Sampler, width: int) -> None:
        super().__init__(mechanism, sampler)
        self._drawn = np.zeros(mechanism.cells, np.int64)
        self._answers = np.zeros(mechanism.cells, np.int64)
        self._reporters = np.zeros(mechanism.shape.horizon, np.int64)
        self._pieces = Pieces(
            lambda _, rows: self._draw(rows),
            width=width,
            episodes=mechanism.episodes,
            secure=sampler.secure,
        )

    @abstractmethod
    def _draw(self, rows: int) -> tuple[IntArray, IntArray, IntArray]:
        """Noise (cumulative), gains and steps of the next users; integers, all of them."""

    @abstractmethod
    def _units(self, counts: Counts, gains: IntArray, step: int) -> IntArray:
        """What one user's data add to the released counters, given her gains."""

    def _accumulate(self, offsets: IntArray) -> IntArray:
        """Cumulative noise from the offsets of the next users."""
        noise: IntArray = self._drawn + np.cumsum(offsets, axis=0)
        self._drawn = noise[-1].copy()
        return noise

    def noise_block(self, episodes: int) -> FloatArray:
        """Refused: this mechanism is not additive."""
        raise UnsupportedError(
            f"The mechanism {self.mechanism.name!r} randomises the data and adds no noise to true "
            f"counts; use `block` and its gains, or a mechanism such as 'laplace'."
        )

    def block(self, episodes: int) -> NoiseBlock:
        self.use("block")
        noise, gains, steps = self._pieces.take(episodes)
        centres = self._centres(episodes, steps.reshape(-1))
        self.episode += episodes
        return NoiseBlock(
            noise.astype(np.float64),
            gains.astype(np.float64),
            steps.reshape(-1),
            centres,
            self.mechanism.scale,
        )

    def _centres(self, episodes: int, steps: IntArray) -> FloatArray:
        """After each of the next users, who report ``steps``; remembers the reporters."""
        users = self.episode + np.arange(1, episodes + 1)
        reporters = np.zeros((episodes, self._reporters.size), np.int64)
        if steps.size:
            reporters[np.arange(episodes), steps] = 1
        reporters = self._reporters + np.cumsum(reporters, axis=0)
        if episodes:
            self._reporters = reporters[-1].copy()
        return self.mechanism.centres(users, reporters)

    def _take(self, counts: Counts) -> FloatArray:
        noise, gains, steps = self._pieces.take(1)
        step = int(steps[0, 0]) if steps.size else -1
        self._answers += self._units(counts, gains[0], step)
        centres = self._centres(1, steps.reshape(-1))[0]
        return debias(self._answers + noise[0], self.mechanism.scale, centres)


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
    return exact_flip(trust, sensitivity.units)


def exact_flip(trust: "PrivateTrust", responses: int) -> tuple[float, Guarantee]:
    """The flip of each of so many responses of one person, and what they deliver together.

    Of one report a pure epsilon; several reports use a delta, if there is one.
    """
    if trust.participations == 1 or trust.delta == 0:
        q = closed_forms.flip_probability(trust.epsilon, responses)
        return q, guaranteed(trust, trust.epsilon, 0.0)
    each = response_epsilon(responses, float(trust.epsilon), float(trust.delta))
    return closed_forms.flip_probability(each), guaranteed(trust, trust.epsilon, trust.delta)


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


class RandomizedResponseContinual(ResponseMechanism):
    """Flipped bits, one report per episode, debiased and summed as they come."""

    audit = LISTED
    response: ClassVar[Literal["unit", "cell", "category"]] = "cell"

    @classmethod
    def designed(
        cls, spec: MechanismSpec, trust: "PrivateTrust", request: Request
    ) -> dict[str, Any]:
        # Bits are reported per step also when the counters are pooled over steps.
        per_step = request._replace(stationary=False)
        flip, guarantee = flip_probability(trust, per_step.moved(trust.participations))
        last = request.last_transitions
        return {"flip": flip, "guarantee": guarantee, "last_transitions": last}

    @cached_property
    def sent(self) -> IntArray:
        """``int64[bits]``: one for what is reported, zero for the last transition left out."""
        steps = self.shape.horizon
        cells = {"transitions": math.prod(self.shape.transitions) // steps}
        rows = [cells.get(name, math.prod(self.shape.visits) // steps) for name in self.statistics]
        sent = [np.ones((steps, row), np.int64) for row in rows]
        if not self.last_transitions and "transitions" in self.statistics:
            sent[self.statistics.index("transitions")][-1] = 0
        return np.concatenate([part.ravel() for part in sent])

    @property
    def bits(self) -> int:
        """Bits in a report: counters per step."""
        return self.cells * (self.shape.horizon if self.stationary else 1)

    @property
    def _copies(self) -> int:
        return self.bits // self.cells

    @property
    def scale(self) -> float:
        return 1 / (1 - 2 * self.flip)

    @property
    def bits_behind(self) -> IntArray:
        """One per step, whoever reports it."""
        pooled = pool_steps(self.sent, self.shape, self.statistics)
        return pooled if self.stationary else self.sent

    def noise_variance(self, episode: int) -> dict[str, float]:
        """q(1-q)/(1-2q)² per user and bit, whatever the data."""
        check_episode(episode, self.episodes)
        copies = dict.fromkeys(self.statistics, self._copies)
        if self.stationary and not self.last_transitions and "transitions" in copies:
            copies["transitions"] -= 1
        each = FlipTail(self.flip).variance
        return {name: episode * behind * each for name, behind in copies.items()}

    def error_bound(self, episode: int, failure: float) -> float:
        """Chernoff bound of a sum of debiased bits, whatever the data."""
        check_episode(episode, self.episodes)
        return FlipTail(self.flip).bound({1.0: float(episode * self._copies)}, failure)

    def error_bounds(self, failure: float, users: IntArray | None = None) -> FloatArray:
        return FlipTail(self.flip).sum_bounds(self._copies * self.times(users), failure)

    def certified(self, users: int | None = None) -> Certified:
        if not self.last_transitions:
            raise UnsupportedError("Reports without the last transition have no certificates.")
        return "randomized-response", {"flip": Fraction(self.flip)}

    def open(self, sampler: Sampler) -> "FlipRelease":
        return FlipRelease(self, sampler, self.bits)


class FlipRelease(ResponseRelease):
    """A running stream of flipped bits."""

    mechanism: RandomizedResponseContinual

    def _pool(self, values: IntArray) -> IntArray:
        mechanism = self.mechanism
        if not mechanism.stationary:
            return values
        pooled: IntArray = pool_steps(values, mechanism.shape, mechanism.statistics)
        return pooled

    def _draw(self, rows: int) -> tuple[IntArray, IntArray, IntArray]:
        sent = self.mechanism.sent
        flips = sent * self.sampler.binomial(1, self.mechanism.flip, (rows, self.mechanism.bits))
        noise = self._accumulate(self._pool(flips))
        return noise, sent - 2 * flips, np.empty((rows, 0), np.int64)

    def _units(self, counts: Counts, gains: IntArray, step: int) -> IntArray:
        return self._pool(gains * self.mechanism.flat(counts, stationary=False))
