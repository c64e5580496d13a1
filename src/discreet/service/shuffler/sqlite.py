"""The store as one SQLite file: write-ahead log, full synchronisation, deleted pages zeroed."""

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from discreet._files import hold_alone
from discreet.errors import InvalidInputError
from discreet.service.configs import At, nothing_happens
from discreet.service.protocol.charter import Charter
from discreet.service.shuffler.store import (
    CLAIM,
    GOOD,
    PROBE,
    Store,
    StoreBusyError,
    Value,
    Values,
)

APPLICATION = 0x64736873
_SCHEMA = (
    "CREATE TABLE about (id INTEGER PRIMARY KEY, version INTEGER NOT NULL, charter BLOB NOT NULL)",
    "CREATE TABLE batch (number INTEGER PRIMARY KEY, manifest BLOB NOT NULL, hash BLOB NOT NULL, "
    "state TEXT NOT NULL CHECK (state IN ('open', 'full', 'sealed', 'handed', 'done', 'expired', "
    "'abandoned')), received INTEGER NOT NULL, live INTEGER UNIQUE CHECK (live = 1)) STRICT",
    "CREATE TABLE ticket (hash BLOB PRIMARY KEY, number INTEGER, "
    "uses INTEGER NOT NULL DEFAULT 0 CHECK (uses >= 0)) STRICT, WITHOUT ROWID",
    "CREATE TABLE report (id INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT",
    "CREATE TABLE piece (place INTEGER NOT NULL, bucket INTEGER NOT NULL, "
    "body BLOB NOT NULL) STRICT",
    "CREATE INDEX pieces ON piece (place, bucket)",
    "CREATE TABLE sealed (place INTEGER NOT NULL, bucket INTEGER NOT NULL, body BLOB NOT NULL, "
    "PRIMARY KEY (place, bucket)) STRICT",
    f"PRAGMA application_id = {APPLICATION}",
)
_PATIENCE = 5
"""Seconds for whoever writes at the moment."""
_PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA secure_delete = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA trusted_schema = OFF",
    f"PRAGMA busy_timeout = {1000 * _PATIENCE}",
)
_AT_ONCE = 500
"""Values of one statement; SQLite takes 999 or more."""
_INSERT = {
    "ticket": "INSERT INTO ticket (hash) VALUES (?) ON CONFLICT DO NOTHING",
    "report": "INSERT INTO report (body) VALUES (?)",
    "piece": "INSERT INTO piece VALUES (?, ?, ?)",
    "sealed": "INSERT INTO sealed VALUES (?, ?, ?)",
}


class SqliteStore(Store):
    """One file, one process."""

    def __init__(self, path: str, charter: Charter, at: At = nothing_happens) -> None:
        super().__init__(charter, at)
        self._path = Path(path)
        try:
            self._path.touch(mode=0o600)
            self._lock = _alone(self._path)
            self._db = sqlite3.connect(self._path, isolation_level=None)
            self._prepare()
        except (OSError, sqlite3.Error) as error:
            raise InvalidInputError(f"Cannot open the store {path!r}: {error}.") from None

    def _prepare(self) -> None:
        (program,) = self._db.execute("PRAGMA application_id").fetchone()
        (tables,) = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables and program != APPLICATION:
            raise InvalidInputError(
                f"{str(self._path)!r} is a database of another program; give store = ... in the "
                f"shuffler's file a path of its own."
            )
        for pragma in _PRAGMAS:
            self._db.execute(pragma)
        if not tables:
            self._db.execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA:
                self._db.execute(statement)
            self._db.execute("COMMIT")
        self.tidy()

    def _execute(self, sql: str, *values: Value) -> list[Values]:
        with _sentences():
            return self._db.execute(sql, values).fetchall()

    def _begin(self, *, writing: bool) -> None:
        with _sentences():
            self._db.execute("BEGIN IMMEDIATE" if writing else "BEGIN")

    def _end(self, how: str) -> None:
        if self._db.in_transaction:
            with _sentences():
                self._db.execute(how)

    def _claim(self, digests: Sequence[bytes], number: int) -> set[bytes]:
        """Nobody else writes: those that `_used` has found good in this transaction are."""
        values = [(number, digest, self._most, number) for digest in digests]
        with _sentences():
            changed = self._db.executemany(f"{CLAIM} hash = ? AND {GOOD}", values).rowcount
        if changed != len(digests):
            raise StoreBusyError("SQLite: a ticket was spent by somebody else")
        return set(digests)

    def _used(self, digests: Sequence[bytes]) -> dict[bytes, tuple[int, int | None]]:
        query = "SELECT hash, uses, number FROM ticket WHERE hash IN ({})"
        found: dict[bytes, tuple[int, int | None]] = {}
        for first in range(0, len(digests), _AT_ONCE):
            some = digests[first : first + _AT_ONCE]
            rows = self._execute(query.format(",".join("?" * len(some))), *some)
            found.update((digest, (uses, number)) for digest, uses, number in rows)
        return found

    def _insert(self, table: str, rows: Sequence[tuple[Value, ...]]) -> None:
        with _sentences():
            self._db.executemany(_INSERT[table], rows)

    def _empty(self, *tables: str) -> None:
        for table in tables:
            self._execute(f"DELETE FROM {table}")

    def tidy(self) -> None:
        """The write-ahead log still holds what was deleted: it is emptied.

        Not while somebody else reads the file: then it is tried again later.
        """
        self.untidy = True
        with contextlib.suppress(sqlite3.Error):
            ((busy, _, _),) = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            self.untidy = bool(busy)

    def size(self) -> int:
        files = (self._path, self._path.with_name(f"{self._path.name}-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    @property
    def folder(self) -> Path:
        return self._path.parent

    def probe(self) -> None:
        with _sentences(), contextlib.closing(sqlite3.connect(self._path, timeout=_PATIENCE)) as db:
            db.execute(PROBE)
            db.commit()

    def close(self) -> None:
        self._db.close()
        os.close(self._lock)


def _alone(path: Path) -> int:
    """Two shufflers on one file would undo each other's care."""
    try:
        return hold_alone(path)
    except BlockingIOError:
        raise InvalidInputError(
            f"Another shuffler works on {str(path)!r}; several of them need PostgreSQL, store = "
            f"'postgresql://...'."
        ) from None


@contextlib.contextmanager
def _sentences() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise StoreBusyError(f"SQLite: {error}") from error  # "database or disk is full", too
