"""The store in PostgreSQL, for several shuffler processes at once.

Every transaction that writes begins with one lock, so that of two processes one goes first. Tables
of bodies are emptied by TRUNCATE, which gives their files back at the commit; PostgreSQL's own
write-ahead log keeps sealed envelopes until it is recycled (they open with the batch's key only,
which is destroyed by then).
"""

import contextlib
from collections.abc import Iterator, Sequence

from discreet.errors import InvalidInputError, MissingExtraError
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

try:
    import psycopg
except ImportError:
    raise MissingExtraError("psycopg", "postgres") from None

_SCHEMA = """
CREATE TABLE about (
    id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER NOT NULL, charter BYTEA NOT NULL);
CREATE TABLE batch (
    number BIGINT PRIMARY KEY, manifest BYTEA NOT NULL, hash BYTEA NOT NULL,
    state TEXT NOT NULL CHECK (state IN (
        'open', 'full', 'sealed', 'handed', 'done', 'expired', 'abandoned')),
    received BIGINT NOT NULL, live INTEGER UNIQUE CHECK (live = 1));
CREATE TABLE ticket (hash BYTEA PRIMARY KEY, number BIGINT,
    uses BIGINT NOT NULL DEFAULT 0 CHECK (uses >= 0));
CREATE TABLE report (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body BYTEA NOT NULL);
CREATE TABLE piece (
    place INTEGER NOT NULL, bucket INTEGER NOT NULL, body BYTEA NOT NULL);
CREATE INDEX pieces ON piece (place, bucket);
CREATE TABLE sealed (
    place INTEGER NOT NULL, bucket INTEGER NOT NULL, body BYTEA NOT NULL,
    PRIMARY KEY (place, bucket));
ALTER TABLE report ALTER body SET STORAGE EXTERNAL;
ALTER TABLE piece ALTER body SET STORAGE EXTERNAL;
ALTER TABLE sealed ALTER body SET STORAGE EXTERNAL;
"""
_LOCK = 0x64736872
"""Of the advisory lock under which tables are made and batches change."""
_PATIENCE = 5
"""Seconds for a connection, and for whoever holds a lock."""
_COPY = {
    "report": "COPY report (body) FROM STDIN (FORMAT BINARY)",
    "piece": "COPY piece FROM STDIN (FORMAT BINARY)",
    "sealed": "COPY sealed FROM STDIN (FORMAT BINARY)",
}
_TYPES = {"report": ["bytea"], "piece": ["int4", "int4", "bytea"]}


class PostgresStore(Store):
    """A database of its own for one study."""

    def __init__(self, address: str, charter: Charter, at: At = nothing_happens) -> None:
        super().__init__(charter, at)
        self._address = address
        self._db: psycopg.Connection[Values] | None = None
        try:
            with self._sentences():
                self._prepare(self._connected())
        except StoreBusyError as error:
            raise InvalidInputError(
                f"Cannot open the store in PostgreSQL: {_why(error)}. Check store = ... in the "
                f"shuffler's file, and that the database exists and lets this user in."
            ) from None

    @staticmethod
    def _prepare(db: "psycopg.Connection[Values]") -> None:
        with db.transaction():
            db.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            if db.execute("SELECT to_regclass('about')").fetchone() == (None,):
                db.execute(_SCHEMA)

    def _connected(self) -> "psycopg.Connection[Values]":
        """A connection, a new one if the last was lost: only between transactions."""
        if self._db is None or self._db.closed:
            self._db = psycopg.connect(self._address, autocommit=True, connect_timeout=_PATIENCE)
            self._db.execute("SET client_min_messages = warning")
            # Whoever holds the lock too long makes others busy; nobody waits without an end.
            self._db.execute(f"SET lock_timeout = '{_PATIENCE}s'")
            # What was answered or released must outlive a crash, whatever the server's default is.
            self._db.execute("SET synchronous_commit = on")
        return self._db

    @property
    def _inside(self) -> "psycopg.Connection[Values]":
        """The connection of the transaction that is under way."""
        if self._db is None or self._db.closed:
            raise StoreBusyError("PostgreSQL: the connection was lost")
        return self._db

    def _execute(self, sql: str, *values: Value | list[Value]) -> list[Values]:
        with self._sentences():
            found = self._inside.execute(sql.replace("?", "%s").encode(), values, binary=True)
            return found.fetchall() if found.description else []

    def _begin(self, *, writing: bool) -> None:
        with self._sentences():
            db = self._connected()
            db.execute("BEGIN" if writing else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            if writing:
                db.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))

    def _end(self, how: str) -> None:
        with self._sentences():
            self._inside.execute(how.encode())

    def _claim(self, digests: Sequence[bytes], number: int) -> set[bytes]:
        query = f"{CLAIM} hash = ANY(?) AND {GOOD} RETURNING hash"
        rows = self._execute(query, number, list(digests), self._most, number)
        return {bytes(digest) for (digest,) in rows}

    def _used(self, digests: Sequence[bytes]) -> dict[bytes, tuple[int, int | None]]:
        query = "SELECT hash, uses, number FROM ticket WHERE hash = ANY(?)"
        rows = self._execute(query, list(digests))
        return {bytes(digest): (uses, number) for digest, uses, number in rows}

    def _insert(self, table: str, rows: Sequence[tuple[Value, ...]]) -> None:
        if table == "ticket":
            query = "INSERT INTO ticket (hash) SELECT unnest(?::bytea[]) ON CONFLICT DO NOTHING"
            self._execute(query, [row[0] for row in rows])
            return
        with self._sentences(), self._inside.cursor().copy(_COPY[table].encode()) as copy:
            copy.set_types(_TYPES.get(table, _TYPES["piece"]))
            for row in rows:
                copy.write_row(row)

    def _empty(self, *tables: str) -> None:
        for table in tables:
            self._execute(f"TRUNCATE {table}")

    def tidy(self) -> None:
        """TRUNCATE has given the files back."""

    def size(self) -> int:
        with self._reading():
            ((size,),) = self._execute("SELECT pg_database_size(current_database())")
        return int(size)

    @property
    def folder(self) -> None:
        return None

    def probe(self) -> None:
        with (
            self._sentences(),
            psycopg.connect(self._address, connect_timeout=_PATIENCE) as db,
        ):
            db.execute(f"SET lock_timeout = '{_PATIENCE}s'")
            db.execute(PROBE)
            # What a row needs that exists is there on a full disk too: as much as a report needs.
            body = bytes(self.charter.largest_body)
            query = "INSERT INTO report (body) VALUES (%s) RETURNING id"
            made = db.execute(query, (body,)).fetchone()
            db.execute("DELETE FROM report WHERE id = %s", made)

    def end(self) -> None:
        """Also what the server does for this process at the moment."""
        super().end()
        db = self._db
        if db is not None:
            with contextlib.suppress(psycopg.Error):
                db.cancel_safe(timeout=_PATIENCE)

    def close(self) -> None:
        if self._db is not None:
            self._db.close()

    @contextlib.contextmanager
    def _sentences(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise StoreBusyError(f"PostgreSQL: {type(error).__name__}") from error


def _why(error: StoreBusyError) -> str:
    """What the server said when nothing of anybody was sent to it yet; later, only its kind."""
    cause = error.__cause__
    said = " ".join(str(cause).split()) if isinstance(cause, psycopg.OperationalError) else ""
    return said.rstrip(".") or str(error)
