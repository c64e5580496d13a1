"""Sets of policies and what is asked of them: a linear functional maximised, a coverage design.

**Designs** (001, equation 3) are mixtures that cover what every active policy visits. Among
mixtures with occupancy y, the design minimises ``max over active mu of sum mu / y`` over the tuples
t = (h, x, a) that some active policy reaches. It is the optimality condition of maximising the
concave ``sum over t of log y(t)``: at the optimum no occupancy mu has ``sum mu / y`` above the
number of tuples, and y itself attains that number. So the optimal value *is* the number of tuples,
and any mixture whose value is within 1% of it carries its own certificate.

(Printed over deterministic policies the minimum is infinite: no single policy plays two actions in
one place.)

**The implicit set** is all policies whose upper value reaches a threshold in one model, never
listed (the papers keep a list, exponential in H·X, and name that as their open problem). All that
is asked of it is to maximise a linear functional of the occupancy. The relaxation to mixtures is a
linear program with one constraint besides the flow, solved exactly by a handful of dynamic programs
(`constrained_maximum`); what is played is the feasible vertex of the optimal edge, a policy that
satisfies the constraint by itself. Transitions may be sub-stochastic: the missing mass
goes to an absorbing state worth nothing. The last step has no successor. ``order[h, x]`` lists the
actions in the order in which ties prefer them; the caller shuffles it, so no action is special.

**The list** of at most 2^25 deterministic policies (RiverSwim with 4 states and horizon 7) is the
papers' own data structure, the exact oracle for the tests of the implicit set, and what
``structure="paper"`` runs on. Decisions that no episode can meet are left out: at the first step
only the public start states count. A policy is a number in base A: one digit per decision point
(h, x), the earliest step first. In a sorted list neighbours share long prefixes, so each pass
recomputes only the steps that changed.
"""

import base64
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from discreet._jit import kernel
from discreet._types import BoolArray, FloatArray, IntArray
from discreet.errors import UnsupportedError
from discreet.mdp.dense import occupancy
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


class Corner(NamedTuple):
    """What maximises a linear functional of the occupancy over the active policies.

    Attributes:
        policy: ``[H, X]``, active.
        value: what it reaches.
        bound: no active policy, and no mixture whose average upper value meets the threshold,
            reaches more.
        occupancy: ``[H, X, A]`` of the policy.
    """

    policy: IntArray
    value: float
    bound: float
    occupancy: FloatArray


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
    """

    policies: IntArray
    weights: FloatArray
    occupancy: FloatArray
    covered: BoolArray
    value: float
    bound: float

    @property
    def tuples(self) -> int:
        """How many tuples are covered: the least possible coverage number."""
        return int(self.covered.sum())


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

    ``policies[n, H, X]`` with ``occupancies[n, H, X, A]`` are the start. It stops when the coverage
    number is at most ``tolerance`` times the number of tuples, or after ``most_iterations`` calls
    of the oracle; `Design.value` then says what was reached.
    """
    shares = weights / weights.sum()
    occupancy = np.tensordot(shares, occupancies, axes=1)
    covered = occupancy > 0.0
    found: list[IntArray] = list(policies)
    mixture: list[float] = shares.tolist()
    y = occupancy[covered]
    value, bound = 0.0, 0.0
    for _ in range(most_iterations if y.size else 0):
        functional = np.zeros_like(occupancy)
        functional[covered] = 1.0 / y
        corner = oracle(functional)
        reached = corner.occupancy[covered]
        # The mixture itself has value y.size, so the maximum is never below it.
        value = max(float((reached / y).sum()), float(y.size))
        bound = max(corner.bound, value)
        if value <= tolerance * y.size:
            break
        step = _line_search(y, reached)
        y = (1.0 - step) * y + step * reached
        mixture = [*(share * (1.0 - step) for share in mixture), step]
        found.append(corner.policy)
    occupancy = np.zeros_like(occupancy)
    occupancy[covered] = y
    distinct, merged = merge_policies(np.stack(found), np.array(mixture))
    return Design(distinct, merged, occupancy, covered, value, bound)


def _line_search(y: FloatArray, corner: FloatArray) -> float:
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
def constrained_maximum(
    transitions: FloatArray,
    initial: FloatArray,
    objective: FloatArray,
    upper: FloatArray,
    threshold: float,
    order: IntArray,
) -> tuple[IntArray, float, float]:
    """Maximise the value of ``objective`` over policies whose value of ``upper`` meets a threshold.

    The pairs (value of upper, value of objective) of all policies have a concave upper hull. Two of
    its vertices are held, one on each side of the threshold; the multiplier at which they tie is
    the slope of their chord, and one plan at that multiplier finds the vertex farthest above the
    chord, or shows that there is none: then the chord is an edge, and the point of it at the
    threshold is the optimum of the linear program over mixtures of policies.

    Returns the feasible vertex, its value, and that of the mixture, which no policy exceeds. If no
    policy meets the threshold, it is the policy of the highest ``upper``.
    """
    low, low_value, low_upper = weighted_plan(transitions, initial, objective, upper, 0.0, order)
    if low_upper >= threshold:
        return low, low_value, low_value
    high, high_upper, high_value = weighted_plan(transitions, initial, upper, objective, 0.0, order)
    if high_upper <= threshold:
        return high, high_value, high_value
    for _ in range(200):
        multiplier = (low_value - high_value) / (high_upper - low_upper)
        middle, value, upper_value = weighted_plan(
            transitions, initial, objective, upper, multiplier, order
        )
        chord = high_value + multiplier * high_upper
        if value + multiplier * upper_value <= chord + 1e-14 * max(1.0, abs(chord)):
            break
        if upper_value >= threshold:
            high, high_value, high_upper = middle, value, upper_value
        else:
            low, low_value, low_upper = middle, value, upper_value
    share = (high_upper - threshold) / (high_upper - low_upper)
    return high, high_value, share * low_value + (1.0 - share) * high_value


