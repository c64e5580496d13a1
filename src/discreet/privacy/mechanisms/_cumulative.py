"""Noise on cumulative counters: what all additive stream mechanisms share.

A `CumulativeNoise` is a law over time for one counter (counters are independent); it knows nothing
of MDPs, so that the same code serves transition counts, visits, rewards and loss vectors. A
`NoiseRun` is one realisation, drawn in pieces of a fixed size: how a caller cuts its blocks never
changes a value.

**Exactness.** Blocks hand out noise as doubles, to which true counts are added. Beyond 2^53 doubles
are even: noise loses its low bits there, and count + noise tells the parity of the count, whatever
the scale of the noise. So noise is summed in 64-bit integers, and a plan whose noise comes near
2^53 is not made (`check_exact`): 64 standard deviations must stay below 2^52 steps of the released
grid, which leaves the other 2^52 to the counts. Sums of Laplace draws are the widest, and exceed
64 standard deviations with a probability below e^-90.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet import _validate
from discreet._types import FloatArray, IntArray, NumberArray
from discreet.errors import CalibrationError, InvalidInputError
from discreet.mdp.counts import Counts
from discreet.privacy.guarantee import ASSUMPTIONS, Guarantee, rounded_down, rounded_up
from discreet.privacy.mechanisms._laws import NoiseLaw
from discreet.privacy.plans import ContinualMechanism, Fields, StreamSize, Timed
from discreet.privacy.releases import StreamRelease
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.sensitivity import Reach
from discreet.privacy.statistics import debias, flatten

if TYPE_CHECKING:
    from discreet.privacy.trust import PrivateTrust

_PIECE = 1 << 18
"""Noise values drawn ahead (2 MB)."""
_STRIP = 1 << 15
"""Fresh draws made at a time (256 KB): two large arrays per piece would be given back to the
operating system and asked for again, page by page, which costs as much as the draws."""


def strips(rows: int, cells: int) -> Iterator[slice]:
    """The rows of a piece in strips of a few draws each, in order."""
    step = max(1, _STRIP // max(1, cells))
    return (slice(start, min(rows, start + step)) for start in range(0, rows, step))


@dataclass(frozen=True, kw_only=True)
class CumulativeNoise(Timed, ABC):
    """The noise on one cumulative counter over a stream of ``episodes`` releases."""

    episodes: int
    grid_bits: ClassVar[int] = 0
    """What is released are multiples of 2^-grid_bits: whole numbers, for integer noise."""

    def __post_init__(self) -> None:
        _validate.count(episodes=self.episodes)

    @property
    def unit(self) -> float:
        """The step of the released grid."""
        return math.ldexp(1.0, -self.grid_bits)

    @abstractmethod
    def variance(self, episode: int) -> float:
        """Exact variance of the noise released after ``episode`` users."""

    @abstractmethod
    def bound(self, episode: int, failure: float) -> float:
        """What |noise| after ``episode`` users exceeds with probability at most ``failure``."""

    def bounds(self, failure: float, times: IntArray | None = None) -> FloatArray:
        """`bound` after so many users each; after 1, 2, ..., ``episodes`` if none are given."""
        return np.array([self.bound(int(k), failure) for k in self.times(times)])

    @abstractmethod
    def start(self, cells: int, sampler: Sampler) -> "NoiseRun":
        """One realisation on ``cells`` independent counters."""

    def check_episode(self, episode: int) -> None:
        """Releases are numbered by the users seen: 1 .. episodes."""
        check_episode(episode, self.episodes)


def check_episode(episode: int, episodes: int) -> None:
    """Releases are numbered by the users seen: 1 .. episodes."""
    _validate.count(episode=episode)
    if episode > episodes:
        raise InvalidInputError(
            f"Expected episode <= {episodes} (the length of the stream), got {episode}; "
            f"calibrate a longer stream."
        )


_EXACT = 2.0**52
"""Half of the integers that doubles hold one by one: for the noise; the rest is for counts."""
_SPREADS = 64
"""Standard deviations that must fit: a Laplace draw exceeds them with probability e^-90."""


def check_exact(variance: float, unit: float = 1.0) -> None:
    """Refuse noise so wide that it would lose its low bits, and betray parities, as a double."""
    spread = math.sqrt(variance) / unit
    if not _SPREADS * spread <= _EXACT:
        most = rounded_down(_EXACT / _SPREADS)
        raise CalibrationError(
            f"Expected noise of a standard deviation up to {most} steps, "
            f"got {rounded_up(spread)}: it would leave the integers that double precision holds "
            f"exactly; use a larger epsilon, or fewer users or releases."
        )


class Pieces:
    """Arrays over time, drawn in pieces of a fixed length and handed out in any lengths."""

    def __init__(
        self,
        draw: Callable[[int, int], tuple[NumberArray, ...]],
        *,
        width: int,
        episodes: int,
        secure: bool,
    ) -> None:
        """``draw(first, rows)`` returns the rows ``first .. first + rows - 1`` of each array."""
        self._draw = draw
        # Secure noise is slow and secret: none is drawn before its time.
        self._piece = 1 if secure else max(1, _PIECE // max(1, width))
        self._episodes = episodes
        self._drawn = self._taken = 0
        self._left: tuple[NumberArray, ...] | None = None

    def take(self, rows: int) -> tuple[NumberArray, ...]:
        """The next ``rows`` rows of each array."""
        _validate.count(0, episodes=rows)
        if self._taken + rows > self._episodes:
            raise InvalidInputError(
                f"Expected at most {self._episodes} releases in this stream; "
                f"calibrate a longer stream (its guarantee covers {self._episodes})."
            )
        parts = [self._left] if self._left is not None else []
        while not parts or self._drawn - self._taken < rows:
            more = min(self._piece, self._episodes - self._drawn)
            parts.append(self._draw(self._drawn, more))
            self._drawn += more
        joined = (
            parts[0] if len(parts) == 1 else tuple(map(np.concatenate, zip(*parts, strict=True)))
        )
        self._taken += rows
        used_up = self._taken == self._drawn
        self._left = None if used_up else tuple(array[rows:] for array in joined)
        return tuple(array[:rows] for array in joined)


class NoiseRun(ABC):
    """One realisation of cumulative noise, handed out in blocks or added to users' counters."""

    grid_bits: ClassVar[int] = 0
    """That of its `CumulativeNoise`."""

    def __init__(self, cells: int, episodes: int, sampler: Sampler) -> None:
        self.cells = cells
        self.sampler = sampler
        self._counts = np.zeros(cells, np.int64)
        self._pieces = Pieces(
            lambda first, rows: (self._next(first, rows),),
            width=cells,
            episodes=episodes,
            secure=sampler.secure,
        )

    def block(self, episodes: int) -> FloatArray:
        """Noise after each of the next ``episodes`` releases, ``[episodes, cells]``.

        All values lie on the released grid, so that count plus noise is exact in double precision
        and its low-order bits are those of the noise, whatever the count.
        """
        return self._pieces.take(episodes)[0]

    def add(self, vector: IntArray) -> IntArray:
        """Take one user's counters; what is released after her, in steps of the released grid."""
        noise = np.ldexp(self.block(1)[0], self.grid_bits)  # refuses first, at the stream's end
        self._counts += vector
        released: IntArray = (self._counts << self.grid_bits) + noise.astype(np.int64)
        return released

    @abstractmethod
    def _next(self, first: int, rows: int) -> FloatArray:
        """Cumulative noise after releases ``first + 1 .. first + rows``."""


