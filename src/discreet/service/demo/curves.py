"""The learning curve of the real thing, and those of simulated runs of the same learner.

Regret is exact and expected: what the policies of the manifests lose in the true model.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from discreet._types import FloatArray, IntArray
from discreet.learners.learn import learn
from discreet.mdp.planning import RegretMeter
from discreet.mdp.policies import DeterministicPolicy
from discreet.mdp.tabular import TabularMDP
from discreet.service.demo.arrangement import LEARNER, Arrangement
from discreet.service.protocol.manifest import Manifest

INTERVAL = (2.5, 97.5)
"""Percentiles of single simulated runs: nineteen of twenty runs lie between them."""


@dataclass(frozen=True, eq=False)
class Curve:
    """Cumulative regret after so many users; a straight line from batch to batch."""

    users: IntArray
    regret: FloatArray

    @property
    def final(self) -> float:
        """Of all users."""
        return float(self.regret[-1])


@dataclass(frozen=True, eq=False)
class Band:
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


def real_curve(mdp: TabularMDP, counted: Iterable[Manifest]) -> Curve:
    """Of the batches that were counted."""
    meter, users, regret = RegretMeter(mdp), [0], [0.0]
    for manifest in counted:
        loss = meter.regret(DeterministicPolicy(np.array(manifest.policy)))
        users.append(users[-1] + manifest.users)
        regret.append(regret[-1] + manifest.users * loss)
    return Curve(np.array(users), np.array(regret))


def simulate(
    arrangement: Arrangement, runs: int, tell: Callable[[int], object] = lambda _: None
) -> Band:
    """Runs of the same learner under the same plan, at count level.

    Args:
        arrangement: whose world, users and promise they share.
        runs: how many.
        tell: called with the number of runs so far.
    """
    curves = []
    for run in range(runs):
        result = learn(
            arrangement.place.mdp,
            learner=LEARNER,
            trust=arrangement.trust,
            episodes=arrangement.users,
            seed=arrangement.seed + 1,
            run=run,
            mixing=False,
        )
        curves.append(Curve(result.regret.episodes, result.regret.values))
        tell(run + 1)
    return band_of(curves, arrangement.users)


def band_of(curves: Sequence[Curve], users: int, points: int = 60) -> Band:
    """Percentiles of curves at evenly spaced numbers of users."""
    places = np.unique(np.linspace(1, users, points).astype(np.int64))
    values = np.array([np.interp(places, one.users, one.regret) for one in curves])
    low, middle, high = np.percentile(values, [INTERVAL[0], 50, INTERVAL[1]], axis=0)
    return Band(places, low, middle, high, np.array([one.final for one in curves]))
