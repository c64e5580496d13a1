"""Compiled passes over an explicit list of deterministic policies.

A policy is a number in base A: one digit per decision point (h, x), the earliest step first. In
a sorted list neighbours share long prefixes, so each pass recomputes only the steps that changed.
"""

import base64
import zlib
from dataclasses import dataclass

import numpy as np

from discreet._jit import kernel
from discreet._types import BoolArray, FloatArray, IntArray
from discreet.errors import UnsupportedError
from discreet.learners.elimination.active_set import ImplicitActiveSet
from discreet.learners.elimination.coverage import Corner, Oracle
from discreet.mdp.shape import Shape


@kernel
def _decode(index: int, actions: int, points: IntArray, policy: IntArray) -> int:
    """Write one policy over the previous one; returns the first step that changed (H if none)."""
    changed: int = policy.shape[0]
    for k in range(points.shape[0] - 1, -1, -1):
        h, x = points[k, 0], points[k, 1]
        digit = index % actions
        index //= actions
        if policy[h, x] != digit:
            policy[h, x] = digit
            changed = h
    return changed


@kernel
def _advance(transitions: FloatArray, policy: IntArray, h: int, mass: FloatArray) -> None:
    """State probabilities of step h + 1 from those of step h."""
    X = policy.shape[1]
    mass[h + 1] = 0.0
    for x in range(X):
        if mass[h, x] > 0.0:
            a = policy[h, x]
            for y in range(X):
                mass[h + 1, y] += mass[h, x] * transitions[h, x, a, y]


@kernel
def policy_values(
    indices: IntArray,
    points: IntArray,
    transitions: FloatArray,
    initial: FloatArray,
    rewards: FloatArray,
) -> FloatArray:
    """Value of every listed policy (sorted indices) for one reward."""
    H, X, A, _ = transitions.shape
    policy = np.zeros((H, X), np.int64)
    mass = np.zeros((H + 1, X))
    for x in range(X):
        mass[0, x] = initial[x]
    earned = np.zeros(H + 1)
    values = np.zeros(indices.shape[0])
    for j in range(indices.shape[0]):
        changed = _decode(indices[j], A, points, policy)
        for h in range(0 if j == 0 else changed, H):
            total = earned[h]
            for x in range(X):
                total += mass[h, x] * rewards[h, x, policy[h, x]]
            earned[h + 1] = total
            if h < H - 1:
                _advance(transitions, policy, h, mass)
        values[j] = earned[H]
    return values


@kernel
def _tie_key(index: int, salt: int) -> np.uint64:
    """A pseudo-random rank of a policy (splitmix64), so that ties favour no action."""
    z = np.uint64(index) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def best_visits(
    indices: IntArray,
    points: IntArray,
    transitions: FloatArray,
    initial: FloatArray,
    step: int,
    salt: int,
) -> tuple[FloatArray, IntArray]:
    """For every (x, a): the listed policy most likely to play it at ``step``, ties at random.

    Returns the probabilities ``[X, A]`` and the policies' numbers (-1 where no policy gets there).
    """
    H, X, A, _ = transitions.shape
    policy = np.zeros((H, X), np.int64)
    mass = np.zeros((H + 1, X))
    for x in range(X):
        mass[0, x] = initial[x]
    best = np.zeros((X, A))
    winner = np.full((X, A), -1)
    keys = np.zeros((X, A), np.uint64)
    for j in range(indices.shape[0]):
        changed = _decode(indices[j], A, points, policy)
        for h in range(0 if j == 0 else changed, step):
            _advance(transitions, policy, h, mass)
        key = _tie_key(indices[j], salt)
        for x in range(X):
            p, a = mass[step, x], policy[step, x]
            better = p > best[x, a] + 1e-12
            tied = p > 0.0 and p >= best[x, a] - 1e-12 and key >= keys[x, a]
            if better or tied:
                best[x, a], winner[x, a], keys[x, a] = max(p, best[x, a]), indices[j], key
    return best, winner


@kernel
def decode_policy(index: int, points: IntArray, policy: IntArray, actions: int) -> None:
    """Write the policy with this number into ``policy`` at the decision points."""
    _decode(index, actions, points, policy)


# The explicit active set: every deterministic policy as a number, for at most 2^25 of them.
#
# Decisions that no episode can meet are left out: at the first step only the public start states
# count (the support of the transitions is never assumed to be known). RiverSwim with 4 states and
# horizon 6 has 2^21 policies, horizon 7 has 2^25.
#
# This is the papers' own data structure, the exact oracle for the tests of the implicit set, and
# what ``structure="paper"`` runs on.


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
        if self.complete:
            return self._everyone(transitions, initial, salt).visiting_at(step)
        visits, winners = best_visits(self.indices, self.points, transitions, initial, step, salt)
        policies = np.array([[self.policy(max(int(i), 0)) for i in row] for row in winners])
        return policies, visits

    def oracle(self, transitions: FloatArray, initial: FloatArray) -> Oracle:
        """Exact maximisation of a linear functional of the occupancy over the list."""
        from discreet.learners.elimination.active_set import policy_occupancy

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
