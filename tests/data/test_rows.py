"""Rows are numbers in the order of the table, with the place of each."""

import numpy as np
import pytest

from discreet.data.episodes import NOTHING, read_rows
from discreet.data.layout import Layout
from discreet.data.readers import CsvSource, FrameSource
from discreet.errors import InvalidInputError
from helpers.tables import HEADER, NAMES, VISITS, frame, text

pytestmark = pytest.mark.core
CLOSED = [*VISITS, ("ann", 4, "dead", None, None)]


def test_rows_are_the_numbers_of_the_vocabulary():
    rows, users = read_rows(FrameSource(frame(CLOSED)), Layout(NAMES))
    assert users == ["ann", "bob"]
    assert rows.users.tolist() == [0, 0, 0, 1, 1, 1, 0]
    assert rows.steps.tolist() == [0, 1, 2, 0, 1, 2, 3]
    assert rows.states.tolist() == [0, 1, 1, 0, 0, 0, 2]
    assert rows.actions.tolist() == [1, 0, 0, 0, 1, 1, NOTHING]
    np.testing.assert_array_equal(rows.rewards, [0.25, 1, 0.5, 0, 0, 0.75, np.nan])
    assert rows.following.tolist() == [NOTHING] * 7
    assert rows.places.tolist() == list(range(7))


def test_rows_of_a_file_are_known_by_their_lines():
    source = CsvSource(text([(*row, "well") for row in VISITS], (*HEADER, "next_state")), "f", ",")
    rows, _ = read_rows(source, Layout(NAMES))
    assert rows.places.tolist() == list(range(2, 8))
    assert rows.following.tolist() == [1] * 6


@pytest.mark.parametrize("reward", [-0.1, 1.1, -np.inf, np.inf])
def test_a_reward_beyond_its_range_is_refused_or_clipped_as_was_said(reward):
    rows = [VISITS[0], (*VISITS[1][:4], reward), *VISITS[2:]]
    with pytest.raises(InvalidInputError, match=r"rewards from 0 to 1, got .*row 1 "):
        read_rows(FrameSource(frame(rows)), Layout(NAMES))
    clipped, _ = read_rows(FrameSource(frame(rows)), Layout(NAMES, clip_rewards=True))
    assert clipped.rewards[1] == float(reward > 0)


def test_some_rows_are_rows():
    rows, _ = read_rows(FrameSource(frame(CLOSED)), Layout(NAMES))
    some = rows[np.array([5, 0])]
    assert len(some) == 2
    assert some.places.tolist() == [5, 0]
    assert some.rewards.tolist() == [0.75, 0.25]
