"""The compiled episode loop of Private-UC-O-REPS (paper 004, Algorithm 1)."""

import numpy as np

from discreet._jit import kernel
from discreet.learners.adversarial.entropy_kernels import EntropyState, scale_losses, solve_entropy
from discreet.learners.adversarial.episode_kernels import Episodes, expected_loss, update_boxes
from discreet.learners.adversarial.occupancy_kernels import Boxes
from discreet.privacy.streams.layered_kernels import add_layered_user


@kernel
def run_block(episodes: Episodes, boxes: Boxes, state: EntropyState, warm: bool) -> int:
    """Episodes of one block; fills expected losses and certificates, returns Newton steps.

    ``state.policy`` is the policy of the next episode, before and after.
    """
    losses, users = episodes.losses, episodes.users
    costs = np.empty(losses.shape[1:])
    steps = 0
    for k in range(losses.shape[0]):
        episodes.paid[k] = expected_loss(users.transitions, users.widths, state.policy, losses[k])
        add_layered_user(users, k, state.policy)
        error, log_iota = episodes.errors[k], episodes.log_iota
        update_boxes(users.public, error, log_iota, episodes.confidence, boxes)
        scale_losses(users.public.losses, episodes.rate, costs)
        episodes.gaps[k], more = solve_entropy(costs, boxes, state, warm or k > 0)
        steps += more
    return steps
