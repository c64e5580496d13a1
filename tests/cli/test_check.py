"""`discreet check` and `discreet audit`: what holds, what does not, and what is refused."""

import functools
import json

import numpy as np
import pytest
import typer

from discreet.auditing.run import AuditRow
from discreet.cli import check
from helpers.audits import audit_row as row


@pytest.mark.core
def test_check_mdp_json_is_the_shape_scripts_rely_on(discreet):
    code, out, err = discreet("check", "mdp", "RiverSwim", "--json")
    report = json.loads(out)
    assert code == 0
    assert "Error" not in err
    assert (report["name"], report["states"], report["horizon"]) == ("RiverSwim", 4, 6)
    assert report["optimal_value"] == pytest.approx(0.475791, abs=1e-6)
    assert report["uniform_value"] == pytest.approx(0.0316, abs=5e-5)
    assert report["constant_action_value"] < report["optimal_value"]
    assert report["problems"] == []


def test_parameters_reach_the_environment(discreet):
    _, out, _ = discreet(
        "check", "mdp", "randommdp", "--states", "3", "--set", "seed=7", "--set", "horizon=4",
        "--json",
    )  # fmt: skip
    report = json.loads(out)
    assert (report["states"], report["horizon"]) == (3, 4)


def test_the_table_names_every_environment(discreet):
    code, out, _ = discreet("check", "mdp", "--all")
    assert code == 0
    assert "0.475791" in out
    for name in ("Treatment", "Recommender", "DemandResponse", "SixArms", "LowerBound"):
        assert name in out


def test_check_all_as_json(discreet):
    _, out, _ = discreet("check", "mdp", "--all", "--json")
    assert len(json.loads(out)["results"]) == 9


def test_a_gymnasium_id_is_read_through_the_bridge(discreet):
    _, out, _ = discreet("check", "mdp", "FrozenLake-v1", "--horizon", "20", "--json")
    assert json.loads(out)["states"] == 16


def test_a_trivial_problem_exits_with_one(discreet):
    code, _, err = discreet("check", "mdp", "RandomMDP", "--set", "seed=7")
    assert code == 1
    assert "equally good" in err


@pytest.mark.core
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["check", "mdp", "RiverSwin"], "did you mean 'RiverSwim'?"),
        (["check", "mdp", "RiverSwim", "--set", "stats=3"], "did you mean 'states'?"),
        (["check", "mdp", "RiverSwim", "--set", "three"], "--set name=value"),
        (["check", "mdp", "RiverSwim", "--states", "1"], "states=1"),
        (["check", "mdp", "RiverSwim", "--states", "one"], "--states"),
        (["check", "mdp", "RiverSwim", "--bogus"], "--bogus"),
        (["check", "mdp"], "one environment"),
        (["check", "mdp", "--all", "--states", "3"], "no parameters with --all"),
        (["check", "mdp", "CartPole-v1", "--horizon", "9"], "does not expose a finite model"),
        (["check", "mdp", "FrozenLake-v1"], "--horizon"),
        (["check", "mdp", "NoSuchThing-v3", "--horizon", "9"], "Gymnasium cannot make"),
        (["lst"], "lst"),
    ],
)
def test_bad_input_gets_one_sentence_and_exit_code_two(discreet, arguments, sentence):
    code, out, err = discreet(*arguments)
    assert code == 2
    assert out == ""
    assert err.startswith("Error: ")
    assert sentence in err
    assert err.count("\n") == 1


def model(**changes):
    return {
        "transitions": np.full((2, 2, 2), 0.5),
        "rewards": np.array([[0.0, 1.0], [1.0, 0.0]]),
        "horizon": 3,
        **changes,
    }


def test_a_model_of_ones_own_from_a_file(discreet, tmp_path):
    np.savez(tmp_path / "mine.npz", **model())
    code, out, _ = discreet("check", "mdp", str(tmp_path / "mine.npz"), "--horizon", "4", "--json")
    report = json.loads(out)
    assert code == 0
    assert (report["name"], report["horizon"], report["optimal_value"]) == ("mine", 4, 4.0)


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        (model(transitions=np.full((2, 2, 2), 0.6)), "sum to 1, got 1.2 at transitions[0, 0]"),
        (model(transitions=np.array([[[-0.5, 1.5]] * 2] * 2)), "probabilities >= 0, got -0.5"),
        (model(rewards=np.full((2, 2), 1.5)), "rewards in [0, 1], got 1.5 at rewards[0, 0]"),
        (model(rewards=np.zeros((3, 2))), "rewards for 2 states and 2 actions"),
        (model(transitions=np.ones((2, 2))), "got shape (2, 2)"),
        (model(horizon=0), "horizon=0"),
        (model(reward=np.zeros(2)), "did you mean 'rewards'?"),
        ({"rewards": np.zeros((2, 2))}, "to hold an array 'transitions'"),
        (model(rewards=np.array([["a", "b"]] * 2)), "array of numbers"),
    ],
)
def test_bad_arrays_get_one_sentence(discreet, tmp_path, arrays, sentence):
    np.savez(tmp_path / "bad.npz", **arrays)
    code, _, err = discreet("check", "mdp", str(tmp_path / "bad.npz"))
    assert code == 2
    assert sentence in err
    assert err.count("\n") == 1


