"""What runs at a user's under the local mechanisms that add noise to counters.

A report is one row of integers: the user's counters in the order of the statistics, those of
unplayed actions left out (they are zero for every user who follows the public policy; an episode
that leaves it is reported as zeros from there on, which moves no report further). Rewards are
rounded to bits on the device, before anything else.
"""

import math
from dataclasses import asdict, dataclass
from typing import Self

import numpy as np

from discreet import _validate
from discreet._types import BoolArray, FloatArray, IntArray, JsonObject, Plain
from discreet.errors import InvalidInputError
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.mdp.trajectories import Trajectories
from discreet.privacy.mechanisms._laws import NoiseLaw, law_from_dict
from discreet.privacy.plans import Traffic
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.statistics import flatten


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


@dataclass(frozen=True, eq=False)
class AdditiveEncoder:
    """Adds integer noise of ``law`` to every counter.

    Attributes:
        shape: the problem's size.
        statistics: which counters.
        cells: ``int64[m]``, the counters that are reported.
        stationary: counters are summed over steps before they are perturbed.
        law: of the noise.
    """

    shape: Shape
    statistics: tuple[str, ...]
    cells: IntArray
    stationary: bool
    law: NoiseLaw

    @property
    def traffic(self) -> Traffic:
        """One report with all its counters, each with room for twelve deviations either way.

        Without a header: these reports have no wire format.
        """
        bits = math.ceil(24 * math.sqrt(self.law.variance) + 2).bit_length()
        return Traffic(1, math.ceil(self.cells.size * bits / 8))

    def encode(
        self, states: IntArray, actions: IntArray, rewards: FloatArray, sampler: Sampler
    ) -> IntArray:
        """One user's report, ``int64[1, m]``."""
        counts = episode_counts(self.shape, states, actions, rewards, sampler, self._support)
        vector = flatten(counts, self.statistics, stationary=self.stationary)[self.cells]
        return self._perturb(vector, sampler)[None]

    @property
    def _support(self) -> BoolArray | None:
        """The public policy, from the counters of the first statistic; None where all may be."""
        if self.stationary:
            return None
        width = self.shape.states if self.statistics[0] == "transitions" else 1
        rows = self.cells // width
        support = np.zeros(self.shape.visits, np.bool_)
        support.ravel()[rows[rows < support.size]] = True
        return support

    def _perturb(self, counters: IntArray, sampler: Sampler) -> IntArray:
        return counters + self.law.draw(sampler, counters.size)

    def to_dict(self) -> dict[str, Plain]:
        """Plain values for JSON."""
        return {
            "encoder": "additive",
            **asdict(self.shape),
            "statistics": list(self.statistics),
            "cells": self.cells.tolist(),
            "stationary": self.stationary,
            "noise": self.law.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: JsonObject) -> Self:
        """The inverse of `to_dict`."""
        _validate.choice(("additive",), encoder=_validate.description(data).get("encoder"))
        return cls(
            Shape(data["states"], data["actions"], data["horizon"]),
            tuple(data["statistics"]),
            np.array(data["cells"], np.int64),
            bool(data["stationary"]),
            law_from_dict(data["noise"]),
        )


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
