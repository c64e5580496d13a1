"""Compiled dynamic programs behind the implicit active set.

Transitions may be sub-stochastic: the missing mass goes to an absorbing state worth nothing. The
last step has no successor. ``order[h, x]`` lists the actions in the order in which ties prefer
them; the caller shuffles it, so no action is special.
"""

from dataclasses import dataclass

import numpy as np

from discreet._jit import kernel
from discreet._types import FloatArray, IntArray
from discreet.learners.elimination.coverage import Corner, Oracle

_TIE = 1e-13
"""Two action values closer than this (relatively) are a tie."""


@kernel
def weighted_plan(
    transitions: FloatArray,
    initial: FloatArray,
    first: FloatArray,
    second: FloatArray,
    multiplier: float,
    order: IntArray,
) -> tuple[IntArray, float, float]:
    """Best policy for the reward ``first + multiplier * second``; ties go to more ``second``.

    Returns its actions ``[H, S]`` and its values under ``first`` and under ``second`` alone.
    """
    H, X, A, _ = transitions.shape
    actions = np.zeros((H, X), np.int64)
    value_first, value_second = np.zeros(X), np.zeros(X)
    for h in range(H - 1, -1, -1):
        next_first, next_second = np.zeros(X), np.zeros(X)
        for x in range(X):
            best = -np.inf
            for k in range(A):
                a = order[h, x, k]
                f, s = first[h, x, a], second[h, x, a]
                if h < H - 1:
                    for y in range(X):
                        p = transitions[h, x, a, y]
                        if p != 0.0:
                            f += p * value_first[y]
                            s += p * value_second[y]
                total = f + multiplier * s
                slack = _TIE * max(1.0, abs(best)) if k else 0.0
                if total > best + slack or (total >= best - slack and s > next_second[x]):
                    best, actions[h, x] = total, a
                    next_first[x], next_second[x] = f, s
        value_first, value_second = next_first, next_second
    return actions, _mean(initial, value_first), _mean(initial, value_second)


@kernel
def _mean(initial: FloatArray, values: FloatArray) -> float:
    total = 0.0
    for x in range(initial.size):
        total += initial[x] * values[x]
    return total


@kernel
def policy_value(
    transitions: FloatArray, initial: FloatArray, rewards: FloatArray, actions: IntArray
) -> float:
    H, X = actions.shape
    value = np.zeros(X)
    for h in range(H - 1, -1, -1):
        current = np.zeros(X)
        for x in range(X):
            a = actions[h, x]
            current[x] = rewards[h, x, a]
            if h < H - 1:
                for y in range(X):
                    current[x] += transitions[h, x, a, y] * value[y]
        value = current
    return _mean(initial, value)


@kernel
def policy_occupancy(transitions: FloatArray, initial: FloatArray, actions: IntArray) -> FloatArray:
    """Probability of visiting each (h, x, a) under one deterministic policy."""
    H, X, A, _ = transitions.shape
    occupancy = np.zeros((H, X, A))
    mass = initial.copy()
    for h in range(H):
        following = np.zeros(X)
        for x in range(X):
            if mass[x] > 0.0:
                a = actions[h, x]
                occupancy[h, x, a] = mass[x]
                for y in range(X):
                    following[y] += mass[x] * transitions[h, x, a, y]
        mass = following
    return occupancy


