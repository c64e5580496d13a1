"""Cells, rows, episodes: what a table means, and what is refused."""

import datetime
import decimal
import io
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.data import Absence, Cuts, Discretizer, Padding, Vocabulary, read_table
from discreet.data.episodes import (
    NOTHING,
    Decided,
    Foreign,
    RefusedCellError,
    Users,
    check_episodes,
    name_decider,
    numbers,
    plain,
    read_rows,
)
from discreet.data.layout import Layout, TableFormat
from discreet.data.problems import Problems
from discreet.data.sources import CsvSource, FrameSource
from discreet.errors import InvalidInputError
from discreet.mdp import DeterministicPolicy, Trajectories
from helpers.tables import HEADER, NAMES, VISITS, changed, frame, logs, read, same, text

STATES = {"ill": 0, "1": 1, "True": 2}


def named(values, *, optional=False):
    return Decided(name_decider(STATES, "states", optional=optional)).numbers(values).tolist()


@pytest.mark.core
@pytest.mark.parametrize("value", ["ill", " ill", np.str_("ill"), "\ufeffill"])
def test_text_is_text(value):
    assert named([value]) == [0]


@pytest.mark.core
@pytest.mark.parametrize("value", [1, 1.0, "1", "01", "1.0", np.int8(1), np.float32(1)])
def test_a_number_is_its_name(value):
    assert named([value]) == [1]


@pytest.mark.core
@pytest.mark.parametrize("flag", [True, np.True_, "True"])
def test_a_truth_is_no_number(flag):
    """Python takes True for 1; a column that mixes them says two things."""
    assert named([1, flag, 1, flag]) == [1, 2, 1, 2]
    assert named([flag, 1]) == [2, 1]


@pytest.mark.core
@pytest.mark.parametrize("nothing", [None, float("nan"), np.float64("nan"), "", "  ", "\u200b"])
def test_nothing_is_nothing(nothing):
    assert named(["ill", nothing], optional=True) == [0, NOTHING]
    assert np.isnan(numbers([1, nothing])).tolist() == [False, True]
    with pytest.raises(RefusedCellError, match="one of the states in every row") as refused:
        named(["ill", nothing])
    assert refused.value.index == 1


@pytest.mark.core
@pytest.mark.parametrize(
    "foreign",
    [
        "well",
        2,
        0.5,
        1e300,
        float("inf"),
        False,
        b"ill",
        ["ill"],
        {"ill": 1},
        datetime.date(2020, 1, 1),
        decimal.Decimal("0.5"),
        1j,
    ],
    ids=repr,
)
def test_what_the_vocabulary_lacks_is_refused_at_its_first_place(foreign):
    with pytest.raises(RefusedCellError, match="of the design") as refused:
        named(["ill", 1, foreign, "ill", foreign], optional=True)
    assert refused.value.index == 2
    assert refused.value.value == foreign


@pytest.mark.core
@given(st.lists(st.sampled_from(["ill", 1, "1", 1.0, True, None]), max_size=20), st.integers(1, 5))
def test_decisions_are_remembered_across_parts(values, size):
    decided = Decided(name_decider(STATES, "states", optional=True))
    parts = [decided.numbers(values[i : i + size]) for i in range(0, len(values), size)]
    assert [int(n) for part in parts for n in part] == named(values, optional=True)


@pytest.mark.core
def test_plain_values_are_passed_on_as_they_are():
    values = ["ill", 1, None]
    assert plain(values) is values
    assert isinstance(plain([b"ill"])[0], Foreign)


