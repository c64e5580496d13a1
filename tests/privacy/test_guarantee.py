"""A guarantee is never printed without what is needed to read it."""

import json
import math
from decimal import Decimal

import numpy as np
import pytest

from discreet.errors import InvalidInputError
from discreet.privacy.guarantee import (
    ASSUMPTIONS,
    NO_GUARANTEE,
    NOTIONS,
    REHEARSED,
    Guarantee,
    Rehearsal,
    rounded_down,
    rounded_up,
    said,
)


@pytest.mark.core
@pytest.mark.parametrize("notion", ["JDP", "LDP", "SDP"])
def test_the_line_names_everything(notion):
    line = str(Guarantee(notion=notion, epsilon=1, delta=1e-6))
    assert line == f"(1, 1e-06)-{notion}, one user's whole episode, replace-one"
    assert str(Guarantee(notion=notion, epsilon=1, delta=0)).startswith(f"(1, 0)-{notion}")


def test_no_promise_is_printed_smaller_than_it_is():
    line = str(Guarantee(notion="JDP", epsilon=1.00049, delta=1.0004e-6))
    assert line.startswith("(1.001, 1.01e-06)-JDP")


@pytest.mark.parametrize("seed", range(200))
def test_printed_numbers_bracket_the_value_by_less_than_one_unit_of_the_last_digit(seed):
    rng = np.random.default_rng(seed)
    value, digits = float(10 ** rng.uniform(-12, 6)), int(rng.integers(1, 9))
    if seed % 3 == 0:
        value = float(f"{value:.{digits}g}")  # needs no rounding
    up, down = rounded_up(value, digits), rounded_down(value, digits)
    assert float(down) <= value <= float(up)
    for text in (up, down):
        assert len(Decimal(text).normalize().as_tuple().digits) <= digits
    unit = Decimal(10) ** (Decimal(repr(value)).adjusted() - digits + 1)
    assert Decimal(up) - Decimal(down) in (0, unit)
    if seed % 3 == 0:
        assert up == down


def test_numbers_that_need_no_digits():
    assert [rounded_up(x) for x in (0, 1, 0.1, 0.3, 12, 1e-6)] == [
        "0",
        "1",
        "0.1",
        "0.3",
        "12",
        "1e-06",
    ]
    assert rounded_up(math.inf) == "inf"
    assert rounded_up(9.9999, 2) == "10"


def test_a_false_claim_is_shown_beside_the_truth():
    line = str(Guarantee(notion="SDP", epsilon=0.055, delta=1e-6, claimed="(1, 1e-06)-SDP"))
    assert line.endswith("[claimed (1, 1e-06)-SDP]")


def test_json_has_no_infinities():
    values = json.loads(json.dumps(NO_GUARANTEE.to_dict(), allow_nan=False))
    assert values["epsilon"] is None
    assert values["notion"] == "none"


def test_every_notion_states_its_assumptions():
    assert set(ASSUMPTIONS) == set(NOTIONS)
    for notion in ("JDP", "LDP", "SDP"):
        assert any("once" in text for text in ASSUMPTIONS[notion])


def test_stamping_changes_the_stamp_only():
    promise = Guarantee(notion="JDP", epsilon=1, delta=0)
    assert promise.stamped(secure=False) == promise
    assert not promise.stamped(secure=True).simulated


def test_simulated_promises_say_so():
    promise = Guarantee(notion="JDP", epsilon=1, delta=1e-6, assumptions=("a",))
    rehearsed = said(promise)
    assert isinstance(rehearsed, Rehearsal)
    assert str(rehearsed) == f"{REHEARSED}: {promise}"
    assert rehearsed.to_dict() == promise.to_dict()
    assert said(rehearsed) == rehearsed
    assert said(NO_GUARANTEE) is NO_GUARANTEE
    real = promise.stamped(secure=True)
    assert said(real) is real


@pytest.mark.parametrize(
    "values",
    [
        {"notion": "DP"},
        {"epsilon": -1},
        {"epsilon": math.nan},
        {"delta": -0.1},
        {"delta": 1.1},
    ],
)
def test_impossible_guarantees_are_refused(values):
    with pytest.raises(InvalidInputError):
        Guarantee(**({"notion": "JDP", "epsilon": 1, "delta": 0} | values))
