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

**People who return** up to m times, b users or more after the time before. A node of level j has
2^j leaves in a row, so a person is in it at most q_j = min(m, ceil(2^j/b)) times, and in the nodes
of a level m times in all. L1 is m·L·l1, however they lie. If she is k_1, k_2, ... times in the
nodes of a level, these move by at most k·l2 each (triangle inequality), and the sum of k² is
largest if nodes are filled one by one: r_j = floor(m/q_j)·q_j² + (m mod q_j)². So the squares of
all moves add up to l2²·(r_0 + ... + r_(L-1)) (`returning_squares`): between m·L and m²·L times l2².
Her second episode, and hence by how much a node moves, may depend on what was released after the
first one. Given the past each node is fresh noise around values that differ by at most the above,
so likelihood ratios of Laplace nodes multiply as before; of Gaussian ones the sum of squares is
bounded whatever happens, and zero-concentrated privacy adds up under such a bound
(`accounting.adaptive_gaussian_sigma`). Averaged and padded trees with Gaussian nodes: each
participation moves what is revealed by its own v, so all of them by at most m·|v|, whatever b; on
their fine grids noise is continuous up to the cost of the grid, and of continuous Gaussian noise
adaptive moves lose no more than fixed ones of the largest length (see `toeplitz`).

**Honaker** (2015): every node's value is also the sum of its children, so the two are averaged with
inverse-variance weights, bottom up (a release knows only what is below its nodes). The estimate of
a node at level j has variance 2^j/(2^(j+1)-1) of its own noise.

**I.i.d.-shaped** (004, Algorithm 4): each release is padded with fresh noise to the same number of
terms, so that its noise looks the same at all times. It serves that paper's proof and only adds
noise. The printed algorithm numbers leaves from 1 and never fills leaf 0 (K = 7 ones without noise
release 0,0,1,0,1,2,3); here leaves count from 0.

**Gaussian nodes of these two** are calibrated on what the releases reveal, not on all nodes:
instead of L the squared distance of the worst user is 12.8 (Honaker) and 9.0 (padded) at L = 15
(the recursions are below). Proof, for discrete noise and adaptive streams:

* *Honaker.* All releases are functions of y = C·x + Y, one row per time, lower triangular, with C
  and Y on the grid 2^-bits: C because its entries are multiples of 2^-12, Y because it is discrete
  Gaussian on the grid. Given the past, y_t of two neighbours have the same fresh noise and means
  that differ by a multiple of user i's move, so adaptive streams lose what one Gaussian release
  does (as for `toeplitz`).
* *Padded.* Let v move noise drawn after user i's turn only, with N·v = A·e_i, and v on the grid.
  With noise z + m·v instead of z, a stream in which user i is moved by m is matched release by
  release: later users see the same releases and answer alike, whatever m, which may depend on the
  past. So the loss is at most that of z against z + m·v, in which each coordinate is fresh given
  the past. The recursion below finds v by the move b_t of the tree's part at each time t; rounding
  all b_t to the grid (b_t = 1 stays where there is no padding) gives an exactly feasible v on it,
  as node noise moves by differences of b and padding by 1 - b_t. It is longer by at most
  1.2·2^(L/2)·2^-bits, which is added.
* *Discrete noise.* Continuous Gaussian noise rounded to the grid is post-processing of Gaussian
  noise, because all moves lie on the grid, and the analytic calibration holds for it. A discrete
  Gaussian of s steps is within 1/(8s²) of it in total variation per moved coordinate (proof in
  `toeplitz`), at a cost of (1 + e^epsilon) times the sum in delta, which is set aside; grids are
  fine enough that this is below a thousandth of delta. Where none is (epsilon above about 20),
  sigma comes from zero-concentrated privacy, which discrete noise satisfies as it is.

