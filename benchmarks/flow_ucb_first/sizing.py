"""How many users a batch of the first flow-ucb has (rule in `learner`), and its noise.

Copied from the library as it was, so that what is compared with does not change with it.
"""

import math
from collections.abc import Callable

import numpy as np

from discreet._types import FloatArray
from discreet.learners.base import Problem
from discreet.privacy.plans import BatchPlan

PROMISED = 0.5
"""A batch's goal is measured against at most this share of the value that its policy promises."""


class Noise:
    """Noise variances of a plan by batch size, interpolated between powers of two.

    Exact for noise that is constant (central, shuffle) or proportional to the users (local); a plan
    may need milliseconds for each size, and sizing a batch asks for many.
    """

    def __init__(self, plan: BatchPlan) -> None:
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

    def _at(self, power: int) -> tuple[float, float]:
        if power not in self._table:
            noise = self._plan.noise_variance(max(2**power, self._plan.least_users))
            self._table[power] = noise["transitions"], noise["rewards"]
        return self._table[power]


def credit(expected: FloatArray, variance: float, ease: float) -> FloatArray:
    """Weight of a batch in each row: near 1 where counts dwarf the noise, near 0 below it."""
    if variance == 0:
        return np.ones_like(expected)
    weight: FloatArray = expected / (expected + variance / ease)
    return weight


def goal(unknown: float, promised: float, shrink: float, growth: float) -> float:
    """What a batch may leave unknown.

    With noise per batch, small batches waste users: all below `PROMISED` is one batch's work. Where
    noise grows with the batch (local) they waste nothing, and steps are half as large.
    """
    excess = max(1.0, unknown / (PROMISED * promised)) if promised > 0 else 1.0
    return float(shrink ** (1 - growth / 2) * unknown / excess ** (1 - growth))


def most_users(told: int, left: int) -> int:
    """No more than all before together; the first batch may take a tenth of all users."""
    return max(1, min(left, told or left // 10))


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


def plan_factors(problem: Problem, plan: BatchPlan) -> FloatArray:
    """`visit_noise_factors` of what this plan releases."""
    return visit_noise_factors(
        problem.shape.states,
        problem.shape.horizon,
        int(problem.start.sum()),
        last_transitions=plan.last_transitions,
        look=_second_look(plan),
    )


def visit_noise_factors(
    states: int,
    horizon: int,
    starts: int,
    *,
    last_transitions: bool = True,
    look: float = 0.0,
) -> FloatArray:
    """Variance of a state's visits at each step, after flow consistency, per counter's variance.

    The visits of a layer sum to the users, which leaves 1 - 1/k of the variance with k states. They
    are measured by the ``states`` counters going out (not at the last step without its
    transitions), from step 1 on by the counters coming in, one per state of the layer before, and
    by a second look, if there is one: with one start, step 0 is exact and step 1 almost.

    >>> visit_noise_factors(states=4, horizon=3, starts=1).tolist()
    [0.0, 0.6, 1.5]

    Args:
        states: S.
        horizon: H.
        starts: the states an episode can begin in.
        last_transitions: whether the transitions of the last step are released.
        look: variance of a transition counter over that of a second look at the visits.
    """
    inside = 1 - 1 / states
    factors = np.full(horizon, inside * states / 2)
    factors[0] = (1 - 1 / starts) * states
    factors[1:2] = inside / (1 / starts + 1 / states)
    if not last_transitions:
        factors[-1] = inside * (starts if horizon == 2 else states)
    if look:
        free = np.full(horizon, inside)
        free[0] = 1 - 1 / starts
        factors = np.where(free > 0, factors * free / np.maximum(free + factors * look, 1e-300), 0)
    return factors


def _second_look(plan: BatchPlan) -> float:
    """Variance of transitions over that of visits that are released besides, if they are."""
    noise = plan.noise_variance(plan.least_users)
    return noise["transitions"] / noise["visits"] if noise.get("visits") else 0.0
