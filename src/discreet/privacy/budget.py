"""Exact privacy budgets: rational numbers, so that 0.1 + 0.9 of 1 is not an overspend.

Releases about the same users add up. A `Budget` grants nothing it cannot pay: it checks first and
changes state after. Who knows the users' names keeps a `discreet.privacy.ledger.Ledger`.
"""

from dataclasses import dataclass
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
            raise overspent(cost, self.remaining)
        return cost

    def spend(self, epsilon: Number, delta: Number = 0) -> None:
        """Pay, or raise `BudgetError` and change nothing."""
        self.spent = self.spent + self.check(epsilon, delta)


def overspent(requested: Cost, remaining: Cost) -> BudgetError:
    """The refusal of a release that costs more than remains."""
    over = requested - remaining
    difference = Cost(max(over.epsilon, Fraction(0)), max(over.delta, Fraction(0)))
    return BudgetError(
        f"The privacy budget does not cover this release; nothing was released. "
        f"Requested: {requested}. Remaining: {remaining}. Difference: {difference}."
    )