**Laplace nodes gain nothing**: user 0 lies in L revealed nodes, and the tail of a sum of Laplace
draws falls at the rate of its largest term, so that the likelihood ratio of each of them comes as
close to exp(l1/b) as one likes. They keep L·l1/epsilon, proved on all nodes as above.

**Exactness.** Averages are taken in 64-bit integers, in units of 2^-12 (Laplace) or 2^-bits:
weights are multiples of 2^-12 and add up to one, products are rounded by floor(x + 1/2), which
commutes with adding integers (rounding to even does not: rint(0.5 + 1) is not rint(0.5) + 1), and
so is what is released, to an integer. Hence count + noise *is* the same function of the noisy
values, bit for bit. Budget: standard deviations are below 2^49 steps (larger noise is refused), so
that values beyond 2^60 are a matter of 2,000 of them, and products are split so that 62 bits
suffice; whole numbers are released, exact in double precision up to 2^53. Roundings add 1/12 of
variance at the end, and less than a thousandth before.

**How far one user moves a Gaussian tree**, as an attacker who sees the releases only can tell. An
attacker sees r = A·x + N·z, with A the prefix sums and z the noise of nodes and padding, and not
the nodes themselves. Replacing user i by a unit move is the same as moving z by any v with
N·v = A·e_i, so the privacy loss is at most that of z against z + v, and the shortest v counts.

*Averaged* (Honaker). A release reveals, one per time, the estimates of the nodes that are
left children (or at the top): right children are used through their parents only. Follow a revealed
node n of level j down its right spine n, r(n), r(r(n)), ... to a leaf: own values enter with
weights a_d = w_(j-d)·(1-w_j)···(1-w_(j-d+1)), and what hangs off the spine to the left is revealed
already. Spines of different revealed nodes are disjoint. So all that is revealed is, per node n,

    y_n = sum over users of c_d·x + Y_n,   c_d = a_0 + ... + a_d = 1 - h_d,   c_j = 1,

where d is the depth at which the user leaves the spine to the left, h_d = (1-w_j)···(1-w_(j-d)),
and Y_n is *one* Gaussian of variance V_j = a_0² + ... + a_j², independent of all others; and the
estimate of n is y_n + sum of h_d·(estimate of the node that hangs off at depth d). This is a
factorisation with one row per time, lower triangular: the mechanism draws the Y_n directly. For
*every* table h the estimates are exactly unbiased, so h is rounded to multiples of 2^-12. A user's
squared distance is the sum over the revealed nodes that hold the user of c_d²/V_j; the worst user
is found by going down the levels (a right-left-right path: 0.844 per level, not 1).

*Padded* (i.i.d.-shaped). Take v that moves no noise drawn before user i's turn. Write b for
the move of the tree's part of a release; its padding, of variance q, must move by 1 - b. Blocks
after the user that start from a part moved by b cost I·(1-b)², where I is the information that
their releases have about where they start: a block of level j whose start has u paddings has

    I(j, u) = I(j-1, u) + G(j, u),   G = J/(1+J),   J(j, u) = I(j-1, u-1) + 1/(u-1):

its first half, and through one unit of node noise its second half and the release in between. When
the user leaves a block of level j to the left, all that comes after costs J·(1-b)² + b², at least
G(j, u); when to the right, nothing before it has moved. So C(j, u), the worst user of a block, is
the larger of C(j-1, u) + G(j, u) and C(j-1, u-1). From four levels on this equals the shortest v of
all (the worst user is the first one, before whom there is no noise).

