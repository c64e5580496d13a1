"""A table lacks no column that is needed and has none of them twice."""

import pytest

from discreet.data.readers import FrameSource, check_columns, refusal
from discreet.errors import InvalidInputError

pytestmark = pytest.mark.core


def source(*names):
    return FrameSource({name: [1] for name in names})


def test_columns_that_nobody_needs_do_no_harm():
    check_columns(source("user", "diary", "step"), ["step", "user"])


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (("User", "step"), "a column 'user', got 'User', 'step'; did you mean 'User'?"),
        (("patient",), r"got 'patient'; known: 'patient'. Say which .* columns=\{role: name\}"),
        ((), "a column 'user', got none;"),
        ([f"c{i}" for i in range(99)], "'c10', 'c11', ...; known"),
        (["x" * 1000], "got 'x{28}...; known: 'x{58}...\\."),
    ],
)
def test_a_missing_column_is_named_with_what_there_is(names, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        check_columns(source(*names), ["user"])


def test_a_refusal_has_rule_value_column_place_and_remedy():
    sentence = str(refusal("one of the states", "il", "state", "line 7 of 'a.csv'", "correct it."))
    expected = (
        "Expected one of the states, got 'il' in column 'state', line 7 of 'a.csv'; correct it."
    )
    assert sentence == expected
