"""Everybody who was added is found, whatever the sizes of the batches, and nobody else is."""

import random

from hypothesis import given
from hypothesis import strategies as st

from discreet.study.participants import Participants, split


def run(digests):
    return b"".join(sorted(digests))


@given(st.lists(st.integers(1, 40), min_size=1, max_size=12), st.integers(0, 9))
def test_who_was_added_is_found_and_others_are_not(sizes, seed):
    draw = random.Random(seed)
    people = [draw.randbytes(16) for _ in range(sum(sizes))]
    roll, left = Participants(), list(people)
    for size in sizes:
        roll.add(run(left[:size]))
        del left[:size]
    assert len(roll) == len(people)
    assert roll.matches(run(people)) == list(range(len(people)))
    assert roll.matches(run([draw.randbytes(16) for _ in range(30)])) == []


def test_equal_first_halves_are_a_match_to_be_looked_up():
    roll = Participants()
    roll.add(bytes(16))
    assert roll.matches(bytes(8) + bytes([1] * 8)) == [0]


def test_few_runs_are_kept_however_many_batches_come():
    roll, draw = Participants(), random.Random(0)
    for _ in range(500):
        roll.add(run(draw.randbytes(16) for _ in range(3)))
    assert len(roll._runs) < 12


def test_a_run_is_cut_into_its_digests():
    people = [bytes([i] * 16) for i in range(3)]
    assert split(b"".join(people)) == people
    roll = Participants()
    roll.add(b"")
    assert (split(b""), roll.matches(b""), len(roll)) == ([], [], 0)
