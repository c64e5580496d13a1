"""The compiled episode loop of Private-UC-O-REPS (paper 004, Algorithm 1)."""

import numpy as np

from discreet._jit import kernel
from discreet.learners.adversarial.entropy_kernels import EntropyState, solve_entropy
from discreet.learners.adversarial.episode_kernels import (
    TrueCounts,
    expected_loss,
    sample_episode,
    update_boxes,
)
from discreet.learners.adversarial.occupancy_kernels import Boxes, Floats, Integers


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
    counts: TrueCounts,
    total: Floats,
    boxes: Boxes,
    state: EntropyState,
    warm: bool,
    paid: Floats,
    gaps: Floats,
) -> int:
    """Episodes of one block; fills expected losses and certificates, returns Newton steps.

    ``total`` are the reported losses summed so far; ``state.policy`` is the policy of the next
    episode, before and after.
    """
    episodes, horizon, _, _ = losses.shape
    path = np.empty((horizon, 2), np.int64)
    costs = np.empty(total.shape)
    steps = 0
    for k in range(episodes):
        paid[k] = expected_loss(transitions, widths, state.policy, losses[k])
        sample_episode(transitions, widths, state.policy, uniforms[k], counts, path)
        total += reported[k]
        update_boxes(
            counts, transition_noise[k], visit_noise[k], errors[k], log_iota, confidence, boxes
        )
        costs[:] = rate * (total + loss_noise[k])
        gaps[k], more = solve_entropy(costs, boxes, state, warm or k > 0)
        steps += more
    return steps
