"""No privacy: the exact counts, so that the non-private twin of a learner is the same code."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet._types import BoolArray, FloatArray
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy.guarantee import NO_GUARANTEE
from discreet.privacy.plans import ContinualMechanism, CountsMechanism, Fields, noisy_batch
from discreet.privacy.releases import StreamRelease
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.sensitivity import Form
from discreet.privacy.statistics import PrivateCounts, debias, flatten

if TYPE_CHECKING:
    from discreet.privacy.plans import Fields, StreamSize
    from discreet.privacy.trust import PrivateTrust


@dataclass(frozen=True, eq=False, kw_only=True)
class ExactBatch(CountsMechanism):
    """Releases the raw counts of a batch, in the form of central releases."""

    @classmethod
    def calibrate(
        cls,
        trust: object,
        shape: Shape,
        *,
        statistics: tuple[str, ...],
        last_transitions: bool = True,
        **_: object,
    ) -> "ExactBatch":
        """Nothing to calibrate."""
        form = Form.of(shape.horizon, statistics, last_transitions=last_transitions)
        return cls(
            shape=shape,
            statistics=statistics,
            mechanism="none",
            guarantee=NO_GUARANTEE,
            **form._asdict(),
        )

    def noise_variance(self, users: int) -> dict[str, float]:
        """Zero."""
        return dict.fromkeys(self.statistics, 0.0)

    def release(
        self, counts: Counts, *, sampler: Sampler, support: BoolArray | None = None
    ) -> PrivateCounts:
        """The counts as they are."""
        return noisy_batch(
            self, counts, lambda _, n: np.zeros(n, np.int64), secure=sampler.secure, support=support
        )


class ExactStream(ContinualMechanism):
    """Releases the raw cumulative counts after every episode."""

    name: ClassVar[str] = "none"

    @classmethod
    def _designed(cls, trust: "PrivateTrust", size: "StreamSize", **options: float) -> Fields:
        """No noise, no promise."""
        return {"guarantee": NO_GUARANTEE}

    def noise_variance(self, episode: int) -> dict[str, float]:
        """Zero."""
        return dict.fromkeys(self.statistics, 0.0)

    def error_bound(self, episode: int, failure: float) -> float:
        """Zero."""
        return 0.0

    def open(self, sampler: Sampler) -> "ExactStreamRelease":
        """Start a stream."""
        return ExactStreamRelease(self, sampler)


class ExactStreamRelease(StreamRelease):
    """A running stream without noise."""

    def __init__(self, plan: ExactStream, sampler: Sampler) -> None:
        super().__init__(plan, sampler)
        self._totals = np.zeros(plan.cells, np.int64)

    def noise_block(self, episodes: int) -> FloatArray:
        """Zeros."""
        self.use("block")
        self.episode += episodes
        return np.zeros((episodes, self.plan.cells))

    def _take(self, counts: Counts) -> FloatArray:
        self._totals += flatten(counts, self.plan.statistics, stationary=self.plan.stationary)
        return debias(self._totals, 1.0, 0.0)
