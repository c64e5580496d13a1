"""Streams whose users randomise their data instead of adding noise to it: shared parts.

What such a user adds to a counter is affine in her data: ``offset + gain · unit``, with random
offset and gain drawn before her episode (see `StreamBlock`). So the randomness of many releases can
be drawn ahead, and a compiled learner stays a compiled learner.
"""

from abc import abstractmethod

import numpy as np

from discreet.errors import UnsupportedError
from discreet.mdp.counts import Counts
from discreet.privacy.mechanisms.cumulative import Array, Pieces
from discreet.privacy.noise import IntArray, Sampler
from discreet.privacy.release import (
    FloatArray,
    PrivateCounts,
    StreamBlock,
    StreamPlan,
    StreamRelease,
    check_counts,
    unflatten,
)


class ResponseRelease(StreamRelease):
    """A running stream of randomised responses."""

    def __init__(self, plan: StreamPlan, sampler: Sampler, width: int) -> None:
        super().__init__(plan, sampler)
        self._offsets = np.zeros(plan.cells)
        self._released = np.zeros(plan.cells)
        self._pieces = Pieces(
            lambda _, rows: self._draw(rows),
            width=width,
            episodes=plan.episodes,
            secure=sampler.secure,
        )

    @abstractmethod
    def _draw(self, rows: int) -> tuple[Array, Array, Array]:
        """Noise (cumulative), gains and steps of the next users."""

    @abstractmethod
    def _units(self, counts: Counts, gains: FloatArray, step: int) -> FloatArray:
        """What one user's data add to the released counters, given her gains."""

    @abstractmethod
    def _estimate(self, report: IntArray) -> FloatArray:
        """Unbiased counters from one user's report (refuses a malformed one)."""

    def _accumulate(self, offsets: FloatArray) -> FloatArray:
        """Cumulative noise from the offsets of the next users."""
        noise: FloatArray = self._offsets + np.cumsum(offsets, axis=0)
        self._offsets = noise[-1].copy()
        return noise

    def noise_block(self, episodes: int) -> FloatArray:
        """Refused: this mechanism is not additive."""
        raise UnsupportedError(
            f"The mechanism {self.plan.mechanism!r} randomises the data and adds no noise to true "
            f"counts; use `block` and its gains, or a mechanism such as 'laplace'."
        )

    def block(self, episodes: int) -> StreamBlock:
        """All randomness of the next users."""
        noise, gains, steps = self._pieces.take(episodes)
        self.episode += episodes
        return StreamBlock(noise, gains, steps.reshape(-1))

    def add(self, counts: Counts) -> PrivateCounts:
        """Take one more user's counts and return the cumulative private statistics."""
        check_counts(counts, self.plan.shape, users=1)
        self.check_unmixed()
        block = self.block(1)
        step = int(block.steps[0]) if block.steps.size else -1
        self._released += self._units(counts, block.gains[0], step)
        self.added += 1
        return self._private(self._released + block.noise[0])

    def add_report(self, report: IntArray) -> PrivateCounts:
        """Take one more user's encoded report."""
        self.check_unmixed()
        estimate = self._estimate(report)
        if self.episode == self.plan.episodes:
            self._pieces.take(self.plan.episodes + 1)  # raises: the stream is over
        self._released += estimate
        self.episode += 1
        self.added += 1
        return self._private(self._released.copy())

    def _private(self, values: FloatArray) -> PrivateCounts:
        return unflatten(values, self.plan, self.episode, secure=self.sampler.secure)
