"""The file: rows and back to the last bit, whole transactions, and what damage and disks do."""

import math
import os
import pathlib
import shutil
import sqlite3
import stat
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet._files import temporary_of
from discreet.errors import StudyError
from discreet.study import store
from discreet.study.store import Store, packed, unpacked
from helpers.studies import advance, begin, edits_of, everything_in, log_of, log_of_a_tell, sql


@pytest.fixture(scope="module")
def two_batches(tmp_path_factory):
    """The file of a study with two batches, and its head."""
    path = tmp_path_factory.mktemp("edited") / "study.db"
    study = begin(path)
    advance(study, 0)
    advance(study, 1)
    return path.read_bytes(), study.head


EDITS = {
    "epsilon": "UPDATE config SET config = replace(config, '\"epsilon\":1', '\"epsilon\":9')",
    "states": "UPDATE config SET config = replace(config, '\"states\":3', '\"states\":99')",
    "no config": "DELETE FROM config",
    "two configs": "INSERT INTO config SELECT 2, config, key FROM config",
    "key": "UPDATE config SET key = zeroblob(32)",
    "key as text": "UPDATE config SET key = 'secret'",
    "forgotten users": "DELETE FROM users WHERE id = 2",
    "added users": "INSERT INTO users (number, digests) VALUES (2, zeroblob(16))",
    "users of nobody": "INSERT INTO users (number, digests) VALUES (7, zeroblob(16))",
    "other users": "UPDATE users SET digests = zeroblob(length(digests)) WHERE id = 1",
    "users moved": "UPDATE users SET number = 3 - number",
    "users renumbered": "UPDATE users SET id = id + 5",
    "users as text": "UPDATE users SET digests = 'abc'",
    "forgotten batch": "DELETE FROM ledger WHERE number = 2",
    "no batch": "DELETE FROM ledger WHERE number > 0",
    "no ledger": "DELETE FROM ledger",
    "broken entry": "UPDATE ledger SET entry = '{' WHERE number = 1",
    "entry as a number": "UPDATE ledger SET entry = 5 WHERE number = 1",
    "entry as bytes": "UPDATE ledger SET entry = x'ff00' WHERE number = 1",
    "deep entry": "UPDATE ledger SET entry = replace(hex(zeroblob(99999)), '00', '[')",
    "guarantee": "UPDATE ledger SET entry = replace(entry, 'SIMULATED, protects nobody: ', '')",
    "head": "UPDATE ledger SET hash = lower(hex(zeroblob(32))) WHERE number = 2",
    "evidence": "UPDATE evidence SET data = zeroblob(length(data)) WHERE kind = 'float64'",
    "shape of evidence": "UPDATE evidence SET shape = '[99999999999]' WHERE kind = 'float64'",
    "kind of evidence": "UPDATE evidence SET kind = 'object' WHERE kind = 'float64'",
    "no evidence": "DELETE FROM evidence",
    "more evidence": "INSERT INTO evidence VALUES ('more', 'json', '[]', x'7b7d')",
    "a new table": "CREATE TABLE note (text TEXT)",
    "a new column": "ALTER TABLE users ADD COLUMN note TEXT",
    "a trigger": "CREATE TRIGGER t AFTER INSERT ON ledger BEGIN DELETE FROM users; END",
    "a view": "CREATE VIEW seen AS SELECT * FROM users",
    "no table": "DROP TABLE evidence",
}


@pytest.mark.parametrize("edit", EDITS)
def test_any_edit_is_noticed(tmp_path, two_batches, edit):
    path = tmp_path / "study.db"
    path.write_bytes(two_batches[0])
    before = Store(path).read()
    sql(path, EDITS[edit])
    with pytest.raises(StudyError, match="was edited or damaged") as refused:
        discreet.open_study(path)
    assert str(refused.value).count(". ") == 0  # one sentence
    assert refused.value.__cause__ is None
    path.write_bytes(two_batches[0])
    assert Store(path).read() == before


def test_every_column_of_every_table_is_covered(tmp_path, two_batches):
    path = tmp_path / "study.db"
    seen = []
    path.write_bytes(two_batches[0])
    for part, edit in list(edits_of(path)):
        path.write_bytes(two_batches[0])
        sql(path, *edit)
        seen.append(part)
        with pytest.raises(StudyError, match="was edited or damaged"):
            discreet.open_study(path)
    assert {"users.digests", "ledger.hash", "evidence.data", "config.key"} <= set(seen)


