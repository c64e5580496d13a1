"""The learning curve of the real thing, and those of simulated runs of the same learner.

Regret is exact and expected: what the policies of the manifests lose in the true model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from discreet._types import FloatArray, IntArray
from discreet.learners.learn import learn
from discreet.learners.regret import RegretCurve, RegretRecorder
from discreet.mdp.planning import RegretMeter
from discreet.mdp.policies import DeterministicPolicy
from discreet.mdp.tabular import TabularMDP
from discreet.service.demo.arrangement import LEARNER, Arrangement
from discreet.service.protocol.manifest import Manifest

INTERVAL = (2.5, 97.5)
"""Percentiles of single simulated runs: nineteen of twenty runs lie between them."""


@dataclass(frozen=True, eq=False)
class Spread:
    """Where simulated runs lie: percentiles at some numbers of users."""

    users: IntArray
    low: FloatArray
    middle: FloatArray
    high: FloatArray
    finals: FloatArray

    @property
    def interval(self) -> tuple[float, float]:
        """Of the regret after all users."""
        low, high = np.percentile(self.finals, INTERVAL)
        return float(low), float(high)


def real_curve(mdp: TabularMDP, counted: Sequence[Manifest]) -> RegretCurve:
    """Of the batches that were counted."""
    meter = RegretMeter(mdp)
    recorder = RegretRecorder(sum(manifest.users for manifest in counted))
    for manifest in counted:
        loss = meter.regret(DeterministicPolicy(np.array(manifest.policy)))
        recorder.add(manifest.users, loss)
    return recorder.curve()


def final(curve: RegretCurve) -> float:
    """The regret of all users."""
    return float(curve.values[-1])


def simulate(
    arrangement: Arrangement, runs: int, tell: Callable[[int], object] = lambda _: None
) -> Spread:
    """Runs of the same learner under the same plan, at count level.

    Args:
        arrangement: whose world, users and promise they share.
        runs: how many.
        tell: called with the number of runs so far.
    """
    curves = []
    for run in range(runs):
        result = learn(
            arrangement.home.mdp,
            learner=LEARNER,
            trust=arrangement.trust,
            episodes=arrangement.users,
            seed=arrangement.seed + 1,
            run=run,
            mixing=False,
        )
        curves.append(result.regret)
        tell(run + 1)
    return spread_of(curves, arrangement.users)


def spread_of(curves: Sequence[RegretCurve], users: int, points: int = 60) -> Spread:
    """Percentiles of curves at evenly spaced numbers of users."""
    places = np.unique(np.linspace(1, users, points).astype(np.int64))
    values = np.array([np.interp(places, one.episodes, one.values) for one in curves])
    low, middle, high = np.percentile(values, [INTERVAL[0], 50, INTERVAL[1]], axis=0)
    return Spread(places, low, middle, high, np.array([final(one) for one in curves]))
