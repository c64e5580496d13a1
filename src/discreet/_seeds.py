"""Randomness: one integer seed -> named, independent generators.

Never one generator for two purposes: the draws of the environment do not move when a mechanism
draws more noise, so learners can be compared on common random numbers.
"""

from dataclasses import dataclass

import numpy as np

from discreet import _validate

PURPOSES = ("environment", "policy", "noise", "shuffle")


@dataclass(frozen=True)
class RunSeeds:
    """The named generators of one run."""

    seed: int
    run: int = 0

    def __post_init__(self) -> None:
        _validate.count(0, seed=self.seed, run=self.run)

    def sequence(self, purpose: str) -> np.random.SeedSequence:
        """The seed sequence of one purpose."""
        _validate.choice(PURPOSES, purpose=purpose)
        return np.random.SeedSequence(self.seed, spawn_key=(self.run, PURPOSES.index(purpose)))

    def generator(self, purpose: str) -> np.random.Generator:
        """A fresh generator for one purpose; the same arguments give the same draws.

        >>> a, b = RunSeeds(0).generator("noise"), RunSeeds(0).generator("noise")
        >>> bool((a.random(4) == b.random(4)).all())
        True
        """
        return np.random.default_rng(self.sequence(purpose))