"""

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from discreet import _validate
from discreet._types import FloatArray, IntArray, NumberArray
from discreet.errors import CalibrationError, UnsupportedError
from discreet.privacy.accounting.closed_forms import (
    gaussian_sigma,
    grid_delta,
    grid_sigma,
    laplace_scale,
)
from discreet.privacy.accounting.search import (
    adaptive_gaussian_sigma,
    discrete_gaussian_sigma,
)
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.mechanisms.additive import AddedContinually
from discreet.privacy.mechanisms.base import (
    AuditSizes,
    Certified,
    delivered,
    guaranteed,
)
from discreet.privacy.mechanisms.noise import (
    CHERNOFF_GRID,
    CumulativeNoise,
    Gaussian,
    GridDraws,
    Laplace,
    NoiseDistribution,
    check_exact,
    check_failure,
    strips,
)
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.sensitivity import Sensitivity

if TYPE_CHECKING:
    from discreet.privacy.trust import PrivateTrust


def tree_levels(episodes: int) -> int:
    """Nodes that one user lies in: L = (K-1).bit_length(), at least one.

    >>> [tree_levels(k) for k in (1, 2, 3, 4, 5, 20_000, 1_000_000)]
    [1, 1, 2, 2, 3, 15, 20]
    """
    _validate.count(episodes=episodes)
    return max(1, (episodes - 1).bit_length())


def returning_squares(episodes: int, sensitivity: Sensitivity) -> int:
    """r_0 + ... + r_(L-1): what returning costs in the nodes of all levels.

    >>> [returning_squares(8, Sensitivity(2, 1, 1, 2, apart)) for apart in (1, 4)]
    [10, 6]
    """
    m, b = sensitivity.participations, sensitivity.separation
    most = [min(m, -(-(1 << level) // b)) for level in range(tree_levels(episodes))]
    return sum(m // q * q**2 + (m % q) ** 2 for q in most)


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
    """Prefix sums of tree nodes, each with a draw of its own."""

    distribution: NoiseDistribution

    def __post_init__(self) -> None:
        super().__post_init__()
        most = self.levels + 1  # no prefix has more nodes
        check_exact(most * self.distribution.variance)

    @property
    def levels(self) -> int:
        return tree_levels(self.episodes)

    def terms(self, episode: int) -> int:
        """Noise terms in the release after ``episode`` users."""
        self.check_episode(episode)
        return len(prefix_levels(episode, self.levels))

    def variance(self, episode: int) -> float:
        return self.terms(episode) * self.distribution.variance

    def bound(self, episode: int, failure: float) -> float:
        """Chernoff bound over the nodes summed at this time, not a worst case over K."""
        return _sum_bound(self.distribution, self.terms(episode), float(failure))

    def bounds(self, failure: float, times: IntArray | None = None) -> FloatArray:
        """Looked up by the number of terms."""
        asked = self.times(times)
        terms = np.bitwise_count(asked).astype(np.int64)
        terms[asked == self.episodes] = self.terms(self.episodes)
        return self._bounds_of(terms, failure)

    def _bounds_of(self, terms: IntArray, failure: float) -> FloatArray:
        most = range(terms.max() + 1)
        table = [_sum_bound(self.distribution, max(1, n), float(failure)) for n in most]
        bounds: FloatArray = np.array(table)[terms]
        return bounds

    def state(self, cells: int) -> list[IntArray]:
        """The open nodes, one per level, and the sum of those in use."""
        return [np.zeros((self.levels, cells), np.int64), np.zeros(cells, np.int64)]

    def rows(self, first: int, rows: int, state: list[IntArray], sampler: Sampler) -> FloatArray:
        out = np.empty((rows, state[1].size))
        self._fill(first, self.distribution, out, state, sampler)
        return out

    def _fill(
        self,
        first: int,
        distribution: NoiseDistribution,
        out: NumberArray,
        state: list[IntArray],
        sampler: Sampler,
    ) -> None:
        """Whole numbers, summed as such and below 2^53: floats hold them exactly."""
        from discreet.privacy.mechanisms._kernels import tree_prefix

        for strip in strips(*out.shape):
            # Exactly one node that prefixes use closes at each time.
            fresh = distribution.draw(sampler, out[strip].shape)
            tree_prefix(fresh, first + strip.start, state[0], state[1], out[strip])

    def certified(self, sensitivity: Sensitivity) -> Certified:
        """Every release is a function of the noisy nodes."""
        if sensitivity.participations > 1 and isinstance(self.distribution, Gaussian):
            squares = sensitivity.squares * returning_squares(self.episodes, sensitivity)
            sigma = Fraction(self.distribution.sigma)
            return "adaptive-gaussian", {"sigma": sigma, "squares": squares}
        return self.distribution.certified(sensitivity, self.levels, pooled=True)

    def l2(self, sensitivity: Sensitivity) -> float:
        squares = sensitivity.squares * returning_squares(self.episodes, sensitivity)
        return math.sqrt(squares / self.levels)

    def concentrated(self, l2: float) -> float | None:
        """One user moves a node of every level."""
        return self.distribution.concentrated(l2, self.levels)

    @property
    def draws_moved(self) -> int:
        """One node of every level."""
        return self.levels

    def scaled(self, factor: float, *, pile: int = 1) -> "TreeNoise":
        return replace(self, distribution=self.distribution.scaled(factor))

    def padded_variant(self) -> "PaddedTreeNoise | None":
        """Padding only adds noise to the releases of a plain Laplace tree: it delivers the same."""
        if type(self) is not TreeNoise or not isinstance(self.distribution, Laplace):
            return None
        return PaddedTreeNoise(episodes=self.episodes, distribution=self.distribution)


@lru_cache(maxsize=4096)
def _sum_bound(distribution: NoiseDistribution, terms: int, failure: float) -> float:
    return distribution.bound({1.0: float(terms)}, failure)


WEIGHT_BITS = 12
"""Averaging weights are multiples of 2^-12."""


def own_weights(levels: int) -> FloatArray:
    """Inverse-variance weight of a node's own value, by level: v_j = 1/(1 + 1/(2 v_(j-1))).

    >>> own_weights(3).round(4).tolist()
    [1.0, 0.6667, 0.5714]
    """
    powers = np.exp2(np.arange(levels))
    weights: FloatArray = powers / (2 * powers - 1)
    return weights


def dyadic_weights(levels: int) -> IntArray:
    """`own_weights` in units of 2^-12."""
    return np.asarray(np.rint(np.ldexp(own_weights(levels), WEIGHT_BITS)), np.int64)


@dataclass(frozen=True, eq=False)
class Averaging:
    """The averaged tree in factored form, for nodes of unit variance.

    Attributes:
        weights: ``int64[level, child level]``: h in units of 2^-12, by the level of the node and of
            the node that hangs off its spine.
        spreads: standard deviation of Y_n by level.
        variances: variance of a node's estimate by level.
        squares: squared distance of the worst user.
    """

    weights: IntArray
    spreads: FloatArray
    variances: FloatArray
    squares: float


@lru_cache(maxsize=64)
def averaging(levels: int) -> Averaging:
    """Honaker's weights for a tree of ``levels`` levels.

    >>> round(averaging(15).squares, 2)  # instead of 15
    12.84
    """
    own = own_weights(levels)
    weights = np.zeros((levels, levels), np.int64)
    spreads = np.ones(levels)
    for top in range(levels):
        left = np.cumprod(1 - own[top:0:-1])  # h_0 .. h_(top-1)
        parts = own[top::-1] * np.concatenate([[1.0], left])
        spreads[top] = math.sqrt(float(parts @ parts))
        weights[top, :top] = np.rint(np.ldexp(left[::-1], WEIGHT_BITS))
    variances = np.zeros(levels)
    for top in range(levels):
        below = np.ldexp(weights[top, :top].astype(np.float64), -WEIGHT_BITS) ** 2
        variances[top] = spreads[top] ** 2 + float(below @ variances[:top])
    return Averaging(weights, spreads, variances, _worst_path(weights, spreads))


def _worst_path(weights: IntArray, spreads: FloatArray) -> float:
    """The largest sum of (c_d/spread)² over the revealed nodes that hold one user."""
    best = [0.0]  # best[j + 1]: of a subtree of level j
    for top in range(len(spreads)):
        moved = 1 - np.ldexp(weights[top].astype(np.float64), -WEIGHT_BITS)
        options = [1 / spreads[top] ** 2]  # down the whole spine
        for child in range(top):
            options.append((moved[child] / spreads[top]) ** 2 + best[child + 1])
        best.append(float(max(options)))
    return best[-1] * (1 + 1e-12)


@lru_cache(maxsize=64)
def padded_squares(levels: int, padded: int) -> float:
    """Squared distance of the worst user of a padded tree, for nodes of unit variance.

    >>> round(padded_squares(15, 15), 2)  # instead of 15
    9.05
    """
    last = 1 / (padded - 1) if padded > 1 else 0.0  # the last release of a full tree
    left = _cost(levels - 1, padded) + _through(_after(levels, padded) + last)
    right = _cost(levels - 1, padded - 1) + last if padded > 1 else 0.0
    return max(left, right) * (1 + 1e-12)


@lru_cache(maxsize=4096)
def _information(level: int, paddings: int) -> float:
    """I(j, u)."""
    if level == 0:
        return 0.0
    return _information(level - 1, paddings) + _through(_after(level, paddings))


def _after(level: int, paddings: int) -> float:
    """J(j, u); infinite if the release in between has no padding."""
    if paddings == 1:
        return math.inf
    return _information(level - 1, paddings - 1) + 1 / (paddings - 1)


def _through(information: float) -> float:
    """What is left of it behind one unit of node noise."""
    return 1.0 if math.isinf(information) else information / (1 + information)


@lru_cache(maxsize=4096)
def _cost(level: int, paddings: int) -> float:
    """C(j, u)."""
    if level == 0:
        return 0.0
    left = _cost(level - 1, paddings) + _through(_after(level, paddings))
    return max(left, _cost(level - 1, paddings - 1))


_GRIDS = (16, 24, 32)
"""Bits of the grids on which Gaussian noise is drawn where releases mix it."""
_BUDGET = 49
"""Bits of a standard deviation in grid steps: what samplers draw exactly."""


@dataclass(frozen=True, kw_only=True)
class GridTreeNoise(TreeNoise):
    """A tree whose Gaussian noise is drawn on the grid 2^-bits, and released in whole numbers."""

    bits: int = _GRIDS[0]

    def __post_init__(self) -> None:
        super().__post_init__()
        bits = self.bits if self.gridded else WEIGHT_BITS
        spread = math.sqrt(self.distribution.variance * (self.levels + 1))
        if spread > 2.0 ** (_BUDGET - bits):
            raise CalibrationError(
                f"Noise of standard deviation {spread:.3g} exceeds 64-bit integers on a grid of "
                f"2^-{bits}; ask for a larger epsilon."
            )

    @property
    def gridded(self) -> bool:
        """Gaussian noise only: Laplace nodes are whole numbers."""
        return isinstance(self.distribution, Gaussian)

    def steps(self, spread: float) -> Gaussian:
        """The node's distribution times ``spread``, in grid steps."""
        if not isinstance(self.distribution, Gaussian):
            raise CalibrationError(f"Expected Gaussian noise, got {self.distribution.kind}.")
        return Gaussian(math.ldexp(self.distribution.sigma * spread, self.bits))

    @classmethod
    @abstractmethod
    def revealed(cls, episodes: int, bits: int) -> tuple[float, float, int]:
        """L2 of a unit move, the least spread of a draw, and how many draws move, per counter."""

    def on_grid(self) -> GridDraws | None:
        """Of Gaussian nodes: what their releases reveal."""
        if not self.gridded:
            return None
        unit, spread, draws = self.revealed(self.episodes, self.bits)
        steps = self.steps(spread).sigma
        return GridDraws(unit * math.ldexp(spread / steps, self.bits), steps, draws)

    def certified(self, sensitivity: Sensitivity) -> Certified:
        if self.gridded:
            raise UnsupportedError(
                "Averaged and padded trees with Gaussian nodes are calibrated on what they reveal, "
                "which certificates do not cover; use mechanism='tree-gaussian' or 'toeplitz'."
            )
        return super().certified(sensitivity)

    def concentrated(self, l2: float) -> float | None:
        return CumulativeNoise.concentrated(self, l2)

    def l2(self, sensitivity: Sensitivity) -> float:
        return CumulativeNoise.l2(self, sensitivity)


