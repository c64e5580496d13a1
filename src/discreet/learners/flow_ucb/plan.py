"""Plans of flow-ucb: the optimistic policy of a belief, and the greedy one."""

from typing import NamedTuple

import numpy as np

from discreet._types import FloatArray, IntArray
from discreet.learners.flow_ucb.belief import Belief
from discreet.mdp.shape import Shape


class Plan(NamedTuple):
    """A deterministic policy with what was known when it was made.

    Attributes:
        actions: ``[H, S]``.
        values: ``[H + 1, S]``, what it promises.
        bonus: ``[H, S]``, the part of the promise that is not known.
        moments: ``[H, S, 3]``: variance and squared deviations of the next value, and the reward.
        occupancy: ``[H, S]``, how likely the model is there.
    """

    actions: IntArray
    values: FloatArray
    bonus: FloatArray
    moments: FloatArray
    occupancy: FloatArray

    @classmethod
    def empty(cls, horizon: int, states: int) -> "Plan":
        """To be filled."""
        return cls(
            np.zeros((horizon, states), np.int64),
            np.zeros((horizon + 1, states)),
            np.zeros((horizon, states)),
            np.zeros((horizon, states, 3)),
            np.zeros((horizon, states)),
        )


class Planner:
    """Makes plans from beliefs.

    Attributes:
        shape: of the problem.
        initial: ``[S]``, the distribution that episodes are taken to start from.
        centre: what rewards are released less of: 1/2 where they are centred, or 0.
    """

    def __init__(self, shape: Shape, initial: FloatArray, centre: float) -> None:
        self.shape = shape
        self.initial = initial
        self.centre = centre

    def optimistic(self, belief: Belief, width: FloatArray, tie: FloatArray) -> Plan:
        """The policy that promises most, with ``width`` standard deviations per row."""
        return self._made(belief, width, tie, explore=True)

    def greedy(self, belief: Belief, tie: FloatArray) -> Plan:
        """The best policy of the model; actions that are not known are shunned."""
        return self._made(belief, np.zeros(belief.number.shape), tie, explore=False)

    def _made(self, belief: Belief, width: FloatArray, tie: FloatArray, *, explore: bool) -> Plan:
        from discreet.learners.flow_ucb import plan_kernels

        plan = Plan.empty(self.shape.horizon, self.shape.states)
        plan_kernels.optimistic(belief, width, explore, self.centre, tie, plan)
        plan_kernels.state_occupancy(
            belief.number, belief.probabilities, plan.actions, self.initial, plan.occupancy
        )
        return plan

    def charted(self, belief: Belief, plan: Plan) -> Plan:
        """The plan with its occupancy as far as it leads through rows that are known."""
        from discreet.learners.flow_ucb import plan_kernels

        occupancy = np.zeros_like(plan.occupancy)
        plan_kernels.charted_occupancy(belief, plan.actions, self.initial, occupancy)
        return plan._replace(occupancy=occupancy)

    def promised(self, plan: Plan) -> float:
        """The value of a plan by its own account."""
        return float(self.initial @ plan.values[0])

    def reach(self, belief: Belief) -> FloatArray:
        """``[H, S]``: the largest chance of every state at every step, over all policies.

        By chances that stand out of their noise: where noise leads, nobody comes.
        """
        from discreet.learners.flow_ucb import plan_kernels

        certain = np.empty((*belief.number.shape, self.shape.states))
        plan_kernels.certain_moves(belief, certain)
        out = np.zeros((self.shape.horizon, self.shape.states))
        plan_kernels.largest_reach(certain, self.initial, out)
        return out

    @property
    def reach_work(self) -> float:
        """Multiplications that `reach` takes."""
        s, a, h = self.shape.states, self.shape.actions, self.shape.horizon
        return float(s**3 * a * h**2 / 2)
