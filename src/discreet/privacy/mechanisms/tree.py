"""Central, continual release by a binary tree (Chan, Shi and Song 2011; papers 003 and 004).

Users are leaves 0, 1, ..., K-1. After k users the prefix [0, k) is cut into dyadic intervals, one
per binary digit one of k, and each interval is released once with noise of its own that is kept for
as long as the interval is used (never drawn again). There are L = (K-1).bit_length() levels
0 .. L-1 (one for K = 1); at k = 2^L, the last release of a full tree, the prefix is the two
intervals of level L-1, so no level L is needed.

**Proof.** All releases are sums of noisy node values: post-processing. User i lies in at most one
node of each level, so replacing user i moves the vector of all node values by L copies of the move
of one user: L1 = L·l1 and L2 = sqrt(L)·l2, with l1 = 6H and l2 = sqrt(6H) for the three statistics.
Given everything released before, a node's value is fresh independent noise around its true value,
and the true values of neighbours differ by user i's move only, whatever the users after i do in
response: the stream may be adaptive. So

* *Laplace*, scale b: every likelihood ratio is a product over the nodes of user i, at most
  exp(L·l1/b) = e^epsilon for b = L·l1/epsilon: a pure epsilon;
* *Gaussian*, sigma: the privacy loss is that of one Gaussian release at L2 = sqrt(L)·l2.

Policies computed from the releases are JDP by the billboard lemma (Hsu et al. 2014).

**Honaker** (2015): every node's value is also the sum of its children, so the two are averaged with
inverse-variance weights, bottom up (a release knows only what is below its nodes). The estimate of
a node at level j has variance 2^j/(2^(j+1)-1) of its own noise. What is released is rounded to an
integer (1/12 of variance), so that no floating-point number betrays the count behind it. It is
post-processing of *all* nodes, right children included; each user still lies in L of them.

**I.i.d.-shaped** (004, Algorithm 4): each release is padded with fresh noise to the same number of
terms, so that its noise is a sum of i.i.d. draws at all times. It serves that paper's proof and
only adds noise. The printed algorithm numbers leaves from 1 and never fills leaf 0 (K = 7 ones
without noise release 0,0,1,0,1,2,3); here leaves count from 0.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet import _validate
from discreet.errors import CalibrationError
from discreet.privacy.calibration.closed_forms import laplace_scale
from discreet.privacy.calibration.search import discrete_gaussian_sigma
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.mechanisms.cumulative import (
    AdditiveStream,
    CumulativeNoise,
    NoiseRun,
    Reach,
    promise,
)
from discreet.privacy.mechanisms.laws import (
    CHERNOFF_GRID,
    GaussianLaw,
    LaplaceLaw,
    NoiseLaw,
    check_failure,
)
from discreet.privacy.mechanisms.printed import delivered, no_printed_constants
from discreet.privacy.noise import IntArray, Sampler
from discreet.privacy.release import FloatArray

if TYPE_CHECKING:
    from discreet.privacy.trust import _Private


def tree_levels(episodes: int) -> int:
    """Nodes that one user lies in: L = (K-1).bit_length(), at least one.

    >>> [tree_levels(k) for k in (1, 2, 3, 4, 5, 20_000, 1_000_000)]
    [1, 1, 2, 2, 3, 15, 20]
    """
    _validate.count(episodes=episodes)
    return max(1, (episodes - 1).bit_length())


def prefix_levels(episode: int, levels: int) -> list[int]:
    """The levels of the nodes whose sum is the prefix of ``episode`` leaves.

    >>> prefix_levels(5, 3), prefix_levels(8, 3)  # 101 in binary; the end of a full tree
    ([0, 2], [2, 2])
    """
    if episode == 1 << levels:
        return [levels - 1, levels - 1]
    return [level for level in range(levels) if episode >> level & 1]


@dataclass(frozen=True, kw_only=True)
class TreeNoise(CumulativeNoise):
    """Prefix sums of tree nodes, each with one draw of ``law``."""

    law: NoiseLaw

    @property
    def levels(self) -> int:
        """L."""
        return tree_levels(self.episodes)

    def terms(self, episode: int) -> int:
        """Noise terms in the release after ``episode`` users."""
        self.check_episode(episode)
        return len(prefix_levels(episode, self.levels))

    def variance(self, episode: int) -> float:
        """One node variance per term."""
        return self.terms(episode) * self.law.variance

    def bound(self, episode: int, failure: float) -> float:
        """Chernoff bound over the nodes summed at this time, not a worst case over K."""
        return _sum_bound(self.law, self.terms(episode), float(failure))

    def bounds(self, failure: float) -> FloatArray:
        """Looked up by the number of terms."""
        times = np.arange(1, self.episodes + 1)
        terms = np.bitwise_count(times).astype(np.int64)
        terms[-1] = self.terms(self.episodes)
        return self._bounds_of(terms, failure)

    def _bounds_of(self, terms: IntArray, failure: float) -> FloatArray:
        table = [_sum_bound(self.law, max(1, n), float(failure)) for n in range(terms.max() + 1)]
        bounds: FloatArray = np.array(table)[terms]
        return bounds

    def start(self, cells: int, sampler: Sampler) -> NoiseRun:
        """One tree per counter."""
        return _TreeRun(self, cells, sampler)


@lru_cache(maxsize=4096)
def _sum_bound(law: NoiseLaw, terms: int, failure: float) -> float:
    return law.bound({1.0: float(terms)}, failure)


class _TreeRun(NoiseRun):
    def __init__(self, noise: TreeNoise, cells: int, sampler: Sampler) -> None:
        super().__init__(cells, noise.episodes, sampler)
        self._noise = noise
        self._nodes = np.zeros((noise.levels, cells))
        self._total = np.zeros(cells)

    def _next(self, first: int, rows: int) -> FloatArray:
        from discreet.privacy.mechanisms._kernels import tree_prefix

        # Exactly one node that prefixes use closes at each time.
        fresh = self._noise.law.draw(self.sampler, (rows, self.cells))
        out = np.empty((rows, self.cells))
        tree_prefix(fresh, first, self._nodes, self._total, out)
        return out


@dataclass(frozen=True, kw_only=True)
class PaddedTreeNoise(TreeNoise):
    """A tree whose releases all carry the same number of noise terms."""

    @property
    def padded(self) -> int:
        """Terms in every release: L (two for K = 2, where the last prefix has two nodes)."""
        return max(self.levels, len(prefix_levels(self.episodes, self.levels)))

    def terms(self, episode: int) -> int:
        """Always the same."""
        self.check_episode(episode)
        return self.padded

    def bounds(self, failure: float) -> FloatArray:
        """Constant."""
        return np.full(self.episodes, self.bound(1, failure))

    def start(self, cells: int, sampler: Sampler) -> NoiseRun:
        """One padded tree per counter."""
        return _PaddedTreeRun(self, cells, sampler)


class _PaddedTreeRun(_TreeRun):
    _noise: PaddedTreeNoise

    def _next(self, first: int, rows: int) -> FloatArray:
        out = super()._next(first, rows)
        noise = self._noise
        times = range(first + 1, first + rows + 1)
        missing = np.array([noise.padded - len(prefix_levels(t, noise.levels)) for t in times])
        for terms in np.unique(missing[missing > 0]):
            where = np.flatnonzero(missing == terms)
            size = (where.size, self.cells)
            out[where] += noise.law.draw_sum(self.sampler, int(terms), size)
        return out


@dataclass(frozen=True, kw_only=True)
class HonakerNoise(TreeNoise):
    """A tree whose nodes are averaged with their children."""

    def variance(self, episode: int) -> float:
        """A node at level j counts 2^j/(2^(j+1)-1)."""
        self.check_episode(episode)
        weights = own_weights(self.levels)
        used = prefix_levels(episode, self.levels)
        rounding = 1 / 12 if max(used) > 0 else 0.0
        return float(sum(weights[level] for level in used)) * self.law.variance + rounding

    def bound(self, episode: int, failure: float) -> float:
        """Chernoff bound over all nodes below the prefix, with their weights."""
        self.check_episode(episode)
        used = np.bincount(prefix_levels(episode, self.levels), minlength=self.levels)
        return float(self._bounds_at(used[None, :], failure)[0])

    def bounds(self, failure: float) -> FloatArray:
        """All at once."""
        times = np.arange(1, self.episodes + 1)
        used = times[:, None] >> np.arange(self.levels) & 1
        used[-1] = np.bincount(prefix_levels(self.episodes, self.levels), minlength=self.levels)
        return self._bounds_at(used, failure)

    def _bounds_at(self, used: IntArray, failure: float) -> FloatArray:
        """For prefixes with ``used[i, j]`` nodes of level j; rounding adds at most a half."""
        return self._unrounded(used, failure) + 0.5 * used[:, 1:].any(axis=1)

    def _unrounded(self, used: IntArray, failure: float) -> FloatArray:
        check_failure(failure)
        if isinstance(self.law, GaussianLaw):
            squares = used @ own_weights(self.levels)
            bounds: FloatArray = np.sqrt(squares) * self.law.bound({1.0: 1.0}, failure)
            return bounds
        t = CHERNOFF_GRID * self.law.mgf_limit
        log_mgf = _node_log_mgf(self.law, self.levels, t)
        best = np.full(len(used), np.inf)
        for column, one in enumerate(t):
            total = used @ log_mgf[:, column]
            np.minimum(best, (total + math.log(2 / failure)) / one, out=best)
        return best

    def start(self, cells: int, sampler: Sampler) -> NoiseRun:
        """One averaged tree per counter."""
        return _HonakerRun(self, cells, sampler)


def own_weights(levels: int) -> FloatArray:
    """Inverse-variance weight of a node's own value, by level: v_j = 1/(1 + 1/(2 v_(j-1))).

    >>> own_weights(3).round(4).tolist()
    [1.0, 0.6667, 0.5714]
    """
    powers = np.exp2(np.arange(levels))
    weights: FloatArray = powers / (2 * powers - 1)
    return weights


def _node_log_mgf(law: NoiseLaw, levels: int, t: FloatArray) -> FloatArray:
    """Log moment generating function of an averaged node, by level: its own noise, then below."""
    rows = []
    for top in range(levels):
        total, weight = np.zeros_like(t), 1.0
        for depth in range(top + 1):
            own = float(own_weights(levels)[top - depth])
            total += 2.0**depth * law.log_mgf(weight * own * t)
            weight *= 1 - own
        rows.append(total)
    return np.array(rows)


class _HonakerRun(_TreeRun):
    def _next(self, first: int, rows: int) -> FloatArray:
        from discreet.privacy.mechanisms._kernels import honaker_prefix

        levels = self._noise.levels
        # All nodes that close in this piece: one leaf per time, and every parent it completes.
        closing = sum((first + rows >> j) - (first >> j) for j in range(levels))
        fresh = self._noise.law.draw(self.sampler, (closing, self.cells))
        out = np.empty((rows, self.cells))
        honaker_prefix(fresh, first, own_weights(levels), self._nodes, self._total, out)
        # Averages are floating-point numbers. Rounded to integers they are released as functions of
        # the noisy nodes: rint(count + noise) = count + rint(noise), because counts are integers.
        return np.rint(out)


class _Tree(AdditiveStream):
    """Shared calibration of the trees."""

    noise_type: ClassVar[type[TreeNoise]] = TreeNoise

    @classmethod
    def design(
        cls, trust: "_Private", reach: Reach, episodes: int, **options: Any
    ) -> tuple[CumulativeNoise, Guarantee]:
        """Laplace at L·l1/epsilon when delta = 0, else Gaussian at sqrt(L)·l2."""
        if trust.delta == 0 or trust.calibration == "paper":
            return cls._laplace(trust, reach, episodes, **options)
        return cls._gaussian(trust, reach, episodes)

    @classmethod
    def _laplace(
        cls, trust: "_Private", reach: Reach, episodes: int, log_base: float = 2.0
    ) -> tuple[CumulativeNoise, Guarantee]:
        moved = reach.l1 * tree_levels(episodes)
        if trust.calibration == "paper":
            scale = printed_scale(reach.horizon, episodes, trust.epsilon, log_base)
            guarantee = delivered(trust, "papers 003 and 004 (tree)", moved / scale)
        else:
            scale = laplace_scale(moved, trust.epsilon)
            guarantee = promise(trust, trust.epsilon, 0.0)
        return cls.noise_type(episodes=episodes, law=LaplaceLaw(scale)), guarantee

    @classmethod
    def _gaussian(
        cls, trust: "_Private", reach: Reach, episodes: int
    ) -> tuple[CumulativeNoise, Guarantee]:
        no_printed_constants(trust, cls.name)
        moved = reach.cells * tree_levels(episodes)
        law = GaussianLaw(
            discrete_gaussian_sigma(moved, trust.epsilon, trust.delta, pile=reach.pile)
        )
        noise = cls.noise_type(episodes=episodes, law=law)
        return noise, promise(trust, trust.epsilon, trust.delta)


def printed_scale(horizon: int, episodes: int, epsilon: float, log_base: float = 2.0) -> float:
    """The node scale 3H·log K/epsilon of papers 003 and 004, which leave the base open.

    With L levels it delivers 2·epsilon·L/log K: at K = 2e4, 2.10·epsilon with base 2 and
    3.03·epsilon with the natural logarithm.
    """
    _validate.positive(log_base=log_base - 1)
    if episodes < 2:
        raise CalibrationError("The printed scale 3H·log K/epsilon is zero at K = 1.")
    return 3 * horizon * math.log(episodes, log_base) / float(epsilon)


@dataclass(frozen=True, eq=False, kw_only=True)
class LaplaceTree(_Tree):
    """Binary tree with Laplace nodes: a pure epsilon; a requested delta is not used."""

    name: ClassVar[str] = "tree-laplace"

    @classmethod
    def design(
        cls, trust: "_Private", reach: Reach, episodes: int, **options: Any
    ) -> tuple[CumulativeNoise, Guarantee]:
        """Scale L·l1/epsilon per node (``log_base``: of the printed constants)."""
        return cls._laplace(trust, reach, episodes, **options)


@dataclass(frozen=True, eq=False, kw_only=True)
class GaussianTree(_Tree):
    """Binary tree with Gaussian nodes."""

    name: ClassVar[str] = "tree-gaussian"

    @classmethod
    def design(
        cls, trust: "_Private", reach: Reach, episodes: int, **options: Any
    ) -> tuple[CumulativeNoise, Guarantee]:
        """Gaussian at L2 = sqrt(L)·l2."""
        return cls._gaussian(trust, reach, episodes)


@dataclass(frozen=True, eq=False, kw_only=True)
class HonakerTree(_Tree):
    """Tree with Honaker's variance reduction (Laplace nodes if delta = 0, else Gaussian)."""

    name: ClassVar[str] = "tree-honaker"
    noise_type: ClassVar[type[TreeNoise]] = HonakerNoise

    @classmethod
    def design(
        cls, trust: "_Private", reach: Reach, episodes: int, **options: Any
    ) -> tuple[CumulativeNoise, Guarantee]:
        """As the plain trees."""
        no_printed_constants(trust, cls.name)
        return super().design(trust, reach, episodes)


@dataclass(frozen=True, eq=False, kw_only=True)
class IidTree(_Tree):
    """The padded tree of 004, Algorithm 4 (Laplace nodes if delta = 0, else Gaussian)."""

    name: ClassVar[str] = "tree-iid"
    noise_type: ClassVar[type[TreeNoise]] = PaddedTreeNoise
