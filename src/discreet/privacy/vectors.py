"""Streams of arbitrary named vectors: what a user adds need not be counts of an MDP.

A loss vector, for instance: in full information every user hands over a loss for all X·A pairs, so
that replacing the user can move X·A counters by one unit each (L1 = X·A, L2 = sqrt(X·A)); with
bandit feedback only the H visited pairs (L1 = 2H). Say how far one user reaches, and every additive
continual mechanism (trees, Toeplitz, local noise) serves, with its own proof.

Values are integers in the unit of the sensitivity; numbers in [0, 1] are rounded to bits first
(`round_to_bits`), which is unbiased and keeps the guarantee by convexity.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet import _validate
from discreet._types import FloatArray, IntArray
from discreet.errors import InvalidInputError, UnsupportedError
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.mechanisms.noise import CumulativeNoise, NoiseRun
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.sensitivity import Sensitivity

if TYPE_CHECKING:
    from discreet.privacy.trust import PrivateTrust


@dataclass(frozen=True, eq=False, kw_only=True)
class VectorMechanism:
    """A calibrated continual release of named vectors.

    Attributes:
        sizes: name -> length of its vector.
        episodes: how many users there will be.
        name: of the mechanism.
        noise: noise over time on one counter.
        guarantee: one guarantee for all vectors together.
        sensitivity: how far replacing one user may move all vectors together.
    """

    sizes: Mapping[str, int]
    episodes: int
    name: str
    noise: CumulativeNoise
    guarantee: Guarantee
    sensitivity: Sensitivity

    @property
    def cells(self) -> int:
        """Counters, all vectors together."""
        return sum(self.sizes.values())

    def split(self, values: Any) -> dict[str, Any]:
        """Parts of ``values[..., cells]`` by name."""
        parts, start = {}, 0
        for name, size in self.sizes.items():
            parts[name] = values[..., start : start + size]
            start += size
        return parts

    def open(self, sampler: Sampler) -> NoiseRun:
        """Start a simulated run, on all cells in the order of the names; it is used once."""
        return self.noise.start(self.cells, sampler)


def calibrate_vectors(
    trust: "PrivateTrust", sizes: Mapping[str, int], sensitivity: Sensitivity, *, episodes: int
) -> VectorMechanism:
    """Noise for vectors of which one user moves at most ``sensitivity``.

    Args:
        trust: central or local, with a continual mechanism that adds noise.
        sizes: name -> length of its vector.
        sensitivity: how far replacing one user moves all vectors together.
        episodes: how many users there will be.

    >>> from discreet.privacy.trust import Central
    >>> vectors = calibrate_vectors(Central(1), {"losses": 48}, Sensitivity(units=48), episodes=1)
    >>> vectors.noise.distribution.scale
    48.0
    """
    _validate.count(episodes=episodes, **dict(sizes))
    spec = trust.spec("continual")
    spec.check_printed(trust)
    if (sensitivity.participations, trust.participations) != (1, 1):
        raise UnsupportedError(
            f"Vectors of people who return are not supported, got participations="
            f"{trust.participations}; use participations=1."
        )
    design = getattr(spec.load(), "design", None)
    if design is None:
        raise UnsupportedError(
            f"The mechanism {spec.name!r} adds no noise to counters and cannot release other "
            f"vectors; use 'laplace' or 'gaussian'."
        )
    noise, guarantee = design(trust, sensitivity, episodes)
    return VectorMechanism(
        sizes=dict(sizes),
        episodes=episodes,
        name=spec.name,
        noise=noise,
        guarantee=guarantee,
        sensitivity=sensitivity,
    )


def round_to_bits(values: FloatArray, sampler: Sampler) -> IntArray:
    """Bits that are one with probability equal to the value: unbiased."""
    flat = np.asarray(values, np.float64)
    if not ((flat >= 0) & (flat <= 1)).all():
        raise InvalidInputError("Expected values in [0, 1]; scale them first.")
    bits = [int(sampler.binomial(1, float(value), 1)[0]) for value in flat.ravel()]
    return np.array(bits, np.int64).reshape(flat.shape)
