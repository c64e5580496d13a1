"""One person has one name, everybody who was added is found, and nobody else is."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import StudyError
from discreet.study.participants import Participants, digests_of, seen_before, split


def run(digests):
    return b"".join(sorted(digests))


@given(st.lists(st.integers(1, 40), min_size=1, max_size=12), st.integers(0, 9))
def test_who_was_added_is_found_and_others_are_not(sizes, seed):
    draw = random.Random(seed)
    people = [draw.randbytes(16) for _ in range(sum(sizes))]
    participants, left = Participants(), list(people)
    for size in sizes:
        participants.add(run(left[:size]))
        del left[:size]
    assert len(participants) == len(people)
    assert participants.matches(run(people)) == list(range(len(people)))
    assert participants.matches(run([draw.randbytes(16) for _ in range(30)])) == []


def test_equal_first_halves_are_a_match_to_be_looked_up():
    participants = Participants()
    participants.add(bytes(16))
    assert participants.matches(bytes(8) + bytes([1] * 8)) == [0]


def test_few_runs_are_kept_however_many_batches_come():
    participants, draw = Participants(), random.Random(0)
    for _ in range(500):
        participants.add(run(draw.randbytes(16) for _ in range(3)))
    assert len(participants._runs) < 12


def test_a_run_is_cut_into_its_digests():
    people = [bytes([i] * 16) for i in range(3)]
    assert split(b"".join(people)) == people
    participants = Participants()
    participants.add(b"")
    assert (split(b""), participants.matches(b""), len(participants)) == ([], [], 0)


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