@pytest.mark.parametrize("kept", [0.02, 0.3, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(tmp_path, two_batches, kept):
    path = tmp_path / "study.db"
    path.write_bytes(two_batches[0][: int(kept * len(two_batches[0]))])
    with pytest.raises(StudyError, match=r"edited or damaged|its beginning is lost"):
        discreet.open_study(path)


def test_flipped_bits_are_noticed_or_harmless(tmp_path, two_batches):
    """Somewhere in the file; what is no row (free space, statistics of SQLite) may change."""
    whole, head = two_batches
    path = tmp_path / "study.db"
    expected, refused = None, 0
    for place in range(16, len(whole), len(whole) // 97):
        damaged = bytearray(whole)
        damaged[place] ^= 0x55
        path.write_bytes(damaged)
        try:
            found = Store(path).read(head)
        except StudyError:
            refused += 1
        else:
            expected = expected or found
            assert found == expected
    assert refused > 20


def test_foreign_files_are_named_as_such(tmp_path):
    path = tmp_path / "study.db"
    for content, said in (
        (b"", "is not a study file"),
        (b"PK\x03\x04", "is not a study file"),
        (b'{"format": "discreet-study-2"}', "is not a study file"),
        (b"SQLite format 3\x00" + b"\xff" * 500, "its beginning is lost"),
    ):
        path.write_bytes(content)
        with pytest.raises(StudyError, match=said):
            discreet.open_study(path)
        with pytest.raises(StudyError, match="exists; open_study"):
            begin(path)
        assert path.read_bytes() == content
    path.unlink()
    sql(path, "CREATE TABLE patients (name TEXT)")
    with pytest.raises(StudyError, match="database of another program"):
        discreet.open_study(path)
    with pytest.raises(StudyError, match=r"begin one with start_study\(\)"):
        discreet.open_study(tmp_path / "none.db")
    with pytest.raises(StudyError, match="a folder or no ordinary file"):
        discreet.open_study(tmp_path)


def test_a_study_of_another_version_is_named_as_such(tmp_path):
    path = tmp_path / "study.db"
    begin(path)
    sql(path, "PRAGMA user_version = 4")
    with pytest.raises(StudyError, match="is a study of format 4"):
        discreet.open_study(path)


def test_a_study_that_this_version_cannot_read_is_named_as_such(tmp_path, monkeypatch):
    study = begin(tmp_path / "study.db")
    monkeypatch.setattr(type(study.learner), "restore", lambda *_: {}["told"])
    with pytest.raises(StudyError, match="is whole, but this version of discreet cannot"):
        discreet.open_study(study.path)


def test_two_starts_at_once_make_one_study(tmp_path, monkeypatch):
    """The second finds the file of the first when its turn has come."""
    path = tmp_path / "study.db"
    check, calls = store.check_new, []

    def slow(where):
        check(where)
        calls.append(where)
        if len(calls) == 1:
            begin(path)  # another process, between the first look and the writing

    monkeypatch.setattr(store, "check_new", slow)
    with pytest.raises(StudyError, match="exists; open_study"):
        begin(path, seed=6)
    assert discreet.open_study(path).batches == 0


def test_paths_at_which_no_study_can_be(tmp_path):
    with pytest.raises(StudyError, match="is a folder; name a file in it"):
        store.check_new(tmp_path)
    with pytest.raises(StudyError, match=r"There is no folder .*missing.* make it first"):
        store.check_new(tmp_path / "missing" / "s.db")
    with pytest.raises(StudyError, match="name of a temporary file"):
        store.check_new(tmp_path / ".new.8.tmp")


def test_a_temporary_file_is_no_study(tmp_path):
    study = begin(tmp_path / "s.db")
    left = temporary_of(study.path, 7)
    shutil.copyfile(study.path, left)
    with pytest.raises(StudyError, match="name of a temporary file"):
        discreet.open_study(left)
    assert discreet.open_study(study.path).head == study.head
    assert not left.exists()


@pytest.fixture
def open_umask():
    """A umask under which a file is readable by all unless somebody asks for less."""
    before = os.umask(0o000)
    yield
    os.umask(before)


@pytest.mark.skipif(sys.platform == "win32", reason="no such permissions")
def test_only_the_owner_reads_it_and_its_log(tmp_path, monkeypatch, open_umask):
    modes, fsync = [], os.fsync

    def watched(descriptor):
        modes.extend(p.stat().st_mode for p in tmp_path.iterdir())
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    study = begin(tmp_path / "study.db")
    reader = sqlite3.connect(study.path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM ledger").fetchall()
    advance(study)
    found = {p.name: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()}
    reader.close()
    assert set(found) == {"study.db", "study.db-wal", "study.db-shm"}
    assert {*found.values(), *map(stat.S_IMODE, modes)} == {0o600}


def test_leftovers_of_this_study_go_and_nothing_else_does(tmp_path):
    path = tmp_path / "s.db"
    foreign = [
        ".s.db.tmp", ".s.db.1x.tmp", "s.db.1.tmp", ".s.db.1.2.tmp", ".t.db.1.tmp", ".s.db.1.tmp~",
        ".sxdb.1.tmp", ".s.db.swp",
    ]  # fmt: skip
    for name in foreign:
        (tmp_path / name).write_text("of another program")
    temporary_of(path, 4_000_000).write_text("a start that was cut short")
    store.remove_leftovers(path)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(foreign)


def test_leftovers_that_cannot_be_removed_are_named(tmp_path, monkeypatch):
    left = temporary_of(tmp_path / "s.db", 7)
    left.write_text("a start")

    def refused(self, missing_ok=False):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(pathlib.Path, "unlink", refused)
    with pytest.raises(StudyError, match=r"7\.tmp.*Permission denied; remove it"):
        store.remove_leftovers(tmp_path / "s.db")


def test_what_is_replaced_is_not_left_in_the_file(tmp_path):
    """The evidence of before would be a second release of the same people after a rehearsal."""
    path = tmp_path / "study.db"
    study, seen = begin(path), []
    for seed in range(3):
        seen += [row[0] for row in sql(path, "SELECT data FROM evidence WHERE kind = 'float64'")]
        advance(study, seed)
    now = {row[0] for row in sql(path, "SELECT data FROM evidence")}
    assert len(set(seen) - now) > 5
    content = path.read_bytes()
    assert not [old for old in set(seen) - now if old.strip(b"\0") and old in content]
    long = bytes(range(1, 256)) * 100  # pages of its own, which nothing new is written over
    for statement, *values in (
        ("INSERT INTO evidence VALUES ('long', 'bytes', '', ?)", long),
        ("DELETE FROM evidence WHERE name = 'long'",),
    ):
        connection = study._store._patiently(True, math.inf)
        connection.execute(statement, values)
        connection.execute("COMMIT")
        connection.close()
        before, content = content, path.read_bytes()
    assert long[:1000] in before
    assert long[:1000] not in content


def test_looking_whether_it_is_a_study_opens_nothing(tmp_path, monkeypatch):
    """To open and close the file would drop SQLite's locks on it: commits of others get lost."""
    study = begin(tmp_path / "study.db")
    opened = []
    monkeypatch.setattr(pathlib.Path, "open", lambda *_: opened.append(_))
    advance(study)
    discreet.open_study(study.path)
    assert opened == []


def test_one_at_a_time_in_a_folder(tmp_path):
    pytest.importorskip("fcntl")
    study = begin(tmp_path / "study.db")
    soon = time.monotonic() + 0.05
    with (
        store.alone_in(tmp_path, soon),
        pytest.raises(sqlite3.OperationalError, match="waited too long"),
        store.alone_in(tmp_path, soon),
    ):
        pass
    advance(study)  # and the lock ends with its owner
    assert [p.name for p in tmp_path.iterdir()] == ["study.db"]


def test_a_folder_that_may_only_be_read_is_enough_to_look(tmp_path, monkeypatch):
    study = begin(tmp_path / "study.db")
    advance(study)
    before = everything_in(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert Store(study.path).read(study.head).tail == study._tail
    assert everything_in(tmp_path) == before


def test_a_log_that_cannot_be_taken_in_is_not_passed_over(tmp_path, monkeypatch):
    """What was counted last may be in the log alone: without it the file is an older state."""
    study = begin(tmp_path / "study.db")
    (tmp_path / "study.db-wal").write_bytes(b"changes")
    before = everything_in(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(StudyError, match=r"has a log beside it, 'study\.db-wal'"):
        Store(study.path).read()
    assert everything_in(tmp_path) == before


def test_verify_looks_at_every_page_and_every_user(tmp_path, two_batches, monkeypatch):
    path = tmp_path / "study.db"
    path.write_bytes(two_batches[0])
    study = discreet.open_study(path)
    study.verify()
    monkeypatch.setattr(store.Store, "check_pages", lambda self: pytest.skip("never reached"))
    sql(path, "UPDATE users SET digests = zeroblob(16) WHERE id = 1")
    with pytest.raises(StudyError, match="edited or damaged"):
        study.verify()


def test_a_commit_is_on_the_disk_and_what_is_deleted_is_zeroed(tmp_path):
    """A batch that was counted is not forgotten when the power fails: its users would return."""
    study = begin(tmp_path / "study.db")
    with Store(study.path)._connected(writing=True) as connection:
        for pragma, value in (("synchronous", 2), ("secure_delete", 1), ("journal_mode", "wal")):
            assert connection.execute(f"PRAGMA {pragma}").fetchone() == (value,)


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=5),
)
LISTS = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=6, max_size=12),
    st.lists(st.floats(allow_nan=False), min_size=6, max_size=12),
    st.lists(st.one_of(st.integers(), st.floats(allow_nan=False)), min_size=8, max_size=10),
    st.lists(st.booleans(), min_size=8, max_size=9),
)
STATES = st.dictionaries(
    st.text("abc.", min_size=1, max_size=3),
    st.recursive(st.one_of(LEAVES, LISTS), lambda one: st.lists(one, max_size=4), max_leaves=6),
    max_size=4,
)


def typed(value):
    """Values with their types: 1, 1.0 and True differ."""
    if isinstance(value, dict):
        return {key: typed(part) for key, part in value.items()}
    if isinstance(value, list):
        return [typed(part) for part in value]
    return type(value), math.copysign(1, value) if value == 0 else 0, value


@settings(max_examples=60)
@given(STATES)
def test_every_state_comes_back(state):
    assert typed(unpacked(packed(state))) == typed(state)


def test_arrays_are_bytes_and_nothing_is_pickled():
    rows = packed({"a": {"b": np.arange(12.0).reshape(3, 4)}, "c": [True] * 9})
    assert [row[:3] for row in rows] == [
        ("", "json", "[]"),
        ("a.b", "float64", "[3,4]"),
        ("c", "bool", "[9]"),
    ]
    assert rows[1][3] == np.arange(12.0).tobytes()


@pytest.mark.parametrize(
    "value", [[1, 2.0] * 5, [[1], [2, 3]] * 5, [2**80] * 9, ["x"] * 9, [1] * 3]
)
def test_what_is_no_long_array_stays_text(value):
    assert [row[1] for row in packed({"a": value})] == ["json"]


def test_nothing_is_created_where_no_study_can_be(tmp_path, monkeypatch):
    with pytest.raises(StudyError, match="There is no folder"):
        begin(tmp_path / "missing" / "study.db")
    with pytest.raises(StudyError, match="is a folder"):
        begin(tmp_path)
    assert list(tmp_path.iterdir()) == []

    def refused(path, *_):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(StudyError, match=r"Cannot write in the folder .*: Permission denied"):
        begin(tmp_path / "study.db")
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="who owns all may write all")
def test_a_read_only_folder_is_refused(tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    with pytest.raises(StudyError, match="Cannot write in the folder"):
        begin(folder / "study.db")
    assert list(folder.iterdir()) == []


def crashed(folder, cut=0):
    """A study, and a copy as it is when the log of its first batch ends so many bytes early."""
    study = begin(folder / "study.db")
    before, log = study.path.read_bytes(), log_of_a_tell(study)
    path = folder / "crashed" / "study.db"
    path.parent.mkdir()
    path.write_bytes(before)
    log_of(path).write_bytes(log[: len(log) - cut])
    return study, path


@pytest.mark.parametrize("cut", [1, 100, 3_000, 9_000, 30_000])
@pytest.mark.parametrize("goes_on", ["resume", "tell"])
def test_a_log_that_was_cut_off_leaves_no_second_release(tmp_path, goes_on, cut):
    """Killed while the log was being written: the batch is told again, its first noise is gone."""
    _, path = crashed(tmp_path, cut)
    log = log_of(path).read_bytes()
    again = discreet.open_study(path)
    assert again.batches == 0
    if goes_on == "tell":
        log_of(path).write_bytes(log)
        advance(again)
        assert again.batches == 1
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_commit_that_reached_the_log_is_kept(tmp_path):
    study, path = crashed(tmp_path)
    again = discreet.open_study(path, study.head)
    assert (again.batches, again.users) == (1, study.users)
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_schema_that_is_no_text_is_one_sentence(tmp_path):
    """SQLite quotes it in its error, which Python then cannot decode."""
    path = begin(tmp_path / "study.db").path
    data = path.read_bytes()
    assert data.count(b"CREATE TABLE users") == 1
    path.write_bytes(data.replace(b"CREATE TABLE users", b"CREA\xa9E TABLE users"))
    with pytest.raises(StudyError, match=r"edited|damaged|changed"):
        discreet.open_study(path)
