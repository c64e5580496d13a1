"""What looks the same is spelled the same; what an error shows can be printed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet._spelling import has_half_characters, quoted, spelled

pytestmark = pytest.mark.core


@given(st.text())
def test_a_spelling_is_its_own_spelling(text):
    assert spelled(spelled(text)) == spelled(text)


@pytest.mark.parametrize("text", ["café", "cafe\u0301", " café\t", "\ufeffcafé", "ca\u200bfé"])
def test_what_looks_the_same_is_the_same(text):
    assert spelled(text) == "caf\u00e9"


def test_case_and_inner_space_count():
    assert len({spelled(text) for text in ("a b", "A b", "ab")}) == 3


@given(st.text(st.characters()))
def test_only_what_cannot_be_written_has_half_characters(text):
    try:
        text.encode()
    except UnicodeEncodeError:
        assert has_half_characters(text)
    else:
        assert not has_half_characters(text)


@given(st.text(st.characters()) | st.binary() | st.floats() | st.none())
def test_what_is_quoted_can_be_printed_on_a_line(value):
    text = quoted(value, 30)
    text.encode()
    assert text.isprintable()
    assert len(text) <= 32


def test_a_number_too_long_to_print_is_described():
    assert quoted(10**5000) == "a huge int"
