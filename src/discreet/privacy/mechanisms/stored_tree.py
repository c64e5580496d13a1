"""A binary tree whose memory stands on a disk, where it is copied, restored and left by crashes.

A running tree (`tree`) keeps the exact sums of all users beside its noise: whoever reads its memory
reads raw data. Here every node gets noise twice, and what is open is sealed.

* When a node *opens*, before its first user, it gets a draw A (Dwork, Naor, Pitassi and Rothblum
  2010, pan-privacy). What is kept of an open node is A plus the users so far; no exact sum is kept.
* When it *closes*, after its last user, it gets a second, independent draw B of the same noise
  distribution, each as wide as the tree's calibration asks for. Only closed nodes are released:
  after k users the sum of the nodes of the binary digits of k.
* Open nodes are written down *sealed*: encrypted under a key that is kept elsewhere, with a fresh
  nonce each time (`Seal`).

The price is twice the variance of a tree in memory, and it is part of the calibrated noise
(`TreeNoise.stored`): every width, forecast and table counts both draws.

**Proof.** The tree's calibration pays for one draw on each of the at most L nodes, one per level,
in which a user lies, whatever the users after her do in response. Fix a user i.

1. *Releases, and any number of files without the key.* They show closed nodes only, sum + A + B:
   a function of sum + B. Files show nodes that no release uses (right children); they are among
   the L nodes of a user that the calibration pays for. The sealed rest has a constant length and
   tells nothing to whoever cannot break the cipher.
2. *One file and the key, seen at any time t, and all releases before and after.* A node of i that
   was open at t shows V = A + (users up to t) and later V + (users after t) + B. If i came before
   t, all of this is a function of V, of later users and of B: one draw, A, stands before i. If i
   came after t, V does not depend on i, and what is added to it, (users after t) + B, has one
   draw, B. Other nodes show closed values only. So one draw stands before i on every node, whenever
   t is chosen and by whom.
3. *A file that is restored and goes on, so that several branches follow one state V.* Each branch
   closes the node with a draw B of its own. Whoever was counted before the first fork is covered by
   V as in 2, however many branches there are and although all of them are released. Whoever is
   counted later is covered by the draw B of that branch: once for each branch that counts her.
4. *Two files and the key.* A file with a log beside it, as a crash leaves it and as there is for a
   moment at every change, is two files: one without the log, one with it. V at two times differs by
   the exact sum of the users in between: they are not protected. No tree with so little noise could
   do it: what is kept between two users must stay useful, and fresh noise at every step would add
   up to that of the local model.

Three simpler designs fail. Noise at the release alone leaves exact sums in the file. Fresh noise in
every release of a node averages out. Noise derived from a key is no better: a stored noisy sum can
be subtracted without the key, and a stored exact sum is raw data.
"""

from collections.abc import Mapping

import numpy as np

from discreet._types import IntArray, NumberArray
from discreet.errors import InvalidInputError, UnsupportedError
from discreet.privacy.mechanisms.base import Seal
from discreet.privacy.mechanisms.tree import TreeNoise, prefix_levels
from discreet.privacy.sampling.samplers import Sampler


class StoredTree:
    """One running tree.

    Attributes:
        users: added so far.
        open: ``int64[L, cells]``, draw A plus the users so far of the node that is open per level.
        closed: ``int64[L, cells]``, the node that closed last per level (of the top level: all).
    """

    def __init__(
        self, noise: TreeNoise, cells: int, sampler: Sampler, seal: Seal | None = None
    ) -> None:
        """Without a seal, as in rehearsals, open nodes are written down as they are."""
        if type(noise) is not TreeNoise or noise.draws != 2:
            raise UnsupportedError(
                f"Expected a tree of two draws per node, got {noise}; pass mechanism.stored()."
            )
        self._noise, self._sampler, self._seal, self._cells = noise, sampler, seal, cells
        self.sealed = seal is not None
        self.users = 0
        self._open: IntArray | None = None
        self._written: bytes | None = None
        self.closed: IntArray = np.zeros((noise.levels, cells), np.int64)

    @property
    def open(self) -> IntArray:
        """Drawn or unsealed when it is first needed: who only reads a study needs no key."""
        if self._open is None:
            shape = self.closed.shape
            if self._written is None:
                self._open = self._noise.distribution.draw(self._sampler, shape)
            else:
                content = self._seal.open(self._written) if self._seal else self._written
                self._open = np.frombuffer(content, "<i8").astype(np.int64).reshape(shape)
        return self._open

    def add(self, vector: IntArray) -> None:
        """Take one user's counters."""
        noise = self._noise
        if self.users == noise.episodes:
            raise InvalidInputError(
                f"Expected at most {noise.episodes} users in this stream; its guarantee covers no "
                f"more."
            )
        self.open[:] += vector
        self.users += 1
        for level in range(noise.levels):
            if self.users % (1 << level) == 0:
                self._close(level)

    def _close(self, level: int) -> None:
        noise, size = self._noise.distribution, (self._cells,)
        again = level == self._noise.levels - 1  # at the end of a full tree both halves count
        before = self.closed[level] if again else 0
        self.closed[level] = before + self.open[level] + noise.draw(self._sampler, size)
        self.open[level] = noise.draw(self._sampler, size)

    def release(self) -> IntArray:
        """What is public now: the noisy sums of all users so far."""
        used = set(prefix_levels(self.users, self._noise.levels)) if self.users else set()
        total: IntArray = self.closed[sorted(used)].sum(axis=0)
        return total

    def state(self) -> dict[str, NumberArray]:
        """Everything needed to go on: what was released, and the sealed rest."""
        written = self._written
        if self._open is not None or written is None:
            content = self.open.astype("<i8").tobytes()
            written = self._seal.close(content) if self._seal else content
        return {"open": np.frombuffer(written, np.uint8), "closed": self.closed}

    def restore(self, state: Mapping[str, NumberArray], users: int) -> None:
        """Go on from `state`."""
        self.users, self._open = users, None
        self._written = np.array(state["open"], np.uint8).tobytes()
        self.closed = np.array(state["closed"], np.int64).reshape(self.closed.shape)