@dataclass(frozen=True, kw_only=True)
class IndependentNoise(CumulativeNoise):
    """Every user adds fresh noise of one law: the local model."""

    law: NoiseLaw
    copies: int = 1
    """Draws per user and counter (more than one where reports are pooled after the noise)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_exact(self.variance(self.episodes))

    def variance(self, episode: int) -> float:
        """Variances add up."""
        self.check_episode(episode)
        return episode * self.copies * self.law.variance

    def bound(self, episode: int, failure: float) -> float:
        """Chernoff bound of a sum of independent draws."""
        self.check_episode(episode)
        return self.law.bound({1.0: float(episode * self.copies)}, failure)

    def bounds(self, failure: float, times: IntArray | None = None) -> FloatArray:
        """All at once."""
        return self.law.sum_bounds(self.copies * self.times(times), failure)

    def start(self, cells: int, sampler: Sampler) -> NoiseRun:
        """Running sums of fresh draws."""
        return _IndependentRun(self, cells, sampler)


class _IndependentRun(NoiseRun):
    def __init__(self, noise: IndependentNoise, cells: int, sampler: Sampler) -> None:
        super().__init__(cells, noise.episodes, sampler)
        self._noise = noise
        self._total = np.zeros(cells, np.int64)

    def _next(self, first: int, rows: int) -> FloatArray:
        from discreet.privacy.mechanisms._kernels import running_sums

        noise, out = self._noise, np.empty((rows, self.cells))
        for strip in strips(rows, self.cells):
            part = out[strip]
            if noise.copies == 1:
                fresh = noise.law.draw(self.sampler, part.shape)
            else:
                fresh = noise.law.draw_sum(self.sampler, noise.copies, part.shape)
            running_sums(fresh, self._total, part)  # whole numbers below 2^53, summed as such
        return out


@dataclass(frozen=True, eq=False, kw_only=True)
class AdditiveStream(ContinualMechanism):
    """A stream plan whose release is the true cumulative count plus `CumulativeNoise`."""

    noise: CumulativeNoise

    @classmethod
    @abstractmethod
    def design(
        cls, trust: "PrivateTrust", reach: Reach, episodes: int, **options: float
    ) -> tuple[CumulativeNoise, Guarantee]:
        """The noise that delivers the trust model's promise for counters of this reach."""

    @classmethod
    def _designed(cls, trust: "PrivateTrust", size: StreamSize, **options: float) -> Fields:
        reach = Reach.of(size.shape, size.statistics, stationary=size.stationary)
        noise, guarantee = cls.design(trust, reach, size.episodes, **options)
        return {"noise": noise, "guarantee": guarantee}

    def noise_variance(self, episode: int) -> dict[str, float]:
        """The same for every counter."""
        return dict.fromkeys(self.statistics, self.noise.variance(episode))

    def error_bound(self, episode: int, failure: float) -> float:
        """A proven bound from the actual noise at this time."""
        return self.noise.bound(episode, failure)

    def error_bounds(self, failure: float, users: IntArray | None = None) -> FloatArray:
        """All at once."""
        return self.noise.bounds(failure, users)

    def open(self, sampler: Sampler) -> "AdditiveRelease":
        """Start a stream."""
        return AdditiveRelease(self, sampler)


class AdditiveRelease(StreamRelease):
    """A running stream of true counts plus noise."""

    plan: AdditiveStream

    def __init__(self, plan: AdditiveStream, sampler: Sampler) -> None:
        super().__init__(plan, sampler)
        self._run = plan.noise.start(plan.cells, sampler)

    def noise_block(self, episodes: int) -> FloatArray:
        """Noise on each cumulative counter after each of the next releases."""
        self.use("block")
        block = self._run.block(episodes)
        self.episode += episodes
        return block

    def _take(self, counts: Counts) -> FloatArray:
        plan = self.plan
        vector = flatten(counts, plan.statistics, stationary=plan.stationary)
        return debias(self._run.add(vector), plan.noise.unit, 0.0)


def promise(trust: "PrivateTrust", epsilon: float, delta: float) -> Guarantee:
    """The guarantee of a trust model's notion, with its assumptions."""
    return Guarantee(
        notion=trust.notion,
        epsilon=float(epsilon),
        delta=float(delta),
        assumptions=ASSUMPTIONS[trust.notion],
    )