@kernel
def constrained_visits(
    transitions: FloatArray,
    initial: FloatArray,
    upper: FloatArray,
    threshold: float,
    order: IntArray,
    first: int,
    last: int,
) -> tuple[IntArray, FloatArray]:
    """`constrained_maximum` of the probability of visiting (h, x, a), for steps first to last - 1.

    Returns the feasible policies ``[h, X, A, H, X]`` and their visit probabilities ``[h, X, A]``.
    """
    H, X, A, _ = transitions.shape
    policies = np.zeros((last - first, X, A, H, X), np.int64)
    visits = np.zeros((last - first, X, A))
    objective = np.zeros((H, X, A))
    for h in range(first, last):
        for x in range(X):
            for a in range(A):
                objective[h, x, a] = 1.0
                policy, visits[h - first, x, a], _ = constrained_maximum(
                    transitions, initial, objective, upper, threshold, order
                )
                policies[h - first, x, a, :, :] = policy
                objective[h, x, a] = 0.0
    return policies, visits


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

    def maximise(self, objective: FloatArray) -> Corner:
        """Maximise the value of ``objective`` (``[H, X, A]``) over the active policies."""
        policy, value, bound = constrained_maximum(
            self.transitions, self.initial, objective, self.upper, self.threshold, self.order
        )
        return Corner(policy, float(value), float(bound), self.occupancy(policy))

    def visiting(self, first: int = 0, last: int | None = None) -> tuple[IntArray, FloatArray]:
        """For every (h, x, a) of some steps an active policy likely to visit it, and how likely.

        Returns policies ``[h, X, A, H, X]`` and probabilities ``[h, X, A]`` (0: out of reach).
        """
        last = len(self.upper) if last is None else last
        where = (self.transitions, self.initial, self.upper, self.threshold, self.order)
        found: tuple[IntArray, FloatArray] = constrained_visits(*where, first, last)
        return found

    def occupancy(self, policy: IntArray) -> FloatArray:
        """Probability of visiting each (h, x, a) under one deterministic policy."""
        return occupancy_of(self.transitions, self.initial, policy)


def occupancy_of(transitions: FloatArray, initial: FloatArray, policy: IntArray) -> FloatArray:
    """``[H, X, A]``, of one deterministic policy."""
    chosen = np.eye(transitions.shape[2])[policy]
    visited: FloatArray = occupancy(transitions, initial, chosen)
    return visited


@kernel
def decode(index: int, actions: int, points: IntArray, policy: IntArray) -> int:
    """Write the policy with this number at the decision points; the first step that changed."""
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
        changed = decode(indices[j], A, points, policy)
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
        changed = decode(indices[j], A, points, policy)
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
        """The policy with this number; the first action where no episode can be."""
        actions = self.shape.first.copy()
        decode(index, self.shape.actions, self.points, actions)
        return actions

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
            policies, visits = self._everyone(transitions, initial, salt).visiting(step, step + 1)
            return policies[0], visits[0]
        visits, winners = best_visits(self.indices, self.points, transitions, initial, step, salt)
        policies = np.array([[self.policy(max(int(i), 0)) for i in row] for row in winners])
        return policies, visits

    def oracle(self, transitions: FloatArray, initial: FloatArray) -> Oracle:
        """Exact maximisation of a linear functional of the occupancy over the list."""

        def best(functional: FloatArray) -> Corner:
            values = self.values(transitions, initial, functional)
            top = int(np.argmax(values))
            policy, value = self.policy(int(self.indices[top])), float(values[top])
            return Corner(policy, value, value, occupancy_of(transitions, initial, policy))

        return self._everyone(transitions, initial, 0).maximise if self.complete else best

    @property
    def complete(self) -> bool:
        """Whether nothing has been dropped; then one dynamic program does what a pass does."""
        return self.shape.allowed is None and len(self.indices) == int(
            self.shape.actions ** len(self.points)
        )

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
    listed = np.arange(total, dtype=np.int64)
    if shape.allowed is not None:
        for k, (h, x) in enumerate(reversed(points.tolist())):
            listed = listed[shape.allowed[h, x, listed // shape.actions**k % shape.actions]]
    return EnumeratedPolicies(shape, points, listed)
