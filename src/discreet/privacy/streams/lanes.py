"""The users of many runs in lockstep, for every local randomiser or none.

The runs share nothing but the clock: each has its own generators, so that what happens in it does
not depend on which runs go along.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from discreet._seeds import RunSeeds
from discreet._types import FloatArray, NumberArray, WordArray
from discreet.errors import UnsupportedError
from discreet.mdp.tabular import TabularMDP
from discreet.privacy.mechanisms._lane_noise import FLIPS, LaneNoise, LanePlan
from discreet.privacy.plans import StreamPlan

if TYPE_CHECKING:  # compiled modules load when used
    from discreet.privacy.streams.lane_users_kernels import Generators, LaneUsers, Twice


def lane_users(
    mdps: Sequence[TabularMDP], plan: StreamPlan, seeds: Sequence[RunSeeds]
) -> "LaneUsers":
    """Before the first episode; one MDP and one seed per run."""
    from discreet.privacy.streams.lane_users_kernels import LaneLaw, LaneUsers

    noise, runs = lane_noise(plan), len(seeds)
    cells = plan.cells
    drawn = lane_states(seeds, "noise", noise.draws + noise.answers)
    return LaneUsers(
        law=LaneLaw(*(getattr(noise, name) for name in LaneLaw._fields)),
        cumulative=_twice(side_by_side([np.cumsum(m.transitions[0], axis=-1) for m in mdps])),
        means=_twice(side_by_side([mdp.rewards[0] for mdp in mdps])),
        start=_twice(side_by_side([np.cumsum(mdp.initial) for mdp in mdps])),
        raw=_twice(np.zeros((cells, runs))),
        noise=_twice(np.zeros((cells, runs))),
        public=_twice(np.zeros((cells, runs))),
        fresh=_twice(np.zeros((noise.draws, runs))),
        uniforms=_twice(np.zeros((2 * plan.shape.horizon + 1, runs))),
        answers=_twice(np.zeros((noise.answers, runs))),
        asked=np.zeros((cells if noise.kind == FLIPS else 0, runs)),
        noise_states=np.ascontiguousarray(drawn[:, : noise.draws * runs]),
        answer_states=_generators(drawn[:, noise.draws * runs :]),
        world_states=_generators(lane_states(seeds, "environment", 2 * plan.shape.horizon + 1)),
    )


def lane_noise(plan: StreamPlan) -> LaneNoise:
    """What a run of this plan draws per episode.

    Raises:
        UnsupportedError: it cannot run in lockstep.
    """
    private = plan.guarantee.notion != "none"
    if isinstance(plan, LanePlan) and (plan.stationary or not private):
        return plan.lane_noise()
    raise UnsupportedError(
        f"Lockstep runs use a local randomiser on pooled counters or no privacy, got "
        f"{plan.mechanism!r} under {plan.guarantee.notion}; run others one by one with "
        f"discreet.learn."
    )


def lane_states(seeds: Sequence[RunSeeds], purpose: str, width: int) -> WordArray:
    """``[4, width·runs]``: generator w of run i at w·runs + i, whatever the other runs are."""
    each = [
        seed.sequence(purpose).generate_state(4 * width, np.uint64).reshape(4, width)
        for seed in seeds
    ]
    return np.ascontiguousarray(np.stack(each, axis=-1).reshape(4, -1))


def side_by_side(arrays: Sequence[NumberArray]) -> FloatArray:
    """Arrays of single runs as one, the run as the last axis."""
    return np.ascontiguousarray(np.stack(arrays, axis=-1))


def _twice(table: FloatArray) -> "Twice":
    from discreet.privacy.streams.lane_users_kernels import Twice

    return Twice(table, table.reshape(table.size))


def _generators(states: WordArray) -> "Generators":
    from discreet.privacy.streams.lane_users_kernels import Generators

    return Generators(*(np.ascontiguousarray(word) for word in states))
