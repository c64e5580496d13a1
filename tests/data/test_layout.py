"""What is said about a table is checked before the table is read."""

import numpy as np
import pytest

from discreet.data import Absence, Cuts, Discretizer, Padding, Vocabulary, read_table
from discreet.data.layout import Layout, TableFormat
from discreet.errors import InvalidInputError
from discreet.mdp import DeterministicPolicy
from helpers.tables import HEADER, NAMES, VISITS, read, same

pytestmark = pytest.mark.core
WHOLE = read(VISITS)[0]


def test_columns_may_have_other_names():
    header = ("patient", "visit", "condition", "drug", "score")
    columns = dict(zip(HEADER, header, strict=True))
    assert same(read(VISITS, header, columns=columns)[0], WHOLE)


def test_a_next_state_that_was_named_must_be_there():
    with pytest.raises(InvalidInputError, match="Expected a column 'then', got 'user'"):
        read(VISITS, columns={"next_state": "then"})


def test_roles_can_be_swapped():
    header = ("step", "user", "state", "action", "reward")
    assert same(read(VISITS, header, columns={"user": "step", "step": "user"})[0], WHOLE)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"columns": {"stat": "x"}}, "Unknown role 'stat' of a column; did you mean 'state'?"),
        (
            {"columns": {"user": "step"}},
            "a column of its own for each role, got 'step' for several",
        ),
        ({"columns": ["user"]}, r"Expected columns = \{role = .*\}, got \['user'\]"),
        ({"columns": {"user": 7}}, "the name of a column for 'user', got 7"),
        ({"reward_range": (1, 0)}, r"a reward_range with low < high, got \[1, 0\]"),
        ({"reward_range": (0, 0)}, "a reward_range with low < high"),
        ({"reward_range": (-1e308, 1e308)}, "a reward_range with low < high"),
        ({"reward_range": (0, float("inf"))}, "high to be a finite number"),
        ({"reward_range": (0, float("nan"))}, "high to be a finite number"),
        ({"reward_range": 10}, r"reward_range = \[low, high\], got 10"),
        ({"reward_range": (0, 1, 2)}, r"reward_range = \[low, high\]"),
        ({"clip_rewards": "yes"}, "clip_rewards to be True or False"),
        ({"padding": Padding("ded")}, "padding to name one of the states, got 'ded'; did you mean"),
        ({"padding": Padding([])}, "at least one end state"),
        ({"padding": Padding(7)}, "padding to name one of the states, got 7"),
        ({"padding": "dead"}, r"Expected Padding\(end state\), got 'dead'"),
        ({"padding": Padding("dead", reward=2)}, "the reward of padding in the reward_range"),
        (
            {"padding": Padding("dead"), "reward_range": (1, 5)},
            r"range 1 to 5, got 0, which it is if left out; .*padding = {..., reward = NUMBER}",
        ),
        ({"late": Absence("ded")}, "late to name one of the states, got 'ded'; did you mean"),
        ({"gap": Absence("dead", reward=2)}, "the reward of gap in the reward_range"),
        ({"late": "dead"}, r"Expected Absence\(state\), got 'dead'"),
        ({"missing": "n/a"}, "missing as a list of words"),
        ({"missing": [7]}, "missing as a list of words"),
        ({"missing": 7}, "missing as a list of words"),
        ({"missing": ["n/a", "ill"]}, "name nothing else, got 'ill', which is one of the states"),
        ({"missing": ["3"]}, "which is one of the steps"),
        ({"missing_state": "unknown"}, "missing_state to name one of the states, got 'unknown'"),
        ({"missing_reward": 2}, "the reward of missing_reward in the reward_range"),
        ({"missing_reward": "x"}, "missing_reward to be a finite number"),
        ({"decimal": ";"}, "decimal"),
        (
            {"discretizer": Discretizer(Cuts("x", [1]))},
            "states begin with those of the discretizer",
        ),
        ({"discretizer": Cuts("x", [1])}, r"Expected Discretizer\(Cuts\(...\), ...\), got Cuts"),
    ],
)
def test_what_makes_no_layout_is_one_sentence(options, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        Layout(NAMES, TableFormat(**options))


def test_names_are_given_not_learnt():
    with pytest.raises(InvalidInputError, match=r"Expected Vocabulary\(.*never read off the data"):
        read_table({}, None)


def test_a_reward_at_the_end_is_a_number():
    with pytest.raises(InvalidInputError, match="reward to be a finite number"):
        Padding("dead", reward=float("nan"))


def test_a_policy_of_another_problem_is_refused():
    policy = DeterministicPolicy(np.zeros((9, 9), np.int64))
    with pytest.raises(InvalidInputError, match="9"):
        read(VISITS[:4], padding=Padding("dead"), policy=policy)


def test_rewards_are_scaled_by_their_public_range():
    rows = [(*row[:4], 20 * row[4] - 10) for row in VISITS]
    assert same(read(rows, reward_range=(-10, 10))[0], WHOLE)


def test_rewards_beyond_the_range_are_clipped_when_asked():
    rows = [(*row[:4], 4 * row[4] - 1) for row in VISITS]
    expected = np.clip(4 * WHOLE.rewards - 1, 0, 1)
    np.testing.assert_array_equal(read(rows, clip_rewards=True)[0].rewards, expected)
    with pytest.raises(InvalidInputError, match=r"rewards from 0 to 1, got 3\.0"):
        read(rows)


def test_end_states_may_be_numbers():
    names = Vocabulary(states=3, actions=2, steps=2)
    rows = [("ann", 0, 0, 1, 1.0)]
    assert read(rows, names=names, padding=Padding(2))[0].states.tolist() == [[0, 2, 2]]
