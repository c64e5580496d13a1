"""Convex problems over occupancy measures with transitions in confidence boxes.

Three problems, each solved by a compiled kernel that exploits the layers (see `entropy_kernels`,
`barrier_kernels` and `occupancy_kernels` for the mathematics), each checked on every solve by its
duality gap. The learners call the kernels inside their compiled episode loops; these functions are
the same solvers for one problem at a time.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from discreet._types import Floats
from discreet.errors import InvalidInputError, SolverError
from discreet.learners.adversarial.barrier_kernels import barrier_state, barrier_step
from discreet.learners.adversarial.entropy_kernels import entropy_state, row_major, solve_entropy
from discreet.learners.adversarial.occupancy_kernels import (
    Boxes,
    state_action_occupancy,
    upper_occupancy,
)

GAP_LIMIT = 1e-3
"""A solve that misses its certificate by more than this is an error; most gaps are below 1e-8."""


@dataclass(frozen=True, eq=False)
class OccupancySolution:
    """A feasible solution and how far its objective can be from the optimum.

    Attributes:
        policy: ``[H, X, A]``.
        transitions: ``[H, X, A, X]``, inside the boxes.
        occupancy: ``[H, X, A, X]``, of the policy under these transitions.
        gap: duality gap: the objective is within it of the optimum.
        steps: Newton steps.
    """

    policy: Floats
    transitions: Floats
    occupancy: Floats
    gap: float
    steps: int


def confidence_boxes(widths: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> Boxes:
    """Boxes around the transitions of a layered problem, checked.

    Args:
        widths: ``(H + 1,)``, states in each layer.
        lower: ``(H, X, A, X)``, padded to the widest layer.
        upper: the same shape.
    """
    boxes = Boxes(
        np.array(widths, np.int64),
        np.ascontiguousarray(lower, np.float64),
        np.ascontiguousarray(upper, np.float64),
    )
    horizon, widest = len(boxes.widths) - 1, int(boxes.widths.max())
    expected = (horizon, widest, boxes.lower.shape[2] if boxes.lower.ndim == 4 else "A", widest)
    if boxes.lower.shape != expected or boxes.upper.shape != expected:
        raise InvalidInputError(
            f"Expected boxes of shape {expected}, got {boxes.lower.shape} and {boxes.upper.shape}."
        )
    for h in range(horizon):
        here, ahead = boxes.widths[h], boxes.widths[h + 1]
        low, high = boxes.lower[h, :here, :, :ahead], boxes.upper[h, :here, :, :ahead]
        if (low < 0).any() or (low > high).any():
            raise InvalidInputError(f"Expected 0 <= lower <= upper in layer {h}.")
        if (low.sum(-1) > 1 + 1e-9).any() or (high.sum(-1) < 1 - 1e-9).any():
            raise InvalidInputError(
                f"Expected a distribution in every box of layer {h}, but lower bounds sum to more "
                f"than one or upper bounds to less."
            )
    return boxes


def entropy_ftrl(costs: ArrayLike, boxes: Boxes) -> OccupancySolution:
    """Minimise <costs, q> + sum q ln q: follow the regularised leader, costs = eta·losses.

    >>> boxes = confidence_boxes([1, 2, 1], np.zeros((2, 2, 2, 2)), np.ones((2, 2, 2, 2)))
    >>> free = entropy_ftrl(np.zeros((2, 2, 2)), boxes)
    >>> free.policy[0, 0].tolist(), free.occupancy[0, 0, 0].tolist()
    ([0.5, 0.5], [0.25, 0.25])
    """
    given = _checked_costs(costs, boxes)
    state = entropy_state(boxes.widths, given.shape[2])
    gap, steps = solve_entropy(given, boxes, state, False)
    return _solution(state.policy, row_major(state), boxes, gap, steps)


def barrier_update(
    losses: ArrayLike, rate: float, occupancy: ArrayLike, boxes: Boxes
) -> OccupancySolution:
    """Minimise rate·<losses, q> + D(q || occupancy), D the Bregman divergence of -sum ln q.

    Args:
        losses: ``(H, X, A)``; rate·losses + 1/occupancy must be positive.
        rate: the learning rate eta.
        occupancy: ``(H, X, A, X)``, the current iterate, positive.
        boxes: where the transitions of the result must lie.
    """
    given = _checked_costs(losses, boxes)
    state = barrier_state(boxes.widths, given.shape[2])
    state.occupancy[:] = occupancy
    price = rate * given[..., None] + 1 / state.occupancy
    if not (price > 0).all():
        raise InvalidInputError(
            "Expected rate·losses + 1/occupancy > 0; use a smaller rate or clip negative losses."
        )
    gap, steps = barrier_step(given, float(rate), boxes, state, np.zeros_like(boxes.lower))
    return _solution(state.policy, state.transitions, boxes, gap, steps)


def upper_occupancy_bounds(policy: ArrayLike, boxes: Boxes) -> Floats:
    """``[H, X, A]``: the largest probability of each (x, a) over all transitions in the boxes."""
    given = np.ascontiguousarray(policy, np.float64)
    bounds = np.zeros(given.shape)
    upper_occupancy(boxes, given, bounds)
    return bounds


def check_gap(gap: float, episode: int | None = None) -> None:
    """Raise if a solve missed its certificate.

    Raises:
        SolverError: the gap exceeds `GAP_LIMIT`.
    """
    if not gap <= GAP_LIMIT:
        where = "" if episode is None else f" in episode {episode}"
        raise SolverError(
            f"The occupancy solver stopped{where} with a duality gap of {gap:.3g} > {GAP_LIMIT}; "
            f"use a smaller learning rate or larger epsilon."
        )


def _checked_costs(costs: ArrayLike, boxes: Boxes) -> Floats:
    given = np.array(costs, np.float64)
    if given.shape != boxes.lower.shape[:3] or not np.isfinite(given).all():
        raise InvalidInputError(
            f"Expected finite costs of shape {boxes.lower.shape[:3]}, got shape {given.shape}."
        )
    return given


def _solution(
    policy: Floats, transitions: Floats, boxes: Boxes, gap: float, steps: int
) -> OccupancySolution:
    check_gap(gap)
    pairs = np.zeros(policy.shape)
    state_action_occupancy(transitions, policy, boxes.widths, pairs)
    occupancy = pairs[..., None] * transitions
    for h, ahead in enumerate(boxes.widths[1:]):
        occupancy[h, :, :, ahead:] = 0.0
        occupancy[h, boxes.widths[h] :] = 0.0
    return OccupancySolution(policy, transitions, occupancy, float(gap), steps)
