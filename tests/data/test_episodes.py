"""Rows become episodes whatever their order; what is no episode is refused with its row."""

import numpy as np
import pytest
from hypothesis import given

from discreet.data import Cuts, Discretizer, Padding, Vocabulary
from discreet.errors import InvalidInputError
from discreet.mdp import DeterministicPolicy, Trajectories
from helpers.tables import HEADER, NAMES, VISITS, changed, logs, read, same

pytestmark = pytest.mark.core
WITH_NEXT = (*HEADER, "next_state")
ANN, BOB = VISITS[:3], VISITS[3:]


@given(logs())
def test_rows_in_any_order_are_the_episodes_they_came_from(log):
    names, whole, users, rows = log
    episodes, found = read(rows, WITH_NEXT, names)
    assert found == users
    assert same(episodes, whole)


@given(logs())
def test_next_states_are_inferred_from_the_next_step(log):
    names, whole, users, rows = log
    episodes, found = read([row[:5] for row in rows], HEADER, names)
    assert found == users
    np.testing.assert_array_equal(episodes.states[:, :-1], whole.states[:, :-1])
    np.testing.assert_array_equal(episodes.states[:, -1], whole.states[:, -2])


@given(logs())
def test_a_closing_row_says_where_an_episode_ended(log):
    names, whole, _, rows = log
    last = [row for row in rows if row[1] == names.shape.horizon - 1]
    closing = [(row[0], names.closing, row[5], None, None) for row in last]
    episodes, _ = read([*(row[:5] for row in rows), *closing], HEADER, names)
    assert same(episodes, whole)


def test_two_spellings_are_one_user():
    rows = changed(1, "user", " a\u200bnn")
    assert read(rows)[1] == ["ann", "bob"]


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (
            [*VISITS, VISITS[1]],
            r"every step once, got it also in row 1 \(the first is 0\); remove one of the two "
            r"rows; see user 'ann', step '2', row 6",
        ),
        (
            [VISITS[0], VISITS[2], *BOB],
            "steps without a gap, got none called '2' before this one; add the row; see user "
            "'ann', step '3', row 1",
        ),
        ([*ANN, *BOB[1:]], "got none called '1' before this one.*user 'bob', step '2', row 3"),
        (
            VISITS[:5],
            "episodes of 3 steps, got no step '3'; add the row, or say padding=.*'bob', step '2', "
            "row 4",
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


def test_a_next_state_must_be_the_state_of_the_next_row():
    rows = [(*row, None) for row in VISITS]
    rows[0] = (*VISITS[0], "ill")
    with pytest.raises(
        InvalidInputError, match="got another; correct one; see user 'ann', step '1'"
    ):
        read(rows, WITH_NEXT)


def test_a_closing_row_has_no_next_state():
    rows = [*((*row, None) for row in VISITS), ("ann", 4, "well", None, None, "ill")]
    with pytest.raises(InvalidInputError, match=r"no next state where there is no action.*row 6"):
        read(rows, WITH_NEXT)


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
        episodes, _ = read(self.EARLY, padding=Padding("dead", policy=policy))
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
            (10, "a finite number >= 20, got 10.0 in column 'pressure', row 1 .*outside='clip'"),
            (None, "a number, got nan in column 'pressure', row 1 .*missing='bin'"),
            ("low", "a number, got 'low' in column 'pressure', row 1 "),
            ("8,5", "a number, got '8,5' in column 'pressure', row 1 .*with a point"),
        ],
    )
    def test_a_number_without_a_bin_is_refused_with_its_row(self, cell, sentence):
        rows = [self.ROWS[0], ("ann", 1, cell, 1, 0, 0)]
        with pytest.raises(InvalidInputError, match=sentence):
            read(rows, self.COLUMNS, self.WORDS, discretizer=self.CUTS)


def test_episodes_can_be_told_to_the_problem_they_were_named_for():
    episodes, users = read(VISITS)
    counts = episodes.counts(NAMES.shape, np.random.default_rng(0))
    assert counts.users == len(users) == 2
    assert isinstance(episodes, Trajectories)
