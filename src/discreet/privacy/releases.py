"""A running stream: one user after the other, cumulative statistics after each."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from discreet._types import FloatArray, IntArray
from discreet.errors import UnsupportedError
from discreet.mdp.counts import Counts
from discreet.privacy.plans import ContinualMechanism, unflatten
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.statistics import PrivateCounts, check_counts


@dataclass(frozen=True, eq=False)
class StreamBlock:
    """All randomness of the next releases, drawn ahead so that a compiled loop can use it.

    The integers (in units of ``scale``) released after k users are ``noise[k] + sum over users
    i <= k of their steps``, where a step (h, s, a, s', reward bit r) of user i adds, by the plan's
    ``response``,

    * ``"unit"``: one to the transition and visit counters and r to the reward counter (additive
      noise; ``gains`` is empty);
    * ``"cell"``: ``gains[i, c]`` to each counter c that "unit" would add one to, where c counts
      cells per step also when the released counters are pooled over steps;
    * ``"category"``: with g = ``gains[i, ((s·A + a)·S + s')·2 + r]`` if h == ``steps[i]`` and 0
      otherwise, g to the transition and visit counters and r·g to the reward counter.

    Public are ``scale·(integers - centres[k])``, see `debias`. With "unit" nothing is left to do:
    the sum of counts and noise is public as it is (a whole number, or one on a dyadic grid, so that
    the sum is exact in double precision).

    Attributes:
        noise: ``float64[n, cells]``, on each cumulative counter; all values are integers, or
            multiples of the plan's grid.
        gains: ``float64[n, g]``; what a true unit adds after randomisation: -1, 0 or 1.
        steps: ``int64[n]``, the one step each user reports; empty unless "category".
        centres: ``float64[n, cells]``; empty (no columns) for "unit".
        scale: of the estimates.
    """

    noise: FloatArray
    gains: FloatArray
    steps: IntArray
    centres: FloatArray
    scale: float = 1.0


@dataclass(eq=False)
class StreamRelease(ABC):
    """One running stream. Compiled learners take noise in blocks; `add` is the plain interface."""

    plan: ContinualMechanism
    sampler: Sampler
    episode: int = field(default=0, init=False)
    _way: str | None = field(default=None, init=False, repr=False)

    @abstractmethod
    def noise_block(self, episodes: int) -> FloatArray:
        """Noise on each *cumulative* counter after each of the next ``episodes`` releases.

        Shape ``[episodes, plan.cells]``; cells are the statistics of the plan in order, each
        flattened. Block boundaries do not change the values. The caller adds the true cumulative
        counts (a compiled kernel that simulates, releases and learns does so in place).
        Implementations advance ``self.episode``. Mechanisms that randomise the data instead of
        adding noise refuse it: `block` serves all of them.
        """

    def block(self, episodes: int) -> StreamBlock:
        """All randomness of the next ``episodes`` releases, for every kind of response."""
        noise = self.noise_block(episodes)
        nothing = np.empty((episodes, 0))
        return StreamBlock(noise, nothing, np.empty(0, np.int64), nothing)

    def add(self, counts: Counts) -> PrivateCounts:
        """Take one more user's counts and return the cumulative private statistics."""
        check_counts(counts, self.plan.shape, users=1)
        self.use("add")
        values = self._take(counts)  # refuses, before anything changes, when the stream is over
        self.episode += 1
        return unflatten(values, self.plan, self.episode, secure=self.sampler.secure)

    @abstractmethod
    def _take(self, counts: Counts) -> FloatArray:
        """What is public after one more user, laid out as `flatten` does: debiased integers."""

    def use(self, way: str) -> None:
        """A stream is used in one way: through `add`, through `add_report` or in blocks."""
        if self._way not in (None, way):
            raise UnsupportedError(
                f"This stream has been used through `{self._way}`; open another one to use `{way}`."
            )
        self._way = way


class ReportRelease(StreamRelease):
    """A running stream that also takes what users encoded on their own devices."""

    @abstractmethod
    def add_report(self, report: IntArray) -> PrivateCounts:
        """Take one more user's encoded report and return the cumulative private statistics."""

    @abstractmethod
    def sums(self) -> dict[str, IntArray]:
        """Sums of the reports so far: integers that were sent, and all that `go_on` needs."""

    def go_on(self, sums: Mapping[str, IntArray], users: int) -> None:
        """Continue a stream of reports, of which ``users`` gave these `sums`."""
        self.use("add_report")
        for name, mine in self.sums().items():
            mine[:] = np.reshape(sums[name], mine.shape)
        self.episode = users
