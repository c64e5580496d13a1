"""A binary tree that can be put on a disk: its open nodes carry their noise from the start.

A running tree (`tree`) keeps the exact sums of all users beside its noise: whoever reads its memory
reads raw data. Here a node gets its noise *when it opens*, before the first user is added to it
(Dwork, Naor, Pitassi and Rothblum 2010, pan-privacy), and nothing else is kept: no exact sum, no
noise. The release after k users is the sum of the closed nodes of the binary digits of k, as in the
tree; each node's noise is one independent draw of the same law, whether drawn early or late, so the
releases have exactly the law of the tree's plan, and its guarantee.

**What one look at the memory reveals.** Fix all users but one, who came before the look. The memory
holds, of each of the at most L nodes this user lies in, its noisy sum up to now; all later values
of these nodes are that sum plus what later users add. So memory and later releases together are a
function of L noisy sums, each moved by the user once: what the tree's calibration pays for. Hence a
memory that is seen once costs the users before it nothing. *Two* looks are another matter: their
difference is the exact sum of the users in between.
"""

from collections.abc import Mapping

import numpy as np

from discreet._types import IntArray
from discreet.errors import InvalidInputError, UnsupportedError
from discreet.privacy.mechanisms._cumulative import AdditiveStream
from discreet.privacy.mechanisms.tree import TreeNoise, prefix_levels
from discreet.privacy.plans import StreamPlan
from discreet.privacy.sampling.samplers import Sampler

MECHANISMS = ("tree-gaussian", "tree-laplace")
"""Those whose releases are plain sums of nodes."""


class OpenTree:
    """One running tree.

    Attributes:
        users: added so far.
        open: ``int64[L, cells]``, noise plus the users so far of the node that is open per level.
        closed: ``int64[L, cells]``, the node that closed last per level (of the top level: all).
    """

    def __init__(self, plan: StreamPlan, sampler: Sampler) -> None:
        noise = plan.noise if isinstance(plan, AdditiveStream) else None
        if type(noise) is not TreeNoise:
            raise UnsupportedError(
                f"A stream of the mechanism {plan.mechanism!r} keeps exact sums in its memory, "
                f"which must not be put on a disk; use {' or '.join(map(repr, MECHANISMS))}."
            )
        self._noise, self._sampler, self._cells = noise, sampler, plan.cells
        self.users = 0
        self._open: IntArray | None = None
        self.closed: IntArray = np.zeros((noise.levels, plan.cells), np.int64)

    @property
    def open(self) -> IntArray:
        """Drawn when it is first needed: a tree that is restored needs no noise of its own."""
        if self._open is None:
            self._open = self._noise.law.draw(self._sampler, self.closed.shape)
        return self._open

    def add(self, vector: IntArray) -> None:
        """Take one user's counters."""
        noise = self._noise
        if self.users == noise.episodes:
            raise InvalidInputError(
                f"Expected at most {noise.episodes} users in this stream; its guarantee covers no "
                f"more."
            )
        self.users += 1
        self.open[:] += vector
        for level in range(noise.levels):
            if self.users % (1 << level) == 0:
                self._close(level)

    def _close(self, level: int) -> None:
        again = level == self._noise.levels - 1  # at the end of a full tree both halves count
        self.closed[level] = self.open[level] + (self.closed[level] if again else 0)
        self.open[level] = self._noise.law.draw(self._sampler, (self._cells,))

    def release(self) -> IntArray:
        """What is public now: the noisy sums of all users so far."""
        used = set(prefix_levels(self.users, self._noise.levels)) if self.users else set()
        total: IntArray = self.closed[sorted(used)].sum(axis=0)
        return total

    def state(self) -> dict[str, IntArray]:
        """Everything needed to go on; noisy, all of it."""
        return {"open": self.open, "closed": self.closed}

    def restore(self, state: Mapping[str, IntArray], users: int) -> None:
        """Go on from `state`."""
        self.users = users
        self._open = np.array(state["open"], np.int64).reshape(self.closed.shape)
        self.closed = np.array(state["closed"], np.int64).reshape(self.closed.shape)
