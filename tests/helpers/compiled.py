"""Room for the compiled stream loop, without a learner."""

import numpy as np

from discreet.privacy.streams.kernels import Scratch


def scratch_of(plan, shape):
    """Memory, model and values for planners of one plan."""
    groups = 1 if plan.stationary else shape.horizon
    return Scratch(
        np.zeros((1, *shape.visits)),
        np.zeros((groups, shape.states, shape.actions, shape.states + 3)),
        np.zeros((shape.horizon + 1, shape.states)),
    )
