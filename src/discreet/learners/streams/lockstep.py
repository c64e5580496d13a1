"""Many runs of one learner at once: a grid of 1e8 episodes and 20 runs in minutes.

The runs share nothing but the clock: each has its own generators, so its result does not depend on
which runs go along. The noise has the law of the release, drawn run by run in vector instructions
where possible (see `privacy.mechanisms._lane_noise`). For small problems with any local randomiser
or no privacy; everything else runs one by one through `discreet.learn`. The random numbers are
others than those of `discreet.learn`, so single runs differ; their law does not.
"""

import itertools
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from discreet import _validate
from discreet._seeds import RunSeeds
from discreet._types import Floats
from discreet.errors import InvalidInputError, UnsupportedError
from discreet.learners.base import StreamLearner
from discreet.learners.registry import STREAM, LearnerSpec
from discreet.learners.regret import RegretCurve, record_points
from discreet.learners.result import Result
from discreet.learners.streams.loop import make_learner, stream_result
from discreet.mdp.planning import RegretMeter
from discreet.mdp.policies import DeterministicPolicy
from discreet.mdp.shape import Shape
from discreet.mdp.tabular import TabularMDP
from discreet.privacy.streams.lanes import lane_states, lane_users, side_by_side
from discreet.privacy.trust import TrustModel

if TYPE_CHECKING:  # compiled modules load when used
    from discreet.privacy.streams.lane_users_kernels import LaneScratch

_MOST_POLICIES = 1 << 16
_BLOCK = 1 << 12


@dataclass(frozen=True, kw_only=True)
class LanePlanner:
    """A compiled planner of many runs (see `lane_planner_kernels.lane_planner`) and its needs.

    Attributes:
        plan: the planner.
        generators: of each run; the first breaks ties.
        room: numbers of each run to compute in.
    """

    plan: Callable[..., None]
    generators: int = 1
    room: int = 0


class LaneLearner(StreamLearner):
    """A stream learner that can also plan for many runs at once."""

    @abstractmethod
    def lane_planner(self) -> LanePlanner:
        """`next_policy` for many runs: the same law."""


def lane_spec(
    kind: type[LaneLearner], *, paper: str, trusts: tuple[str, ...] = STREAM
) -> LearnerSpec:
    """The line of such a learner in the roster: it runs alone, and in lockstep."""
    together = partial(run_lockstep, kind)
    return LearnerSpec.of_stream(kind, paper=paper, trusts=trusts, run_lockstep=together)


def run_lockstep(
    kind: type[LaneLearner],
    mdps: Sequence[TabularMDP],
    trust: TrustModel,
    episodes: int,
    seeds: Sequence[RunSeeds],
    **settings: object,
) -> list[Result]:
    """One learner on one MDP per run, all runs at once.

    Args:
        kind: the learner.
        mdps: one stationary MDP per run, of one shape (repeat one MDP for repetitions).
        trust: local with any randomiser, or no privacy.
        episodes: K, of each run.
        seeds: one per run.
        settings: of the learner.
    """
    from discreet.privacy.streams.lane_users_kernels import LaneRegret, run_lanes

    _validate.count(episodes=episodes)
    learner = _learner(kind, mdps, trust, episodes, seeds, settings)
    planner = learner.lane_planner()
    users, scratch = lane_users(mdps, learner.plan, seeds), _scratch(mdps[0].shape, planner, seeds)
    runs, points = len(seeds), record_points(episodes)
    table = side_by_side([all_regrets(mdp) for mdp in mdps])
    regret = LaneRegret(table, np.zeros(runs), points, np.zeros((len(points), runs)))
    for first in range(0, episodes, _BLOCK):
        coefficients = learner.coefficients(np.arange(first, min(first + _BLOCK, episodes)))
        run_lanes(planner.plan, coefficients, users, scratch, regret, first)
    return [
        stream_result(
            learner,
            RegretCurve(points, regret.recorded[:, i].copy()),
            DeterministicPolicy(scratch.actions[:, :, i]),
            seed,
            lockstep=runs,
        )
        for i, seed in enumerate(seeds)
    ]


def _scratch(shape: Shape, planner: LanePlanner, seeds: Sequence[RunSeeds]) -> "LaneScratch":
    from discreet.privacy.streams.lane_users_kernels import LaneScratch

    S, A, H, runs = shape.states, shape.actions, shape.horizon, len(seeds)
    return LaneScratch(
        np.zeros((S * A, S + 2, runs)),
        np.zeros((S, A, runs)),
        np.zeros((H + 1, S, runs)),
        np.zeros(planner.room * runs),
        lane_states(seeds, "policy", planner.generators),
        np.zeros((H, S, runs), np.int64),
    )


def _learner(
    kind: type[LaneLearner],
    mdps: Sequence[TabularMDP],
    trust: TrustModel,
    episodes: int,
    seeds: Sequence[RunSeeds],
    settings: Mapping[str, object],
) -> LaneLearner:
    if not seeds or len(mdps) != len(seeds):
        raise InvalidInputError(f"Expected one MDP per seed, got {len(mdps)} and {len(seeds)}.")
    shape = mdps[0].shape
    if any(mdp.shape != shape or not mdp.stationary for mdp in mdps):
        raise InvalidInputError("Expected stationary MDPs of one shape in one lockstep run.")
    policies = shape.actions ** (shape.states * shape.horizon)
    if policies > _MOST_POLICIES:
        raise UnsupportedError(
            f"Lockstep runs tabulate the regret of every policy: {policies} are more than "
            f"{_MOST_POLICIES}; run them one by one with discreet.learn."
        )
    return make_learner(
        kind, mdps[0], trust, episodes, np.random.default_rng(0), {**settings, "stationary": True}
    )


def all_regrets(mdp: TabularMDP) -> Floats:
    """The regret of every deterministic policy; policy number n has the digits n in base A."""
    shape = mdp.shape
    meter = RegretMeter(mdp)
    size = shape.horizon * shape.states
    choices = itertools.product(range(shape.actions), repeat=size)
    form = (shape.horizon, shape.states)
    return np.array([meter.regret(np.array(c, np.int64).reshape(form)) for c in choices])
