"""Do the data contradict stationary dynamics? A gate in front of pooling; post-processing only.

Of every row (s, a), each component x_h of its estimated transitions has one value per step, with
information I_h = N²/(F + D·x² + M·max(x, 0.01)), where the step saw the row at all (N > sqrt D).
Around their weighted mean, the sum over steps and components of I_h·(x_h - mean)² is, if the row is
stationary, the chi-square of multinomial counts, with one degree of freedom less than there are
next states for each step but one. Mean rewards have N²/(G + D/4 + M·max(r(1 - r), 0.01)) and one
degree for each step but one. Wilson and Hilferty make them normal z. A row is pooled if its own z
stay below 4g and those of all rows together below 2g, with g = 1 + 0.15·ln+(n/1e4) for the small
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
    """One of the next states after the other: no array of all of them is made."""
    seen = _seen(slots, tested)
    visits = np.maximum(slots.visits, 1e-9)
    total, freedom = np.zeros(tested.shape[1:]), np.zeros(tested.shape[1:])
    for state in range(slots.transitions.shape[-1]):
        shares = slots.transitions[..., state] / visits
        noise = slots.transition_noise + slots.visit_noise * shares**2
        spread = noise + slots.sampling * np.maximum(shares, _LEAST_SPREAD)
        square = _square(shares, spread, slots.visits, seen)
        total += square.value
        freedom += square.freedom * (state > 0)  # shares add up to one
    return _Square(total, freedom)


def _rewards(slots: Rows, tested: BoolArray) -> _Square:
    means = slots.rewards / np.maximum(slots.visits, 1e-9)
    inside = np.clip(means, 0, 1)
    noise = slots.reward_noise + slots.visit_noise / 4
    spread = noise + slots.sampling * np.maximum(inside * (1 - inside), _LEAST_SPREAD)
    return _square(means, spread, slots.visits, _seen(slots, tested) & (slots.drawn > 0))


def _seen(slots: Rows, tested: BoolArray) -> BoolArray:
    """Rows that enter the test."""
    above: BoolArray = (slots.visits > np.sqrt(slots.visit_noise)) & (slots.visits > 0)
    return above & tested


def _square(shares: FloatArray, spread: FloatArray, visits: FloatArray, seen: BoolArray) -> _Square:
    """Weighted squares around the mean over steps."""
    weight = np.where(seen, visits**2 / np.maximum(spread, 1e-300), 0.0)
    mean = (weight * shares).sum(axis=0) / np.maximum(weight.sum(axis=0), 1e-300)
    value: FloatArray = (weight * (shares - mean) ** 2).sum(axis=0)
    freedom = np.maximum(seen.sum(axis=0) - 1.0, 0.0)
    return _Square(np.where(freedom > 0, value, 0.0), freedom)


def _normal(value: FloatArray, freedom: FloatArray) -> FloatArray:
    """Wilson and Hilferty's normal z of a chi-square; minus infinity without freedom."""
    some = np.maximum(freedom, 1.0)
    z = ((value / some) ** (1 / 3) - (1 - 2 / (9 * some))) / np.sqrt(2 / (9 * some))
    return np.where(freedom > 0, z, -np.inf)
