"""Counts plus noise: one distribution, drawn once or over time, by the curator or on each device.

An additive mechanism needs no class of its own. `AddedOnce` and `AddedContinually` calibrate one
from a design, a function that finds the noise for a trust model and a sensitivity; its file has the
proof. Under `Local` every device adds the noise to its own counters, elsewhere the curator does,
once for everybody.

Counters that the public policy cannot reach are left out: they are zero for every user who follows
it. An episode that leaves it counts as zeros from there on, which moves no counter further.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from discreet import _validate
from discreet._types import BoolArray, FloatArray, IntArray, Plain
from discreet.errors import InvalidInputError
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.mdp.trajectories import Trajectories
from discreet.privacy.guarantee import NO_GUARANTEE, Guarantee, drawn_of
from discreet.privacy.mechanisms.base import (
    USUAL_SIZES,
    AuditSizes,
    BatchMechanism,
    Certified,
    ContinualMechanism,
    ContinualRelease,
    Request,
    noisy_batch,
)
from discreet.privacy.mechanisms.noise import (
    CumulativeNoise,
    IndependentNoise,
    NoCumulativeNoise,
    NoiseDistribution,
    NoNoise,
    check_exact,
)
from discreet.privacy.mechanisms.registry import MechanismSpec
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.sensitivity import CENTRED, Sensitivity
from discreet.privacy.statistics import (
    PrivateCounts,
    debias,
)

if TYPE_CHECKING:
    from discreet.privacy.trust import PrivateTrust

Design = Callable[["PrivateTrust", Sensitivity], tuple[NoiseDistribution, Guarantee]]
"""The noise on one counter, and what it delivers for counters of this sensitivity."""
ContinualDesign = Callable[["PrivateTrust", Sensitivity, int], tuple[CumulativeNoise, Guarantee]]
"""The same over so many episodes."""


@dataclass(frozen=True, eq=False, kw_only=True)
class AdditiveBatch(BatchMechanism):
    """The counts of a batch plus noise of the curator."""

    noise: NoiseDistribution

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one user moves the released integers."""
        return Sensitivity.of(
            self.shape.horizon,
            self.statistics,
            last_transitions=self.last_transitions,
            participations=self.guarantee.participations,
            together=self.together,
        )

    def noise_variance(self, users: int) -> dict[str, float]:
        """The same for every counter.

        Of the two cells of a reward: half their difference, and their sum, a measurement of visits.
        """
        one = self.noise.variance
        if self.centred:
            return {"transitions": one, "visits": 2 * one, "rewards": one / 2}
        return dict.fromkeys(self.statistics, one)

    def drawn(self, sampler: Sampler, users: int, cells: int) -> IntArray:
        """Independent noise on each of ``cells`` counters of a batch of ``users``."""
        return self.noise.draw(sampler, cells)

    def release(
        self, counts: Counts, *, sampler: Sampler, support: BoolArray | None = None
    ) -> PrivateCounts:
        def draw(_: str, cells: int) -> IntArray:
            return self.drawn(sampler, counts.users, cells)

        return noisy_batch(self, counts, draw, secure=sampler.secure, support=support)

    def certified(self, users: int | None = None) -> Certified:
        if self.together:
            return super().certified(users)  # refuses: no certificate knows of such a release
        return self.noise.certified()

    def concentrated(self) -> float | None:
        return self.noise.concentrated(self.sensitivity.l2)


