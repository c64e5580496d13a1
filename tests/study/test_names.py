"""One person has one name; what is kept of it cannot be guessed without the key."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import StudyError
from discreet.study.names import canonical, digests_of, seen_before

KEY = b"k" * 32
NAMES = st.text(st.characters(exclude_categories=("Cs", "Cf")), min_size=1).filter(str.strip)
INVISIBLE = ["\ufeff", "\u200b", "\u200d", "\u200e", "\u00ad", "\u2066"]


@given(NAMES)
def test_a_canonical_name_is_its_own_canonical_name(name):
    assert canonical(canonical(name)) == canonical(name)


@given(NAMES)
def test_spellings_that_look_alike_are_one_user(name):
    spellings = [name, f"\t{name} ", *(unicodedata.normalize(f, name) for f in ("NFC", "NFD"))]
    assert len({canonical(spelling) for spelling in spellings}) == 1


def test_upper_and_lower_case_are_two_people():
    assert canonical("Ann") != canonical("ann")


def test_a_number_and_its_digits_are_one_user():
    with pytest.raises(StudyError, match="'7' has taken part already"):
        digests_of(["7", 7], KEY)


@given(NAMES, st.sampled_from(INVISIBLE), st.integers(0, 20))
def test_invisible_marks_make_no_new_user(name, mark, place):
    assert canonical(f"{name[:place]}{mark}{name[place:]}") == canonical(name)
    assert canonical(f"{mark} {name}{mark}") == canonical(name)


@pytest.mark.parametrize("nobody", ["", "  ", "\n", *INVISIBLE, " \ufeff \u200b"])
def test_an_empty_name_is_nobody(nobody):
    with pytest.raises(StudyError, match="which is empty; nothing was counted"):
        canonical(nobody)


@pytest.mark.parametrize("thing", [None, 1.5, True, b"ann", ["ann"]])
def test_only_text_and_integers_name_people(thing):
    with pytest.raises(StudyError, match=f"of type {type(thing).__name__}"):
        canonical(thing)


def test_half_a_character_is_refused_and_can_be_printed():
    with pytest.raises(StudyError, match="lone surrogate") as refusal:
        canonical("ann\ud800")
    assert str(refusal.value).isascii()


def test_a_user_who_comes_twice_in_one_batch_is_refused():
    with pytest.raises(StudyError, match="'ann' has taken part already"):
        digests_of(["ann", "bob", " ann"], KEY)


def test_digests_depend_on_the_key_and_never_show_the_name():
    (one,), (other,) = digests_of(["ann"], KEY), digests_of(["ann"], b"x" * 32)
    assert one != other
    assert len(one) == 16 and b"ann" not in one


@given(st.lists(NAMES, unique_by=canonical, max_size=8))
def test_users_get_digests_of_their_own_whatever_their_order(users):
    digests = digests_of(users, KEY)
    assert sorted(digests.values()) == sorted(map(canonical, users))
    assert list(digests) == sorted(digests) == list(digests_of(users[::-1], KEY))


def test_a_long_name_is_cut_in_the_refusal():
    assert len(str(seen_before("a" * 9_999))) < 200
