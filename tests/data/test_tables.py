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


CHECKED = TableFormat(columns={"user": "patient"}, delimiter=";")


def test_a_check_says_what_is_where_and_what_mends_it(tmp_path):
    path = tmp_path / "visits.csv"
    rows = ["Patient;step;state;action;reward", "ann;0;ill;treat;0,5", "ann;1;ll;wait;1;2"]
    path.write_text("\n".join([*rows, *(f"p{i};1;n/a;wait;1" for i in range(5))]))
    report = CHECKED.check(path, NAMES).to_dict()
    assert (report["rows"], report["people"]) == (6, 6)
    found = {problem["kind"]: problem for problem in report["problems"]}
    assert found["other decimals in 'reward'"] == {
        "kind": "other decimals in 'reward'",
        "count": 1,
        "examples": [{"place": "line 2", "value": "'0,5'"}],
        "mend": 'decimal = ","',
    }
    assert found["row with too many or too few fields"]["examples"] == [
        {"place": "line 3", "value": "6 instead of 5"}
    ]
    unknown = found["unknown state in 'state'"]
    assert (unknown["count"], len(unknown["examples"])) == (5, 3)
    assert 'missing = ["WORD"]' in unknown["mend"]
    assert found["person who comes late"]["examples"][0] == {"place": "line 4", "value": "'p0'"}
    assert found["episode that ended early"]["mend"].startswith("padding = {end = ")


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "is empty"), (b"patient,step\n", 'delimiter = ","'), (b"a;\xe9;b\n", "encoding = ")],
)
def test_a_check_of_what_cannot_be_read_is_one_problem(tmp_path, content, said):
    path = tmp_path / "visits.csv"
    path.write_bytes(content)
    report = CHECKED.check(path, NAMES)
    assert [problem.kind for problem in report.problems] == ["table that cannot be read"]
    assert said in report.problems[0].mend


def test_a_check_of_a_header_alone_is_a_problem_as_reading_it_is(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("patient;step;state;action;reward\n")
    report = CHECKED.check(path, NAMES)
    assert [(problem.kind, problem.count) for problem in report.problems] == [("no row", 1)]
    with pytest.raises(InvalidInputError, match="at least one row"):
        CHECKED.read(path, NAMES)


def test_a_check_of_a_good_table(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("patient;step;state;action;reward\nann;0;ill;treat;1\nann;1;ill;treat;1\n")
    assert CHECKED.check(path, NAMES).to_dict() == {"rows": 2, "people": 1, "problems": []}


def test_what_is_no_format():
    with pytest.raises(UnknownNameError, match="did you mean 'columns'"):
        TableFormat.from_dict({"colums": {}})
    for plain in ({"reward_range": 3}, {"cuts": "x"}, "csv"):
        with pytest.raises(InvalidInputError, match="Expected"):
            TableFormat.from_dict(plain)
