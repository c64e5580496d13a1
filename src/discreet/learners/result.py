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
from discreet.errors import UnsupportedError
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


NO_REGRET = RegretCurve(np.zeros(0, np.int64), np.zeros(0))
"""Of a run in an environment without a model."""


@dataclass(frozen=True, eq=False)
class ReturnCurve:
    """The mean return of the first ``episodes[i]`` episodes, with its standard error.

    What an environment without a model has in place of regret: what its users earned, by chance
    and by policy, in the environment's own units.
    """

    episodes: IntArray
    values: FloatArray
    errors: FloatArray

    @classmethod
    def of(cls, returns: FloatArray) -> "ReturnCurve":
        """From the return of every episode, in order.

        >>> curve = ReturnCurve.of(np.array([0.0, 2.0, 1.0, 1.0]))
        >>> curve.episodes.tolist(), curve.values.tolist(), curve.errors.round(3).tolist()
        ([2, 3, 4], [1.0, 1.0, 1.0], [1.0, 0.577, 0.408])
        """
        points = record_points(len(returns))
        n = points[points > 1]  # one episode says nothing of its error
        centre = returns.mean()
        sums, squares = np.cumsum(returns - centre), np.cumsum((returns - centre) ** 2)
        means = sums[n - 1] / n
        variances = np.maximum(squares[n - 1] - n * means**2, 0.0) / (n - 1)
        return cls(n, centre + means, np.sqrt(variances / n))


class RegretRecorder:
    """The cumulative regret of one run at its recording points, however the run computes it.

    `add` takes many episodes with one policy, `add_each` one regret per episode. A run whose regret
    is no sum (against the best policy in hindsight) asks for the points `ahead` and records the
    cumulative regret at each itself.
    """

    def __init__(self, episodes: int) -> None:
        self.points = record_points(episodes)
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
        regret: exact expected regret, log-spaced; empty where there is no model.
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
        returns: of an environment without a model, in place of regret.
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
    returns: ReturnCurve | None = None

    def __repr__(self) -> str:
        found = "" if self.returns is not None else f"final_regret={self.final_regret:,.1f}, "
        if self.returns is not None and len(self.returns.values):
            found = f"return={self.returns.values[-1]:.4g} ± {self.returns.errors[-1]:.2g}, "
        return (
            f"Result({self.learner!r}, {self.guarantee}, episodes={self.episodes:,}, "
            f"{found}mechanism={self.mechanism!r})"
        )

    @property
    def final_regret(self) -> float:
        """Cumulative expected regret after all episodes."""
        if self.returns is not None:
            raise UnsupportedError(
                "The environment has no model, so nobody knows its best policy and the regret "
                "against it; result.returns has what was earned. For exact regret in an estimated "
                "world, learn in discreet.estimate_model(simulator, episodes=...)."
            )
        return float(self.regret.values[-1])
