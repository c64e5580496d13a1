"""Settings typed as name=value."""

import pytest

from discreet.cli._settings import parse_settings, parse_value
from discreet.errors import InvalidInputError
from helpers.properties import given, st


def test_settings_read_as_literals():
    assert parse_settings(["a=1", "b = 0.5", "c=S|G", "d=(1, 2)", "e=None"]) == {
        "a": 1,
        "b": 0.5,
        "c": "S|G",
        "d": (1, 2),
        "e": None,
    }
    assert parse_value("1.5e1") == 15
    with pytest.raises(InvalidInputError, match="name=value"):
        parse_settings(["=3"])


@given(st.integers(-(10**15), 10**15) | st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_read_back(number):
    assert parse_value(repr(number)) == number


@given(st.text(max_size=30))
def test_any_text_is_some_setting(text):
    value = parse_value(text)
    assert value is None or isinstance(value, bool | int | float | str | list | tuple | dict)


@pytest.mark.parametrize("text", ["1j", "b'x'", "{1, 2}", "(" * 5000, "1 +", "S..G", "a b"])
def test_what_nobody_can_mean_is_text(text):
    assert parse_value(text) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [("TRUE", True), ("False", False), ("none", None), ("1e400", float("inf")), ("2.5e0", 2.5)],
)
def test_words_and_powers_of_ten(text, value):
    assert parse_value(text) == value
    assert type(parse_value(text)) is type(value)


def test_the_last_of_two_equal_names_counts():
    assert parse_settings(["a=1", "a=2", "b=x=y"]) == {"a": 2, "b": "x=y"}


@pytest.mark.parametrize("text", ["a", "=1", " =1", ""])
def test_a_setting_needs_a_name_and_a_value(text):
    with pytest.raises(InvalidInputError, match="name=value, got --set"):
        parse_settings([text])