class TestUsers:
    """Numbers in the order in which users first come."""

    def read(self, values):
        users = Users()
        return Decided(users.decide).numbers(values).tolist(), list(users)

    def test_spellings_are_one_user(self):
        values = ["bob", "ann", " bob", "b\u200bob", "\uff42ob\ufe0f", "Bob"]
        assert self.read(values) == ([0, 1, 0, 0, 0, 2], ["bob", "ann", "Bob"])

    def test_a_whole_number_is_one_user(self):
        assert self.read([7, 7.0, np.int64(7), "7"]) == ([0, 0, 0, 0], ["7"])

    def test_a_number_with_zeros_before_it_is_another_user(self):
        assert self.read(["007", "7", "7.0"]) == ([0, 1, 1], ["007", "7"])

    @pytest.mark.parametrize(
        ("value", "sentence"),
        [
            (True, "by text or by integers"),
            (0.5, "by text or by integers"),
            (2.0**53, "by text or by integers"),
            (2**64, "by text or by integers"),
            (b"ann", "by text or by integers"),
            (["ann"], "by text or by integers"),
            (datetime.date(2020, 1, 1), "by text or by integers"),
            (None, "a name for every user"),
            (float("nan"), "a name for every user"),
            ("", "a name for every user"),
            ("\ufeff ", "a name for every user"),
            ("\ud800", "names of whole characters"),
            ("ann\0", "names without control characters"),
        ],
        ids=ascii,
    )
    def test_who_is_nobody_is_refused(self, value, sentence):
        with pytest.raises(RefusedCellError, match=sentence) as refused:
            self.read([1, "ann", value])
        assert refused.value.index == 2


@pytest.mark.core
@given(st.lists(st.floats(allow_nan=False) | st.integers(-9, 9), max_size=9))
def test_numbers_are_read_to_the_last_digit(values):
    assert numbers(values).tolist() == values
    assert numbers([repr(value) for value in values]).tolist() == values
    assert numbers([*map(repr, values), ""]).tolist()[:-1] == values


@pytest.mark.core
@pytest.mark.parametrize("flag", [True, np.True_])
def test_a_success_is_a_reward_of_one(flag):
    assert numbers([flag, None])[0] == 1


@pytest.mark.core
def test_decimals_of_a_data_base_are_numbers():
    assert numbers([decimal.Decimal("0.25"), None])[0] == 0.25


@pytest.mark.core
@pytest.mark.parametrize(
    "wrong", ["much", "1_0", "0,5", "0x1", 10**400, [1], 1j, datetime.date(2020, 1, 1)], ids=str
)
def test_what_is_no_number_is_refused_at_its_place(wrong):
    for values in ([1, wrong], [None, wrong, "x"]):
        with pytest.raises(RefusedCellError, match="a number") as refused:
            numbers(values)
        assert refused.value.index == 1


CLOSED = [*VISITS, ("ann", 4, "dead", None, None)]


@pytest.mark.core
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


@pytest.mark.core
def test_rows_of_a_file_are_known_by_their_lines():
    source = CsvSource(text([(*row, "well") for row in VISITS], (*HEADER, "next_state")), "f", ",")
    rows, _ = read_rows(source, Layout(NAMES))
    assert rows.places.tolist() == list(range(2, 8))
    assert rows.following.tolist() == [1] * 6


@pytest.mark.core
@pytest.mark.parametrize("reward", [-0.1, 1.1, -np.inf, np.inf])
def test_a_reward_beyond_its_range_is_refused_or_clipped_as_was_said(reward):
    rows = [VISITS[0], (*VISITS[1][:4], reward), *VISITS[2:]]
    with pytest.raises(InvalidInputError, match=r"rewards from 0 to 1, got .*row 1 "):
        read_rows(FrameSource(frame(rows)), Layout(NAMES))
    clipped, _ = read_rows(FrameSource(frame(rows)), Layout(NAMES, TableFormat(clip_rewards=True)))
    assert clipped.rewards[1] == float(reward > 0)


@pytest.mark.core
def test_some_rows_are_rows():
    rows, _ = read_rows(FrameSource(frame(CLOSED)), Layout(NAMES))
    some = rows[np.array([5, 0])]
    assert len(some) == 2
    assert some.places.tolist() == [5, 0]
    assert some.rewards.tolist() == [0.75, 0.25]


WITH_NEXT = (*HEADER, "next_state")
ANN, BOB = VISITS[:3], VISITS[3:]


@pytest.mark.core
@given(logs())
def test_rows_in_any_order_are_the_episodes_they_came_from(log):
    names, whole, users, rows = log
    episodes, found = read(rows, WITH_NEXT, names)
    assert found == users
    assert same(episodes, whole)


