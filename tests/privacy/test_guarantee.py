"""A guarantee is never printed without what is needed to read it."""

import json
import math

import pytest

from discreet.errors import InvalidInputError
from discreet.privacy.guarantee import ASSUMPTIONS, NO_GUARANTEE, NOTIONS, Guarantee


@pytest.mark.core
@pytest.mark.parametrize("notion", ["JDP", "LDP", "SDP"])
def test_the_line_names_everything(notion):
    line = str(Guarantee(notion=notion, epsilon=1, delta=1e-6))
    assert line == f"(1, 1e-06)-{notion}, one user's whole episode, replace-one"
    assert str(Guarantee(notion=notion, epsilon=1, delta=0)).startswith(f"(1, 0)-{notion}")


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
