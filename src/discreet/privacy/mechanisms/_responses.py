"""Batches and streams whose users randomise their data instead of adding noise to it: shared parts.

What such a user adds to a counter is affine in her data: ``offset + gain · unit``, all of them
integers, with random offset and gain drawn before her episode (see `NoiseBlock`). So the
randomness of many releases can be drawn ahead, and a compiled learner stays a compiled learner.

The state of a stream is the sum of all users' answers, a vector of integers. What is public is
``scale·(state - centre)``, where the centre depends on how many users there are and, if each
reports one step, on how many reported which: a function of the integers alone. (An earlier version
summed debiased answers in floating point. ``offset + gain`` and a plain offset of the same value
round differently, and the low-order bits told who had visited what.)
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._types import FloatArray, IntArray
from discreet.errors import UnsupportedError
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.mechanisms.base import (
    AuditSizes,
    BatchMechanism,
    ContinualMechanism,
    ContinualRelease,
    NoiseBlock,
    Request,
    unflatten,
)
from discreet.privacy.mechanisms.noise import Pieces
from discreet.privacy.mechanisms.registry import MechanismSpec
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.statistics import PrivateCounts, debias

if TYPE_CHECKING:
    from discreet.privacy.trust import PrivateTrust


LISTED = AuditSizes(
    shape=Shape(states=1, actions=2, horizon=2), statistics=("rewards",), episodes=1
)
"""So small that all outcomes can be listed."""


class Flipped(ABC):
    """What a batch and a stream of a mechanism share: how often bits are false."""

    @staticmethod
    @abstractmethod
    def flips(
        trust: "PrivateTrust", shape: Shape, statistics: tuple[str, ...]
    ) -> tuple[float, Guarantee]:
        """The probability of a false bit, and what it delivers."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ResponseBatch(BatchMechanism, Flipped):
    """A batch whose users report bits, of which each is false with probability ``flip``."""

    flip: float

    @classmethod
    def designed(
        cls, spec: MechanismSpec, trust: "PrivateTrust", request: Request
    ) -> dict[str, Any]:
        flip, guarantee = cls.flips(trust, request.shape, request.statistics)
        return {"flip": flip, "guarantee": guarantee}

    @property
    def takes_reports(self) -> bool:
        """Always."""
        return True


@dataclass(frozen=True, eq=False, kw_only=True)
class ResponseMechanism(ContinualMechanism, Flipped):
    """A stream of answers that are integers, with an affine function that takes their bias out.

    ``flip`` is the probability that a bit is false.
    """

    flip: float

    @classmethod
    def designed(
        cls, spec: MechanismSpec, trust: "PrivateTrust", request: Request
    ) -> dict[str, Any]:
        # Bits are reported per step also when the counters are pooled over steps.
        flip, guarantee = cls.flips(trust, request.shape, request.statistics)
        return {"flip": flip, "guarantee": guarantee}

    @property
    def takes_reports(self) -> bool:
        """Always."""
        return True

    @property
    @abstractmethod
    def scale(self) -> float:
        """What one unit of the summed answers is worth."""

    @property
    @abstractmethod
    def bits_behind(self) -> IntArray:
        """``int64[cells]``: bits behind each counter in the report of one user who reports it."""

    def centres(self, users: IntArray, reporters: IntArray) -> FloatArray:
        """Mean of the summed answers of counters that nobody visits, ``[n, cells]``.

        Args:
            users: ``int64[n]``, how many have answered at each of n times.
            reporters: ``int64[n, H]``, how many of them reported each step.
        """
        return self.flip * (users[:, None] * self.bits_behind).astype(np.float64)


class ResponseRelease(ContinualRelease):
    """A running stream of randomised responses."""

    mechanism: ResponseMechanism

    def __init__(self, mechanism: ResponseMechanism, sampler: Sampler, width: int) -> None:
        super().__init__(mechanism, sampler)
        self._drawn = np.zeros(mechanism.cells, np.int64)
        self._noise = np.zeros(mechanism.cells, np.int64)
        self._answers = np.zeros(mechanism.cells, np.int64)
        self._reporters = np.zeros(mechanism.shape.horizon, np.int64)
        self._pieces = Pieces(
            lambda _, rows: self._draw(rows),
            width=width,
            episodes=mechanism.episodes,
            secure=sampler.secure,
        )

    @abstractmethod
    def _draw(self, rows: int) -> tuple[IntArray, IntArray, IntArray]:
        """Noise (cumulative), gains and steps of the next users; integers, all of them."""

    @abstractmethod
    def _units(self, counts: Counts, gains: IntArray, step: int) -> IntArray:
        """What one user's data add to the released counters, given her gains."""

    @abstractmethod
    def _read(self, report: IntArray) -> tuple[IntArray, IntArray]:
        """One user's answers and the step she reports, if any (refuses a malformed report)."""

    def _accumulate(self, offsets: IntArray) -> IntArray:
        """Cumulative noise from the offsets of the next users."""
        noise: IntArray = self._drawn + np.cumsum(offsets, axis=0)
        self._drawn = noise[-1].copy()
        return noise

    def noise_block(self, episodes: int) -> FloatArray:
        """Refused: this mechanism is not additive."""
        raise UnsupportedError(
            f"The mechanism {self.mechanism.name!r} randomises the data and adds no noise to true "
            f"counts; use `block` and its gains, or a mechanism such as 'laplace'."
        )

    def block(self, episodes: int) -> NoiseBlock:
        """All randomness of the next users."""
        self.use("block")
        noise, gains, steps = self._pieces.take(episodes)
        centres = self._centres(episodes, steps.reshape(-1))
        self.episode += episodes
        return NoiseBlock(
            noise.astype(np.float64),
            gains.astype(np.float64),
            steps.reshape(-1),
            centres,
            self.mechanism.scale,
        )

    def _centres(self, episodes: int, steps: IntArray) -> FloatArray:
        """After each of the next users, who report ``steps``; remembers the reporters."""
        users = self.episode + np.arange(1, episodes + 1)
        reporters = np.zeros((episodes, self._reporters.size), np.int64)
        if steps.size:
            reporters[np.arange(episodes), steps] = 1
        reporters = self._reporters + np.cumsum(reporters, axis=0)
        if episodes:
            self._reporters = reporters[-1].copy()
        return self.mechanism.centres(users, reporters)

    def _take(self, counts: Counts) -> FloatArray:
        noise, gains, steps = self._pieces.take(1)
        step = int(steps[0, 0]) if steps.size else -1
        self._noise = noise[0]
        self._answers += self._units(counts, gains[0], step)
        return self._public(steps.reshape(-1))

    def _public(self, steps: IntArray) -> FloatArray:
        """The answers of one more user are in: debiased, from integers to estimates."""
        centres = self._centres(1, steps)[0]
        return debias(self._answers + self._noise, self.mechanism.scale, centres)

    def add_report(self, report: IntArray) -> PrivateCounts:
        """Take one more user's encoded report."""
        self.use("add_report")
        answers, steps = self._read(report)
        if self.episode == self.mechanism.episodes:
            self._pieces.take(self.mechanism.episodes + 1)  # raises: the stream is over
        self._answers += answers
        values = self._public(steps)
        self.episode += 1
        return unflatten(values, self.mechanism, self.episode, secure=self.sampler.secure)

    def sums(self) -> dict[str, IntArray]:
        """The answers, added up, and how many reported each step."""
        return {"answers": self._answers, "reporters": self._reporters}