def test_unreadable_files_get_one_sentence(discreet, tmp_path):
    assert "does not exist" in discreet("check", "mdp", "nowhere.npz")[2]
    for text in ("", "hello"):
        (tmp_path / "text.npz").write_text(text)
        code, _, err = discreet("check", "mdp", str(tmp_path / "text.npz"))
        assert code == 2
        assert "to be an .npz file of real numbers" in err and err.count("\n") == 1


def test_a_problem_too_large_for_the_machine_gets_one_sentence(discreet):
    code, _, err = discreet("check", "mdp", "RiverSwim", "--states", "100000000")
    assert code == 2
    assert "Not enough memory" in err


def test_check_learner_shows_what_holds_and_what_does_not(discreet, monkeypatch):
    from discreet.learners import check

    report = check.LearnerReport(
        name="ucbvi",
        passed=("determinism",),
        problems=("only private counts: it looks at raw counts",),
        shares={},
        unchecked=("relabelling: too small",),
    )
    asked = {}

    def checked(name, progress, **settings):
        asked.update({"name": name, **settings})
        progress("determinism")
        return report

    monkeypatch.setattr(check, "check_learner", checked)
    code, out, _ = discreet("check", "learner", "ucbvi", "--set", "bonus_scale=0.5")
    assert (code, asked) == (1, {"name": "ucbvi", "bonus_scale": 0.5})
    assert "determinism" in out
    assert "only private counts  FAILS: it looks at raw counts" in out
    assert "not checked: too small" in out
    code, out, _ = discreet("check", "learner", "ucbvi", "--json")
    assert code == 1
    assert json.loads(out)["problems"] == ["only private counts: it looks at raw counts"]


def test_check_mechanism_exits_with_one_if_privacy_is_lost(discreet, monkeypatch):
    from types import SimpleNamespace

    from discreet.auditing import conformance

    monkeypatch.setattr(
        conformance,
        "check_mechanism",
        lambda plan, progress: SimpleNamespace(problems=("Shared noise.",)),
    )
    code, out, _ = discreet("check", "mechanism", "central/gaussian")
    assert code == 1
    assert "Shared noise." in out
    code, out, _ = discreet("check", "mechanism", "central/gaussian", "--json")
    assert json.loads(out) == {"name": "central/gaussian", "problems": ["Shared noise."]}
    code, _, err = discreet("check", "mechanism")
    assert code == 2
    assert "--all" in err


@pytest.fixture
def impatient(monkeypatch):
    """Every step is said at once."""
    from discreet.cli import check

    monkeypatch.setattr(check, "Progress", functools.partial(check.Progress, patience=0))


@pytest.mark.usefixtures("impatient")
def test_long_checks_say_what_is_under_way(discreet, monkeypatch):
    from discreet.learners import check

    _, out, err = discreet("check", "mechanism", "central/laplace")
    steps = [line for line in err.splitlines() if line.startswith("checking ")]
    assert len(steps) > 5
    assert any(line.endswith(": noise as stated ...") for line in steps)
    assert "checking" not in out
    monkeypatch.setattr(check, "_flattening", lambda *_: {})
    monkeypatch.setattr(check, "_relabelling", lambda *_: None)
    _, _, err = discreet("check", "learner", "flow-ucb")
    assert "checking flow-ucb: determinism ...\nchecking flow-ucb: valid policies ..." in err


@pytest.mark.usefixtures("impatient")
def test_scripts_are_told_nothing_but_json(discreet):
    _, out, err = discreet("check", "mechanism", "central/laplace", "--json")
    assert err == ""
    json.loads(out)


def test_json_for_scripts(capsys):
    check.audit(["tree-laplace"], quick=True, json=True)
    results = json.loads(capsys.readouterr().out)["results"]
    exact = [row for row in results if row["calibration"] == "exact"]
    assert all(row["holds"] and row["claimed"] == {"epsilon": 1, "delta": 0} for row in exact)
    kinds = {"continual", "stationary", "vector", "layered"}
    assert {row["kind"] for row in exact} == kinds
    assert {"add", "block", "add (256 releases, secure)"} <= {row["path"] for row in exact}
    [paper] = [row for row in results if row["calibration"] == "paper"]
    assert not paper["holds"] and paper["exact_epsilon"] == pytest.approx(2)