@pytest.mark.core
@given(logs())
def test_next_states_are_inferred_from_the_next_step(log):
    names, whole, users, rows = log
    episodes, found = read([row[:5] for row in rows], HEADER, names)
    assert found == users
    np.testing.assert_array_equal(episodes.states[:, :-1], whole.states[:, :-1])
    np.testing.assert_array_equal(episodes.states[:, -1], whole.states[:, -2])


@pytest.mark.core
@given(logs())
def test_a_closing_row_says_where_an_episode_ended(log):
    names, whole, _, rows = log
    last = [row for row in rows if row[1] == names.shape.horizon - 1]
    closing = [(row[0], names.closing, row[5], None, None) for row in last]
    episodes, _ = read([*(row[:5] for row in rows), *closing], HEADER, names)
    assert same(episodes, whole)


@pytest.mark.core
def test_two_spellings_are_one_user():
    rows = changed(1, "user", " a\u200bnn")
    assert read(rows)[1] == ["ann", "bob"]


@pytest.mark.core
@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (
            [*VISITS, VISITS[1]],
            r"every step once, got it also in row 1 \(the first is 0\); remove one of the two "
            r"rows, or tell a user's episodes apart in a column `episode`; see user 'ann', step "
            r"'2', row 6",
        ),
        (
            [VISITS[0], VISITS[2], *BOB],
            "steps without a gap, got none called '2' before this one; add the row, or write gap = "
            r"\{state = .*; see user 'ann', step '3', row 1",
        ),
        ([*ANN, *BOB[1:]], "got none called '1' before this one.*user 'bob', step '2', row 3"),
        (
            VISITS[:5],
            "episodes of 3 steps, got no step '3'; add the row, or write padding = .*'bob', step "
            "'2', row 4",
        ),
        (
            [*VISITS, ("ann", 4, "well", "wait", 0.5)],
            "3 steps, the last called '3', got one more.*step '4', row 6",
        ),
        (changed(4, "action", None), "got no action; fill it in.*'bob', step '2', row 4"),
        (changed(2, "reward", float("nan")), "got no reward.*'ann', step '3', row 2"),
        (
            [VISITS[0], ("ann", 2, "well", None, None), VISITS[2]],
            "only a user's last row without action and reward.*step '2', row 1",
        ),
        ([*VISITS, ("eve", 1, "ill", None, None)], "at least one step, got only a state.*'eve'"),
    ],
)
def test_what_is_no_episode_is_refused_with_its_row(rows, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        read(rows)


@pytest.mark.core
def test_a_next_state_must_be_the_state_of_the_next_row():
    rows = [(*row, None) for row in VISITS]
    rows[0] = (*VISITS[0], "ill")
    with pytest.raises(
        InvalidInputError, match="got another; correct one; see user 'ann', step '1'"
    ):
        read(rows, WITH_NEXT)


@pytest.mark.core
def test_a_closing_row_has_no_next_state():
    rows = [*((*row, None) for row in VISITS), ("ann", 4, "well", None, None, "ill")]
    with pytest.raises(InvalidInputError, match=r"no next state where there is no action.*row 6"):
        read(rows, WITH_NEXT)


@pytest.mark.core
def test_a_closing_row_and_a_next_state_must_agree():
    rows = [(*row, None) for row in ANN]
    rows[2] = (*ANN[2], "ill")
    with pytest.raises(
        InvalidInputError, match="got another; correct one; see user 'ann', step '3'"
    ):
        read([*rows, ("ann", 4, "well", None, None, None)], WITH_NEXT)


class TestPadding:
    """Episodes that ended early stay where they arrived."""

    EARLY = (*ANN, BOB[0])

    def test_an_early_end_is_in_the_only_end_state(self):
        episodes, users = read(self.EARLY, padding=Padding("dead"))
        assert users == ["ann", "bob"]
        assert episodes.states.tolist() == [[0, 1, 1, 1], [0, 2, 2, 2]]
        assert episodes.actions[1].tolist() == [0, 0, 0]
        assert episodes.rewards[1].tolist() == [0.0, 0.0, 0.0]

    def test_whole_episodes_are_left_alone(self):
        assert same(read(VISITS, padding=Padding("dead"))[0], read(VISITS)[0])

    @pytest.mark.parametrize("end", ["dead", "well"])
    def test_one_of_several_ends_is_the_one_that_was_recorded(self, end):
        rows = [*((*row, None) for row in ANN), (*BOB[0], end)]
        episodes, _ = read(rows, WITH_NEXT, padding=Padding(["dead", "well"]))
        assert episodes.states[1, 1:].tolist() == [NAMES.states.index(end)] * 3

    def test_a_closing_row_can_name_the_end(self):
        rows = [*self.EARLY, ("bob", 2, "well", None, None)]
        episodes, _ = read(rows, padding=Padding(["dead", "well"]))
        assert episodes.states[1].tolist() == [0, 1, 1, 1]

    def test_the_actions_at_the_end_follow_the_policy(self):
        policy = DeterministicPolicy(np.array([[0, 0, 1], [0, 1, 0], [1, 0, 1]]))
        episodes, _ = read(self.EARLY, padding=Padding("dead"), policy=policy)
        assert episodes.actions[1].tolist() == [0, 0, 1]
        support = policy.support(NAMES.shape)
        assert episodes.followed(support)[1].all()

    def test_the_reward_at_the_end_is_in_the_units_of_the_table(self):
        options = {"reward_range": (-1, 1), "padding": Padding("dead")}
        assert read(self.EARLY, **options)[0].rewards[1, 1:].tolist() == [0.5, 0.5]
        options["padding"] = Padding("dead", reward=-1)
        assert read(self.EARLY, **options)[0].rewards[1, 1:].tolist() == [0.0, 0.0]

    @pytest.mark.parametrize(
        ("arrived", "ends"), [("well", "dead"), ("ill", ["dead", "well"]), (None, ["dead", "well"])]
    )
    def test_who_ends_elsewhere_is_refused(self, arrived, ends):
        rows = [*((*row, None) for row in ANN), (*BOB[0], arrived)]
        with pytest.raises(
            InvalidInputError, match="an episode that ends early to arrive in 'dead'"
        ):
            read(rows, WITH_NEXT, padding=Padding(ends))

    def test_a_gap_is_no_early_end(self):
        with pytest.raises(InvalidInputError, match="steps without a gap"):
            read([*ANN, BOB[0], BOB[2]], padding=Padding("dead"))


class TestAbsence:
    """Who comes late, or stays away for a while, is in a declared state."""

    HERE = Vocabulary(
        states=["ill", "well", "lost", "not yet", "away", "unknown"],
        actions=["wait", "treat"],
        steps=[1, 2, 3, 4],
    )
    ROWS = (
        ("ann", 3, "ill", "treat", 4),
        ("ann", 4, "well", "wait", 8),
        ("bob", 1, "ill", "wait", 2),
        ("bob", 4, "ill", "treat", 6),
        ("eve", 2, "well", "treat", 10),
    )
    OPTIONS = {  # noqa: RUF012
        "late": Absence("not yet", 5),
        "gap": Absence("away", 1),
        "padding": Padding("lost"),
        "reward_range": (0, 10),
    }

    def read(self, rows=ROWS, **options):
        return read(rows, names=self.HERE, **{**self.OPTIONS, **options})[0]

    def test_late_gap_and_early_end(self):
        people = self.read()
        assert people.states.tolist() == [[3, 3, 0, 1, 1], [0, 4, 4, 0, 0], [3, 1, 2, 2, 2]]
        assert people.actions.tolist() == [[0, 0, 1, 0], [0, 0, 0, 1], [0, 1, 0, 0]]
        assert people.rewards.tolist() == [
            [0.5, 0.5, 0.4, 0.8],
            [0.2, 0.1, 0.1, 0.6],
            [0.5, 1, 0, 0],
        ]

    def test_absent_people_follow_the_policy(self):
        plan = np.zeros((4, 6), np.int64)
        plan[1, 3] = plan[2, 4] = plan[3, 2] = 1
        policy = DeterministicPolicy(plan)
        people = self.read(policy=policy)
        assert people.actions.tolist() == [[0, 1, 1, 0], [0, 0, 1, 1], [0, 1, 0, 1]]

    def test_empty_rows_are_no_rows(self):
        empty = [("ann", 1, None, None, None), ("bob", 2, "", "", ""), ("eve", 4, "", None, "")]
        assert same(self.read((*empty, *self.ROWS)), self.read())
        with pytest.raises(InvalidInputError, match="rows of user 'joe', got empty ones"):
            self.read((*self.ROWS, ("joe", 1, None, None, None)))

    def test_each_is_refused_unless_it_is_declared(self):
        with pytest.raises(
            InvalidInputError, match=r"first step of everybody, got none called '1' .*late = "
        ):
            self.read(late=None)
        with pytest.raises(InvalidInputError, match=r"without a gap, got none called '2' .*gap = "):
            self.read(gap=None)
        with pytest.raises(InvalidInputError, match=r"got no step '3'; .*padding = "):
            self.read(padding=None)

    def test_a_next_state_before_a_gap_must_be_that_of_the_gap(self):
        rows = [(*row, None) for row in self.ROWS]
        rows[2] = (*self.ROWS[2], "well")
        options = {**self.OPTIONS, "names": self.HERE}
        with pytest.raises(InvalidInputError, match="got another; correct one; see user 'bob'"):
            read(rows, WITH_NEXT, **options)
        rows[2] = (*self.ROWS[2], "away")
        assert same(read(rows, WITH_NEXT, **options)[0], self.read())

    def test_a_missing_state_and_a_missing_reward_are_what_was_declared(self):
        rows = [list(row) for row in self.ROWS]
        rows[1][2], rows[3][4] = " n/a", "-9"
        options = {"missing": ["n/a", "-9"], "missing_state": "unknown", "missing_reward": 3}
        people = self.read(rows, **options)
        assert people.states[0].tolist() == [3, 3, 0, 5, 5]
        assert people.rewards[1].tolist() == [0.2, 0.1, 0.1, 0.3]
        rows[3][4] = -9.0
        assert self.read(rows, **options).rewards[1, 3] == 0.3
        with pytest.raises(InvalidInputError, match=r"got no reward; .*missing_reward = 0 in"):
            self.read(rows, **{**options, "missing_reward": None})
        with pytest.raises(InvalidInputError, match=r"got none from 'state'; .*missing_state = "):
            self.read(rows, **{**options, "missing_state": None})

    def test_a_missing_state_of_several_columns(self):
        cuts = Discretizer(Cuts("pressure", [90]), Cuts("lactate", [2], missing="bin"))
        names = Vocabulary(states=[*cuts.names, "unknown", "away"], actions=2, steps=3)
        columns = ("user", "step", "pressure", "lactate", "action", "reward")
        rows = [
            ("ann", 0, None, 1, 0, 0),
            ("ann", 1, "", "", None, None),  # nothing at all: she was not there
            ("ann", 2, 80, None, 1, 1),
        ]
        options = {"discretizer": cuts, "missing_state": "unknown", "gap": Absence("away")}
        people, _ = read(rows, columns, names, **options)
        assert people.states.tolist() == [[6, 7, 2, 2]]

    @given(logs(), st.integers(0, 3))
    def test_who_has_one_row_is_absent_before_and_after(self, log, step):
        names, whole, users, rows = log
        step = min(step, names.shape.horizon - 1)
        options = {"late": Absence(0, 1), "padding": Padding(2)}
        left = [row[:5] for row in rows if row[1] == step]
        people, found = read(left, HEADER, names, **options)
        order = [users.index(name) for name in found]
        assert not people.states[:, :step].any() and (people.rewards[:, :step] == 1).all()
        np.testing.assert_array_equal(people.states[:, step], whole.states[order, step])
        np.testing.assert_array_equal(people.actions[:, step], whole.actions[order, step])
        if step < names.shape.horizon - 1:
            assert (people.states[:, step + 1 :] == 2).all()


class TestChecks:
    """A check lists what reading refuses, all of it at once."""

    def test_everything_in_one_list(self):
        rows = [
            ("ann", 1, "il", "treat", 0.25),
            ("ann", 2, "well", "wait", "much"),
            ("ann", 2, "well", "wait", 1),
            ("bob", 2, "ill", "cut", 7),
            (None, 1, "ill", "wait", 1),
            ("eve", 1, None, "wait", 1),
            ("eve", 3, "ill", None, 1),
            ("joe", 9, "ill", "wait", 1),
        ]
        assert problems_of(frame(rows), NAMES) == {
            "no user in 'user'": 1,
            "unknown step in 'step'": 1,
            "unknown state in 'state'": 1,
            "unknown action in 'action'": 1,
            "no number in 'reward'": 1,
            "reward out of range in 'reward'": 1,
            "step more than once": 1,
            "no state in 'state'": 1,
            "person who comes late": 1,
            "gap between steps": 1,
            "no action": 1,
            "episode that ended early": 2,
        }

    def test_all_missing_columns(self):
        found = problems_of({"user": ["ann"], "Step": [1]}, NAMES)
        assert found == {f"no column '{name}'": 1 for name in ("state", "action", "reward")}

    def test_a_good_table(self):
        assert problems_of(frame(VISITS), NAMES) == {}


class TestDiscretizer:
    """States made of numeric columns."""

    CUTS = Discretizer(Cuts("pressure", [90], low=20), Cuts("lactate", [2], missing="bin"))
    WORDS = Vocabulary(states=[*CUTS.names, "dead"], actions=2, steps=2)
    COLUMNS = ("user", "step", "pressure", "lactate", "action", "reward")
    ROWS = (("ann", 0, 80, 1, 0, 0), ("ann", 1, 120, "3", 1, 1), ("ann", 2, "90", "", None, None))

    def test_states_are_made_of_the_columns(self):
        episodes, _ = read(self.ROWS, self.COLUMNS, self.WORDS, discretizer=self.CUTS)
        assert [self.WORDS.states[s] for s in episodes.states[0]] == [
            "pressure < 90, lactate < 2",
            "pressure >= 90, lactate >= 2",
            "pressure >= 90, lactate unknown",
        ]

    def test_a_next_state_can_be_named(self):
        rows = [(*self.ROWS[0], ""), (*self.ROWS[1], "dead")]
        columns = (*self.COLUMNS, "next_state")
        episodes, _ = read(rows, columns, self.WORDS, discretizer=self.CUTS)
        assert episodes.states[0, 2] == self.WORDS.states.index("dead")

    def test_padding_can_lead_to_a_state_that_no_number_makes(self):
        options = {"discretizer": self.CUTS, "padding": Padding("dead")}
        episodes, _ = read(self.ROWS[:1], self.COLUMNS, self.WORDS, **options)
        assert episodes.states[0].tolist() == [0, 6, 6]

    @pytest.mark.parametrize(
        ("cell", "sentence"),
        [
            (
                10,
                "a finite number >= 20, got 10.0 in column 'pressure', row 1 .*outside = \"clip\"",
            ),
            (
                None,
                "in every row, got none from 'pressure' and 'lactate'; .*missing_state = .*row 1 ",
            ),
            ("low", "a number, got 'low' in column 'pressure', row 1 "),
            ("8,5", "a number, got '8,5' in column 'pressure', row 1 .*decimal = \",\""),
        ],
    )
    def test_a_number_without_a_bin_is_refused_with_its_row(self, cell, sentence):
        rows = [self.ROWS[0], ("ann", 1, cell, 1, 0, 0)]
        with pytest.raises(InvalidInputError, match=sentence):
            read(rows, self.COLUMNS, self.WORDS, discretizer=self.CUTS)


@pytest.mark.core
def test_episodes_can_be_told_to_the_problem_they_were_named_for():
    episodes, users = read(VISITS)
    counts = episodes.counts(NAMES.shape, np.random.default_rng(0))
    assert counts.users == len(users) == 2
    assert isinstance(episodes, Trajectories)


TEXT = text(VISITS).read()
SIZE = len(TEXT.encode())
CUTS = Discretizer(Cuts("state", [1], missing="bin"))
NUMBERED = Vocabulary(states=[*CUTS.names, "dead"], actions=2, steps=2)
CELLS = (
    st.sampled_from(["ann", "ill", "well", "dead", "wait", "treat", 1, 2, 3, 0.5, None, "", 4])
    | st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=3)
    | st.binary(max_size=2)
    | st.dates()
    | st.lists(st.integers(), max_size=1)
    | st.just(datetime.timedelta(1))
)
TABLES = st.integers(0, 4).flatmap(
    lambda n: st.fixed_dictionaries(
        {name: st.lists(CELLS, min_size=n, max_size=n) for name in (*HEADER, "next_state")}
    )
)
ALL = {
    "padding": Padding("dead"),
    "late": Absence("ill"),
    "gap": Absence("well", 1.0),
    "missing": ["ann", "0.5", "-"],
    "missing_state": "dead",
    "missing_reward": 0.5,
    "clip_rewards": True,
}
OPTIONS = st.sampled_from(
    [{}, {"padding": Padding("dead")}, {"clip_rewards": True}, {"decimal": ","}, ALL]
)


