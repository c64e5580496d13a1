"""Compiled pieces shared by the adversarial learners: confidence boxes, losses, comparators."""

import math
from typing import NamedTuple

import numpy as np

from discreet._jit import kernel
from discreet._types import Floats, Ints
from discreet.learners.adversarial.occupancy_kernels import Boxes
from discreet.privacy.postprocess.valid_counts_kernels import valid_row
from discreet.privacy.streams.layered_kernels import LayeredCounters, LayeredUsers


class Episodes(NamedTuple):
    """Some consecutive episodes, and what a learner's loop leaves of each.

    Attributes:
        losses: ``[n, H, W, A]``, what the regret is measured on.
        users: who plays them, seen through their release.
        errors: ``[n]``, E of the release after each episode.
        confidence: multiplier on the width of the boxes.
        log_iota: ln(XAK/delta).
        rate: eta.
        paid: ``[n]``, expected losses, filled.
        gaps: ``[n]``, certificates, filled.
    """

    losses: Floats
    users: LayeredUsers
    errors: Floats
    confidence: float
    log_iota: float
    rate: float
    paid: Floats
    gaps: Floats


@kernel
def update_boxes(
    public: LayeredCounters, error: float, log_iota: float, confidence: float, boxes: Boxes
) -> None:
    """Confidence boxes (3.1) from the released counts of all pairs.

    Released counts are made consistent as in (5.1) and (5.2): a valid distribution with a total
    within E/4 of the noisy visits, then E/2 in all on top; E = ``error`` (zero without privacy).
    The width is confidence·(sqrt(2·P(1-P)·ln iota/N) + (4E + 7·ln iota)/N): the root covers the
    first term only, as in the paper's proof (the printed (3.1) extends it over both).
    """
    horizon, width, actions, _ = public.transitions.shape
    valid = np.empty(width)
    for h in range(horizon):
        n = boxes.widths[h + 1]
        for x in range(boxes.widths[h]):
            for a in range(actions):
                visits, row = public.visits[h, x, a], public.transitions[h, x, a, :n]
                if error > 0.0:
                    valid_row(row, visits - error / 4, visits + error / 4, valid[:n])
                    visits = 0.0
                    for y in range(n):
                        valid[y] += error / (2 * n)
                        visits += valid[y]
                else:
                    for y in range(n):
                        valid[y] = row[y]
                for y in range(n):
                    centre, radius = 1.0 / n, 1.0
                    if visits > 0.0:
                        centre = valid[y] / visits
                        radius = confidence * (
                            math.sqrt(2.0 * centre * (1.0 - min(centre, 1.0)) * log_iota / visits)
                            + (4.0 * error + 7.0 * log_iota) / visits
                        )
                    boxes.lower[h, x, a, y] = max(centre - radius, 0.0)
                    boxes.upper[h, x, a, y] = min(centre + radius, 1.0)


@kernel
def expected_loss(transitions: Floats, widths: Ints, policy: Floats, losses: Floats) -> float:
    """V(policy, losses) in the true model, equation (2.1)."""
    horizon, width, actions = policy.shape
    reach, ahead = np.zeros(width), np.zeros(width)
    reach[0] = 1.0
    total = 0.0
    for h in range(horizon):
        ahead[:] = 0.0
        for x in range(widths[h]):
            if reach[x] > 0.0:
                for a in range(actions):
                    mass = reach[x] * policy[h, x, a]
                    total += mass * losses[h, x, a]
                    if h + 1 < horizon:
                        for y in range(widths[h + 1]):
                            ahead[y] += mass * transitions[h, x, a, y]
        reach, ahead = ahead, reach
    return total


@kernel
def least_loss(transitions: Floats, widths: Ints, losses: Floats) -> float:
    """Min over policies of V(policy, losses): the best fixed policy in hindsight."""
    horizon, width, actions = losses.shape
    values, ahead = np.zeros(width), np.zeros(width)
    for h in range(horizon - 1, -1, -1):
        for x in range(widths[h]):
            best = np.inf
            for a in range(actions):
                value = losses[h, x, a]
                for y in range(widths[h + 1]):
                    value += transitions[h, x, a, y] * ahead[y]
                best = min(best, value)
            values[x] = best
        values, ahead = ahead, values
    return float(ahead[0])
