"""The compiled episode loop of Private-UC-O-REPS (paper 004, Algorithm 1)."""

import numpy as np

from discreet._jit import kernel
from discreet.learners.adversarial.entropy_kernels import EntropyState, solve_entropy
from discreet.learners.adversarial.episode_kernels import expected_loss, update_boxes
from discreet.learners.adversarial.occupancy_kernels import Boxes, Floats
from discreet.privacy.streams.layered_kernels import LayeredUsers, add_layered_user


@kernel
def run_block(
    losses: Floats,
    users: LayeredUsers,
    errors: Floats,
    log_iota: float,
    confidence: float,
    rate: float,
    boxes: Boxes,
    state: EntropyState,
    warm: bool,
    paid: Floats,
    gaps: Floats,
) -> int:
    """Episodes of one block; fills expected losses and certificates, returns Newton steps.

    ``state.policy`` is the policy of the next episode, before and after.
    """
    costs = np.empty(losses.shape[1:])
    steps = 0
    for k in range(losses.shape[0]):
        paid[k] = expected_loss(users.transitions, users.widths, state.policy, losses[k])
        add_layered_user(users, k, state.policy)
        update_boxes(users.public, errors[k], log_iota, confidence, boxes)
        costs[:] = rate * users.public.losses
        gaps[k], more = solve_entropy(costs, boxes, state, warm or k > 0)
        steps += more
    return steps