def _to_units(values: IntArray, bits: int) -> FloatArray:
    """floor(x·2^-bits + 1/2), exactly: the shift of integers rounds down."""
    return ((values + (1 << bits - 1)) >> bits).astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class PaddedTreeNoise(GridTreeNoise):
    """A tree whose releases all carry the same number of noise terms."""

    @property
    def padded(self) -> int:
        """Terms in every release: L (two for K = 2, where the last prefix has two nodes)."""
        return max(self.levels, len(prefix_levels(self.episodes, self.levels)))

    def terms(self, episode: int) -> int:
        self.check_episode(episode)
        return self.padded

    def variance(self, episode: int) -> float:
        """One node variance per term, and the rounding of gridded noise."""
        return super().variance(episode) + (1 / 12 if self.gridded else 0.0)

    def bound(self, episode: int, failure: float) -> float:
        return super().bound(episode, failure) + (0.5 if self.gridded else 0.0)

    def bounds(self, failure: float, times: IntArray | None = None) -> FloatArray:
        return np.full(len(self.times(times)), self.bound(1, failure))

    @classmethod
    def revealed(cls, episodes: int, bits: int) -> tuple[float, float, int]:
        levels = tree_levels(episodes)
        padded = max(levels, len(prefix_levels(episodes, levels)))
        rounding = 1.2 * math.ldexp(2.0 ** (levels / 2), -bits)
        return math.sqrt(padded_squares(levels, padded)) + rounding, 1.0, 2 << levels

    def rows(self, first: int, rows: int, state: list[IntArray], sampler: Sampler) -> FloatArray:
        """All nodes of the piece, then the paddings by their number of terms."""
        out = np.empty((rows, state[1].size), np.int64)
        nodes = self.steps(1.0) if self.gridded else self.distribution
        self._fill(first, nodes, out, state, sampler)
        times = range(first + 1, first + rows + 1)
        missing = np.array([self.padded - len(prefix_levels(t, self.levels)) for t in times])
        for terms in np.unique(missing[missing > 0]).tolist():
            where = np.flatnonzero(missing == terms)
            size = (where.size, state[1].size)
            if self.gridded:  # one draw that is as wide
                out[where] += self.steps(math.sqrt(terms)).draw(sampler, size)
            else:
                out[where] += self.distribution.draw_sum(sampler, terms, size)
        return _to_units(out, self.bits) if self.gridded else out.astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class HonakerNoise(GridTreeNoise):
    """A tree whose nodes are averaged with their children.

    Laplace nodes are drawn one by one and averaged; Gaussian ones in factored form.
    """

    def variance(self, episode: int) -> float:
        """A node at level j counts 2^j/(2^(j+1)-1), up to the rounding of weights."""
        self.check_episode(episode)
        used = prefix_levels(episode, self.levels)
        rounding = 1 / 12 if self.gridded or max(used) > 0 else 0.0
        return float(sum(self._shares[used])) * self.distribution.variance + rounding

    @property
    def _shares(self) -> FloatArray:
        """Variance of a node's estimate by level, in node variances."""
        if self.gridded:
            return averaging(self.levels).variances
        return own_weights(self.levels)

    def bound(self, episode: int, failure: float) -> float:
        """Chernoff bound over all nodes below the prefix, with their weights."""
        self.check_episode(episode)
        used = np.bincount(prefix_levels(episode, self.levels), minlength=self.levels)
        return float(self._bounds_at(used[None, :], failure)[0])

    def bounds(self, failure: float, times: IntArray | None = None) -> FloatArray:
        asked = self.times(times)
        used = asked[:, None] >> np.arange(self.levels) & 1
        used[asked == self.episodes] = np.bincount(
            prefix_levels(self.episodes, self.levels), minlength=self.levels
        )
        return self._bounds_at(used, failure)

    def _bounds_at(self, used: IntArray, failure: float) -> FloatArray:
        """For prefixes with ``used[i, j]`` nodes of level j; rounding adds at most a half.

        Roundings before the last one are of 2^-13 at most each, fewer than two per node and level.
        """
        rounded = self.gridded | used[:, 1:].any(axis=1)
        return self._unrounded(used, failure) + rounded * (0.5 + self.levels**2 / 4096)

    def _unrounded(self, used: IntArray, failure: float) -> FloatArray:
        check_failure(failure)
        if isinstance(self.distribution, Gaussian):
            squares = used @ self._shares
            bounds: FloatArray = np.sqrt(squares) * self.distribution.bound({1.0: 1.0}, failure)
            return bounds
        t = CHERNOFF_GRID * self.distribution.mgf_limit
        log_mgf = _node_log_mgf(self.distribution, self.levels)
        best = np.full(len(used), np.inf)
        for column, one in enumerate(t):
            total = used @ log_mgf[:, column]
            np.minimum(best, (total + math.log(2 / failure)) / one, out=best)
        return best

    @classmethod
    def revealed(cls, episodes: int, bits: int) -> tuple[float, float, int]:
        table = averaging(tree_levels(episodes))
        return math.sqrt(table.squares), float(table.spreads.min()), len(table.spreads)

    def rows(self, first: int, rows: int, state: list[IntArray], sampler: Sampler) -> FloatArray:
        if self.gridded:
            return _to_units(self._factored(first, rows, state, sampler), self.bits)
        return _to_units(self._averaged(first, rows, state, sampler), WEIGHT_BITS)

    def _averaged(self, first: int, rows: int, state: list[IntArray], sampler: Sampler) -> IntArray:
        from discreet.privacy.mechanisms._kernels import honaker_prefix

        # All nodes that close in this piece: one leaf per time, and every parent it completes.
        closing = sum((first + rows >> j) - (first >> j) for j in range(self.levels))
        fresh = self.distribution.draw(sampler, (closing, state[1].size))
        out = np.empty((rows, state[1].size), np.int64)
        honaker_prefix(fresh, first, dyadic_weights(self.levels), state[0], state[1], out)
        return out

    def _factored(self, first: int, rows: int, state: list[IntArray], sampler: Sampler) -> IntArray:
        from discreet.privacy.mechanisms._kernels import factored_prefix

        table = averaging(self.levels)
        times = np.arange(first + 1, first + rows + 1)
        closing = np.minimum(np.bitwise_count((times & -times) - 1), len(table.spreads) - 1)
        fresh = np.empty((rows, state[1].size), np.int64)
        for level in np.unique(closing):
            where = np.flatnonzero(closing == level)
            node = self.steps(float(table.spreads[level]))
            fresh[where] = node.draw(sampler, (where.size, state[1].size))
        out = np.empty((rows, state[1].size), np.int64)
        factored_prefix(fresh, first, table.weights, state[0], state[1], out)
        return out


