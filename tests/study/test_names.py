"""One person has one name; what is kept of it cannot be guessed without the key."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import StudyError
from discreet.study.participants import digests_of, seen_before

KEY = b"k" * 32
NAMES = st.text("abcdefgh \u00e9\u6f22", min_size=1).filter(str.strip)


def test_a_number_and_its_digits_are_one_user():
    with pytest.raises(StudyError, match="'7' has taken part already"):
        digests_of(["7", 7], KEY)


@pytest.mark.parametrize("nobody", [None, 1.5, "", "ann\0", "ann\ud800"])
def test_what_names_nobody_is_refused_in_the_words_of_a_study(nobody):
    with pytest.raises(StudyError, match=r"^Expected .* Nothing was counted\.$"):
        digests_of([nobody], KEY)


def test_a_user_who_comes_twice_in_one_batch_is_refused():
    with pytest.raises(StudyError, match="'ann' has taken part already"):
        digests_of(["ann", "bob", " ann"], KEY)


def test_digests_depend_on_the_key_and_never_show_the_name():
    (one,), (other,) = digests_of(["ann"], KEY), digests_of(["ann"], b"x" * 32)
    assert one != other
    assert len(one) == 16 and b"ann" not in one


@given(st.lists(NAMES, unique_by=lambda name: " ".join(name.split()), max_size=8))
def test_users_get_digests_of_their_own_whatever_their_order(users):
    digests = digests_of(users, KEY)
    assert sorted(digests.values()) == sorted(" ".join(name.split()) for name in users)
    assert list(digests) == sorted(digests) == list(digests_of(users[::-1], KEY))


def test_a_long_name_is_cut_in_the_refusal():
    assert len(str(seen_before("a" * 9_999))) < 200
