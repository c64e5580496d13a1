"""Planning of flow-ucb: the optimistic route of a belief, and the greedy one."""

from typing import NamedTuple

import numpy as np

from discreet._types import FloatArray, IntArray
from discreet.learners.flow_ucb.belief import Belief, unseen_states
from discreet.learners.flow_ucb.evidence import TOTAL, VISITS
from discreet.mdp.shape import Shape

MOMENTS = 4
NEXT_VARIANCE, DEVIATION, REWARD, SHARE = range(MOMENTS)
"""Of the row that a route takes: the variance of the next value and its squared deviations, as far
as noise reaches or hides; the mean reward; and the share of width·sd that is its bonus, 1 where
anything of it is pooled, less where it stands alone before others that are unsure."""


class Route(NamedTuple):
    """A deterministic policy with what was known when it was made (a *plan* is a release).

    Attributes:
        actions: ``[H, S]``.
        values: ``[H + 1, S]``, its value by its own account, bonuses included.
        bonus: ``[H, S]``, the part of the value that is not known.
        moments: ``[H, S, 4]``, the columns above.
        occupancy: ``[H, S]``, how likely the model is there.
    """

    actions: IntArray
    values: FloatArray
    bonus: FloatArray
    moments: FloatArray
    occupancy: FloatArray

    @classmethod
    def empty(cls, horizon: int, states: int) -> "Route":
        """To be filled."""
        return cls(
            np.zeros((horizon, states), np.int64),
            np.zeros((horizon + 1, states)),
            np.zeros((horizon, states)),
            np.zeros((horizon, states, MOMENTS)),
            np.zeros((horizon, states)),
        )


class Planner:
    """Makes routes from beliefs.

    Attributes:
        shape: of the problem.
        initial: ``[S]``, the distribution that episodes are taken to start from.
        centre: what rewards are released less of: 1/2 where they are centred, or 0.
    """

    def __init__(self, shape: Shape, initial: FloatArray, centre: float) -> None:
        self.shape = shape
        self.initial = initial
        self.centre = centre

    @property
    def doubted(self) -> float:
        """How much of the variance of a row's visits can be in that of its rewards.

        A sum of r - c moves by at most max(c, 1 - c) with one visit more or less: 1/4 of the
        variance where rewards are centred, all of it where they are not (``bits``, ``one-step``).
        """
        return max(self.centre, 1 - self.centre) ** 2

    def optimistic(
        self, belief: Belief, width: FloatArray, tie: FloatArray, hiding: float = 0.0
    ) -> Route:
        """The route of the largest value, with ``width`` standard deviations per row.

        Args:
            belief: what is known.
            width: of every row.
            tie: breaks ties.
            hiding: share of a standard deviation of noise that may hide, in every batch, a way to
                a state in which nobody was seen.
        """
        return self._made(belief, width, tie, hiding, explore=True)

    def greedy(self, belief: Belief, tie: FloatArray) -> Route:
        """The best policy of the model; actions that are not known are shunned."""
        return self._made(belief, np.zeros(belief.number.shape), tie, 0.0, explore=False)

    def _made(
        self, belief: Belief, width: FloatArray, tie: FloatArray, hiding: float, *, explore: bool
    ) -> Route:
        from discreet.learners.flow_ucb import plan_kernels

        route = Route.empty(self.shape.horizon, self.shape.states)
        unseen = unseen_states(belief) if hiding else np.zeros(belief.number.shape[:2])
        plan_kernels.optimistic(belief, width, unseen, hiding, explore, self.centre, tie, route)
        plan_kernels.state_occupancy(
            belief.number, belief.probabilities, route.actions, self.initial, route.occupancy
        )
        return route

    def charted(self, belief: Belief, route: Route) -> Route:
        """The route with its occupancy as far as it leads through rows that are known."""
        from discreet.learners.flow_ucb import plan_kernels

        occupancy = np.zeros_like(route.occupancy)
        plan_kernels.charted_occupancy(belief, route.actions, self.initial, occupancy)
        return route._replace(occupancy=occupancy)

    def value(self, route: Route) -> float:
        """Of a route, by its own account."""
        return float(self.initial @ route.values[0])

    def closeness(self, belief: Belief, within: float) -> FloatArray:
        """``[L, S, A]``: how close actions come to the best of their state, by the model.

        1 for the best, 0 for those worse by the share ``within`` of the state's value, linear
        between. An action of which nothing is known has 0, where others have a value: its bonus
        needs no help.
        """
        values = self.greedy(belief, np.zeros(self.shape.visits)).values
        best = values[:-1, :, None]
        visits, total = belief.gains[..., VISITS], belief.gains[..., TOTAL]
        # `plan_kernels.mean_reward` of all rows.
        reward = np.clip(total / np.where(visits > 0, visits, np.inf), 0.0, 1.0)
        known = np.broadcast_to(reward, self.shape.visits).copy()
        numbers = np.broadcast_to(belief.number, self.shape.visits)
        for h in range(self.shape.horizon - 1):
            following = np.append(belief.probabilities @ values[h + 1], 0.0)  # -1: no row, nothing
            known[h] += following[numbers[h]]
        close = np.clip(1 - (best - known) / np.maximum(within * best, 1e-12), 0.0, 1.0)
        return np.asarray(close if len(belief.number) > 1 else close.max(axis=0, keepdims=True))

    def largest_chances(self, belief: Belief) -> FloatArray:
        """``[H, S]``: the largest chance of every state at every step, over all policies.

        By chances that stand out of their noise: where noise leads, nobody comes.
        """
        from discreet.learners.flow_ucb import plan_kernels

        certain = np.empty((*belief.number.shape, self.shape.states))
        plan_kernels.certain_moves(belief, certain)
        out = np.zeros((self.shape.horizon, self.shape.states))
        plan_kernels.largest_chances(certain, self.initial, out)
        return out

    @property
    def chance_work(self) -> float:
        """Multiplications that `largest_chances` takes."""
        s, a, h = self.shape.states, self.shape.actions, self.shape.horizon
        return float(s**3 * a * h**2 / 2)
