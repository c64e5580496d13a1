"""One problem over occupancy measures at a time: what the kernels of learners do in loops."""

from dataclasses import dataclass

import numpy as np

from discreet.adversarial.barrier import barrier_state, barrier_step
from discreet.adversarial.entropy import entropy_state, solve_entropy
from discreet.adversarial.occupancy import Boxes, check_gap, upper_occupancy
from discreet.mdp.dense import occupancy


def rolled(transitions, policy):
    """``[H, X, A]``, from the one state of the first layer."""
    return occupancy(transitions, np.eye(1, policy.shape[1])[0], policy)


@dataclass(frozen=True, eq=False)
class OccupancySolution:
    """A feasible solution and how far its objective can be from the optimum."""

    policy: np.ndarray  # [H, X, A]
    transitions: np.ndarray  # [H, X, A, X], inside the boxes
    occupancy: np.ndarray  # [H, X, A, X], of the policy under these transitions
    gap: float  # duality gap: the objective is within it of the optimum
    steps: int  # of Newton


def confidence_boxes(widths, lower, upper):
    """Boxes around the transitions of a layered problem."""
    low, high = (np.ascontiguousarray(part, np.float64) for part in (lower, upper))
    return Boxes(np.array(widths, np.int64), low, high)


def upper_occupancy_bounds(policy, boxes):
    """``[H, X, A]``: the largest probability of each (x, a) over all transitions in the boxes."""
    given = np.ascontiguousarray(policy, np.float64)
    bounds = np.zeros(given.shape)
    upper_occupancy(boxes, given, bounds)
    return bounds


def row_major(state):
    """The transitions of a solution as ``[H, X, A, X']``."""
    horizon, width, actions = state.policy.shape
    split = state.transitions.reshape(horizon, width, width, actions)
    return np.ascontiguousarray(np.moveaxis(split, 1, 3))


def entropy_ftrl(costs, boxes):
    """Minimise <costs, q> + sum q ln q."""
    state = entropy_state(boxes.widths, np.shape(costs)[2])
    gap, steps = solve_entropy(np.array(costs, np.float64), boxes, state, False)
    return solution(state.policy, row_major(state), boxes, gap, steps)


def barrier_update(losses, rate, occupied, boxes):
    """Minimise rate·<losses, q> + D(q || occupied), D the Bregman divergence of -sum ln q."""
    state, given = barrier_state(boxes.widths, losses.shape[2]), np.array(losses, np.float64)
    state.occupancy[:] = occupied
    gap, steps = barrier_step(given, float(rate), boxes, state, np.zeros_like(boxes.lower))
    return solution(state.policy, state.transitions, boxes, gap, steps)


def solution(policy, transitions, boxes, gap, steps):
    check_gap(gap)
    real = np.arange(transitions.shape[3]) < boxes.widths[1:, None, None, None]
    inside = np.where(real, transitions, 0.0)
    occupied = rolled(inside, policy)[..., None] * inside
    return OccupancySolution(policy, transitions, occupied, float(gap), steps)
