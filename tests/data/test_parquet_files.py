"""Parquet files are read part by part; what is none is one sentence."""

import sys

import pytest
from hypothesis import given

from discreet.data import read_table
from discreet.errors import InvalidInputError, MissingExtraError
from helpers.tables import HEADER, NAMES, VISITS, changed, frame, logs, read, same

pa = pytest.importorskip("pyarrow", reason="Parquet files are read with pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
WHOLE, USERS = read(VISITS)


@given(log=logs())
def test_a_file_is_the_episodes_it_was_written_from(tmp_path_factory, log):
    names, whole, users, rows = log
    path = tmp_path_factory.mktemp("parquet") / "visits.parquet"
    pq.write_table(pa.table(frame(rows, (*HEADER, "next_state"))), path, row_group_size=2)
    episodes, found = read_table(path, names)
    assert found == users
    assert same(episodes, whole)


def test_other_columns_are_not_read(tmp_path):
    table = pa.table({**frame(VISITS), "diary": [[{"a": 1}]] * 6})
    pq.write_table(table, tmp_path / "visits.parquet")
    episodes, users = read_table(str(tmp_path / "visits.parquet"), NAMES)
    assert users == USERS
    assert same(episodes, WHOLE)


def test_a_wrong_cell_is_refused_with_its_row(tmp_path):
    table = pa.table(frame(changed(4, "state", "il")))
    pq.write_table(table, tmp_path / "visits.parquet", row_group_size=2)
    with pytest.raises(
        InvalidInputError, match=r"got 'il' in .*row 4 \(the first is 0\) of '.*quet'"
    ):
        read_table(tmp_path / "visits.parquet", NAMES)


@pytest.mark.parametrize("content", [b"", b"user,step\n", b"PAR1" + b"\0" * 100 + b"PAR1"])
def test_what_is_no_parquet_file_is_one_sentence(content, tmp_path):
    (tmp_path / "visits.parquet").write_bytes(content)
    with pytest.raises(InvalidInputError, match="a Parquet file that can be read, got") as refusal:
        read_table(tmp_path / "visits.parquet", NAMES)
    assert "\n" not in str(refusal.value)


def test_a_missing_file_and_a_folder_are_one_sentence(tmp_path):
    (tmp_path / "folder.parquet").mkdir()
    for path in (tmp_path / "none.parquet", tmp_path / "folder.parquet"):
        with pytest.raises(InvalidInputError, match="a Parquet file that can be read, got"):
            read_table(path, NAMES)


def test_an_empty_file_has_no_rows(tmp_path):
    pq.write_table(pa.table(frame(VISITS)).slice(0, 0), tmp_path / "visits.parquet")
    with pytest.raises(InvalidInputError, match="Expected at least one row"):
        read_table(tmp_path / "visits.parquet", NAMES)


def test_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pyarrow.*tables"):
        read_table(tmp_path / "visits.parquet", NAMES)


def test_text_that_was_damaged_is_one_sentence(tmp_path):
    """Flipped bits pass Parquet's own checks, unless they make no text."""
    path = tmp_path / "visits.parquet"
    table = pa.table(frame(VISITS)).to_pydict()
    pq.write_table(pa.table({**table, "user": ["annabel"] * len(table["user"])}), path)
    damaged = path.read_bytes().replace(b"annabel", b"ann\xffbel")
    path.write_bytes(damaged)
    with pytest.raises(InvalidInputError, match=r"a Parquet file that can be read, got .*decode"):
        read_table(path, NAMES)
