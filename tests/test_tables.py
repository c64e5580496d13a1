"""Rows as files: JSON and CSV, whole, with the promise in every row."""

import csv
import json

import pytest

from discreet._tables import write_rows, write_text
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
