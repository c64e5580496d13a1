"""The file of a study: one SQLite database that changes in whole transactions.

Write-ahead log, full synchronisation: after a crash at any moment the file and its log hold the old
state or the new. A process that is killed in the middle leaves a part of a release in the log; the
next who opens the study, to read or to write, drops it (the batch was not counted and will be told
again, with fresh noise: what is left would be a second release of the same people). The log is
emptied after every change and gone when nobody works on the study. Dropped is not overwritten: what
a disk keeps of deleted files is beyond a study; inside the file, what is replaced is zeroed.

Every connection lasts for one operation and is alone in its folder (`alone_in`). Who has to wait
tries again after a few milliseconds, so that one who tells all the time leaves gaps that others
find.

What a study knows is kept as rows: arrays as bytes, the rest as JSON (`packed`). Nothing is
pickled: reading a row can only ever give numbers and text.
"""

import contextlib
import itertools
import json
import os
import random
import sqlite3
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from discreet._files import is_temporary, remove_strays, strays_of, write_atomically
from discreet._spelling import quoted
from discreet._types import NumberArray, Plain
from discreet.errors import InvalidInputError, StudyError
from discreet.study import ledger
from discreet.study.ledger import BrokenChainError, Row, Tail, canonical
from discreet.study.participants import SIZE, split

_LEAST = 8
"""Shorter lists stay in the JSON text."""
_KINDS = {"int64": "<i8", "float64": "<f8", "bool": "|b1", "uint8": "|u1"}
_ARRAY = "$array"


def packed(state: Mapping[str, Plain]) -> list[Row]:
    """The rows of a state.

    >>> [(name, kind, shape) for name, kind, shape, _ in packed({"a": [0.5] * 8, "b": [1, "x"]})]
    [('', 'json', '[]'), ('a', 'float64', '[8]')]
    """
    arrays: dict[str, NumberArray] = {}
    skeleton = _without_arrays(state, "", arrays)
    rows = [("", "json", "[]", canonical(skeleton).encode())]
    for name, array in arrays.items():
        kind = array.dtype.name
        rows.append(
            (name, kind, canonical(list(array.shape)), array.astype(_KINDS[kind]).tobytes())
        )
    return rows


def unpacked(rows: Iterable[Row]) -> dict[str, Plain]:
    """The inverse of `packed`.

    >>> unpacked(packed({"a": [[1, 2]] * 4, "b": {"c": None}}))
    {'a': [[1, 2], [1, 2], [1, 2], [1, 2]], 'b': {'c': None}}
    """
    arrays: dict[str, Plain] = {}
    text = b"{}"
    for name, kind, shape, data in rows:
        if kind == "json":
            text = data
        else:
            arrays[name] = np.frombuffer(data, _KINDS[kind]).reshape(json.loads(shape)).tolist()
    return _with_arrays(json.loads(text), arrays)  # type: ignore[return-value]


def _without_arrays(value: Plain, name: str, arrays: dict[str, NumberArray]) -> Plain:
    if isinstance(value, Mapping):
        return {k: _without_arrays(v, f"{name}.{k}".strip("."), arrays) for k, v in value.items()}
    if isinstance(value, str) or not isinstance(value, list | tuple | np.ndarray):
        return value
    array = _array(value)
    if array is None:
        return [_without_arrays(v, f"{name}.{i}", arrays) for i, v in enumerate(value)]
    while name in arrays:  # "a.b" can be one key or two
        name += "'"
    arrays[name] = array
    return {_ARRAY: name}


def _array(values: object) -> NumberArray | None:
    """An array of numbers, or the one that a long, regular list of numbers of one kind is."""
    try:
        array = np.asarray(values)
    except (ValueError, OverflowError):  # lists of different lengths, integers beyond 64 bits
        return None
    if array.dtype.name not in _KINDS or isinstance(values, np.ndarray):
        return array if array.dtype.name in _KINDS else None
    long = array.size >= _LEAST
    return array if long and _of_kind(values, type(array.flat[0].item())) else None


def _of_kind(values: object, kind: type) -> bool:
    """Whether all numbers in nested lists are of one kind: 1 must not come back as 1.0."""
    if isinstance(values, list | tuple):
        return all(_of_kind(value, kind) for value in values)
    return type(values) is kind


def _with_arrays(value: Plain, arrays: Mapping[str, Plain]) -> Plain:
    if isinstance(value, dict):
        if set(value) == {_ARRAY}:
            return arrays[str(value[_ARRAY])]
        return {key: _with_arrays(part, arrays) for key, part in value.items()}
    return [_with_arrays(v, arrays) for v in value] if isinstance(value, list) else value