@kernel
def constrained_maximum(
    transitions: FloatArray,
    initial: FloatArray,
    objective: FloatArray,
    upper: FloatArray,
    threshold: float,
    order: IntArray,
) -> tuple[IntArray, IntArray, float, float, float, int]:
    """Maximise the value of ``objective`` over policies whose value of ``upper`` meets a threshold.

    The pairs (value of upper, value of objective) of all policies have a concave upper hull. Two of
    its vertices are held, one on each side of the threshold; the multiplier at which they tie is
    the slope of their chord, and one plan at that multiplier finds the vertex farthest above the
    chord, or shows that there is none: then the chord is an edge, and the point of it at the
    threshold is the optimum of the linear program over mixtures of policies.

    Returns:
        the feasible vertex; the other vertex of the edge (the same one if the constraint does not
        bind); the weight of that other vertex in the optimal mixture; the value of the mixture (the
        optimum of the linear program); the value of the feasible vertex; the number of plans. If no
        policy meets the threshold, both vertices are the policy of the highest ``upper``.
    """
    low, low_value, low_upper = weighted_plan(transitions, initial, objective, upper, 0.0, order)
    if low_upper >= threshold:
        return low, low, 0.0, low_value, low_value, 1
    high, high_upper, high_value = weighted_plan(transitions, initial, upper, objective, 0.0, order)
    plans = 2
    if high_upper <= threshold:
        return high, high, 0.0, high_value, high_value, plans
    for _ in range(200):
        multiplier = (low_value - high_value) / (high_upper - low_upper)
        middle, value, upper_value = weighted_plan(
            transitions, initial, objective, upper, multiplier, order
        )
        plans += 1
        chord = high_value + multiplier * high_upper
        if value + multiplier * upper_value <= chord + 1e-14 * max(1.0, abs(chord)):
            break
        if upper_value >= threshold:
            high, high_value, high_upper = middle, value, upper_value
        else:
            low, low_value, low_upper = middle, value, upper_value
    share = (high_upper - threshold) / (high_upper - low_upper)
    mixed = share * low_value + (1.0 - share) * high_value
    return high, low, share, mixed, high_value, plans


@kernel
def constrained_visits(
    transitions: FloatArray,
    initial: FloatArray,
    upper: FloatArray,
    threshold: float,
    order: IntArray,
) -> tuple[IntArray, FloatArray, IntArray]:
    """`constrained_maximum` of the probability of visiting each (h, x, a).

    Returns the feasible policies ``[H, X, A, H, X]``, their visit probabilities ``[H, X, A]`` and
    the number of plans used for each.
    """
    H, X, A, _ = transitions.shape
    policies = np.zeros((H, X, A, H, X), np.int64)
    visits = np.zeros((H, X, A))
    plans = np.zeros((H, X, A), np.int64)
    objective = np.zeros((H, X, A))
    for h in range(H):
        for x in range(X):
            for a in range(A):
                objective[h, x, a] = 1.0
                found = constrained_maximum(
                    transitions, initial, objective, upper, threshold, order
                )
                for k in range(H):
                    for y in range(X):
                        policies[h, x, a, k, y] = found[0][k, y]
                visits[h, x, a] = found[4]
                plans[h, x, a] = found[5]
                objective[h, x, a] = 0.0
    return policies, visits, plans


@kernel
def optimal_values(transitions: FloatArray, rewards: FloatArray) -> FloatArray:
    """``[H + 1, X]``, the best value from each step and state on."""
    H, X, A, _ = transitions.shape
    values = np.zeros((H + 1, X))
    for h in range(H - 1, -1, -1):
        for x in range(X):
            best = -np.inf
            for a in range(A):
                q = rewards[h, x, a]
                if h < H - 1:
                    for y in range(X):
                        q += transitions[h, x, a, y] * values[h + 1, y]
                best = max(best, q)
            values[h, x] = best
    return values


# The implicit active set: all policies whose upper value reaches a threshold, never listed.
#
# The papers keep an explicit set, exponential in H·X, and name that as their open problem. Here
# active = {pi : upper value of pi >= threshold} in one model, and all that the algorithm asks of
# the set is to maximise a linear functional of the occupancy over it. Its relaxation to mixtures is
# a linear program with one constraint besides the flow, solved exactly by a handful of dynamic
# programs (`active_set_kernels.constrained_maximum`); the policy that is *played* is the feasible
# vertex of the optimal edge, so that every played policy satisfies the constraint by itself.


@dataclass(frozen=True, eq=False)
class Maximum:
    """The maximum of a linear functional over the active set.

    Attributes:
        policy: ``[H, X]``, an active deterministic policy.
        value: what ``policy`` reaches.
        bound: the optimum over mixtures whose average upper value meets the threshold; no active
            policy exceeds it.
        partner: with ``share`` of ``partner`` and the rest of ``policy`` a mixture reaches `bound`.
        share: weight of ``partner`` (0 if the constraint does not bind).
        plans: dynamic programs used.
    """

    policy: IntArray
    value: float
    bound: float
    partner: IntArray
    share: float
    plans: int


