"""The store as a file: its own, alone, private, and empty of what was deleted."""

import contextlib
import sqlite3
import stat

import pytest

from discreet.errors import InvalidInputError
from discreet.service.protocol import ticket
from discreet.service.protocol.problems import Refusal
from discreet.service.shuffler.sqlite import SqliteStore
from discreet.service.shuffler.store import StoreBusyError
from helpers.services import announced, charter, filled, new_store, submissions

OF = charter()
MARK = b"<planted-mark>"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "shuffler.db"


def test_only_its_owner_may_read_it(path):
    new_store(path, OF).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_two_shufflers_do_not_share_a_file(path):
    store = new_store(path, OF)
    with pytest.raises(InvalidInputError, match="Another shuffler works on"):
        SqliteStore(str(path), OF)
    store.close()
    new_store(path, OF).close()


def test_a_file_of_another_program_is_left_alone(path):
    new_store(path, OF).close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA application_id = 7")
    db.close()
    before = path.read_bytes()
    with pytest.raises(InvalidInputError, match="database of another program"):
        SqliteStore(str(path), OF)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_one_sentence(path):
    path.write_bytes(b"no database" * 100)
    with pytest.raises(InvalidInputError, match="Cannot open the store"):
        SqliteStore(str(path), OF)


def test_a_store_of_another_study_is_refused(path):
    new_store(path, OF).close()
    store = SqliteStore(str(path), charter(purpose="another"))
    with pytest.raises((InvalidInputError, Refusal)):
        store.adopt(on_new=lambda: None)
    store.close()


def test_what_is_deleted_is_in_no_file_of_the_folder(path):
    store = new_store(path, OF)
    store._begin(writing=True)
    store._insert("report", [(MARK * 300,)])
    store._end("COMMIT")

    def held():
        return any(MARK in file.read_bytes() for file in path.parent.iterdir())

    assert held()
    store._begin(writing=True)
    store._empty("report")
    store._end("COMMIT")
    store.tidy()
    assert not held()
    store.close()


def test_a_disk_that_does_not_answer_is_busy_and_not_broken(path):
    store = new_store(path, OF)
    with pytest.raises(StoreBusyError, match="SQLite: no such table: nowhere"):
        store._execute("SELECT * FROM nowhere")
    store.close()


def test_what_was_answered_outlives_a_power_cut(tmp_path):
    """Full synchronisation: a commit is on the disk before anybody hears of it."""
    store = new_store(tmp_path / "s.db", OF)
    found = [store._execute(f"PRAGMA {name}")[0][0] for name in ("synchronous", "journal_mode")]
    store.close()
    assert found == [2, "wal"]


def test_p15_a_log_that_somebody_reads_is_emptied_when_they_have_gone(path):
    store = new_store(path, OF)
    filled(store, OF)
    with contextlib.closing(sqlite3.connect(path)) as reader:
        (body,) = reader.execute("SELECT body FROM report LIMIT 1").fetchone()
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM batch").fetchall()
        store._db.execute("PRAGMA busy_timeout = 0")
        store.shuffle()
        store.done(0)
        assert store.untidy
        reader.rollback()
    log = path.with_name(path.name + "-wal")
    assert body[:32] in log.read_bytes()
    store.tidy()  # at the next tick
    assert not store.untidy and log.read_bytes() == b""
    assert body[:32] not in path.read_bytes()
    store.close()


def test_sealing_needs_less_than_twice_the_disk(path):
    """Bodies move a few megabytes at a time; the log never holds all of them."""
    users = 40_000
    one, passes = announced(OF, users=users), ticket.make(users)
    store = new_store(path, OF, passes)
    store.announce(one)
    for first in range(0, users, 4000):
        store.submit(submissions(one, passes[first : first + 4000]))
    store.tidy()
    before, most = store.size(), 0
    while store.shuffle_step() == "full":
        most = max(most, store.size())
    assert store.live().state == "sealed"
    store.close()
    assert most < 2 * before
