"""Policies as files: with names, with the promise in every row, written whole."""

import csv
import json

import pytest

import discreet
from discreet.errors import StudyError
from discreet.study.promise import REHEARSED
from helpers.studies import advance, begin


def test_names_of_states_actions_and_steps(tmp_path):
    study = begin(
        tmp_path / "study.db",
        states=["ill", "better", "well"],
        actions=["wait", "treat"],
        horizon=["spring", "summer", "autumn", "winter"],
        start_states=["ill"],
    )
    assert study._course.problem.start.tolist() == [True, False, False]
    assert study.names.actions == ("wait", "treat")
    advance(study)
    again = discreet.resume(study.path)
    assert again.names == study.names
    again.save_policy(tmp_path / "policy.json")
    again.save_policy(tmp_path / "policy.csv")
    saved = json.loads((tmp_path / "policy.json").read_text())
    with (tmp_path / "policy.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(saved["policy"]) == 12
    assert (rows[4]["step"], rows[4]["state"]) == ("summer", "better")
    for row, plain in zip(rows, saved["policy"], strict=True):
        assert {**plain, "known": str(plain["known"])} == {k: row[k] for k in plain}
        h, s = study.names.steps.index(row["step"]), study.names.states.index(row["state"])
        assert row["action"] == study.names.actions[study.policy.actions[h, s]]


def test_a_rehearsal_says_so_in_every_table(tmp_path):
    study = begin(tmp_path / "study.db")
    advance(study)
    for name in ("policy.json", "policy.csv"):
        study.save_policy(tmp_path / name)
    rows = (tmp_path / "policy.csv").read_text().splitlines()[1:]
    assert all(REHEARSED in row for row in rows)
    saved = json.loads((tmp_path / "policy.json").read_text())
    assert saved["simulated"] and REHEARSED in saved["guarantee"]
    assert saved["head"] == study.head
    assert all(REHEARSED in entry["guarantee"] for entry in study.ledger)


def test_a_policy_is_saved_where_one_can_write(tmp_path):
    study = begin(tmp_path / "study.db")
    with pytest.raises(StudyError, match=r"ends in \.json or \.csv"):
        study.save_policy(tmp_path / "policy.xlsx")
    with pytest.raises(StudyError, match="Cannot write"):
        study.save_policy(tmp_path / "missing" / "policy.csv")
    assert [p.name for p in tmp_path.iterdir()] == ["study.db"]
