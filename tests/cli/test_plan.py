"""`discreet plan`: the table, the picture, the JSON, and what is refused."""

import json

import numpy as np
import pytest

DESIGN = """
learner = "trial"
episodes = 400
states = 2
actions = 2
steps = 2
start_states = [0]

[settings]
aim = "policy"

[trust]
model = "central"
epsilon = 1.0
delta = 1e-6

[table]
reward_range = [0, 10]
"""
QUICK = ("--people", "400,2e3", "--trust", "central", "--epsilon", "1", "--runs", "20")


@pytest.fixture
def design(tmp_path):
    path = tmp_path / "design.toml"
    path.write_text(DESIGN)
    return str(path)


def test_a_table_a_picture_and_what_is_assumed(discreet, design, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "plan.svg"
    code, out, _ = discreet("plan", design, *QUICK, "--plot", str(picture))
    assert code == 0
    assert "Difference: the smallest" in out and "2,000  central" in out
    assert "20 simulated studies per row in which nothing is to be found" in " ".join(out.split())
    assert "rewards 0 or 10" in " ".join(out.split())
    assert all(len(line) <= 80 for line in out.splitlines() if "central" in line)
    assert "recommend anything where nothing is better" in picture.read_text()


def test_a_narrow_table_leaves_columns_out(discreet, design, monkeypatch):
    monkeypatch.setenv("COLUMNS", "66")
    code, out, _ = discreet("plan", design, *QUICK, "--people", "1e9")
    heads = next(line for line in out.splitlines() if line.startswith(" "))
    assert code == 0 and "null error" in heads and "batches" in heads


def test_json_has_the_same(discreet, design):
    code, out, _ = discreet("plan", design, *QUICK, "--json")
    plan = json.loads(out)
    assert code == 0
    assert [(row["people"], row["trust"]) for row in plan["rows"]] == [
        (400, "none"),
        (400, "central"),
        (2000, "none"),
        (2000, "central"),
    ]
    assert plan["effect"] is plan["problem"] is None
    assert all(0 <= row["null_error"] <= 1 and row["right"] is None for row in plan["rows"])
    assert plan["rows"][2]["smallest_difference"] < plan["rows"][0]["smallest_difference"]


def test_a_problem_that_resembles_one_s_own_from_a_file(discreet, design, tmp_path):
    path = tmp_path / "mine.npz"
    moves, rewards = np.full((2, 2, 2), 0.5), [[0.2, 0.6], [0.2, 0.3]]
    np.savez(path, transitions=moves, rewards=rewards, initial=[1.0, 0.0], horizon=2)
    code, out, _ = discreet("plan", design, *QUICK, "--problem", str(path))
    assert code == 0
    assert "in mine, whose best action of the first step earns 4 more" in " ".join(out.split())
    assert "if an action earns 4 more than today's" in " ".join(out.split()) and "wrong" in out
    made = ("--problem", "RandomMDP", "--set", "states=2", "--set", "actions=2")
    code, out, _ = discreet("plan", design, *QUICK, *made, "--set", "horizon=2", "--json")
    assert code == 0 and json.loads(out)["problem"] == "RandomMDP"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--effect", "0"), "--effect > 0, got --effect 0"),
        (("--effect", "3"), "effect beside a problem that has it"),
        (("--set", "states=2"), "--problem beside --set"),
        (("--problem", "RiverSwim"), "the design's 2 states, 2 actions and 2 steps"),
        (("--people", "many"), "--people to be whole numbers"),
        (("--epsilon", "x"), "--epsilon to be numbers"),
        (("--plot", "plan.txt"), "ends in .svg or .png or .pdf"),
        (("--trust", "nobody"), "nobody"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_in_one_sentence(discreet, design, words, said):
    code, _, err = discreet("plan", design, *words)
    assert code == 2
    assert said in err