@lru_cache(maxsize=8)
def _node_log_mgf(distribution: NoiseDistribution, levels: int) -> FloatArray:
    """Log moment generating function of an averaged node, by level: its own noise, then below.

    At the points of `CHERNOFF_GRID`.
    """
    t = CHERNOFF_GRID * distribution.mgf_limit
    rows = []
    for top in range(levels):
        total, weight = np.zeros_like(t), 1.0
        for depth in range(top + 1):
            own = float(own_weights(levels)[top - depth])
            total += 2.0**depth * distribution.log_mgf(weight * own * t)
            weight *= 1 - own
        rows.append(total)
    return np.array(rows)


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


def laplace_nodes(
    trust: "PrivateTrust",
    sensitivity: Sensitivity,
    episodes: int,
    kind: type[TreeNoise] = TreeNoise,
) -> _Design:
    """Laplace nodes at L·l1/epsilon."""
    moved = sensitivity.l1 * tree_levels(episodes)
    if trust.printed:
        scale = printed_scale(sensitivity.horizon, episodes, trust.epsilon)
        guarantee = delivered(trust, "papers 003 and 004 (tree)", moved / scale)
    else:
        scale = laplace_scale(moved, trust.epsilon)
        guarantee = guaranteed(trust, trust.epsilon, 0.0, apart=sensitivity.apart)
    return kind(episodes=episodes, distribution=Laplace(scale)), guarantee


