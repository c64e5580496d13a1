"""A mixture of active policies that covers what every active policy visits (001 equation 3).

Among mixtures with occupancy y, the design minimises ``max over active mu of sum mu / y`` over the
tuples t = (h, x, a) that some active policy reaches. It is the optimality condition of maximising
the concave ``sum over t of log y(t)``: at the optimum no occupancy mu has ``sum mu / y`` above the
number of tuples, and y itself attains that number. So the optimal value *is* the number of tuples,
and any mixture whose value is within 1% of it carries its own certificate.

(Printed over deterministic policies the minimum is infinite: no single policy plays two actions in
one place.)
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from discreet._types import BoolArray, FloatArray, IntArray
from discreet.errors import UnsupportedError
from discreet.mdp.shape import Shape

MOST_DECISIONS = 2**27
"""Decisions of all policies of a design together, one policy for each (h, x, a): a gigabyte."""


def check_decisions(shape: Shape, who: str, remedy: str) -> None:
    """Refuse a design that would not fit into memory."""
    tuples = shape.horizon * shape.states * shape.actions
    decisions = tuples * shape.horizon * shape.states
    if decisions > MOST_DECISIONS:
        raise UnsupportedError(
            f"{who} plans one policy for each of {tuples} (step, state, action): {decisions} "
            f"decisions are more than {MOST_DECISIONS}; {remedy}."
        )


@dataclass(frozen=True, eq=False)
class Corner:
    """What maximises a linear functional of the occupancy over the active policies.

    Attributes:
        policies: ``[m, H, X]``, one policy, or two that are mixed.
        shares: ``[m]``, their weights.
        occupancy: ``[H, X, A]`` of the mixture.
        bound: no active policy gives the functional a higher value.
    """

    policies: IntArray
    shares: FloatArray
    occupancy: FloatArray
    bound: float


Oracle = Callable[[FloatArray], Corner]
"""Linear functional ``[H, X, A]`` -> its maximum over the active policies."""


@dataclass(frozen=True, eq=False)
class Design:
    """A mixture of deterministic policies and what it is worth.

    Attributes:
        policies: ``[n, H, X]`` distinct policies.
        weights: ``[n]``, a distribution.
        occupancy: ``[H, X, A]`` of the mixture.
        covered: ``bool[H, X, A]``, the tuples the design must cover.
        value: the coverage number: the largest ``sum mu / y`` that the oracle reached.
        bound: no active policy at all exceeds this coverage number (equal to ``value`` if the
            oracle is exact).
        iterations: calls of the oracle.
    """

    policies: IntArray
    weights: FloatArray
    occupancy: FloatArray
    covered: BoolArray
    value: float
    bound: float
    iterations: int

    @property
    def tuples(self) -> int:
        """How many tuples are covered: the least possible coverage number."""
        return int(self.covered.sum())

    @property
    def excess(self) -> float:
        """``value / tuples``; 1 is perfect."""
        return self.value / max(self.tuples, 1)


def coverage_design(
    policies: IntArray,
    weights: FloatArray,
    occupancies: FloatArray,
    oracle: Oracle,
    *,
    tolerance: float = 1.01,
    most_iterations: int = 1000,
) -> Design:
    """Frank-Wolfe with exact line search, started from a mixture that reaches every tuple.

    Args:
        policies: ``[n, H, X]``, the starting mixture.
        weights: ``[n]``, its weights (normalised here).
        occupancies: ``[n, H, X, A]`` of its policies.
        oracle: maximises a linear functional over the active policies.
        tolerance: stop when the coverage number is at most this times the number of tuples.
        most_iterations: give up on the tolerance after so many oracle calls; `Design.value` then
            says what was reached.
    """
    shares = weights / weights.sum()
    occupancy = np.tensordot(shares, occupancies, axes=1)
    covered = occupancy > 0.0
    found: list[IntArray] = list(policies)
    mixture: list[float] = shares.tolist()
    y = occupancy[covered]
    value, bound, calls = 0.0, 0.0, 0
    while calls < most_iterations and y.size:
        functional = np.zeros_like(occupancy)
        functional[covered] = 1.0 / y
        corner = oracle(functional)
        calls += 1
        reached = corner.occupancy[covered]
        # The mixture itself has value y.size, so the maximum is never below it.
        value = max(float((reached / y).sum()), float(y.size))
        bound = max(corner.bound, value)
        if value <= tolerance * y.size:
            break
        step = _line_search(y, reached)
        y = (1.0 - step) * y + step * reached
        mixture = [share * (1.0 - step) for share in mixture] + (step * corner.shares).tolist()
        found.extend(corner.policies)
    occupancy = np.zeros_like(occupancy)
    occupancy[covered] = y
    distinct, merged = merge_policies(np.stack(found), np.array(mixture))
    return Design(distinct, merged, occupancy, covered, value, bound, calls)


def _line_search(y: FloatArray, corner: FloatArray) -> float:
    """The step in [0, 1) that maximises ``sum log((1 - step) y + step corner)`` (concave)."""
    low, high = 0.0, 1.0 - 1e-9
    direction = corner - y
    for _ in range(50):
        middle = 0.5 * (low + high)
        if float((direction / (y + middle * direction)).sum()) > 0.0:
            low = middle
        else:
            high = middle
    return low


def merge_policies(policies: IntArray, weights: FloatArray) -> tuple[IntArray, FloatArray]:
    """Equal policies become one, with the sum of their weights; zero weights go.

    >>> merge_policies(np.array([[[0]], [[1]], [[0]]]), np.array([0.25, 0.5, 0.25]))[1].tolist()
    [0.5, 0.5]
    """
    first: dict[bytes, int] = {}
    merged = np.zeros(len(policies))
    for i, policy in enumerate(policies):
        merged[first.setdefault(policy.tobytes(), i)] += weights[i]
    return policies[merged > 0.0], merged[merged > 0.0] / merged.sum()
