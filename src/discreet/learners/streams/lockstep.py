"""Many runs of LDP-OBI at once: the paper's grid (1e8 episodes, 20 runs) in minutes.

The runs share nothing but the clock: each has its own generators, so its result does not depend on
which runs go along. The noise has the law of the release, drawn run by run in vector instructions
where possible (see `privacy.mechanisms.lane_noise`). For small problems with any local randomiser
or no privacy; everything else runs one by one through `discreet.learn`. The random numbers are
others than those of `discreet.learn`, so single runs differ; their law does not.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet._seeds import RunSeeds
from discreet.errors import InvalidInputError, UnsupportedError
from discreet.learners.regret import RegretCurve, record_points
from discreet.learners.result import Result
from discreet.learners.streams.ldp_obi import LdpObi
from discreet.learners.streams.loop import make_learner, stream_result
from discreet.mdp.planning import RegretMeter
from discreet.mdp.policies import DeterministicPolicy
from discreet.mdp.tabular import TabularMDP
from discreet.privacy.mechanisms.lane_noise import LaneNoise, lane_noise
from discreet.privacy.trust import TrustModel

Floats = NDArray[np.float64]

_MOST_POLICIES = 1 << 16
_BLOCK = 1 << 12


def run_lockstep(
    mdps: Sequence[TabularMDP],
    trust: TrustModel,
    episodes: int,
    seeds: Sequence[RunSeeds],
    **settings: Any,
) -> list[Result]:
    """LDP-OBI on one MDP per run, all runs at once.

    Args:
        mdps: one stationary MDP per run, of one shape (repeat one MDP for repetitions).
        trust: local with any randomiser, or no privacy.
        episodes: K, of each run.
        seeds: one per run.
        settings: of ``ldp-obi``.
    """
    from discreet.learners.streams.lockstep_kernels import run_lanes

    _validate.count(episodes=episodes)
    learner = _learner(mdps, trust, episodes, seeds, settings)
    noise = lane_noise(learner.plan)
    law = (noise.kind, noise.scale, noise.low, noise.cut, noise.other)
    lanes = _Lanes(mdps, seeds, noise, record_points(episodes))
    for first in range(0, episodes, _BLOCK):
        rows = learner.coefficients(np.arange(first, min(first + _BLOCK, episodes)))
        arguments = (rows, *law, *lanes.arrays(), first, *lanes.records())
        run_lanes(*arguments)
    return [
        stream_result(
            learner,
            RegretCurve(lanes.points, lanes.recorded[:, i].copy()),
            DeterministicPolicy(lanes.actions[:, :, i]),
            seed,
            lockstep=len(seeds),
        )
        for i, seed in enumerate(seeds)
    ]


def _learner(
    mdps: Sequence[TabularMDP],
    trust: TrustModel,
    episodes: int,
    seeds: Sequence[RunSeeds],
    settings: dict[str, Any],
) -> LdpObi:
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
    return make_learner(  # type: ignore[return-value]
        LdpObi, mdps[0], trust, episodes, np.random.default_rng(0), {**settings, "stationary": True}
    )


class _Lanes:
    """The arrays of all runs, the run as the last axis."""

    def __init__(
        self,
        mdps: Sequence[TabularMDP],
        seeds: Sequence[RunSeeds],
        noise: LaneNoise,
        points: NDArray[np.int64],
    ) -> None:
        shape, runs = mdps[0].shape, len(seeds)
        S, A, H = shape.states, shape.actions, shape.horizon
        cells = S * A * (S + 2)
        self.world = (
            _stack([np.cumsum(mdp.transitions[0], axis=-1) for mdp in mdps]),
            _stack([mdp.rewards[0] for mdp in mdps]),
            _stack([np.cumsum(mdp.initial) for mdp in mdps]),
            _stack([all_regrets(mdp) for mdp in mdps]),
        )
        self.counts = tuple(np.zeros((cells, runs)) for _ in range(3))
        users = _states(seeds, "noise", noise.draws + noise.answers)
        self.generators = (
            np.ascontiguousarray(users[:, : noise.draws * runs]),
            np.ascontiguousarray(users[:, noise.draws * runs :]),
            _states(seeds, "environment", 2 * H + 1),
            _states(seeds, "policy", 1),
        )
        self.actions = np.zeros((H, S, runs), np.int64)
        self.scratch = (
            np.zeros((noise.draws, runs)),
            np.zeros((S * A, S + 2, runs)),
            np.zeros((S, A, runs)),
            np.zeros((H + 1, S, runs)),
        )
        self.totals = np.zeros(runs)
        self.points = points
        self.recorded = np.zeros((len(points), runs))

    def arrays(self) -> tuple[Any, ...]:
        """What `run_lanes` changes and reads, in its order."""
        return (
            *self.world,
            *self.counts,
            *self.generators,
            *self.scratch,
            self.actions,
            self.totals,
        )

    def records(self) -> tuple[Any, ...]:
        """Where regret is recorded."""
        return self.points, self.recorded


def _stack(arrays: list[Floats]) -> Floats:
    return np.ascontiguousarray(np.stack(arrays, axis=-1))


def _states(seeds: Sequence[RunSeeds], purpose: str, width: int) -> NDArray[np.uint64]:
    """``[4, width·runs]``: generator w of run i at w·runs + i, whatever the other runs are."""
    each = [
        seed.sequence(purpose).generate_state(4 * width, np.uint64).reshape(4, width)
        for seed in seeds
    ]
    return np.ascontiguousarray(np.stack(each, axis=-1).reshape(4, -1))


def all_regrets(mdp: TabularMDP) -> Floats:
    """The regret of every deterministic policy; policy number n has the digits n in base A."""
    shape = mdp.shape
    meter = RegretMeter(mdp)
    size = shape.horizon * shape.states
    choices = itertools.product(range(shape.actions), repeat=size)
    form = (shape.horizon, shape.states)
    return np.array([meter.regret(np.array(c, np.int64).reshape(form)) for c in choices])
