"""Compiled pieces shared by the adversarial learners: episodes, confidence boxes, comparators."""

import math
from typing import NamedTuple

import numpy as np

from discreet._jit import kernel
from discreet.learners.adversarial.occupancy_kernels import Boxes, Floats, Integers
from discreet.privacy.postprocess.valid_counts_kernels import valid_row


class TrueCounts(NamedTuple):
    """Raw cumulative counts of a run: only ever seen through a release."""

    transitions: Floats
    visits: Floats


def no_counts(shape: tuple[int, ...]) -> TrueCounts:
    """Before the first episode; ``shape`` is (H, W, A, W)."""
    return TrueCounts(np.zeros(shape), np.zeros(shape[:3]))


@kernel
def sample_episode(
    transitions: Floats,
    widths: Integers,
    policy: Floats,
    uniforms: Floats,
    counts: TrueCounts,
    path: Integers,
) -> None:
    """One user: adds the trajectory to ``counts`` and writes (x, a) per step to ``path[H, 2]``.

    ``uniforms[H, 2]``: the draws of the policy and of the environment.
    """
    horizon, _, actions = policy.shape
    x = 0
    for h in range(horizon):
        a = _draw(policy[h, x], actions, uniforms[h, 0])
        y = _draw(transitions[h, x, a], widths[h + 1], uniforms[h, 1])
        counts.visits[h, x, a] += 1.0
        counts.transitions[h, x, a, y] += 1.0
        path[h, 0], path[h, 1] = x, a
        x = y


@kernel
def _draw(probabilities: Floats, n: int, uniform: float) -> int:
    """Index i with probability ``probabilities[i]``; rounding falls on the last possible one."""
    total, last = 0.0, 0
    for i in range(n):
        if probabilities[i] > 0.0:
            total += probabilities[i]
            last = i
            if uniform < total:
                return i
    return last


@kernel
def update_boxes(
    counts: TrueCounts,
    transition_noise: Floats,
    visit_noise: Floats,
    error: float,
    log_iota: float,
    confidence: float,
    boxes: Boxes,
) -> None:
    """Confidence boxes (3.1) from the released counts of all pairs.

    Released counts are made consistent as in (5.1) and (5.2): a valid distribution with a total
    within E/4 of the noisy visits, then E/2 in all on top; E = ``error`` (zero without privacy).
    The width is confidence·(sqrt(2·P(1-P)·ln iota/N) + (4E + 7·ln iota)/N): the root covers the
    first term only, as in the paper's proof (the printed (3.1) extends it over both).
    """
    horizon, width, actions, _ = counts.transitions.shape
    noisy, valid = np.empty(width), np.empty(width)
    for h in range(horizon):
        n = boxes.widths[h + 1]
        for x in range(boxes.widths[h]):
            for a in range(actions):
                visits = counts.visits[h, x, a]
                if error > 0.0:
                    visits += visit_noise[h, x, a]
                    for y in range(n):
                        noisy[y] = counts.transitions[h, x, a, y] + transition_noise[h, x, a, y]
                    valid_row(noisy[:n], visits - error / 4, visits + error / 4, valid[:n])
                    visits = 0.0
                    for y in range(n):
                        valid[y] += error / (2 * n)
                        visits += valid[y]
                else:
                    for y in range(n):
                        valid[y] = counts.transitions[h, x, a, y]
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
def expected_loss(transitions: Floats, widths: Integers, policy: Floats, losses: Floats) -> float:
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
        reach[:] = ahead
    return total


@kernel
def least_loss(transitions: Floats, widths: Integers, losses: Floats) -> float:
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
        ahead[:] = values
    return float(ahead[0])
