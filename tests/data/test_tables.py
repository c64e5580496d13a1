"""Facts of a table as plain values: read back as what they were, refused when they cannot be."""

import json
import tomllib

import pytest

from discreet.data import Cuts, Discretizer, Layout, Padding, TableFormat, Vocabulary, check_table
from discreet.data.tables import read_by
from discreet.errors import InvalidInputError, UnknownNameError
from discreet.mdp import DeterministicPolicy

pytestmark = pytest.mark.core

NAMES = Vocabulary(states=["ill", "well", "lost"], actions=["wait", "treat"], steps=2)


def test_it_survives_a_file():
    form = TableFormat(
        columns={"user": "patient"},
        discretizer=Discretizer(Cuts("pressure", [90])),
        reward_range=(-1, 1),
        clip_rewards=True,
        padding=Padding("lost", -1),
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
    episodes, users = read_by(path, Layout(NAMES, form, policy))
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
        Layout(NAMES, TableFormat.from_dict(plain))


CHECKED = TableFormat(columns={"user": "patient"}, delimiter=";")


def test_a_check_says_what_is_where_and_what_mends_it(tmp_path):
    path = tmp_path / "visits.csv"
    rows = ["Patient;step;state;action;reward", "ann;0;ill;treat;0,5", "ann;1;ll;wait;1;2"]
    path.write_text("\n".join([*rows, *(f"p{i};1;n/a;wait;1" for i in range(5))]))
    report = check_table(path, Layout(NAMES, CHECKED)).to_dict()
    assert (report["rows"], report["people"]) == (6, 6)
    found = {problem["kind"]: problem for problem in report["problems"]}
    assert found["decimal comma in 'reward'"] == {
        "kind": "decimal comma in 'reward'",
        "count": 1,
        "examples": [{"place": "line 2", "value": "'0,5'"}],
        "mend": 'decimal = "," in [table] if all decimals are written so',
    }
    assert found["row with too many or too few fields"]["examples"] == [
        {"place": "line 3", "value": "6 instead of 5"}
    ]
    word = found["word for a missing value"]
    assert (word["count"], len(word["examples"])) == (5, 3)
    assert word["examples"][0] == {"place": "line 4", "value": "'n/a' in 'state'"}
    assert word["mend"] == 'missing = ["n/a"] in [table]'
    assert found["person who comes late"]["examples"][0] == {"place": "line 4", "value": "'p0'"}
    assert found["episode that ended early"]["mend"].startswith("padding = {end = ")


def checked(path, rows, **facts):
    """The problems of a table, by their kind."""
    path.write_text("\n".join(["patient;step;state;action;reward", *rows]) + "\n", encoding="utf-8")
    form = TableFormat.from_dict({**CHECKED.to_dict(), **facts})
    return {problem.kind: problem for problem in check_table(path, Layout(NAMES, form)).problems}


def whole(*people):
    return [f"{name};{step};ill;wait;1" for name in people for step in (0, 1)]


def test_a_check_lists_names_that_may_be_one_person(tmp_path):
    path = tmp_path / "visits.csv"
    (found,) = checked(path, whole("P07", "q", "p07", "\u0420ab")).values()
    assert found.kind == "name that may be another spelling of somebody"
    assert found.count == 2 and "in the table" in found.mend
    assert found.examples == [
        ("line 6", "'p07' beside 'P07'"),
        ("line 8", "'\u0420ab' mixes Cyrillic and Latin"),
    ]
    assert not checked(path, whole("P07", "q", "P08"))


def test_what_a_check_proposes_can_be_pasted(tmp_path):
    rows = ["ann;1;ill;wait;400", "bob;0;ill;wait;400", "cay;0;ill;wait;400", "cay;1;ill;wait;"]
    found = checked(tmp_path / "visits.csv", rows, reward_range=[300, 800])
    lines = [problem.mend.partition(" in [table]")[0] for problem in found.values()]
    pasted = tomllib.loads("\n".join(lines).replace("STATE", "lost"))
    assert pasted == {
        "late": {"state": "lost", "reward": 300},
        "padding": {"end": "lost", "reward": 300},
        "missing_reward": 300,
    }
    assert not checked(tmp_path / "visits.csv", rows, reward_range=[300, 800], **pasted)
    zero = checked(tmp_path / "visits.csv", ["ann;1;ill;wait;0"], reward_range=[-1, 1])
    assert zero["person who comes late"].mend.startswith('late = {state = "STATE", reward = 0}')
    gap = checked(
        tmp_path / "visits.csv", ["ann;0;ill;wait;1", "ann;2;ill;;"], reward_range=[0.3, 1]
    )
    assert gap["gap between steps"].mend.startswith('gap = {state = "STATE", reward = 0.3}')


def test_a_default_reward_outside_of_the_range_is_refused_by_its_key():
    for name, fact in (
        ("late", {"state": "lost"}),
        ("gap", {"state": "lost"}),
        ("padding", {"end": "lost"}),
    ):
        form = TableFormat.from_dict({"reward_range": [300, 800], name: fact})
        said = (
            f"reward of {name} .* 0, which it is if left out; .*{name} = {{..., reward = NUMBER}}"
        )
        with pytest.raises(InvalidInputError, match=said):
            Layout(NAMES, form)
    form = TableFormat(reward_range=(300, 800), missing_reward=0)
    with pytest.raises(InvalidInputError, match=r"got 0; .* missing_reward = NUMBER"):
        Layout(NAMES, form)


def test_a_decimal_point_where_the_design_says_comma_is_said_so(tmp_path):
    rows = ["ann;0;ill;wait;0.5", "ann;1;ill;wait;0,5"]
    (found,) = checked(tmp_path / "visits.csv", rows, decimal=",").values()
    assert found.kind == "decimal point in 'reward'" and "write a comma" in found.mend
    form = TableFormat.from_dict({**CHECKED.to_dict(), "decimal": ","})
    with pytest.raises(InvalidInputError, match=r"a decimal comma, as .* got '0.5'"):
        read_by(tmp_path / "visits.csv", Layout(NAMES, form))


def test_a_check_goes_on_after_other_decimals_and_words_for_nothing(tmp_path):
    rows = ["ann;0;ill;wait;12,5", "ann;1;NA;wait;0,5", "bob;0;ill;?;1", "bob;1;ill;wait;n/a"]
    found = checked(tmp_path / "visits.csv", rows, reward_range=[0, 10])
    counts = {kind: problem.count for kind, problem in found.items()}
    assert counts == {
        "decimal comma in 'reward'": 2,
        "word for a missing value": 3,
        "reward out of range in 'reward'": 1,
        "no state in 'state'": 1,
        "no action": 1,
        "no reward": 1,
    }
    words = tomllib.loads(found["word for a missing value"].mend.partition(" in ")[0])["missing"]
    assert sorted(words) == ["?", "NA", "n/a"]
    after = checked(tmp_path / "visits.csv", rows, reward_range=[0, 10], decimal=",", missing=words)
    assert {*after} == {*found} - {"decimal comma in 'reward'", "word for a missing value"}


def test_a_word_that_the_design_knows_is_not_taken_for_nothing(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("user,step,state,action,reward\nann,0,ill,none,1\nann,1,ill,none,1\n")
    names = Vocabulary(states=["ill"], actions=["none", "treat"], steps=2)
    assert check_table(path, Layout(names, TableFormat())).problems == ()


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "is empty"), (b"patient,step\n", 'delimiter = ","'), (b"a;\xe9;b\n", "encoding = ")],
)
def test_a_check_of_what_cannot_be_read_is_one_problem(tmp_path, content, said):
    path = tmp_path / "visits.csv"
    path.write_bytes(content)
    report = check_table(path, Layout(NAMES, CHECKED))
    assert [problem.kind for problem in report.problems] == ["table that cannot be read"]
    assert said in report.problems[0].mend


def test_a_check_of_a_header_alone_is_a_problem_as_reading_it_is(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("patient;step;state;action;reward\n")
    report = check_table(path, Layout(NAMES, CHECKED))
    assert [(problem.kind, problem.count) for problem in report.problems] == [("no row", 1)]
    with pytest.raises(InvalidInputError, match="at least one row"):
        read_by(path, Layout(NAMES, CHECKED))


def test_a_check_of_a_good_table(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("patient;step;state;action;reward\nann;0;ill;treat;1\nann;1;ill;treat;1\n")
    assert check_table(path, Layout(NAMES, CHECKED)).to_dict() == {
        "rows": 2,
        "people": 1,
        "problems": [],
    }


def test_what_is_no_format():
    with pytest.raises(UnknownNameError, match="did you mean 'columns'"):
        TableFormat.from_dict({"colums": {}})
    for plain in ({"reward_range": 3}, {"cuts": "x"}, "csv"):
        with pytest.raises(InvalidInputError, match="Expected"):
            TableFormat.from_dict(plain)
