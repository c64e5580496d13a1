"""How many users a batch of the first flow-ucb has (rule in `learner`), and its noise.

Rules are copied from the library as it was, so that what is compared with does not change with it.
What is no rule is imported from today's flow-ucb: the noise of a plan, the variance that the flow
leaves in visits, a bisection and a rounding have one right value each, whoever asks
(`tests/test_comparison.py` holds the results).
"""

import numpy as np

from discreet._types import FloatArray
from discreet.learners.flow_ucb.sizing import Noise, rounded, smallest
from discreet.learners.flow_ucb.visit_noise import plan_factors

__all__ = ["Noise", "credit", "goal", "most_users", "plan_factors", "rounded", "smallest"]

PROMISED = 0.5
"""A batch's goal is measured against at most this share of the value that its policy promises."""


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