def problems_of(table, names, **options):
    """All that a check finds, as many as it counts."""
    problems = Problems(collect=True)
    check_episodes(FrameSource(table), Layout(names, TableFormat(**options)), problems)
    assert all(p.count >= len(p.examples) > 0 for p in problems.found)
    return {problem.kind: problem.count for problem in problems.found}


def read_or_refused(read, *arguments, **options):
    """Well-formed episodes, or one sentence."""
    try:
        episodes, users = read(*arguments, **options)
    except InvalidInputError as refusal:
        assert str(refusal).isprintable()
        assert len(str(refusal)) < 600
        return True
    episodes.check(arguments[1].shape)
    assert len(episodes) == len(users) == len(set(users)) > 0
    return False


@pytest.mark.core
@given(TABLES, OPTIONS)
def test_any_cells(table, options):
    """They are read, or refused; and a check finds something if and only if they are refused."""
    refused = read_or_refused(read_table, table, NAMES, **options)
    found = problems_of(table, NAMES, **options)
    assert bool(found) == refused


@pytest.mark.core
@given(TABLES, OPTIONS)
def test_any_cells_with_a_discretizer(table, options):
    read_or_refused(read_table, table, NUMBERED, discretizer=CUTS, **options)


@pytest.mark.core
@given(st.text())
def test_any_text(content):
    read_or_refused(read_table, io.StringIO(content, newline=""), NAMES)


