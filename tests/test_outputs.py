"""Rows as files: JSON and CSV, whole, with the promise in every row."""

import csv
import io
import json
import os

import pytest

from discreet._files import check_output, write_rows, write_text
from discreet.data import Vocabulary, read_csv
from discreet.errors import InvalidInputError

pytestmark = pytest.mark.core

ROWS = [{"step": "1", "action": "wait, please"}, {"step": "2", "action": "Zoë"}]
ABOUT = {"guarantee": "(1, 0)-LDP", "head": "abc"}


def test_both_forms(tmp_path):
    write_rows(tmp_path / "a.JSON", ROWS, ABOUT)
    assert json.loads((tmp_path / "a.JSON").read_text("utf-8")) == {**ABOUT, "policy": ROWS}
    write_rows(tmp_path / "a.csv", ROWS, ABOUT)
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        assert list(csv.DictReader(file)) == [{**row, "guarantee": "(1, 0)-LDP"} for row in ROWS]


def test_what_cannot_be_written(tmp_path):
    with pytest.raises(InvalidInputError, match="nothing was written"):
        write_rows(tmp_path / "a.txt", ROWS, ABOUT)
    with pytest.raises(InvalidInputError, match=r"Cannot write .*: No such file"):
        write_text(tmp_path / "none" / "a.txt", "text")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_is_known_before_the_work(tmp_path, monkeypatch):
    check_output(tmp_path / "a.CSV", ".json", ".csv")
    check_output(tmp_path / "a")
    for path, problem in (
        (tmp_path / "a.txt", r"ends in \.json or \.csv, got .*a\.txt"),
        (tmp_path / "none" / "a.csv", "there is no folder .*none'; make it first"),
    ):
        with pytest.raises(InvalidInputError, match=problem):
            check_output(path, ".json", ".csv")
    with pytest.raises(InvalidInputError, match="is a folder; name a file in it"):
        check_output(tmp_path)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InvalidInputError, match="you may not write in"):
        check_output(tmp_path / "a.csv")
    assert list(tmp_path.iterdir()) == []


NAMES = Vocabulary(
    states=["=HYPERLINK(1)", "-5", "@home", "+", "ill"], actions=["-take", "wait"], steps=["=1"]
)


def test_a_spreadsheet_runs_no_name(tmp_path):
    rows = [{"state": state, "share": -0.5} for state in NAMES.states]
    write_rows(tmp_path / "a.csv", rows, ABOUT)
    lines = (tmp_path / "a.csv").read_text("utf-8").splitlines()[1:]
    states = [line.partition(",")[0] for line in lines]
    assert states == ["'=HYPERLINK(1)", "-5", "'@home", "'+", "ill"]
    assert all(",-0.5," in line for line in lines)
    write_rows(tmp_path / "a.json", rows, ABOUT)
    assert json.loads((tmp_path / "a.json").read_text("utf-8"))["policy"] == rows


def test_names_come_back_from_a_spreadsheet(tmp_path):
    """A table that quotes the names of a file of ours is read as if it had the names themselves."""
    rows = [
        {"user": str(i), "step": "=1", "state": state, "action": "-take", "reward": 0}
        for i, state in enumerate(NAMES.states)
    ]
    plain = io.StringIO(newline="")
    writer = csv.DictWriter(plain, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    plain.seek(0)
    write_rows(tmp_path / "a.csv", rows, ABOUT)
    ours, _ = read_csv(tmp_path / "a.csv", NAMES)
    theirs, _ = read_csv(plain, NAMES)
    assert ours.states[:, 0].tolist() == theirs.states[:, 0].tolist() == [0, 1, 2, 3, 4]
    assert ours.actions.tolist() == theirs.actions.tolist() == [[0]] * 5


def test_a_name_and_the_same_with_an_apostrophe_are_one():
    with pytest.raises(InvalidInputError, match="which are one; rename one"):
        Vocabulary(states=["=a", "'=a"], actions=1, steps=1)
    assert Vocabulary(states=["'=a", "'tis", "'-5"], actions=1, steps=1).states == (
        "=a",
        "'tis",
        "'-5",
    )
