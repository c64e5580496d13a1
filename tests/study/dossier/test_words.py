"""Words: numbers rounded so that they never promise too much."""

import math

import pytest

from discreet.privacy.guarantee import NO_GUARANTEE, NOTIONS, Guarantee
from discreet.study.dossier import page


def test_every_notion_has_its_words():
    assert set(page.NOTIONS) == set(NOTIONS)
    for notion in page.NOTIONS.values():
        assert notion.trusted.endswith(".")
        assert notion.patient.endswith(".")
        assert len(notion.parties) >= 3
        assert notion.unprotected


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 8.0])
def test_bounds_are_rounded_up(epsilon):
    said = page.in_numbers(Guarantee(notion="JDP", epsilon=epsilon, delta=1e-6))
    factor = float(said[0].split("more than ")[1].split(" times")[0])
    right = float(said[1].split("at most ")[1].split("%")[0])
    assert math.exp(epsilon) <= factor <= 1.02 * math.exp(epsilon)
    exact = 100 * (math.exp(epsilon) + 1e-6) / (math.exp(epsilon) + 1)
    assert exact <= right <= exact + 0.1
    assert "one in 1,000,000" in said[2] or "one in 999,999" in said[2]


def test_what_is_beyond_doubles_is_not_said_to_be_less():
    said = page.in_numbers(Guarantee(notion="JDP", epsilon=800.0, delta=3e-7))
    assert "more than inf times" in said[0]
    assert "at most 100% of cases" in said[1]
    assert "This is weak: epsilon = 800" in said[2]
    assert "one in 3,333,333." in said[3]


def test_a_large_delta_makes_guesses_better():
    said = page.in_numbers(Guarantee(notion="JDP", epsilon=1.0, delta=0.25))
    assert f"at most {math.ceil(1000 * (math.e + 0.25) / (math.e + 1)) / 10:g}%" in said[1]
    assert "at most one in 4." in said[2]


def test_a_pure_promise_has_no_chance_of_failure():
    assert len(page.in_numbers(Guarantee(notion="LDP", epsilon=1.0, delta=0.0))) == 2
    assert page.in_numbers(NO_GUARANTEE) == (
        "Whoever sees what is published may learn everything.",
    )
