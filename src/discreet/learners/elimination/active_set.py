"""The implicit active set: all policies whose upper value reaches a threshold, never listed.

The papers keep an explicit set, exponential in H·X, and name that as their open problem. Here
active = {pi : upper value of pi >= threshold} in one model, and all that the algorithm asks of
the set is to maximise a linear functional of the occupancy over it. Its relaxation to mixtures is
a linear program with one constraint besides the flow, solved exactly by a handful of dynamic
programs (`active_set_kernels.constrained_maximum`); the policy that is *played* is the feasible
vertex of the optimal edge, so that every played policy satisfies the constraint by itself.
"""

from dataclasses import dataclass

import numpy as np

from discreet._types import FloatArray, IntArray
from discreet.learners.elimination.coverage import Corner, Oracle


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
        from discreet.learners.elimination.active_set_kernels import policy_value

        return float(policy_value(self.transitions, self.initial, self.upper, policy))

    def contains(self, policy: IntArray) -> bool:
        """Whether a deterministic policy is active (up to rounding)."""
        slack = 1e-12 * max(1.0, abs(self.threshold)) if np.isfinite(self.threshold) else 0.0
        return self.upper_value(policy) >= self.threshold - slack

    def maximise(self, objective: FloatArray) -> Maximum:
        """Maximise the value of ``objective`` (``[H, X, A]``) over the active policies."""
        from discreet.learners.elimination.active_set_kernels import constrained_maximum

        policy, partner, share, bound, value, plans = constrained_maximum(
            self.transitions, self.initial, objective, self.upper, self.threshold, self.order
        )
        return Maximum(policy, float(value), float(bound), partner, float(share), int(plans))

    def visiting(self) -> tuple[IntArray, FloatArray]:
        """For every (h, x, a) an active policy likely to visit it, and how likely.

        Returns policies ``[H, X, A, H, X]`` and probabilities ``[H, X, A]`` (0: out of reach).
        """
        from discreet.learners.elimination.active_set_kernels import constrained_visits

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
        from discreet.learners.elimination.active_set_kernels import policy_occupancy

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
