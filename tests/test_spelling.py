"""What looks the same is spelled the same; what an error shows can be printed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet._spelling import guarded, has_half_characters, quoted, spelled, unguarded

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


@given(st.text("=+-@\uff1d'ab1.", max_size=6))
def test_a_guard_can_be_taken_off(text):
    bare = unguarded(text)
    assert unguarded(guarded(bare)) == unguarded(bare) == bare
    assert not guarded(text).startswith(("=", "@", "\uff1d"))


@pytest.mark.parametrize("number", ["-5", "+1", "-0.5", "-1e-6", "+2,5"])
def test_numbers_need_no_guard(number):
    assert guarded(number) == number


@pytest.mark.parametrize("formula", ["=1", "+a", "-", "-5+3", "@sum", "-1_0", "--5"])
def test_what_a_spreadsheet_would_run_is_guarded(formula):
    assert guarded(formula) == f"'{formula}"