@pytest.mark.core
@given(st.integers(0, SIZE), st.integers(0, 3), st.binary(max_size=4))
def test_any_damage_to_the_bytes_of_a_file(place, lost, found):
    content = TEXT.encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "visits.csv"
        path.write_bytes(content[:place] + found + content[place + lost :])
        read_or_refused(read_table, path, NAMES, padding=Padding("dead"))


@pytest.mark.core
def test_several_episodes_of_a_user_are_told_apart_by_a_column():
    header, named = (*HEADER, "visit"), {"columns": {"episode": "visit"}}
    rows = [(*row, visit) for visit, some in (("b", ANN), ("a", VISITS)) for row in some]
    episodes, users = read(rows, header, **named)
    assert users == ["ann", "ann", "bob"]
    assert same(episodes[:1], episodes[1:2])
    with pytest.raises(InvalidInputError, match="the name or number of an episode in every row"):
        read([(*row[:-1], " ") for row in rows], header, **named)
    assert read([(*row, 7.5) for row in VISITS], (*HEADER, "episode"))[1] == ["ann", "bob"]


def test_what_cannot_be_done_is_refused_and_padding_does_what_can():
    names = Vocabulary(
        states=["ill", "well", "lost"],
        actions=["wait", "treat"],
        steps=[1, 2],
        allowed=[
            {"states": "well", "actions": "wait"},
            {"states": "lost", "actions": "treat"},
        ],
    )
    table = "user,step,state,action,reward\nann,1,ill,treat,0\nann,2,well,{},1\nbob,1,ill,wait,0\n"
    lost = Padding("lost")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "visits.csv"
        file.write_text(table.format("wait"))
        logged, _ = read_table(file, names, padding=lost)
        assert logged.actions.tolist() == [[1, 0], [0, 1]]
        file.write_text(table.format("treat"))
        said = r"allowed actions \('wait'\), got 'treat'.*user 'ann', step '2', line 3"
        with pytest.raises(InvalidInputError, match=said):
            read_table(file, names, padding=lost)