@dataclass(frozen=True, eq=False, kw_only=True)
class AdditiveContinual(ContinualMechanism):
    """Cumulative counts plus noise over time, of the curator or of each device."""

    noise: CumulativeNoise
    by_devices: bool = False
    separation: int = 1

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one user moves the counters."""
        return Sensitivity.of(
            self.shape.horizon,
            self.statistics,
            stationary=self.stationary,
            last_transitions=self.last_transitions,
            participations=self.guarantee.participations,
            separation=self.separation,
        )

    def release_facts(self, users: int | None = None) -> dict[str, Plain]:
        """With what a curator's noise depends on beyond that."""
        own: dict[str, Plain] = {} if self.by_devices else {"separation": self.separation}
        return super().release_facts(users) | own | self.noise.facts

    def noise_variance(self, users: int) -> dict[str, float]:
        return dict.fromkeys(self.statistics, self.noise.variance(users))

    def worst_time(self, users: int) -> int:
        return self.noise.worst_time(users)

    def error_bound(self, episode: int, failure: float) -> float:
        """A proven bound from the actual noise at this time."""
        return self.noise.bound(episode, failure)

    def error_bounds(self, failure: float, users: IntArray | None = None) -> FloatArray:
        return self.noise.bounds(failure, users)

    def open(self, sampler: Sampler) -> "AdditiveRelease":
        return AdditiveRelease(self, sampler)

    def summed_noise(self) -> tuple[NoiseDistribution, int] | None:
        noise = self.noise
        return (noise.distribution, noise.copies) if isinstance(noise, IndependentNoise) else None

    def certified(self, users: int | None = None) -> Certified:
        if not self.last_transitions:
            return super().certified(users)  # refuses: no certificate knows of such a release
        return self.noise.certified(self.sensitivity)

    def concentrated(self) -> float | None:
        return self.noise.concentrated(self.noise.l2(self.sensitivity))


@dataclass(frozen=True)
class AddedOnce:
    """Calibrates noise of one distribution on every counter of a batch.

    Attributes:
        design: finds the distribution.
        kind: of mechanism, where one draws or releases in a way of its own.
    """

    design: Design
    audit: AuditSizes = USUAL_SIZES
    kind: type[AdditiveBatch] = AdditiveBatch

    def calibrate(
        self, spec: MechanismSpec, trust: "PrivateTrust", request: Request
    ) -> AdditiveBatch:
        """The mechanism for this request."""
        _check_who_adds(spec, by_devices=False)
        shape, statistics = request.shape, request.statistics
        centred = set(statistics) == set(CENTRED)
        last = request.last_transitions or not centred
        m = trust.participations
        together = request.together and m > 1
        noise, guarantee = self.design(trust, request._replace(last_transitions=last).moved(m))
        if together:
            guarantee = replace(guarantee, assumptions=drawn_of(m))
        check_exact(noise.variance)
        return self.kind(
            spec=spec,
            shape=shape,
            statistics=statistics,
            guarantee=guarantee,
            noise=noise,
            centred=centred,
            last_transitions=last,
            together=together,
        )


@dataclass(frozen=True)
class AddedContinually:
    """Calibrates noise over time on every cumulative counter; otherwise as `AddedOnce`.

    ``by_devices``: every user adds it on the own device, to plain counts.
    """

    design: ContinualDesign
    by_devices: bool = False
    audit: AuditSizes = USUAL_SIZES
    kind: type[AdditiveContinual] = AdditiveContinual

    def calibrate(
        self, spec: MechanismSpec, trust: "PrivateTrust", request: Request
    ) -> AdditiveContinual:
        """The mechanism for this request."""
        _check_who_adds(spec, by_devices=self.by_devices)
        last = request.last_transitions or not self.by_devices
        separation = 1 if self.by_devices else trust.separation
        asked = request._replace(last_transitions=last)
        sensitivity = asked.moved(trust.participations, separation=separation)
        noise, guarantee = self.design(trust, sensitivity, request.episodes)
        if self.by_devices and not isinstance(noise, IndependentNoise):
            raise InvalidInputError(
                f"Expected independent noise of every device in the mechanism {spec.name!r} of "
                f"'local', got {type(noise).__name__}, which a curator draws; use IndependentNoise."
            )
        return self.kind(
            spec=spec,
            shape=request.shape,
            statistics=request.statistics,
            episodes=request.episodes,
            stationary=request.stationary,
            last_transitions=last,
            guarantee=guarantee,
            noise=noise,
            by_devices=self.by_devices,
            separation=separation,
        )


def _check_who_adds(spec: MechanismSpec, *, by_devices: bool) -> None:
    """A curator's noise under `Local` would be too little, by the root of the number of users."""
    if spec.trust == "shuffle":
        raise InvalidInputError(
            f"Expected a mechanism of messages under 'shuffle', got noise that is added to sums in "
            f"{spec.name!r}: nobody there sees sums; register it under 'central' or 'local'."
        )
    if by_devices != (spec.trust == "local"):
        who = "every device" if by_devices else "the curator"
        raise InvalidInputError(
            f"Expected noise of every device under 'local' and of the curator elsewhere, got that "
            f"of {who} in the mechanism {spec.name!r} of {spec.trust!r}; change by_devices, or the "
            f"trust model that it is registered under."
        )


