"""The variance of the estimated value of a row.

The value of a row is r + P·f, where f is the value of the next states. Its estimate has the
variance

    v = [M·(Var_P f + r(1 - r)) + F·sum (f - P·f)² + G + D·(r - anchor)² + (2·reach·M/N)²]
        / (N - 2·sqrt D)²:

sampling (reward bits are Bernoulli), noise on the transition counters (it moves P·f only as far as
f differs between states), noise on the rewards and on the visits, and a lower-order term for rows
seen a few times; ``reach`` is the largest value that is at stake. Only visits that noise does not
explain count in the denominator.
"""

from typing import NamedTuple

import numpy as np

from discreet._types import FloatArray
from discreet.offline.evidence import Rows


class Estimate(NamedTuple):
    """Estimated P·f of rows, and the variance of r + P·f."""

    mean: FloatArray
    variance: FloatArray


def next_value(rows: Rows, probabilities: FloatArray, values: FloatArray, reach: float) -> Estimate:
    """P·f without the reward."""
    mean, square = _next(rows, probabilities, values, reach)
    return Estimate(mean, square / _certain(rows) ** 2)


def row_value(
    rows: Rows,
    probabilities: FloatArray,
    rewards: FloatArray,
    values: FloatArray,
    reach: float,
) -> Estimate:
    """P·f, with the variance of r + P·f.

    Args:
        rows: of one step.
        probabilities: their P.
        rewards: their mean rewards in [0, 1].
        values: f, ``[S]``.
        reach: the steps left.
    """
    mean, square = _next(rows, probabilities, values, reach)
    square = square + rows.drawn * rows.sampling * rewards * (1 - rewards)
    square = square + rows.reward_noise + rows.visit_noise * (rewards - rows.anchor) ** 2
    return Estimate(mean, np.maximum(square, 0.0) / _certain(rows) ** 2)


def _next(
    rows: Rows, probabilities: FloatArray, values: FloatArray, reach: float
) -> tuple[FloatArray, FloatArray]:
    """P·f and the variance of the sum that it is divided from."""
    mean: FloatArray = probabilities @ values
    total: FloatArray = probabilities @ (values * values)
    spread = np.maximum(total - mean * mean, 0.0)
    # The sum over states of (f - P·f)², without an array of that size.
    count, first, second = len(values), values.sum(), (values * values).sum()
    distance = np.maximum(second - 2 * mean * first + count * mean * mean, 0.0)
    few = 2 * reach * rows.sampling / np.maximum(rows.visits, 1e-9)
    square = rows.sampling * spread + rows.transition_noise * distance + few * few
    return mean, square


def _certain(rows: Rows) -> FloatArray:
    return np.maximum(rows.certain, 1e-9)
