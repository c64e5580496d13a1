"""Local, one step per user: optimised unary encoding of a single category with the whole epsilon.

The user draws one step h uniformly and reports the one category c = (s, a, s', reward bit) that
she was in at that step, as a vector of bits: the true bit is one with probability p = 1/2, every
other bit with probability q = 1/(e^epsilon + 1) (optimised unary encoding, Wang, Blocki, Li and Jha
2017). The analyser takes H·(y - q)/(p - q) at step h and zero at all others: unbiased.

**Proof.** The step is drawn independently of the data, so it suffices to compare two categories
c != c' of the same step. Their reports differ in the distribution of bits c and c' only, and every
likelihood ratio is at most (p/q)·((1-q)/(1-p)) = (1-q)/q = e^epsilon. Pure epsilon, no delta.

*Played actions only.* The policy is public, so categories of actions that it cannot play need not
be reported. An episode that left the policy would report no true bit; against any category that is
one bit's ratio, at most max(p/q, (1-q)/(1-p)) = max((e^epsilon + 1)/2, 2/(1 + e^-epsilon)), below
e^epsilon: the guarantee does not rest on users following the policy.

All statistics are linear functions of the categories (post-processing), so which of them are
released does not matter. The noise below is that of a counter nobody visits: H·q(1-q)/(p-q)² per
user and category; a transition counter sums 2 categories, a reward counter S, a visit counter 2S.
Who does visit a counter adds at most H·((1-q)² + q²)/(2(p-q)²) - 1 in place of one such term.

*Stationary counts* are the sums over steps. Only the reported step carries noise, so pooling costs
nothing extra.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from discreet._types import FloatArray, IntArray
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy.mechanisms.base import Certified, Request
from discreet.privacy.mechanisms.noise import Tail, bit_log_mgf, check_episode
from discreet.privacy.mechanisms.randomized_response import (
    LISTED,
    ResponseMechanism,
    ResponseRelease,
    exact_flip,
)
from discreet.privacy.mechanisms.registry import MechanismSpec
from discreet.privacy.sampling.samplers import Sampler

if TYPE_CHECKING:
    from discreet.privacy.trust import PrivateTrust

KEEP = 0.5
"""p, the probability that the true bit is reported as one."""


def false_bit(trust: "PrivateTrust", request: Request) -> dict[str, Any]:
    """The q = 1/(e^epsilon + 1), rounded up with proof, and what it delivers."""
    request.moved()  # refuses unknown statistics
    flip, guarantee = exact_flip(trust, trust.participations)
    return {"flip": flip, "guarantee": guarantee}


def category_count(shape: Shape) -> int:
    """Categories (s, a, s', reward bit) of one step."""
    return 2 * shape.states * shape.actions * shape.states


def categories_of(counts: Counts, step: int) -> IntArray:
    """The category of one user at ``step``, as a vector of zeros and a one."""
    where = counts.transitions[step]
    reward = counts.rewards[step][..., None]
    return np.stack([where * (1 - reward), where * reward], axis=-1).ravel()


def _counters(cube: IntArray, statistics: tuple[str, ...]) -> dict[str, IntArray]:
    """Counters from the sums of categories ``[..., S, 2]`` of each (s, a)."""
    everything = {
        "transitions": lambda: cube.sum(axis=-1),
        "visits": lambda: cube.sum(axis=(-2, -1)),
        "rewards": lambda: cube[..., 1].sum(axis=-1),
    }
    return {name: everything[name]() for name in statistics}


def categories_per_counter(shape: Shape, statistic: str) -> int:
    """How many categories a counter sums."""
    return {"transitions": 2, "visits": 2 * shape.states, "rewards": shape.states}[statistic]


def empty_variance(shape: Shape, statistics: tuple[str, ...], flip: float) -> dict[str, float]:
    """Noise variance of one user on a counter that nobody visits."""
    one = shape.horizon * flip * (1 - flip) / (KEEP - flip) ** 2
    return {name: one * categories_per_counter(shape, name) for name in statistics}


def one_category(flip: float) -> Certified:
    """What a certificate bounds of one true bit among false ones, in every report of a person."""
    return "one-step", {"keep": Fraction(KEEP), "flip": Fraction(flip)}


@dataclass(frozen=True)
class OneStepTail(Tail):
    """Error of one user on a counter that sums ``width`` categories (``visits`` visits at most).

    A user whose reported step shows the counter contributes a kept bit and width-1 false ones,
    otherwise width false ones (nothing, if counters are per step and another step is reported).
    The moment generating function is the largest over what the user can do, and over both signs.
    """

    flip: float
    width: int
    horizon: int
    pooled: bool

    @property
    def variance(self) -> float:
        """On a counter that nobody visits."""
        return self.horizon * self.width * self.flip * (1 - self.flip) / (KEEP - self.flip) ** 2

    @property
    def mgf_limit(self) -> float:
        return 30.0 * (KEEP - self.flip) / self.horizon

    def log_mgf(self, t: FloatArray) -> FloatArray:
        """The largest over the user's visits to the counter and both signs."""
        cases = [
            self._case(sign * t, visits)
            for sign in (1.0, -1.0)
            for visits in range((self.horizon if self.pooled else 1) + 1)
        ]
        value: FloatArray = np.max(cases, axis=0)
        return value

    def _case(self, t: FloatArray, visits: int) -> FloatArray:
        unit = t * self.horizon / (KEEP - self.flip)
        false = self.width * bit_log_mgf(self.flip, unit)
        true = (self.width - 1) * bit_log_mgf(self.flip, unit)
        true += bit_log_mgf(KEEP, unit) + unit * (KEEP - self.flip)
        shown = visits / self.horizon  # the reported step is one of her visits
        silent = 0.0 if self.pooled else 1 - 1 / self.horizon  # it is another counter's step
        parts = [(shown, true), (1 - silent - shown, false), (silent, np.zeros_like(t))]
        logs = [math.log(weight) + part for weight, part in parts if weight > 1e-15]
        total: FloatArray = np.logaddexp.reduce(logs, axis=0) - visits * t
        return total


class OneStepContinual(ResponseMechanism):
    """One step per user, estimates summed as reports come."""

    audit = LISTED
    response: ClassVar[Literal["unit", "cell", "category"]] = "category"

    @classmethod
    def designed(
        cls, spec: MechanismSpec, trust: "PrivateTrust", request: Request
    ) -> dict[str, Any]:
        return false_bit(trust, request)

    def noise_variance(self, episode: int) -> dict[str, float]:
        """On counters that nobody visits (pooled: every user's report reaches each counter)."""
        check_episode(episode, self.episodes)
        factor = episode * (self.shape.horizon if self.stationary else 1)
        one = empty_variance(self.shape, self.statistics, self.flip)
        return {name: factor * value for name, value in one.items()}

    @property
    def scale(self) -> float:
        return self.shape.horizon / (KEEP - self.flip)

    def centres(self, users: IntArray, reporters: IntArray) -> FloatArray:
        """A false bit per category behind a counter and user who reported its step."""
        if self.stationary:
            return super().centres(users, reporters)
        return self.flip * (self.bits_behind * reporters[:, self._step_of]).astype(np.float64)

    @property
    def bits_behind(self) -> IntArray:
        """One per category that a counter sums."""
        widths = [categories_per_counter(self.shape, name) for name in self.statistics]
        return np.repeat(widths, self._sizes)

    @property
    def _step_of(self) -> IntArray:
        """The step of each counter."""
        horizon = self.shape.horizon
        steps = [np.repeat(np.arange(horizon), size // horizon) for size in self._sizes]
        return np.concatenate(steps)

    @property
    def _sizes(self) -> list[int]:
        """Counters of each statistic."""
        shape = self.shape
        pairs = shape.states * shape.actions * (1 if self.stationary else shape.horizon)
        return [pairs * (shape.states if n == "transitions" else 1) for n in self.statistics]

    def _tail(self) -> OneStepTail:
        width = max(categories_per_counter(self.shape, name) for name in self.statistics)
        return OneStepTail(self.flip, width, self.shape.horizon, self.stationary)

    def error_bound(self, episode: int, failure: float) -> float:
        """Chernoff bound for the widest counter, whatever the users do."""
        check_episode(episode, self.episodes)
        return self._tail().bound({1.0: float(episode)}, failure)

    def error_bounds(self, failure: float, users: IntArray | None = None) -> FloatArray:
        return self._tail().sum_bounds(self.times(users), failure)

    def certified(self, users: int | None = None) -> Certified:
        return one_category(self.flip)

    def open(self, sampler: Sampler) -> "OneStepRelease":
        return OneStepRelease(self, sampler, max(self.cells, category_count(self.shape)))


class OneStepRelease(ResponseRelease):
    """A running stream of one-step reports."""

    mechanism: OneStepContinual

    def _draw(self, rows: int) -> tuple[IntArray, IntArray, IntArray]:
        mechanism = self.mechanism
        steps = self.sampler.table(np.ones(mechanism.shape.horizon, np.int64), rows)
        false = self.sampler.binomial(1, mechanism.flip, (rows, category_count(mechanism.shape)))
        kept = self.sampler.binomial(1, KEEP, (rows, 1))
        return self._accumulate(self._spread(false, steps)), kept - false, steps[:, None]

    def _spread(self, categories: IntArray, steps: IntArray) -> IntArray:
        """Released counters of users who report ``categories[i]`` at ``steps[i]``."""
        mechanism, rows = self.mechanism, len(categories)
        shape = mechanism.shape
        cube = categories.reshape(rows, shape.states, shape.actions, shape.states, 2)
        parts = _counters(cube, mechanism.statistics).values()
        if mechanism.stationary:
            return np.concatenate([part.reshape(rows, -1) for part in parts], axis=1)
        spread = []
        for part in parts:
            flat = part.reshape(rows, -1)
            per_step = np.zeros((rows, shape.horizon, flat.shape[1]), np.int64)
            per_step[np.arange(rows), steps] = flat
            spread.append(per_step.reshape(rows, -1))
        return np.concatenate(spread, axis=1)

    def _units(self, counts: Counts, gains: IntArray, step: int) -> IntArray:
        units = gains * categories_of(counts, step)
        return self._spread(units[None], np.array([step])).reshape(-1)