@dataclass(frozen=True, eq=False)
class ImplicitActiveSet:
    """Policies with ``upper`` value at least ``threshold`` in a (sub-stochastic) model.

    Attributes:
        transitions: ``[H, X, A, X]``; missing mass is absorbed and worth nothing.
        initial: ``[X]``, distribution of the first state.
        upper: ``[H, X, A]``, rewards of the upper value.
        threshold: the least upper value of an active policy (``-inf``: all are active).
        order: ``[H, X, A]``, the order in which ties prefer actions (shuffled by the caller).
    """

    transitions: FloatArray
    initial: FloatArray
    upper: FloatArray
    threshold: float
    order: IntArray

    def __post_init__(self) -> None:
        # Plain writable copies: a kernel is compiled anew for every other kind of array.
        for name in ("transitions", "initial", "upper"):
            object.__setattr__(self, name, np.array(getattr(self, name), np.float64, order="C"))

    def upper_value(self, policy: IntArray) -> float:
        """Upper value of one deterministic policy."""
        return float(policy_value(self.transitions, self.initial, self.upper, policy))

    def contains(self, policy: IntArray) -> bool:
        """Whether a deterministic policy is active (up to rounding)."""
        slack = 1e-12 * max(1.0, abs(self.threshold)) if np.isfinite(self.threshold) else 0.0
        return self.upper_value(policy) >= self.threshold - slack

    def maximise(self, objective: FloatArray) -> Maximum:
        """Maximise the value of ``objective`` (``[H, X, A]``) over the active policies."""
        policy, partner, share, bound, value, plans = constrained_maximum(
            self.transitions, self.initial, objective, self.upper, self.threshold, self.order
        )
        return Maximum(policy, float(value), float(bound), partner, float(share), int(plans))

    def visiting(self) -> tuple[IntArray, FloatArray]:
        """For every (h, x, a) an active policy likely to visit it, and how likely.

        Returns policies ``[H, X, A, H, X]`` and probabilities ``[H, X, A]`` (0: out of reach).
        """
        policies, visits, _ = constrained_visits(
            self.transitions, self.initial, self.upper, self.threshold, self.order
        )
        return policies, visits

    def visiting_at(self, step: int) -> tuple[IntArray, FloatArray]:
        """The same for one step: policies ``[X, A, H, X]`` and probabilities ``[X, A]``."""
        _, states, actions = self.upper.shape
        found = []
        for x, a in np.ndindex(states, actions):
            target = np.zeros_like(self.upper)
            target[step, x, a] = 1.0
            found.append(self.maximise(target))
        policies = np.stack([top.policy for top in found])
        visits = np.array([top.value for top in found])
        return policies.reshape(states, actions, *policies.shape[1:]), visits.reshape(states, -1)

    def occupancy(self, policy: IntArray) -> FloatArray:
        """Probability of visiting each (h, x, a) under one deterministic policy."""
        visited: FloatArray = policy_occupancy(self.transitions, self.initial, policy)
        return visited

    def oracle(self, *, mixed: bool = False) -> Oracle:
        """`maximise` in the form that the coverage design takes.

        Args:
            mixed: play the optimal mixture of the two vertices (its *average* upper value meets the
                threshold, and the design's certificate covers every active policy), instead of the
                feasible vertex alone (active by itself).
        """

        def best(functional: FloatArray) -> Corner:
            top = self.maximise(functional)
            occupancy = self.occupancy(top.policy)
            if not mixed or top.share == 0.0:
                return Corner(top.policy[None], np.ones(1), occupancy, top.bound)
            shares = np.array([1.0 - top.share, top.share])
            occupancy = shares[0] * occupancy + shares[1] * self.occupancy(top.partner)
            return Corner(np.stack([top.policy, top.partner]), shares, occupancy, top.bound)

        return best
