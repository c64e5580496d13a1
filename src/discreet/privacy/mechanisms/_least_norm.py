"""How far one user moves a Gaussian tree, as an attacker who sees the releases only can tell.

An attacker sees r = A·x + N·z, with A the prefix sums and z the noise of nodes and padding, and not
the nodes themselves. Replacing user i by a unit move is the same as moving z by any v with
N·v = A·e_i, so the privacy loss is at most that of z against z + v, and the shortest v counts.
`discreet.privacy.mechanisms.tree` says how discrete noise and adaptive streams come in.

**Averaged tree** (Honaker). A release reveals, one per time, the estimates of the nodes that are
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

**Padded tree** (i.i.d.-shaped). Take v that moves no noise drawn before user i's turn. Write b for
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
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from discreet._types import FloatArray, IntArray

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
