"""Facts of a table as plain values: read back as what they were, refused when they cannot be."""

import json

import pytest

from discreet.data import Cuts, Vocabulary
from discreet.data.tables import TableFormat
from discreet.errors import InvalidInputError, UnknownNameError
from discreet.mdp import DeterministicPolicy

pytestmark = pytest.mark.core

NAMES = Vocabulary(states=["ill", "well", "lost"], actions=["wait", "treat"], steps=2)


def test_it_survives_a_file():
    form = TableFormat(
        columns={"user": "patient"},
        cuts=(Cuts("pressure", [90]).to_dict(),),
        reward_range=(-1, 1),
        clip_rewards=True,
        padding={"end": "lost", "reward": -1},
        delimiter=";",
        encoding="cp1252",
    )
    plain = json.loads(json.dumps(form.to_dict()))
    again = TableFormat.from_dict(plain)
    assert again.to_dict() == plain
    assert again.discretizer.names == ("pressure < 90", "pressure >= 90")
    assert TableFormat().to_dict() == {}
    assert TableFormat().discretizer is None


def test_a_file_is_read_by_it(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("patient;step;state;action;reward\nann;0;ill;treat;0,5\n".replace("0,5", "5"))
    form = TableFormat.from_dict(
        {
            "columns": {"user": "patient"},
            "reward_range": [0, 10],
            "delimiter": ";",
            "padding": {"end": "lost", "reward": 10},
        }
    )
    policy = DeterministicPolicy([[0, 0, 0], [0, 0, 1]])
    episodes, users = form.read(path, NAMES, policy)
    assert users == ["ann"]
    assert episodes.states.tolist() == [[0, 2, 2]]
    assert episodes.actions.tolist() == [[1, 1]]  # at the end as the policy says
    assert episodes.rewards.tolist() == [[0.5, 1.0]]


@pytest.mark.parametrize(
    ("plain", "said"),
    [
        ({"columns": {"user": 3}}, "name of a column"),
        ({"padding": {"state": "lost"}}, "end = .STATE"),
        ({"padding": {"end": "lost", "reward": "x"}}, "finite number"),
        ({"padding": {"end": "gone"}}, "padding to name one of the states"),
        ({"reward_range": [1, 1]}, "low < high"),
        ({"delimiter": 3}, "a delimiter of one character, got 3"),
        ({"delimiter": ";;"}, "a delimiter of one character"),
        ({"encoding": "utf-80"}, "an encoding that Python knows"),
        ({"encoding": "rot13"}, "an encoding that Python knows"),
        ({"encoding": "a\0"}, "an encoding that Python knows"),
        ({"encoding": 8}, "an encoding that Python knows"),
        ({"cuts": [{"column": "x"}]}, "cuts of a discretizer"),
    ],
)
def test_what_cannot_be(plain, said):
    with pytest.raises(InvalidInputError, match=said):
        TableFormat.from_dict(plain).layout(NAMES)


def test_what_is_no_format():
    with pytest.raises(UnknownNameError, match="did you mean 'columns'"):
        TableFormat.from_dict({"colums": {}})
    for plain in ({"reward_range": 3}, {"cuts": "x"}, "csv"):
        with pytest.raises(InvalidInputError, match="Expected"):
            TableFormat.from_dict(plain)