APPLICATION = 0x64736372
VERSION = 1
PATIENCE = 60.0
"""Seconds that a writer waits for others."""
_WAITED = "waited too long"
_PART = 1 << 16
"""Users per row: rows of a megabyte are read one by one."""
_SCHEMA = (
    "CREATE TABLE config (id INTEGER PRIMARY KEY, config TEXT NOT NULL, key BLOB NOT NULL)",
    "CREATE TABLE ledger (number INTEGER PRIMARY KEY, entry TEXT NOT NULL, hash TEXT NOT NULL)",
    "CREATE TABLE users (id INTEGER PRIMARY KEY, number INTEGER NOT NULL, digests BLOB NOT NULL)",
    "CREATE TABLE evidence (name TEXT PRIMARY KEY, kind TEXT NOT NULL, shape TEXT NOT NULL, "
    "data BLOB NOT NULL)",
)
_PRAGMAS = (
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA secure_delete = ON",
    "PRAGMA synchronous = FULL",
)
_DAMAGE = (sqlite3.Error, ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""What reading a file that was edited can raise before its hashes are compared."""


@dataclass(frozen=True)
class Content:
    """What a study's file holds; ``key`` is that of the digests of names."""

    config: dict[str, Plain]
    key: bytes
    state: dict[str, Plain]
    tail: Tail


@dataclass(frozen=True)
class Event:
    """One entry to be written, with what it stands for.

    Attributes:
        kind: of `ledger.KINDS`.
        facts: of the entry.
        state: what the study knows afterwards.
        users: sorted digests of the users that are counted.
    """

    kind: str
    facts: dict[str, Plain]
    state: dict[str, Plain]
    users: bytes = b""


class Store:
    """The file at ``path``."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self, config: dict[str, Plain], key: bytes, event: Event) -> Tail:
        """A new file, there whole or not at all, readable by its owner only."""
        text = ledger.canonical(config)
        hashes = {"config": ledger.sha256(text.encode()), "key": ledger.sha256(key)}
        event = Event(event.kind, {**event.facts, **hashes}, event.state)
        with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
            memory.execute(f"PRAGMA application_id = {APPLICATION}")
            memory.execute(f"PRAGMA user_version = {VERSION}")
            for statement in _SCHEMA:
                memory.execute(statement)
            memory.execute("INSERT INTO config VALUES (1, ?, ?)", (text, key))
            tail = Change(memory, Tail()).append(event)
            image = bytearray(memory.serialize())
        image[18:20] = b"\x02\x02"  # the header's mark of a write-ahead log
        deadline = time.monotonic() + PATIENCE
        with self._sentences(), alone_in(self.path.resolve().parent, deadline):
            check_new(self.path)
            try:
                remove_strays(self.path)
                write_atomically(self.path, bytes(image), private=True)
            except OSError as error:
                raise StudyError(
                    f"Cannot write in the folder {str(self.path.parent)!r}: {error.strerror}; "
                    f"nothing was begun. Choose a folder in which you may write."
                ) from None
        return tail

    def read(
        self, head: str | None = None, on_users: Callable[[bytes], None] | None = None
    ) -> Content:
        """Everything, checked against the chain of hashes.

        Args:
            head: one that the ledger must have had.
            on_users: called with the digests of one batch after the other.
        """
        check_file(self.path)
        with self._connected() as connection, self._undamaged():
            connection.execute("BEGIN")
            _check_kind(connection, self.path)
            config, key = _config(connection)
            heads = set[str]()
            tail = _follow(connection, Tail(), on_users, heads)
            content = Content(config, key, _state(connection, tail), tail)
        if head is not None and head not in heads:
            raise StudyError(
                f"{str(self.path)!r} is an older copy or another study: it has never had the head "
                f"{head!r}; resume the newest file, so that nobody is counted twice."
            )
        return content

    def entries(self) -> Iterator[dict[str, Plain]]:
        """The ledger, from the first entry on."""
        with self._connected() as connection:
            for (text,) in connection.execute("SELECT entry FROM ledger ORDER BY number"):
                yield json.loads(text)

    def record(self, last: int) -> tuple[list[str], bytes, str]:
        """Entries up to the ``last`` as they were hashed, digests of their users, the design."""
        with self._connected() as connection:
            connection.execute("BEGIN")
            kept = "WHERE number <= ? ORDER BY"
            lines = connection.execute(f"SELECT entry FROM ledger {kept} number", (last,))
            texts = [text for (text,) in lines]
            parts = connection.execute(f"SELECT digests FROM users {kept} id", (last,))
            people = b"".join(part for (part,) in parts)
            (config,) = connection.execute("SELECT config FROM config").fetchone()
        return texts, people, config

    def check_pages(self) -> None:
        """SQLite's own check of the whole file."""
        with self._connected() as connection, self._undamaged():
            found = [row[0] for row in connection.execute("PRAGMA integrity_check")]
            if found != ["ok"]:
                raise BrokenChainError(str(found[0]))

    @contextlib.contextmanager
    def changing(self, tail: Tail) -> Iterator["Change"]:
        """A transaction that keeps other writers out; what raises inside it changes nothing.

        Args:
            tail: where the caller thinks that the ledger ends.
        """
        check_file(self.path)
        with self._connected(writing=True) as connection:
            change = Change(connection, tail)
            with self._undamaged():
                _check_kind(connection, self.path)
                change.check_tail(self.path)
            yield change
            connection.execute("COMMIT")
            with contextlib.suppress(sqlite3.Error):  # counted already: the log goes later, then
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    @contextlib.contextmanager
    def _connected(self, *, writing: bool = False) -> Iterator[sqlite3.Connection]:
        deadline = time.monotonic() + PATIENCE
        with self._sentences(), alone_in(self.path.resolve().parent, deadline):
            connection = self._patiently(writing, deadline)
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                connection.close()

    def _patiently(self, writing: bool, deadline: float) -> sqlite3.Connection:
        """Whoever is not of us (a shell, a backup) may hold the database's own lock."""
        where = self.path.resolve()
        open_to_us = os.access(where, os.W_OK) and os.access(where.parent, os.W_OK)
        mode = "mode=rw" if writing or open_to_us else "mode=ro&immutable=1"
        log = where.with_name(f"{where.name}-wal")
        if mode != "mode=rw" and log.exists() and log.stat().st_size:  # it would be an older state
            raise StudyError(
                f"{str(where)!r} has a log beside it, {log.name!r}, with changes that are not in "
                f"the file yet, and neither can be written to; open it once where they can."
            )
        while True:
            connection = sqlite3.connect(
                f"{where.as_uri()}?{mode}", uri=True, isolation_level=None, timeout=0
            )
            try:
                for pragma in _PRAGMAS:
                    connection.execute(pragma)
                connection.execute("BEGIN IMMEDIATE" if writing else "SELECT 1 FROM sqlite_master")
            except BaseException as error:
                connection.close()
                if not _busy(error) or time.monotonic() > deadline:
                    raise
                _pause()
            else:
                return connection

    @contextlib.contextmanager
    def _undamaged(self) -> Iterator[None]:
        """What reading an edited file raises, as the one sentence about such files."""
        try:
            yield
        except StudyError:
            raise
        except _DAMAGE as error:
            if isinstance(error, sqlite3.Error) and not _damaged(error):
                raise
            if _name(error) == "SQLITE_NOTADB":
                raise _no_database(self.path) from None
            raise self._edited() from None

    @contextlib.contextmanager
    def _sentences(self) -> Iterator[None]:
        try:
            yield
        except UnicodeDecodeError:  # what SQLite quotes of a damaged schema is no text
            raise self._edited() from None
        except sqlite3.Error as error:
            if _busy(error):
                raise StudyError(
                    f"Another process is working on {str(self.path)!r} or beside it; nothing was "
                    f"counted, try again."
                ) from None
            if _name(error) == "SQLITE_NOTADB":
                raise _no_database(self.path) from None
            if _damaged(error):
                raise self._edited() from None
            raise StudyError(
                f"Cannot write {str(self.path)!r}: {error}; nothing was counted. Make room, or "
                f"let this program write there, and try again."
            ) from None

    def _edited(self) -> StudyError:
        return StudyError(
            f"{str(self.path)!r} was edited or damaged: its contents do not match its chain of "
            f"hashes; go back to the last whole copy whose head you know."
        )


class Change:
    """A transaction on a study's file.

    Attributes:
        tail: of the ledger, with what was appended.
        moved: others have written since the caller last looked.
        state: the study's knowledge, as it was written here or, last, by others.
        users: who was counted.
    """

    def __init__(self, connection: sqlite3.Connection, tail: Tail) -> None:
        self._connection = connection
        self.tail = tail
        self.moved = False
        self.state: dict[str, Plain] = {}
        self.users = b""

    def check_tail(self, path: Path) -> None:
        """See whether the ledger ends where the caller thinks; refuse one that never was there."""
        row = self._connection.execute(
            "SELECT hash FROM ledger WHERE number = ?", (self.tail.number,)
        ).fetchone()
        if row is None or row[0] != self.tail.head:
            raise StudyError(
                f"{str(path)!r} is no longer this study's file: an older copy or another study is "
                f"in its place; nothing was counted, bring back the newest file."
            )
        (last,) = self._connection.execute("SELECT max(number) FROM ledger").fetchone()
        self.moved = last != self.tail.number

    def news(self, on_users: Callable[[bytes], None]) -> tuple[Tail, dict[str, Plain]]:
        """What others have written since."""
        self.tail = _follow(self._connection, self.tail, on_users, set())
        self.moved, self.state = False, _state(self._connection, self.tail)
        return self.tail, self.state

    def times(self, digests: set[bytes]) -> Counter[bytes]:
        """How often each of these users is in the file."""
        rows = self._connection.execute("SELECT digests FROM users")
        return Counter(digest for (part,) in rows for digest in digests.intersection(split(part)))

    def append(self, event: Event) -> Tail:
        """Write one entry, its users, and what the study knows afterwards."""
        self.state, self.users = event.state, event.users
        rows = packed(event.state)
        facts: dict[str, Plain] = {**event.facts, "state": ledger.hash_of_rows(rows)}
        if event.users:
            facts["names"] = ledger.sha256(event.users)
        text = ledger.write(self.tail, event.kind, facts)
        self.tail, _ = ledger.follow(
            self.tail, self.tail.number + 1, text, ledger.sha256(text.encode())
        )
        put = self._connection.execute
        put("INSERT INTO ledger VALUES (?, ?, ?)", (self.tail.number, text, self.tail.head))
        for first in range(0, len(event.users), SIZE * _PART):
            part = event.users[first : first + SIZE * _PART]
            put("INSERT INTO users (number, digests) VALUES (?, ?)", (self.tail.number, part))
        put("DELETE FROM evidence")
        self._connection.executemany("INSERT INTO evidence VALUES (?, ?, ?, ?)", rows)
        return self.tail


def path_of(given: str | Path) -> Path:
    """The path, if it is one; refuses what no file can be called."""
    if not isinstance(given, str | Path):
        raise InvalidInputError(f"Expected the path of a study's file, got {given!r}.")
    path = Path(given)
    try:
        path.stat()
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise StudyError(
            f"Expected a path that a file can have, got {quoted(given)}: {reason}; choose another."
        ) from None
    return path


def check_new(path: Path) -> None:
    """Refuse a path at which there is something, or at which no file can be."""
    if path.is_dir():
        raise StudyError(f"{str(path)!r} is a folder; name a file in it.")
    if path.exists():
        raise StudyError(
            f"{str(path)!r} exists; open_study() it (`discreet study ask`), or choose another file."
        )
    if not path.parent.is_dir():
        raise StudyError(
            f"There is no folder {str(path.parent)!r} for the study {path.name!r}; make it first."
        )
    _check_name(path)


def check_file(path: Path) -> None:
    """Refuse what cannot be a study, without opening it.

    To open and close a file drops the locks that SQLite holds on it elsewhere in this process.
    """
    _check_name(path)
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise StudyError(
            f"There is no study at {str(path)!r}; begin one with start_study() (`discreet study "
            f"start`)."
        ) from None
    except (OSError, ValueError) as error:
        raise StudyError(f"Cannot read {str(path)!r}: {error}.") from None
    if not stat.S_ISREG(found.st_mode):
        raise StudyError(f"Cannot read {str(path)!r}: it is a folder or no ordinary file.")


def _no_database(path: Path) -> StudyError:
    try:
        path.open("rb").close()
    except OSError as error:
        return StudyError(f"Cannot read {str(path)!r}: {error.strerror}.")
    return StudyError(
        f"{str(path)!r} is not a study file, or its beginning is lost; open_study() a file that "
        f"start_study() made."
    )


def remove_leftovers(path: Path) -> None:
    """Remove files that a `start_study` at this path left when it was cut short."""
    if not strays_of(path):
        return
    try:
        remove_strays(path)
    except OSError as error:
        raise StudyError(
            f"Cannot remove {str(error.filename)!r}, which a write that was cut short has left: "
            f"{error.strerror}; remove it."
        ) from None


def _check_name(path: Path) -> None:
    if is_temporary(path):
        raise StudyError(
            f"{str(path)!r} has the name of a temporary file, which a write that was cut short can "
            f"leave; open_study() the study itself, or choose another name."
        )


def _check_kind(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse databases of other programs, other versions, and tables that nobody put there."""
    (program,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if program != APPLICATION and not path.stat().st_size:
        raise StudyError(
            f"{str(path)!r} is not a study file: it is empty; start_study() another one."
        )
    if program != APPLICATION:
        raise StudyError(
            f"{str(path)!r} is a database of another program, not a study; open_study() a file "
            f"that start_study() made."
        )
    if version != VERSION:
        raise StudyError(
            f"{str(path)!r} is a study of format {version}, this version of discreet reads format "
            f"{VERSION}; use the version that made it."
        )
    found = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    if sorted(found) != sorted((statement,) for statement in _SCHEMA):
        raise BrokenChainError("The tables are not those of a study.")


def _config(connection: sqlite3.Connection) -> tuple[dict[str, Plain], bytes]:
    """The configuration and the key, as the first entry quotes them."""
    ((number, text, key),) = connection.execute("SELECT id, config, key FROM config").fetchall()
    (first,) = connection.execute("SELECT entry FROM ledger WHERE number = 0").fetchone()
    entry = json.loads(first)
    if number != 1 or not isinstance(key, bytes):
        raise BrokenChainError("The configuration is not one row.")
    if entry["config"] != ledger.sha256(text.encode()) or entry["key"] != ledger.sha256(key):
        raise BrokenChainError("The configuration is not that of the first entry.")
    return json.loads(text), key


def _follow(
    connection: sqlite3.Connection,
    tail: Tail,
    on_users: Callable[[bytes], None] | None,
    heads: set[str],
) -> Tail:
    """Walk along the ledger from ``tail`` on, entry by entry with its users."""
    batches = itertools.groupby(_parts(connection, tail), lambda row: row[0])
    query = "SELECT * FROM ledger WHERE number > ? ORDER BY number"
    for number, text, digest in connection.execute(query, (tail.number,)):
        tail, entry = ledger.follow(tail, number, text, digest)
        heads.add(tail.head)
        if entry["kind"] == "batch":
            owner, rows = next(batches, (None, ()))
            users = b"".join(part for _, part in rows)
            whole = owner == number and len(users) == SIZE * int(str(entry["users"]))
            if not whole or ledger.sha256(users) != entry["names"]:
                raise BrokenChainError(f"The users of entry {number} are not those it quotes.")
            if on_users is not None:
                on_users(users)
    if next(batches, None) is not None:
        raise BrokenChainError("There are users of no entry.")
    return tail


def _parts(connection: sqlite3.Connection, tail: Tail) -> Iterator[tuple[int, bytes]]:
    """The rows of users after ``tail``: entry and digests; their numbers have no gap."""
    query = "SELECT id, number, digests FROM users WHERE number > ? ORDER BY id"
    last = 0
    for place, number, digests in connection.execute(query, (tail.number,)):
        if place != last + 1 and (last or tail.number < 0):
            raise BrokenChainError("A row of users is missing or was moved.")
        last = place
        yield number, digests


def _state(connection: sqlite3.Connection, tail: Tail) -> dict[str, Plain]:
    """What the study knows, as the last entry quotes it."""
    rows: list[Row] = connection.execute("SELECT * FROM evidence").fetchall()
    if ledger.hash_of_rows(rows) != tail.state:
        raise BrokenChainError("The evidence is not that of the last entry.")
    return unpacked(rows)


@contextlib.contextmanager
def alone_in(folder: Path, deadline: float) -> Iterator[None]:
    """Keep other processes out of the studies of a folder, as long as a connection is open.

    The lock is on the folder itself: it leaves no file behind and ends with its process. SQLite has
    locks of its own, but (before 3.51.3) can lose a commit if one process empties the log while
    another begins to write. Where folders cannot be locked, those have to do.
    """
    try:
        import fcntl

        descriptor = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        yield
        return
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise sqlite3.OperationalError(_WAITED) from None
                _pause()
            except OSError:  # a file system without such locks
                break
            else:
                break
        yield
    finally:
        os.close(descriptor)


def _pause() -> None:
    """A few milliseconds, another number each time: nobody is always too late."""
    time.sleep(random.uniform(0.0005, 0.004))


def _busy(error: BaseException) -> bool:
    return error.args == (_WAITED,) or _name(error).startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def _damaged(error: sqlite3.Error) -> bool:
    """Whether the file is to blame, and not the disk or another process."""
    if not isinstance(error, sqlite3.OperationalError):
        return True
    return _name(error).startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_ERROR", "?"))


def _name(error: BaseException) -> str:
    return str(getattr(error, "sqlite_errorname", "") or "?")
