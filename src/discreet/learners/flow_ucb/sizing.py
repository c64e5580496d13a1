"""How many users a batch of flow-ucb has.

The expected bonus along a route, or half the route's value if that is less, is what is not known
about it. A batch is the smallest that is predicted to leave ``shrink`` of it, and no larger than
all batches before it together. Where noise grows with the users (local reports) it leaves
sqrt(``shrink``) of the whole bonus, however large. Only users who came through rows that are known
count: what lies behind an action that nobody knows cannot be planned for, and a batch that was
sized for it would pay for the whole map at once. The first batch shows one reward above its noise.

A batch is a recruitment: there are at most `MOST_BATCHES`. From half of them on, after b batches of
t users together, a batch has at least t·((K/t)^(1/(`MOST_BATCHES` - `SPARED` - b)) - 1), so that
batches of that growth end at K in time; what its route does not need is for further routes
(`mixture`), and then for the greedy one. With ``mixing=False`` all of it plays the one route.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from discreet._types import FloatArray
from discreet.privacy.plans import BatchMechanism

VALUE_SHARE = 0.5
"""A route cannot hide more than a part of its value: the goal of a batch is measured against this
share of it, not against bonuses that add up to many times what can be earned. From the first
generation; what it is worth is the variant ``bonus-goal`` of the ablation."""
MOST_BATCHES = 300
"""A decision about recruitment, not about regret. That least sizes begin at half of them was
measured with an early version: a least size throughout cost up to four times the regret at K = 1e7
(later, over several families, 1.02 and 1.13)."""
SPARED = 10
"""Batches that the least size keeps in reserve for rounding and for a last one. Not varied."""
ENDING = 0.5
"""The users left join the last batch if they are fewer than this share of it. From the first
generation."""


class ReleaseTerms(NamedTuple):
    """On what terms a batch is released, now or next: its noise, and how it enters the evidence.

    Attributes:
        users: of the batch.
        noise: variance of one counter of transitions.
        reward_noise: of rewards.
        per_visit: `BatchMechanism.visit_variance`.
        reward_per_visit: `BatchMechanism.reward_visit_variance`.
        factors: ``[H]``, `visit_noise_factors`.
        ease: of `credit`.
        last_transitions: whether the transitions of the last step are released.
    """

    users: float
    noise: float
    reward_noise: float
    per_visit: float
    reward_per_visit: float
    factors: FloatArray
    ease: float
    last_transitions: bool


class Noise:
    """Noise variances of a plan by batch size, interpolated between powers of two.

    Exact for noise that is constant (central, shuffle) or proportional to the users (local); a plan
    may need milliseconds for each size, and sizing a batch asks for many.
    """

    def __init__(self, plan: BatchMechanism) -> None:
        self._plan = plan
        self._table: dict[int, tuple[float, float]] = {}

    def __call__(self, users: float) -> tuple[float, float]:
        """Variances of one counter of transitions and of rewards."""
        power = max(0, math.floor(math.log2(users)))
        low, high = self._at(power), self._at(power + 1)
        share = users / 2**power - 1
        transitions, rewards = ((1 - share) * a + share * b for a, b in zip(low, high, strict=True))
        return transitions, rewards

    @property
    def growth(self) -> float:
        """0 where noise is the same for every batch, 1 where its variance grows with the users."""
        one, two = self._at(10)[0], self._at(11)[0]
        return min(max(math.log2(two / one), 0.0), 1.0) if one > 0 else 0.0

    @property
    def renewed(self) -> float:
        """1 where every batch pays the same noise anew, 0 where splitting a batch costs nothing."""
        return 1 - self.growth if self._at(10)[0] > 0 else 0.0

    def _at(self, power: int) -> tuple[float, float]:
        if power not in self._table:
            noise = self._plan.noise_variance(max(2**power, self._plan.min_users))
            self._table[power] = noise["transitions"], noise["rewards"]
        return self._table[power]


def credit(expected: FloatArray, variance: float, ease: float) -> FloatArray:
    """Weight of a batch in each row: near 1 where counts dwarf the noise, near 0 below it.

    `sizing_kernels.credit` is the same of one row.
    """
    if variance == 0:
        return np.ones_like(expected)
    weight: FloatArray = expected / (expected + variance / ease)
    return weight


def goal(unknown: float, value: float, shrink: float, growth: float) -> float:
    """What a batch may leave unknown.

    With noise per batch, small batches waste users: all above `VALUE_SHARE` of the route's value is
    one batch's work. Where noise grows with the batch (local) they waste nothing, and steps are
    half as large.
    """
    excess = max(1.0, unknown / (VALUE_SHARE * value)) if value > 0 else 1.0
    return float(shrink ** (1 - growth / 2) * unknown / excess ** (1 - growth))


def most_users(told: int, left: int) -> int:
    """No more than all before together; the first batch may take a tenth of all users."""
    return max(1, min(left, told or left // 10))


def min_users(told: int, episodes: int, batches: int) -> int:
    """So many that `MOST_BATCHES` suffice for all ``episodes``."""
    if batches < MOST_BATCHES / 2:
        return 1
    remaining = max(1, MOST_BATCHES - SPARED - batches)
    growth = float((episodes / told) ** (1 / remaining))
    return math.ceil(told * (growth - 1))


def smallest(enough: Callable[[int], bool], most: int) -> int:
    """The smallest number, within a percent, that is ``enough``; ``most`` if none is."""
    low, high = 1, most
    if not enough(high):
        return high
    while high - low > max(1, low // 100):
        middle = math.isqrt(low * high) if high > 4 * low else (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def rounded(users: int, left: int) -> int:
    """Up to two significant digits: round numbers are easier to recruit and to calibrate for."""
    unit = int(10 ** max(0, len(str(users)) - 2))
    return min(left, -(-users // unit) * unit)
