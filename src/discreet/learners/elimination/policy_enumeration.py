"""The explicit active set: every deterministic policy as a number, for at most 2^25 of them.

Decisions that no episode can meet are left out: at the first step only the public start states
count (the support of the transitions is never assumed to be known). RiverSwim with 4 states and
horizon 6 has 2^21 policies, horizon 7 has 2^25.

This is the papers' own data structure, the exact oracle for the tests of the implicit set, and
what ``structure="paper"`` runs on.
"""

import base64
import zlib
from dataclasses import dataclass

import numpy as np

from discreet._types import BoolArray, FloatArray, IntArray
from discreet.errors import UnsupportedError
from discreet.learners.elimination.active_set import ImplicitActiveSet
from discreet.learners.elimination.coverage import Corner, Oracle
from discreet.mdp.shape import Shape

MOST_POLICIES = 2**25


@dataclass(frozen=True, eq=False)
class EnumeratedPolicies:
    """A sorted list of policies of one problem.

    Attributes:
        shape: states, actions, horizon.
        points: ``[n, 2]``, the decision points (h, x) in order.
        indices: the policies in the list, as increasing numbers in base A.
    """

    shape: Shape
    points: IntArray
    indices: IntArray

    def __len__(self) -> int:
        return len(self.indices)

    def policy(self, index: int) -> IntArray:
        """The policy with this number; action 0 where no episode can be."""
        from discreet.learners.elimination.policy_enumeration_kernels import decode_policy

        actions = np.zeros((self.shape.horizon, self.shape.states), np.int64)
        decode_policy(index, self.points, actions, self.shape.actions)
        return actions

    def index(self, policy: IntArray) -> int:
        number = 0
        for h, x in self.points:
            number = number * self.shape.actions + int(policy[h, x])
        return number

    def contains(self, policy: IntArray) -> bool:
        """Whether a policy is in the list."""
        number = self.index(policy)
        at = int(np.searchsorted(self.indices, number))
        return at < len(self.indices) and int(self.indices[at]) == number

    def values(
        self, transitions: FloatArray, initial: FloatArray, rewards: FloatArray
    ) -> FloatArray:
        """Value of every policy in the list."""
        from discreet.learners.elimination.policy_enumeration_kernels import policy_values

        plain = (np.array(array, np.float64) for array in (transitions, initial, rewards))
        found: FloatArray = policy_values(self.indices, self.points, *plain)
        return found

    def keep(self, mask: BoolArray) -> "EnumeratedPolicies":
        """The policies where ``mask`` holds."""
        return EnumeratedPolicies(self.shape, self.points, self.indices[mask])

    def visiting(
        self, transitions: FloatArray, initial: FloatArray, step: int, salt: int
    ) -> tuple[IntArray, FloatArray]:
        """For every (x, a), the listed policy that plays it at ``step`` with highest probability.

        Ties are broken at random by ``salt``. Returns policies ``[X, A, H, X]`` and probabilities
        ``[X, A]`` (0: out of reach, the policy means nothing).
        """
        from discreet.learners.elimination.policy_enumeration_kernels import best_visits

        if self.complete:
            return self._everyone(transitions, initial, salt).visiting_at(step)
        visits, winners = best_visits(self.indices, self.points, transitions, initial, step, salt)
        policies = np.array([[self.policy(max(int(i), 0)) for i in row] for row in winners])
        return policies, visits

    def oracle(self, transitions: FloatArray, initial: FloatArray) -> Oracle:
        """Exact maximisation of a linear functional of the occupancy over the list."""
        from discreet.learners.elimination.active_set_kernels import policy_occupancy

        def best(functional: FloatArray) -> Corner:
            values = self.values(transitions, initial, functional)
            top = int(np.argmax(values))
            policy = self.policy(int(self.indices[top]))
            occupancy = policy_occupancy(transitions, initial, policy)
            return Corner(policy[None], np.ones(1), occupancy, float(values[top]))

        return self._everyone(transitions, initial, 0).oracle() if self.complete else best

    @property
    def complete(self) -> bool:
        """Whether nothing has been dropped; then one dynamic program does what a pass does."""
        return len(self.indices) == int(self.shape.actions ** len(self.points))

    def _everyone(
        self, transitions: FloatArray, initial: FloatArray, salt: int
    ) -> ImplicitActiveSet:
        shape = self.shape
        names = np.broadcast_to(np.arange(shape.actions), shape.visits)
        order = np.random.default_rng(salt).permuted(names, axis=-1)
        return ImplicitActiveSet(transitions, initial, np.zeros(shape.visits), -np.inf, order)

    def packed(self) -> str:
        """The list as text, for a study's state."""
        member = np.zeros(self.shape.actions ** len(self.points), np.bool_)
        member[self.indices] = True
        return base64.b64encode(zlib.compress(np.packbits(member).tobytes())).decode()

    def unpacked(self, text: str) -> "EnumeratedPolicies":
        """The list that `packed` wrote, for the same problem."""
        total = self.shape.actions ** len(self.points)
        bits = np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8)
        member = np.unpackbits(bits, count=total).astype(np.bool_)
        return EnumeratedPolicies(self.shape, self.points, np.flatnonzero(member))


def enumerate_policies(shape: Shape, start: BoolArray) -> EnumeratedPolicies:
    """All deterministic policies of a problem whose episodes begin in ``start``.

    >>> len(enumerate_policies(Shape(states=2, actions=2, horizon=2), np.array([True, False])))
    8
    """
    first = [(0, int(x)) for x in np.flatnonzero(start)]
    later = [(h, x) for h in range(1, shape.horizon) for x in range(shape.states)]
    points = np.array(first + later, np.int64).reshape(-1, 2)
    total = shape.actions ** len(points)
    if total > MOST_POLICIES:
        raise UnsupportedError(
            f"{shape.actions}^{len(points)} policies are too many to list (the limit is 2^25); "
            f"use structure='practical', which never lists them."
        )
    return EnumeratedPolicies(shape, points, np.arange(total, dtype=np.int64))