class AdditiveRelease(ContinualRelease):
    """A running stream of true counts plus noise."""

    mechanism: AdditiveContinual

    def __init__(self, mechanism: AdditiveContinual, sampler: Sampler) -> None:
        super().__init__(mechanism, sampler)
        self._run = mechanism.noise.start(mechanism.cells, sampler)

    def noise_block(self, episodes: int) -> FloatArray:
        self.use("block")
        block = self._run.block(episodes)
        self.episode += episodes
        return block

    def _take(self, counts: Counts) -> FloatArray:
        vector = self.mechanism.flat(counts)
        return debias(self._run.add(vector), self.mechanism.noise.unit, 0.0)


def pool_steps(values: IntArray, shape: Shape, statistics: tuple[str, ...]) -> IntArray:
    """Sum counters over steps: ``[..., per-step cells]`` to ``[..., pooled cells]``."""
    parts, start = [], 0
    for name in statistics:
        size = int(np.prod(shape.transitions if name == "transitions" else shape.visits))
        part = values[..., start : start + size]
        parts.append(part.reshape(*values.shape[:-1], shape.horizon, -1).sum(axis=-2))
        start += size
    return np.concatenate(parts, axis=-1)


def episode_counts(
    shape: Shape,
    states: IntArray,
    actions: IntArray,
    rewards: FloatArray,
    sampler: Sampler,
    support: BoolArray | None = None,
) -> Counts:
    """The counts of one episode, its rewards rounded to bits with the device's randomness.

    From the first step outside ``support`` on it counts as nothing, as on every device.
    """
    one = Trajectories(
        np.asarray(states)[None], np.asarray(actions)[None], np.asarray(rewards, float)[None]
    )
    bits = one.rewards.copy()
    for step in np.flatnonzero((bits[0] > 0) & (bits[0] < 1)):
        bits[0, step] = sampler.binomial(1, float(bits[0, step]), 1)[0]
    rounded = Trajectories(one.states, one.actions, bits)
    return rounded.counts(shape, np.random.default_rng(0), support)  # bits leave nothing to round


def cell_mask(support: BoolArray, statistics: tuple[str, ...], *, stationary: bool) -> BoolArray:
    """The counters that can be touched, in the order of `flatten`."""
    mask = support.any(axis=0, keepdims=True) if stationary else support
    states = support.shape[1]
    parts = [np.repeat(mask.ravel(), states if name == "transitions" else 1) for name in statistics]
    return np.concatenate(parts)


def support_cells(support: BoolArray, statistics: tuple[str, ...]) -> int:
    """How many counters `cell_mask` marks."""
    each = (support.shape[1] if name == "transitions" else 1 for name in statistics)
    return int(support.sum()) * sum(each)


_MOST = 1 << 42
"""Of one number in a report: two million of them add up without an overflow."""


def check_reports(reports: IntArray, users: int, width: int) -> IntArray:
    """One row per user and one column per reported number, integers throughout."""
    _validate.count(users=users)
    rows = np.asarray(reports)
    if not np.issubdtype(rows.dtype, np.integer) or rows.shape != (users, width):
        raise InvalidInputError(
            f"Expected integer reports of shape ({users}, {width}), one row per user, got "
            f"{rows.dtype} {rows.shape}; a user was counted twice, or another encoder was used."
        )
    if rows.size and max(-int(rows.min()), int(rows.max())) > _MOST:
        raise InvalidInputError(
            f"Expected reports of numbers up to {_MOST:.0e}, got a larger one; no device draws "
            f"such noise, and sums with it would overflow: leave this user out."
        )
    return rows.astype(np.int64)


def no_noise(trust: object, sensitivity: Sensitivity) -> tuple[NoiseDistribution, Guarantee]:
    """Nothing to calibrate."""
    return NoNoise(), NO_GUARANTEE


def no_cumulative_noise(
    trust: object, sensitivity: Sensitivity, episodes: int
) -> tuple[CumulativeNoise, Guarantee]:
    """Nothing to calibrate."""
    return NoCumulativeNoise(episodes=episodes), NO_GUARANTEE


none = AddedOnce(no_noise)
"""Releases the raw counts of a batch, in the form of central releases."""
none_continual = AddedContinually(no_cumulative_noise)
"""Releases the raw cumulative counts after every episode."""
