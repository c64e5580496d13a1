"""The compiled episode loop of Private-UOB-LBPS (paper 004, Algorithm 3)."""

import numpy as np

from discreet._jit import kernel
from discreet.learners.adversarial.barrier_kernels import BarrierState, barrier_step
from discreet.learners.adversarial.episode_kernels import (
    TrueCounts,
    expected_loss,
    sample_episode,
    update_boxes,
)
from discreet.learners.adversarial.occupancy_kernels import Boxes, Floats, Integers, upper_occupancy

LEAST_BOUND = 1e-12
"""Upper occupancy bounds below this count as this."""


@kernel
def estimate_losses(
    path: Integers,
    reported: Floats,
    noise: Floats,
    bounds: Floats,
    widths: Integers,
    limit: float,
    centred: bool,
    out: Floats,
) -> None:
    """Importance-weighted losses of one episode.

    ``centred``: clip(l - 1/2, -1/2 - E', 1/2 + E')/u. Otherwise (4.1) and (4.2),
    (l + E')/(2E' + 1)/u, clipped to [0, 1] before the division (the printed scaling reaches beyond
    with probability delta).
    """
    horizon, _, actions = reported.shape
    for h in range(horizon):
        for x in range(widths[h]):
            for a in range(actions):
                out[h, x, a] = noise[h, x, a]
    for h in range(horizon):
        x, a = path[h]
        out[h, x, a] += reported[h, x, a] - (0.5 if centred else 0.0)
    for h in range(horizon):
        for x in range(widths[h]):
            for a in range(actions):
                if centred:
                    value = min(max(out[h, x, a], -0.5 - limit), 0.5 + limit)
                else:
                    value = min(max((out[h, x, a] + limit) / (2.0 * limit + 1.0), 0.0), 1.0)
                out[h, x, a] = value / max(bounds[h, x, a], LEAST_BOUND)


@kernel
def run_block(
    transitions: Floats,
    widths: Integers,
    losses: Floats,
    reported: Floats,
    uniforms: Floats,
    transition_noise: Floats,
    visit_noise: Floats,
    loss_noise: Floats,
    errors: Floats,
    log_iota: float,
    confidence: float,
    rate: float,
    limit: float,
    centred: bool,
    counts: TrueCounts,
    boxes: Boxes,
    state: BarrierState,
    paid: Floats,
    gaps: Floats,
) -> int:
    """Episodes of one block; fills expected losses and certificates, returns Newton steps."""
    episodes, horizon, _, _ = losses.shape
    path = np.empty((horizon, 2), np.int64)
    bounds, estimate = np.zeros(losses.shape[1:]), np.zeros(losses.shape[1:])
    costs = np.zeros(boxes.lower.shape)
    steps = 0
    for k in range(episodes):
        paid[k] = expected_loss(transitions, widths, state.policy, losses[k])
        sample_episode(transitions, widths, state.policy, uniforms[k], counts, path)
        upper_occupancy(boxes, state.policy, bounds)
        estimate_losses(path, reported[k], loss_noise[k], bounds, widths, limit, centred, estimate)
        update_boxes(
            counts, transition_noise[k], visit_noise[k], errors[k], log_iota, confidence, boxes
        )
        gaps[k], more = barrier_step(estimate, rate, boxes, state, costs)
        steps += more
    return steps
