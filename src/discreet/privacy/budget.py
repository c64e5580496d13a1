"""Exact privacy budgets: rational numbers, so that 0.1 + 0.9 of 1 is not an overspend.

Releases about the *same* users add up (sequential composition); releases about *disjoint* users
cost together what the dearest of them costs (parallel composition). A `Budget` grants nothing it
cannot pay: it checks first and changes state after.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from discreet import _validate
from discreet.errors import BudgetError, InvalidInputError
from discreet.privacy.guarantee import rounded_up

Number = float | Fraction


@dataclass(frozen=True)
class Cost:
    """An exact (epsilon, delta)."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)

    @classmethod
    def of(cls, epsilon: Number, delta: Number = 0) -> "Cost":
        """From what a person writes: 0.1 means one tenth; integers and fractions are welcome."""
        _validate.real(epsilon=epsilon, delta=delta)
        if epsilon < 0 or not 0 <= delta <= 1:
            raise InvalidInputError(
                f"Expected epsilon >= 0 and delta in [0, 1], got epsilon={epsilon!r} and "
                f"delta={delta!r}."
            )
        return cls(_validate.exact(epsilon), _validate.exact(delta))

    def __add__(self, other: "Cost") -> "Cost":
        """Sequential composition."""
        return Cost(self.epsilon + other.epsilon, self.delta + other.delta)

    def __sub__(self, other: "Cost") -> "Cost":
        """What is left."""
        return Cost(self.epsilon - other.epsilon, self.delta - other.delta)

    def covers(self, other: "Cost") -> bool:
        """True if both parts of ``other`` fit into this one."""
        return other.epsilon <= self.epsilon and other.delta <= self.delta

    def __str__(self) -> str:
        """The two numbers as a person writes them."""
        return f"epsilon {rounded_up(self.epsilon, 28)}, delta {rounded_up(self.delta, 28)}"


class Budget:
    """A total (epsilon, delta) for one group of users, spent piece by piece.

    >>> budget = Budget(1)
    >>> budget.spend(0.1)
    >>> budget.spend(0.9)
    >>> str(budget.remaining)
    'epsilon 0, delta 0'
    """

    def __init__(self, epsilon: Number, delta: Number = 0) -> None:
        _validate.positive(epsilon=epsilon)
        _validate.delta(delta=delta)
        self.total = Cost.of(epsilon, delta)
        self.spent = Cost.of(0)

    @property
    def remaining(self) -> Cost:
        """What may still be spent."""
        return self.total - self.spent

    def check(self, epsilon: Number, delta: Number = 0) -> Cost:
        """The cost, if it can be paid.

        Raises:
            BudgetError: with Requested / Remaining / Difference; nothing is spent.
        """
        cost = Cost.of(epsilon, delta)
        if not self.remaining.covers(cost):
            raise _overspend(cost, self.remaining)
        return cost

    def spend(self, epsilon: Number, delta: Number = 0) -> None:
        """Pay, or raise `BudgetError` and change nothing."""
        self.spent = self.spent + self.check(epsilon, delta)


@dataclass
class BatchLedger:
    """Parallel composition over batches of distinct users.

    Every user has the same budget and takes part in one batch, so the cost of all batches is the
    cost of the dearest one. Where user ids are given, a user who comes twice is refused.

    >>> ledger = BatchLedger(Budget(1))
    >>> ledger.record(1, users=["ann", "bob"])
    >>> ledger.record(1, users=["eve"])
    >>> str(ledger.spent)
    'epsilon 1, delta 0'
    """

    budget: Budget
    batches: int = 0
    _seen: set[Hashable] = field(default_factory=set, repr=False)

    @property
    def spent(self) -> Cost:
        """What every user has paid at most."""
        return self.budget.spent

    def record(self, epsilon: Number, delta: Number = 0, *, users: Iterable[Hashable] = ()) -> None:
        """Count one batch.

        Args:
            epsilon: what the batch's release costs each of its users.
            delta: likewise.
            users: ids of its users, if known.

        Raises:
            InvalidInputError: if a user is listed twice or took part before; nothing is counted.
            BudgetError: if the batch costs more than the budget; nothing is counted.
        """
        ids = list(users)
        fresh = set(ids)
        if len(fresh) < len(ids):
            raise InvalidInputError(
                f"Expected distinct users, got {len(ids) - len(fresh)} listed twice in one batch; "
                f"the guarantee covers one episode per user. Nothing was counted."
            )
        if again := fresh & self._seen:
            raise InvalidInputError(
                f"Expected users who did not take part before, got {len(again)} who did "
                f"(for instance {next(iter(again))!r}). Nothing was counted."
            )
        cost = Cost.of(epsilon, delta)
        if not self.budget.total.covers(cost):
            raise _overspend(cost, self.budget.total)
        dearest = Cost(max(cost.epsilon, self.spent.epsilon), max(cost.delta, self.spent.delta))
        self.budget.spent = dearest
        self._seen |= fresh
        self.batches += 1


def _overspend(requested: Cost, remaining: Cost) -> BudgetError:
    over = requested - remaining
    difference = Cost(max(over.epsilon, Fraction(0)), max(over.delta, Fraction(0)))
    return BudgetError(
        f"The privacy budget does not cover this release; nothing was released. "
        f"Requested: {requested}. Remaining: {remaining}. Difference: {difference}."
    )
