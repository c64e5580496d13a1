"""What looks the same is spelled the same; what an error shows can be printed."""

import copy
import pickle
import re
import unicodedata
import warnings
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet._spelling import (
    RefusedNameError,
    guarded,
    has_half_characters,
    person,
    quoted,
    spelled,
    spellings,
    unguarded,
    warn_of_lookalikes,
)
from discreet.errors import DiscreetWarning

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


PEOPLE = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1)
UNSEEN = [
    "\ufeff",
    "\u200b",
    "\u200d",
    "\u00ad",
    "\u2066",
    "\ufe0f",
    "\u034f",
    "\U000e0100",
    "\ufff9",
]


def named(text):
    """The person's name, or None if it names nobody."""
    try:
        return person(text)
    except RefusedNameError:
        return None


@given(st.text(st.characters()))
def test_a_persons_name_is_its_own_spelling_and_can_be_printed(text):
    name = named(text)
    if name is not None:
        assert person(name) == name == unicodedata.normalize("NFKC", name)
        assert name.encode() and name == name.strip() and "  " not in name
        assert not any(unicodedata.category(letter) == "Cc" for letter in name)


@given(PEOPLE, st.sampled_from(UNSEEN), st.integers(0, 20))
def test_what_nobody_sees_makes_no_new_person(text, mark, place):
    assert named(f"{text[:place]}{mark}{text[place:]}") == named(text)
    assert named(f"{mark} {text}{mark}\n") == named(text)


@given(PEOPLE)
def test_every_form_of_unicode_is_one_person(text):
    forms = [unicodedata.normalize(form, text) for form in ("NFC", "NFD", "NFKC", "NFKD")]
    assert {named(form) for form in forms} == {named(text)}


def test_what_was_dropped_may_have_kept_marks_apart():
    """A mark below and one above have one order; a joiner between them hides it from Unicode."""
    assert person("a\u0301\u034f\u0323") == person("a\u0323\u0301") == "\u1ea1\u0301"


def test_all_default_ignorable_code_points_are_dropped():
    """As many as the standard has, without four fillers, with three marks of our own."""
    dropped = [
        n for n in range(0x110000) if not 0xD800 <= n < 0xE000 and named(f"a{chr(n)}b") == "ab"
    ]
    assert len(dropped) == 4_174 - 4 + 3
    assert {0xAD, 0x34F, 0x200B, 0xFE0F, 0xE0100, 0xFFF8} <= set(dropped)


@pytest.mark.parametrize(
    "space", ["\t", "\n", "\r\n", "\x0b", "\x85", "\u2028", "\u00a0", "\u2800", "  "]
)
def test_white_space_of_any_kind_is_one_space(space):
    assert person(f"{space}ann{space}lee{space}") == "ann lee"


BLANKS = ["\ufffc", "\U00013430", "\U00013441", "\U00016fe4", "\U0001d159"]


@pytest.mark.parametrize(
    "control",
    ["\0", "\x1c", "\x1f", "\x7f", "\x9f", "\u115f", "\u1160", "\u3164", "\uffa0", *BLANKS],
)
def test_control_characters_and_fillers_are_refused(control):
    with pytest.raises(RefusedNameError, match=f"leave out U\\+{ord(control):04X}"):
        person(f"ann{control}lee")


@pytest.mark.parametrize("nobody", ["", "  ", "\n", *UNSEEN, " \ufeff \u200b"])
def test_an_empty_name_is_nobody(nobody):
    with pytest.raises(RefusedNameError, match="a name for every user"):
        person(nobody)


@pytest.mark.parametrize("thing", [None, 1.5, 2.0**53, 2**64, True, b"ann", ["ann"], float("nan")])
def test_only_text_and_integers_name_people(thing):
    with pytest.raises(RefusedNameError, match="by text or by integers") as refusal:
        person(thing)
    assert str(pickle.loads(pickle.dumps(refusal.value))) == str(copy.copy(refusal.value))


def test_half_a_character_is_refused_and_can_be_printed():
    with pytest.raises(RefusedNameError, match="lone surrogate") as refusal:
        person("ann\ud800")
    assert str(refusal.value).isascii()


NUMPY = f"7.{'0' * 18}e+00"  # as numpy.savetxt writes it
WRITTEN = [7, 7.0, "7", "\uff17", "7.0", "7.", "+7", "7.000000", f"7.{'0' * 99}", "0.7E+01"]


@pytest.mark.parametrize("written", [*WRITTEN, NUMPY, "7.000000e+00", "7.0E0", "7e+000", "70.0e-1"])
def test_a_whole_number_is_its_digits_however_it_was_written(written):
    assert person(written) == "7"


def test_programs_write_large_numbers_with_exponents():
    large = ["1e+05", "1.0E5", "1.000000e+05", "100000.0", 1e5, "1.00000000e+05", "100E+3"]
    assert {person(x) for x in large} == {"100000"}
    assert person("1.2345678E7") == person(str(12345678.0)) == "12345678"
    assert person("-0.0") == person(-0.0) == person("-0.000e+00") == "0"
    assert person(f"{'1' * 5_000}.0") == "1" * 5_000


@pytest.mark.parametrize("code", ["007", "007.0", "12E3", "1e5", "7.5", "007e+00", "7.0.0", "#7"])
def test_codes_stay_text(code):
    assert person(code) == code


@given(st.integers(-(2**64) + 1, 2**64 - 1))
def test_what_is_looked_up_is_what_is_one_person(number):
    """Whoever was recorded under a spelling that is now another's is found."""
    assert {person(text) for text in spellings(str(number))} == {str(number)}


@given(
    st.integers(0, 2**53 - 1), st.sampled_from([".6e", ".8e", ".18e", ".10f", ".30f", "", ".6E"])
)
def test_what_programs_print_is_the_number_and_looked_up(number, how):
    text = format(float(number), how)
    if Decimal(text) == number:  # %.6e rounds large ones: that is a number of its own
        assert person(text) == str(number)
        assert text in spellings(str(number))


@given(st.from_regex(r"[+-]?[0-9]{1,9}(\.[0-9]{0,7})?([eE][+-]?[0-9]{1,2})?", fullmatch=True))
def test_only_a_number_is_spelled_anew_and_stays_it(text):
    assert person(text) == text or Decimal(person(text)) == Decimal(text)
    assert re.sub("[+-]", "", text)[:2] not in {f"0{i}" for i in range(10)} or person(text) == text


def test_letters_of_other_alphabets_are_other_people_with_a_warning():
    cyrillic = person("\u0430nn")  # looks like ann
    assert cyrillic != "ann"
    with pytest.warns(DiscreetWarning, match="One name mixes .* those of Cyrillic and Latin"):
        warn_of_lookalikes(["ann", cyrillic])


def test_upper_and_lower_case_are_different_people_with_a_warning():
    assert person("Ann") != person("ann")
    with pytest.warns(DiscreetWarning, match="2 names differ .* 'Ann' and 'ann'"):
        warn_of_lookalikes(["Ann", "ann", "ANN", "bob"])


def test_usual_names_are_taken_without_a_word():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_lookalikes(
            [
                "ann",
                "Zo\u00eb",
                "\u0418\u0432\u0430\u043d",
                "\u6f22\u5b57 kana \u304b",
                "\u03a3\u03c9",
                "7",
            ]
        )
