"""The two rhythms of a release, and what a learner gets to see.

*Batch*: one release per batch of distinct users, each user in exactly one batch, so batches compose
in parallel. *Stream*: a release after every episode, one guarantee over the whole stream.

A plan is calibrated once, carries its noise parameters and its guarantee, and holds no data.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.noise import Sampler

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class PrivateCounts:
    """Noisy statistics: the only thing a learner ever sees of its users.

    Values are unbiased estimates of the raw counts (integers with integer noise, debiased where the
    mechanism needs it). A statistic that the plan does not release is None.

    Attributes:
        users: users behind the statistics (public).
        transitions: ``[H, S, A, S]`` or None. With stationary counts the first axis has length 1.
        visits: ``[H, S, A]`` or None.
        rewards: ``[H, S, A]`` or None.
        noise_variance: statistic -> variance of the noise on one of its released counters.
        played: ``bool[H, S, A]``, the counters that the batch's public policy can touch; all others
            are exactly zero and carry no noise.
        guarantee: what has been promised for this release.
    """

    users: int
    transitions: FloatArray | None
    visits: FloatArray | None
    rewards: FloatArray | None
    noise_variance: Mapping[str, float]
    played: BoolArray
    guarantee: Guarantee


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchPlan(ABC):
    """A calibrated one-shot release, used once per batch of distinct users."""

    shape: Shape
    statistics: tuple[str, ...]
    mechanism: str
    guarantee: Guarantee

    @abstractmethod
    def noise_variance(self, users: int) -> dict[str, float]:
        """Noise variance on one counter of each released statistic, for a batch of ``users``."""

    @abstractmethod
    def release(
        self, counts: Counts, *, sampler: Sampler, played: BoolArray | None = None
    ) -> PrivateCounts:
        """Release one batch. ``played`` marks the (h, s, a) its public policy can reach."""

    def simulate(
        self,
        draw: Callable[[int], Counts],
        users: int,
        *,
        sampler: Sampler,
        played: BoolArray | None = None,
    ) -> PrivateCounts:
        """Release a simulated batch; ``draw(n)`` runs n fresh users.

        The default draws all users at once. A mechanism in which users report different things
        (one step each, for instance) splits them first, which keeps the simulation exact.
        """
        return self.release(draw(users), sampler=sampler, played=played)


@dataclass(frozen=True, eq=False, kw_only=True)
class StreamPlan(ABC):
    """A calibrated continual release: cumulative statistics after every one of ``episodes``."""

    shape: Shape
    statistics: tuple[str, ...]
    mechanism: str
    guarantee: Guarantee
    episodes: int
    stationary: bool = False

    @abstractmethod
    def noise_variance(self, episode: int) -> dict[str, float]:
        """Noise variance on one counter of each statistic, released after ``episode`` users."""

    @abstractmethod
    def error_bound(self, episode: int, failure: float) -> float:
        """A bound that |noise| on one counter exceeds with probability at most ``failure``."""

    @abstractmethod
    def open(self, sampler: Sampler) -> "StreamRelease":
        """Start a stream; a stream is used once."""

    @property
    def cells(self) -> int:
        """Counters released per episode, all statistics together."""
        sizes = {
            "transitions": int(np.prod(self.shape.transitions)),
            "visits": int(np.prod(self.shape.visits)),
            "rewards": int(np.prod(self.shape.visits)),
        }
        total = sum(sizes[name] for name in self.statistics)
        return total // self.shape.horizon if self.stationary else total


@dataclass(eq=False)
class StreamRelease(ABC):
    """One running stream. Compiled learners take noise in blocks; `add` is the plain interface."""

    plan: StreamPlan
    episode: int = field(default=0, init=False)

    @abstractmethod
    def noise_block(self, episodes: int) -> FloatArray:
        """Noise on each *cumulative* counter after each of the next ``episodes`` releases.

        Shape ``[episodes, plan.cells]``; cells are the statistics of the plan in order, each
        flattened. Block boundaries do not change the values. The caller adds the true cumulative
        counts (a compiled kernel that simulates, releases and learns does so in place).
        """

    @abstractmethod
    def add(self, counts: Counts) -> PrivateCounts:
        """Take one more user's counts and return the cumulative private statistics."""
