"""`discreet check study`: by file and by learner."""

import json

import discreet as library
from discreet.study import check


def test_a_study_is_checked_by_its_file_and_only_read(discreet, tmp_path):
    path = tmp_path / "study.json"
    library.start(
        path,
        learner="flow-ucb",
        trust=library.Central(1, 1e-6),
        states=2,
        actions=2,
        horizon=2,
        episodes=200,
        sampler="simulation",
        seed=0,
    )
    before = path.read_bytes()
    code, out, err = discreet("check", "study", str(path), "--json")
    assert code == 0
    assert "Error" not in err
    found = json.loads(out)
    assert (found["name"], found["problems"]) == (str(path), [])
    assert found["promise"].startswith("SIMULATED, protects nobody: (1, ")
    assert path.read_bytes() == before


def test_no_problems_of_a_rehearsal_still_protect_nobody(discreet, tmp_path, monkeypatch):
    monkeypatch.setattr(check, "_CHECKS", ())
    path = tmp_path / "study.db"
    size = {"states": 2, "actions": 2, "horizon": 2, "episodes": 200}
    trust = library.Central(1, 1e-6)
    library.start(path, learner="flow-ucb", trust=trust, sampler="simulation", seed=0, **size)
    code, out, _ = discreet("check", "study", str(path))
    assert code == 0
    assert "SIMULATED, protects nobody" in " ".join(out.split())


def test_problems_exit_with_one(discreet, monkeypatch):
    monkeypatch.setattr(
        check,
        "check_study",
        lambda name, head, progress: check.StudyReport(name, ("Raw counts on the disk.",)),
    )
    code, out, _ = discreet("check", "study", "flow-ucb")
    assert code == 1
    assert "Raw counts on the disk." in out
    code, out, _ = discreet("check", "study", "flow-ucb", "--json")
    assert code == 1
    assert json.loads(out)["problems"] == ["Raw counts on the disk."]


def test_an_unknown_name_gets_a_suggestion(discreet):
    code, _, err = discreet("check", "study", "flow-ucbb")
    assert code == 2
    assert "did you mean 'flow-ucb'?" in err


def test_a_missing_file_is_not_taken_for_a_learner(discreet, tmp_path):
    for name in (str(tmp_path / "missing.json"), str(tmp_path / "missing"), "missing.json"):
        code, _, err = discreet("check", "study", name)
        assert code == 2
        assert f"There is no study at {name!r}" in err
        assert "learner" not in err


def test_an_older_copy_is_recognised_by_the_head(discreet, tmp_path, monkeypatch):
    monkeypatch.setattr(check, "_CHECKS", ())
    path = tmp_path / "study.json"
    size = {"states": 2, "actions": 2, "horizon": 2, "episodes": 200}
    trust = library.NoPrivacy()
    study = library.start(
        path, learner="flow-ucb", trust=trust, sampler="simulation", seed=0, **size
    )
    assert discreet("check", "study", str(path), "--head", study.head)[0] == 0
    code, _, err = discreet("check", "study", str(path), "--head", "0" * 64)
    assert code == 2
    assert "is an older copy or another study" in err
    code, _, err = discreet("check", "study", "flow-ucb", "--head", study.head)
    assert code == 2
    assert "only a study that was begun has a head" in err
