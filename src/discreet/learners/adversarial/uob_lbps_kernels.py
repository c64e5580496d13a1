"""The compiled episode loop of Private-UOB-LBPS (paper 004, Algorithm 3)."""

import numpy as np

from discreet._jit import kernel
from discreet._types import Floats, Ints
from discreet.learners.adversarial.barrier_kernels import BarrierState, barrier_step
from discreet.learners.adversarial.episode_kernels import Episodes, expected_loss, update_boxes
from discreet.learners.adversarial.occupancy_kernels import Boxes, upper_occupancy
from discreet.privacy.streams.layered_kernels import add_layered_user

LEAST_BOUND = 1e-12
"""Upper occupancy bounds below this count as this."""


@kernel
def estimate_losses(
    released: Floats, bounds: Floats, widths: Ints, limit: float, centred: bool, out: Floats
) -> None:
    """Importance-weighted losses of one episode, from its released losses l (of visited pairs).

    ``centred``: clip(l - 1/2, -1/2 - E', 1/2 + E')/u; users subtracted the 1/2. Otherwise (4.1) and
    (4.2), (l + E')/(2E' + 1)/u, clipped to [0, 1] before the division (the printed scaling reaches
    beyond with probability delta).
    """
    horizon, _, actions = released.shape
    for h in range(horizon):
        for x in range(widths[h]):
            for a in range(actions):
                if centred:
                    value = min(max(released[h, x, a], -0.5 - limit), 0.5 + limit)
                else:
                    value = min(max((released[h, x, a] + limit) / (2.0 * limit + 1.0), 0.0), 1.0)
                out[h, x, a] = value / max(bounds[h, x, a], LEAST_BOUND)


@kernel
def run_block(
    episodes: Episodes, limit: float, centred: bool, boxes: Boxes, state: BarrierState
) -> int:
    """Episodes of one block; fills expected losses and certificates, returns Newton steps."""
    losses, users = episodes.losses, episodes.users
    bounds, estimate = np.zeros(losses.shape[1:]), np.zeros(losses.shape[1:])
    costs = np.zeros(boxes.lower.shape)
    steps = 0
    for k in range(losses.shape[0]):
        episodes.paid[k] = expected_loss(users.transitions, users.widths, state.policy, losses[k])
        add_layered_user(users, k, state.policy)
        upper_occupancy(boxes, state.policy, bounds)
        estimate_losses(users.public.losses, bounds, users.widths, limit, centred, estimate)
        error, log_iota = episodes.errors[k], episodes.log_iota
        update_boxes(users.public, error, log_iota, episodes.confidence, boxes)
        episodes.gaps[k], more = barrier_step(estimate, episodes.rate, boxes, state, costs)
        steps += more
    return steps