def test_a_broken_exact_guarantee_is_an_error(monkeypatch, capsys):
    row = AuditRow("central/broken", "exact", 1.0, 0.0, 2.0, 0.1, 0.0, "JDP")
    monkeypatch.setattr("discreet.auditing.run.audit", lambda *_, **__: [row])
    with pytest.raises(typer.Exit) as stop:
        check.audit()
    assert stop.value.exit_code == 1
    shown = capsys.readouterr()
    assert "central/broken" in shown.out and "do not hold" in shown.err


def test_check_mechanism(capsys):
    check.check_mechanism("central/laplace", json=True)
    assert json.loads(capsys.readouterr().out) == {"name": "central/laplace", "problems": []}


def shown(monkeypatch, capsys, *rows):
    """What the table says of these rows, and the exit code."""
    monkeypatch.setattr("discreet.auditing.run.audit", lambda *_, **__: list(rows))
    code = 0
    try:
        check.audit()
    except typer.Exit as stop:
        code = stop.exit_code
    return code, capsys.readouterr()


def test_guarantees_that_hold_are_a_table_and_no_error(monkeypatch, capsys):
    code, text = shown(monkeypatch, capsys, row(), row(mechanism="local/one-step", notion="LDP"))
    assert code == 0
    assert text.err == ""
    assert "local/one-step" in text.out
    assert "yes" in text.out
    assert "NO" not in text.out


def test_a_broken_printed_guarantee_is_told_and_no_error(monkeypatch, capsys):
    """That printed constants fail is what the audit is there to say."""
    code, text = shown(monkeypatch, capsys, row(calibration="paper", exact_epsilon=2.0))
    assert code == 0
    assert "(printed)" in text.out
    assert "claims 1 and delivers 2" in " ".join(text.out.split())


def test_no_epsilon_at_all_is_said_in_words(monkeypatch, capsys):
    code, text = shown(monkeypatch, capsys, row(exact_epsilon=float("inf")))
    assert code == 1
    assert "no epsilon at all" in " ".join(text.out.split())
    assert "central/laplace" in text.err


def test_an_attack_is_shown_as_a_lower_bound(monkeypatch, capsys):
    _, text = shown(monkeypatch, capsys, row(empirical_epsilon_low=0.4567))
    assert ">= 0.45" in text.out


def test_unknown_mechanisms_get_a_suggestion(discreet):
    code, out, err = discreet("audit", "central/laplase")
    assert (code, out) == (2, "")
    assert "central/laplace" in err
    assert err.count("\n") == 1


DESIGN = """
states = ["ill", "well", "not yet"]
actions = ["wait", "treat"]
steps = 2
[table]
decimal = ","
delimiter = ";"
"""


@pytest.mark.core
def test_check_table_lists_all_problems_and_what_mends_them(discreet, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.toml").write_text(DESIGN)
    rows = ["user;step;state;action;reward", "ann;0;ill;wait;0,5", "ann;1;ill;wait;n/a"]
    (tmp_path / "t.csv").write_text("\n".join([*rows, "bob;1;well;treat;1,0"]) + "\n")
    code, out, _ = discreet("check", "table", "t.csv", "--design", "d.toml")
    assert code == 1
    assert "t.csv: 3 rows of 2 people" in out
    assert "'n/a'" in out and 'missing = ["n/a"] in [table]' in out
    assert "line 4: 'bob'" in out and "late = {state = " in out
    code, out, _ = discreet("check", "table", "t.csv", "--design", "d.toml", "--json")
    found = json.loads(out)
    assert code == 1 and found["table"] == "t.csv"
    assert [problem["count"] for problem in found["problems"]] == [1, 1, 1]
    mended = 'missing = ["n/a"]\nmissing_reward = 0\nlate = {state = "not yet"}\n'
    (tmp_path / "d.toml").write_text(DESIGN + mended)
    code, out, _ = discreet("check", "table", "t.csv", "--design", "d.toml")
    assert code == 0 and "Every row can be read" in out


@pytest.mark.core
def test_check_table_checks_the_design_first(discreet, tmp_path):
    (tmp_path / "d.toml").write_text(DESIGN + 'late = {state = "later"}\n')
    code, _, err = discreet("check", "table", "none.csv", "--design", str(tmp_path / "d.toml"))
    assert code == 2 and "late to name one of the states" in err
    (tmp_path / "d.toml").write_text(DESIGN)
    code, out, err = discreet("check", "table", "none.csv", "--design", str(tmp_path / "d.toml"))
    assert code == 2 and not out and "No such file" in err
