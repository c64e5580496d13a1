"""Exact expected regret, recorded at log-spaced episodes.

A million episodes leave about a hundred rows, not a million; each row is exact.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet import _validate
from discreet._types import FloatArray, IntArray, Plain
from discreet.mdp.policies import Policy
from discreet.privacy.guarantee import Guarantee

_MOST = 10**15  # counts and episode numbers stay exact in double precision


def record_points(episodes: int, per_decade: int = 20) -> IntArray:
    """Log-spaced episode numbers from 1 to ``episodes``, both included.

    >>> record_points(10, per_decade=3).tolist()
    [1, 2, 5, 10]
    """
    _validate.count(episodes=episodes, per_decade=per_decade)
    _validate.at_most(_MOST, "more would not be counted exactly", episodes=episodes)
    decades = np.log10(episodes)
    grid = np.logspace(0, decades, int(np.ceil(decades * per_decade)) + 1)
    return np.unique(np.append(np.rint(grid).astype(np.int64), episodes))


@dataclass(frozen=True, eq=False)
class RegretCurve:
    """Cumulative expected regret ``values[i]`` after ``episodes[i]`` episodes."""

    episodes: IntArray
    values: FloatArray


class RegretRecorder:
    """The cumulative regret of one run at its recording points, however the run computes it.

    `add` takes many episodes with one policy, `add_each` one regret per episode. A run whose regret
    is no sum (against the best policy in hindsight) asks for the points `ahead` and records the
    cumulative regret at each itself.
    """

    def __init__(self, episodes: int, per_decade: int = 20) -> None:
        self.points = record_points(episodes, per_decade)
        self.episode = 0
        self.total = 0.0
        self._values: list[float] = []

    def ahead(self, episodes: int) -> list[int]:
        """How far from now the recording points among the next ``episodes`` are."""
        first = len(self._values)
        last = int(np.searchsorted(self.points, self.episode + episodes, "right"))
        return [int(point) - self.episode for point in self.points[first:last]]

    def record(self, cumulative: Iterable[float], episodes: int) -> None:
        """Regret at each point that is `ahead`; then ``episodes`` more are over."""
        self._values.extend(cumulative)
        self.episode += episodes

    def add(self, users: int, per_episode: float) -> None:
        """``users`` more episodes, each with expected regret ``per_episode``."""
        points = self.ahead(users)
        self.record([self.total + point * per_episode for point in points], users)
        self.total += users * per_episode

    def add_each(self, regrets: FloatArray) -> None:
        """The expected regrets of the next episodes, one by one."""
        sums = self.total + np.cumsum(regrets)
        points = self.ahead(len(regrets))
        self.record([float(sums[point - 1]) for point in points], len(regrets))
        self.total = float(sums[-1])

    def curve(self) -> RegretCurve:
        """What has been recorded so far."""
        return RegretCurve(self.points[: len(self._values)].copy(), np.array(self._values))


def noise_deviations(variances: Mapping[str, float]) -> dict[str, float]:
    """Standard deviations of the noise, from a mechanism's variances."""
    return {statistic: math.sqrt(variance) for statistic, variance in variances.items()}


@dataclass(frozen=True, eq=False)
class Result:
    """One finished run of one learner.

    Attributes:
        learner: its registered name.
        regret: exact expected regret, log-spaced.
        guarantee: what was delivered to every user of the run.
        policy: the policy after the last episode.
        episodes: K.
        seed: the run's seed.
        settings: the learner's resolved settings, defaults included.
        extras: further series or numbers a learner leaves (batches, certificates).
        mechanism: of the release, resolved: what "auto" stood for.
        noise: statistic -> standard deviation of the noise on one of its counters, as the run's
            mechanism has it: in a release of all users at once (batches), in the last one
            (streams). Zero without privacy.
        notes: what the user should know, in sentences: a declaration that the counts contradict.
    """

    learner: str
    regret: RegretCurve
    guarantee: Guarantee
    policy: Policy
    episodes: int
    seed: int
    settings: dict[str, Plain] = field(default_factory=dict)
    extras: dict[str, Any] = field(default_factory=dict)
    mechanism: str = ""
    noise: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return (
            f"Result({self.learner!r}, {self.guarantee}, episodes={self.episodes:,}, "
            f"final_regret={self.final_regret:,.1f}, mechanism={self.mechanism!r})"
        )

    @property
    def final_regret(self) -> float:
        """Cumulative expected regret after all episodes."""
        return float(self.regret.values[-1])
