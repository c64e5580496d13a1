"""Do the data contradict stationary dynamics? A gate in front of pooling; post-processing only.

Of every row (s, a), each component x_h of its estimated transitions (and its mean reward) has one
value per step, with information I_h = N²/(F + M·max(x(1 - x), 0.01)) (rewards: F = G + D/4), where
the step saw the row at all (N > sqrt D). Around their weighted mean, the sum of I_h·(x_h - mean)²
is a chi-square if the row is stationary; Wilson and Hilferty make it a normal z. A row is pooled if
its own z stays below 4g, all rows together below 2g, with g = 1 + 0.15·ln+(n/1e4) for the small
biases that many users make visible.

The gate refuses what the data contradict. It cannot see a difference below the noise, or at a step
where hardly anybody took the action: a declaration remains the word of who gives it.
"""

from typing import NamedTuple

import numpy as np

from discreet._types import BoolArray, FloatArray
from discreet.offline.evidence import Rows

ROW_LIMIT = 4.0
GLOBAL_LIMIT = 2.0
_LEAST_SPREAD = 0.01


class _Square(NamedTuple):
    """Chi-squares ``[S, K]`` and their degrees of freedom."""

    value: FloatArray
    freedom: FloatArray


def stationary_rows(slots: Rows, users: int, tested: BoolArray) -> BoolArray:
    """``bool[S, K]``: the rows that may be pooled; none if all rows together contradict it.

    Args:
        slots: rows ``[H, S, K]``.
        users: n.
        tested: ``bool[H, S, K]``, the rows that stand for one declared action.
    """
    limit = 1 + 0.15 * np.log(max(users / 1e4, 1.0))
    passed: BoolArray = np.ones(tested.shape[1:], np.bool_)
    for square in (_transitions(slots, tested), _rewards(slots, tested)):
        together = _normal(square.value.sum(), square.freedom.sum())
        if together >= GLOBAL_LIMIT * limit:
            return np.zeros_like(passed)
        passed &= _normal(square.value, square.freedom) < ROW_LIMIT * limit
    return passed


def _transitions(slots: Rows, tested: BoolArray) -> _Square:
    """One state of the next ones after the other: no array of all of them is made."""
    seen = tested & (slots.visits > np.sqrt(slots.visit_noise)) & (slots.visits > 0)
    visits = np.maximum(slots.visits, 1e-9)
    total, freedom = np.zeros(tested.shape[1:]), np.zeros(tested.shape[1:])
    for state in range(slots.transitions.shape[-1]):
        shares = slots.transitions[..., state] / visits
        square = _square(shares, slots.transition_noise, slots, seen)
        total += square.value
        freedom += square.freedom * (state > 0)  # shares add up to one
    return _Square(total, freedom)


def _rewards(slots: Rows, tested: BoolArray) -> _Square:
    seen = tested & (slots.drawn > 0) & (slots.visits > np.sqrt(slots.visit_noise))
    seen &= slots.visits > 0
    means = slots.rewards / np.maximum(slots.visits, 1e-9)
    return _square(means, slots.reward_noise + slots.visit_noise / 4, slots, seen)


def _square(shares: FloatArray, noise: FloatArray, slots: Rows, seen: BoolArray) -> _Square:
    """Weighted squares around the mean over steps."""
    inside = np.clip(shares, 0, 1)
    spread = noise + slots.sampling * np.maximum(inside * (1 - inside), _LEAST_SPREAD)
    weight = np.where(seen, slots.visits**2 / np.maximum(spread, 1e-300), 0.0)
    mean = (weight * shares).sum(axis=0) / np.maximum(weight.sum(axis=0), 1e-300)
    value: FloatArray = (weight * (shares - mean) ** 2).sum(axis=0)
    freedom = np.maximum(seen.sum(axis=0) - 1.0, 0.0)
    return _Square(np.where(freedom > 0, value, 0.0), freedom)


def _normal(value: FloatArray, freedom: FloatArray) -> FloatArray:
    """Wilson and Hilferty's normal z of a chi-square; minus infinity without freedom."""
    some = np.maximum(freedom, 1.0)
    z = ((value / some) ** (1 / 3) - (1 - 2 / (9 * some))) / np.sqrt(2 / (9 * some))
    return np.where(freedom > 0, z, -np.inf)
