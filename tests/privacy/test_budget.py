"""Budgets are exact, and checked before they are spent."""

from fractions import Fraction

import pytest

from discreet.errors import BudgetError, InvalidInputError
from discreet.privacy.ledger import Budget, Cost


@pytest.mark.core
@pytest.mark.parametrize("parts", [[0.1, 0.9], [0.1] * 10, [0.3, 0.3, 0.4], [Fraction(1, 3)] * 3])
def test_decimal_parts_of_one_are_not_an_overspend(parts):
    budget = Budget(1)
    for part in parts:
        budget.spend(part)
    assert budget.remaining == Cost(Fraction(0))
    with pytest.raises(BudgetError):
        budget.spend(1e-9)


def test_floats_would_overspend_here():
    budget = Budget(0.3)
    for _ in range(3):
        budget.spend(0.1)
    assert budget.remaining.epsilon == 0


def test_overspend_says_requested_remaining_difference_and_spends_nothing():
    budget = Budget(1, 1e-6)
    budget.spend(0.75, 5e-7)
    message = (
        r"Requested: epsilon 0\.5, delta 1e-07\. Remaining: epsilon 0\.25, delta 5e-07\. "
        r"Difference: epsilon 0\.25, delta 0\."
    )
    with pytest.raises(BudgetError, match=message):
        budget.spend(0.5, 1e-7)
    assert budget.spent == Cost.of(0.75, 5e-7)
    with pytest.raises(BudgetError, match="Difference: epsilon 0, delta 1e-07"):
        budget.spend(0.1, 6e-7)


def test_check_spends_nothing():
    budget = Budget(2)
    assert budget.check(2) == Cost(Fraction(2))
    assert budget.remaining.epsilon == 2


def test_integers_fractions_and_floats_mix():
    budget = Budget(2)
    budget.spend(1)
    budget.spend(Fraction(1, 2))
    budget.spend(0.5)
    assert budget.remaining.epsilon == 0


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), "1", True, None])
def test_bad_budgets(bad):
    with pytest.raises(InvalidInputError, match="epsilon"):
        Budget(bad)


@pytest.mark.parametrize(("epsilon", "delta"), [(-0.1, 0), (0.1, -1), (0.1, 2), (float("nan"), 0)])
def test_bad_costs(epsilon, delta):
    budget = Budget(1)
    with pytest.raises(InvalidInputError):
        budget.spend(epsilon, delta)
    assert budget.spent.epsilon == 0