def gaussian_nodes(trust: "PrivateTrust", sensitivity: Sensitivity, episodes: int) -> _Design:
    """Gaussian nodes at sqrt(L)·l2."""
    if sensitivity.participations == 1:
        moved = sensitivity.cells * tree_levels(episodes)
        sigma = discrete_gaussian_sigma(moved, trust.epsilon, trust.delta, pile=sensitivity.pile)
    else:
        squares = sensitivity.squares * returning_squares(episodes, sensitivity)
        sigma = adaptive_gaussian_sigma(squares, trust.epsilon, trust.delta)
    noise = TreeNoise(episodes=episodes, distribution=Gaussian(sigma))
    return noise, guaranteed(trust, trust.epsilon, trust.delta, apart=sensitivity.apart)


def _mixed_nodes(
    trust: "PrivateTrust", sensitivity: Sensitivity, episodes: int, kind: type[GridTreeNoise]
) -> _Design:
    """Laplace nodes for a pure epsilon, else Gaussian ones on a grid, on what they reveal."""
    epsilon, delta = float(trust.epsilon), float(trust.delta)
    if delta == 0 or trust.printed:
        return laplace_nodes(trust, sensitivity, episodes, kind)
    l2 = sensitivity.l2 * math.sqrt(sensitivity.participations)
    for bits in _GRIDS:
        unit, spread, draws = kind.revealed(episodes, bits)
        sigma = gaussian_sigma(l2 * unit, epsilon, delta)
        lost = grid_delta(math.ldexp(sigma * spread, bits), sensitivity.units * draws, epsilon)
        if lost <= delta / 1000:
            break
    sigma = grid_sigma(l2 * unit, epsilon, delta, lost=lost, most=delta / 1000)
    noise = kind(episodes=episodes, distribution=Gaussian(sigma), bits=bits)
    return noise, guaranteed(trust, epsilon, delta, apart=sensitivity.apart)


def averaged_nodes(trust: "PrivateTrust", sensitivity: Sensitivity, episodes: int) -> _Design:
    """The averaged tree."""
    return _mixed_nodes(trust, sensitivity, episodes, HonakerNoise)


def padded_nodes(trust: "PrivateTrust", sensitivity: Sensitivity, episodes: int) -> _Design:
    """The padded tree."""
    return _mixed_nodes(trust, sensitivity, episodes, PaddedTreeNoise)


tree_laplace = AddedContinually(laplace_nodes, audit=AuditSizes(quick_long=True))
"""Binary tree with Laplace nodes: a pure epsilon; a requested delta is not used."""
tree_gaussian = AddedContinually(gaussian_nodes)
"""Binary tree with Gaussian nodes."""
tree_honaker = AddedContinually(averaged_nodes)
"""Tree with Honaker's variance reduction (Laplace nodes if delta = 0, else Gaussian)."""
tree_iid = AddedContinually(padded_nodes, audit=AuditSizes(long=False))
"""The padded tree of Bai et al. 2024 (Laplace nodes if delta = 0, else Gaussian)."""
