"""Central, continual release by a tree of Laplace nodes: a pure epsilon (papers 003 and 004).

Users are leaves 0, 1, ..., K-1. A node of level j = 0 .. L-1 stands for b^j users in a row and gets
noise once, which is kept for as long as the node is used (never drawn again). What is released
after k users is their sum, with the noise of the nodes of which [0, k) is made.

**Binary** (`tree-laplace`; Chan, Shi and Song 2011; 003 and 004). The base b is 2, and [0, k) is
cut into one node for each binary digit one of k. L = (K-1).bit_length() (one for K = 1): at
k = 2^L, the last release of a full tree, the prefix is the two nodes of level L-1, so no level L is
needed.

**Signed digits** (`tree-signed`; Andersson, Pagh, Steiner and Torkamani, FORC 2025, arXiv
2408.07021). To the base b, with digits from -(b-1)//2 up to b//2 below the top, k is the sum of
d_j·b^j. From the top downwards, [0, k) is d_j nodes more for d_j > 0, and |d_j| nodes less for
d_j < 0: those that lie just before the place reached. Half of the digits of a base are saved, and a
larger base needs fewer levels. L and b make L²·(the most nodes at any time) least (`signed_shape`):
L = 4, b = 13 and 27 nodes for K = 20,000, with half the noise of the binary tree at its worst.

**Proof.** Let x be the users' counters, A the prefix sums and z the independent noise of all nodes.
With R the matrix of the nodes (one row each: ones at its users) and S that of the signed nodes of
every time, S·R = A (the nodes are cut from [0, k) as said). So M(x) = A·x + S·z = S·(R·x + z) is a
function of noisy nodes. A user lies in at most one node of each level, so replacing user i moves
R·x by at most L copies of the move of one user, L1 = L·l1, with l1 = 6H for the three statistics.
Discrete Laplace noise of scale c makes every likelihood ratio at most exp(L·l1/c) = e^epsilon for
c = L·l1/epsilon: M keeps a pure epsilon on every fixed x.

*Adaptive streams.* Later users respond to what was released, and a signed node may end after the
time of its first use, so that node by node one cannot argue forwards in time. It is not needed.
Fix the outputs o = (o_1, ..., o_K), all randomness of the users' own, and who is replaced. What is
released at time k is a function of z and of the first k users, whose data are functions of
o_1, ..., o_(k-1): a stream whose outputs are o has the data x(o), known from o alone. So it has the
outputs o exactly if M(x(o)) has them, with the same z, and P(o) = P(M(x(o)) = o). The replaced
user's data are others on the other side, those of all others the same function of o; so x(o) and
x'(o) are neighbours, and P(o) <= e^epsilon·P'(o) *at every o*. That is a pure epsilon of the
adaptive stream. (A delta is a statement about sets, not points, and this argument says nothing of
it: only Laplace noise, and delta = 0.) Losses that are released beside it, with noise of their own,
multiply P(M(x(o)) = o) by likelihoods that are bounded pointwise, too.

*People who return* up to m times move R·x by at most m·L·l1, however their episodes lie: L1 adds
up. It is reached, by episodes that all move the same way.

Policies computed from the releases are JDP by the billboard lemma (Hsu et al. 2014).

**Padded** (004, Algorithm 4; on losses, `padded_losses`): each release of a binary tree gets fresh
noise until it has the same number of terms, so that its noise looks the same at all times. It
serves that paper's proof and only adds noise: post-processing. The printed algorithm numbers leaves
from 1 and never fills leaf 0 (K = 7 ones without noise release 0,0,1,0,1,2,3); here leaves count
from 0.

**Exactness.** Everything is a sum of integers below 2^53.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from discreet import _validate
from discreet._types import FloatArray, IntArray, Plain
from discreet.errors import CalibrationError
from discreet.privacy.accounting.closed_forms import laplace_scale
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.mechanisms.additive import AddedContinually
from discreet.privacy.mechanisms.base import (
    AuditSizes,
    Certified,
    delivered,
    guaranteed,
)
from discreet.privacy.mechanisms.noise import CumulativeNoise, Laplace, check_exact, strips
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.sensitivity import Sensitivity

if TYPE_CHECKING:
    from discreet.privacy.trust import PrivateTrust


class TreeShape(NamedTuple):
    """Levels, and children of a node."""

    levels: int
    base: int

    @property
    def below(self) -> int:
        """The least digit is minus this, except at the top, where digits are never negative."""
        return (self.base - 1) // 2

    @property
    def above(self) -> int:
        """The largest digit, except at the top, where any is."""
        return self.base - 1 - self.below

    def digits(self, time: int) -> list[int]:
        """From the lowest.

        >>> TreeShape(3, 2).digits(5), TreeShape(3, 2).digits(8)  # 101, and two nodes of the top
        ([1, 0, 1], [0, 0, 2])
        >>> TreeShape(3, 5).digits(98)  # 4·25 - 2
        [-2, 0, 4]
        """
        digits = []
        for _ in range(self.levels - 1):
            rounded = (time + self.below) // self.base
            digits.append(time - self.base * rounded)
            time = rounded
        return [*digits, time]

    def terms(self, times: IntArray) -> IntArray:
        """How many nodes the releases after so many users are made of."""
        total = np.zeros_like(times)
        for _ in range(self.levels - 1):
            rounded = (times + self.below) // self.base
            total += np.abs(times - self.base * rounded)
            times = rounded
        return total + times

    def drawn(self, time: int) -> int:
        """Nodes that were used up to this time: all but one of the children of a node."""
        total = 0
        for _ in range(self.levels - 1):
            rounded = (time + self.below) // self.base
            total += (self.base - 1) * rounded + max(0, time - self.base * rounded)
            time = rounded
        return total + time

    def worst_time(self, users: int) -> int:
        """A time up to ``users`` with the most nodes.

        Digits are ordered like times: an earlier one has the digits of ``users`` down to some
        level, a smaller digit there, and any below, of which the largest are the worst.
        """
        last, found = self.digits(users), [users]
        for level, digit in enumerate(last):
            left = 0
            for higher in reversed(last[level + 1 :]):
                left = self.base * left + higher
            least = 0 if level == self.levels - 1 else -self.below
            for smaller in {digit - 1, least}:
                time = self.base * left + smaller
                for _ in range(level):
                    time = self.base * time + self.above
                if least <= smaller < digit and time >= 1:
                    found.append(time)
        times = np.array(found)
        return int(times[self.terms(times).argmax()])


def binary_shape(episodes: int) -> TreeShape:
    """Two children, L = (K-1).bit_length() levels, at least one.

    >>> [binary_shape(k).levels for k in (1, 2, 3, 4, 5, 20_000, 1_000_000)]
    [1, 1, 2, 2, 3, 15, 20]
    """
    _validate.count(episodes=episodes)
    return TreeShape(max(1, (episodes - 1).bit_length()), 2)


@lru_cache(maxsize=256)
def signed_shape(episodes: int) -> TreeShape:
    """The levels and the base with the least noise at the worst time.

    For L levels the base is about (2K)^(1/L), where digits at the top are as large as the others.

    >>> signed_shape(20_000), signed_shape(1)
    (TreeShape(levels=4, base=13), TreeShape(levels=1, base=3))
    """
    _validate.count(episodes=episodes)
    found = []
    for levels in range(1, episodes.bit_length() + 1):
        about = round((2 * episodes) ** (1 / levels))
        for base in range(max(3, about - 6), about + 7):
            shape = TreeShape(levels, base)
            worst = int(shape.terms(np.array(shape.worst_time(episodes))))
            found.append((levels**2 * worst, shape))
    return min(found)[1]


@dataclass(frozen=True, kw_only=True)
class TreeNoise(CumulativeNoise):
    """Sums of signed nodes.

    Attributes:
        padded: fresh draws bring every release to the same number of terms (004, Algorithm 4).
    """

    distribution: Laplace
    shape: TreeShape
    padded: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_exact(self.variance(self.worst_time(self.episodes)))

    @property
    def most(self) -> int:
        """Terms of every padded release: L (two for K = 2, where the last prefix has two nodes)."""
        return max(self.shape.levels, int(self._nodes(np.array(self.episodes))))

    def _nodes(self, times: IntArray) -> IntArray:
        return self.shape.terms(times)

    def terms(self, times: IntArray) -> IntArray:
        """Noise terms in the releases after so many users."""
        return np.full(np.shape(times), self.most) if self.padded else self._nodes(times)

    def variance(self, episode: int) -> float:
        self.check_episode(episode)
        return int(self.terms(np.array(episode))) * self.distribution.variance

    def worst_time(self, users: int) -> int:
        return self.shape.worst_time(users)

    def bound(self, episode: int, failure: float) -> float:
        """Chernoff bound over the nodes summed at this time, not a worst case over K."""
        self.check_episode(episode)
        return float(self.bounds(failure, np.array([episode]))[0])

    def bounds(self, failure: float, times: IntArray | None = None) -> FloatArray:
        return self.distribution.sum_bounds(self.terms(self.times(times)), failure)

    def state(self, cells: int) -> list[IntArray]:
        """The last nodes of every level, and the sum of those in use."""
        return [np.zeros((*self.shape, cells), np.int64), np.zeros(cells, np.int64)]

    def rows(self, first: int, rows: int, state: list[IntArray], sampler: Sampler) -> FloatArray:
        """All nodes of the piece, then the paddings by their number of terms."""
        from discreet.privacy.mechanisms._kernels import tree_prefix

        nodes, total = state
        out = np.empty((rows, total.size))
        for strip in strips(*out.shape):
            start, stop = first + strip.start, first + strip.stop
            many = self.shape.drawn(stop) - self.shape.drawn(start)
            fresh = self.distribution.draw(sampler, (many, total.size))
            tree_prefix(fresh, start, nodes, total, out[strip])
        if self.padded:
            times = np.arange(first + 1, first + rows + 1)
            missing = self.most - self._nodes(times)
            for terms in np.unique(missing[missing > 0]).tolist():
                where = np.flatnonzero(missing == terms)
                out[where] += self.distribution.draw_sum(sampler, terms, (where.size, total.size))
        return out

    @property
    def facts(self) -> dict[str, Plain]:
        """The levels of signed digits; those of a binary tree follow from its length."""
        return {} if self.shape.base == 2 else {"levels": self.shape.levels}

    def certified(self, sensitivity: Sensitivity) -> Certified:
        """Every release is a function of the noisy nodes."""
        return self.distribution.certified()

    def padded_variant(self) -> "TreeNoise | None":
        """Padding only adds noise to the releases of a binary tree: it delivers the same."""
        return replace(self, padded=True) if self.shape.base == 2 else None

    @property
    def draws_moved(self) -> int:
        """One node of every level."""
        return self.shape.levels

    def scaled(self, factor: float, *, pile: int = 1) -> "TreeNoise":
        return replace(self, distribution=self.distribution.scaled(factor))


def printed_scale(horizon: int, episodes: int, epsilon: float, log_base: float = 2.0) -> float:
    """The node scale 3H·log K/epsilon of papers 003 and 004, which leave the base open.

    With L levels it delivers 2·epsilon·L/log K: at K = 2e4, 2.10·epsilon with base 2 and
    3.03·epsilon with the natural logarithm.
    """
    _validate.positive(log_base=log_base - 1)
    if episodes < 2:
        raise CalibrationError("The printed scale 3H·log K/epsilon is zero at K = 1.")
    return 3 * horizon * math.log(episodes, log_base) / float(epsilon)


_Design = tuple[CumulativeNoise, Guarantee]


def binary_nodes(trust: "PrivateTrust", sensitivity: Sensitivity, episodes: int) -> _Design:
    """Nodes of scale L·l1/epsilon, or printed ones."""
    shape = binary_shape(episodes)
    if trust.printed:
        scale = printed_scale(sensitivity.horizon, episodes, trust.epsilon)
        spent = sensitivity.l1 * shape.levels / scale
        guarantee = delivered(trust, "papers 003 and 004 (tree)", spent)
        noise = TreeNoise(episodes=episodes, distribution=Laplace(scale), shape=shape)
        return noise, guarantee
    return _exact(trust, sensitivity, episodes, shape)


def signed_nodes(trust: "PrivateTrust", sensitivity: Sensitivity, episodes: int) -> _Design:
    """Nodes of scale L·l1/epsilon."""
    return _exact(trust, sensitivity, episodes, signed_shape(episodes))


def _exact(
    trust: "PrivateTrust", sensitivity: Sensitivity, episodes: int, shape: TreeShape
) -> _Design:
    scale = laplace_scale(sensitivity.l1 * shape.levels, trust.epsilon)
    noise = TreeNoise(episodes=episodes, distribution=Laplace(scale), shape=shape)
    return noise, guaranteed(trust, trust.epsilon, 0.0, apart=sensitivity.apart)


tree_signed = AddedContinually(signed_nodes, audit=AuditSizes(quick_long=True))
"""Tree of signed digits, the least Laplace noise: a pure epsilon; a requested delta is not used."""
tree_laplace = AddedContinually(binary_nodes, audit=AuditSizes(quick_long=True))
"""Binary tree with Laplace nodes: a pure epsilon; a requested delta is not used."""
