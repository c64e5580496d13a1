"""What is no Parquet file is one sentence; `test_sources` reads those that are."""

import sys

import pytest

from discreet.data import read_table
from discreet.errors import InvalidInputError, MissingExtraError
from helpers.tables import NAMES, VISITS, frame, read, same

pa = pytest.importorskip("pyarrow", reason="Parquet files are read with pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
WHOLE, USERS = read(VISITS)


def test_other_columns_are_not_read(tmp_path):
    table = pa.table({**frame(VISITS), "diary": [[{"a": 1}]] * 6})
    pq.write_table(table, tmp_path / "visits.parquet")
    episodes, users = read_table(str(tmp_path / "visits.parquet"), NAMES)
    assert users == USERS
    assert same(episodes, WHOLE)


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
