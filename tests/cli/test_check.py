"""`discreet check`: what holds, what does not, and what is refused."""

import functools
import json

import numpy as np
import pytest


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
    (tmp_path / "text.npz").write_text("hello")
    code, _, err = discreet("check", "mdp", str(tmp_path / "text.npz"))
    assert code == 2
    assert "Cannot read" in err


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

    from discreet.privacy.auditing import conformance

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
