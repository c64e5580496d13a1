"""The ledger of a study: one entry per event, each with the hash of the one before it.

An entry is a line of canonical JSON; its hash is the SHA-256 of that line, and the next entry
quotes it. The first entry quotes the hashes of the configuration and of the key of the names; an
entry of a batch quotes the hashes of its users' digests, of the policy they ran and of everything
the study knows afterwards. The *head* is the last hash. So an edit anywhere in the file breaks the
chain, and an older copy has another head.

The chain has no secret: who can edit the file can also write a new chain. Only a head that was kept
elsewhere (on paper, in a laboratory book) tells such a file, or an older copy, from the right one.
No entry holds a time: a clock that goes backwards changes nothing.
"""

import contextlib
import hashlib
import importlib.metadata
import json
import os
import platform
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import discreet
from discreet._files import write_atomically
from discreet._types import Plain
from discreet.errors import MissingExtraError, StudyError

Row = tuple[str, str, str, bytes]
"""One row of the evidence: name, kind, shape, bytes."""
KINDS = ("start", "batch", "reissue", "extend", "close")


@dataclass(frozen=True)
class Tail:
    """The end of a ledger, and what all its entries add up to.

    Attributes:
        number: of the last entry; -1 before the first.
        head: its hash.
        users: counted so far.
        batches: counted so far.
        closed: nothing more will be counted.
        state: the hash of the evidence after the last entry.
    """

    number: int = -1
    head: str = ""
    users: int = 0
    batches: int = 0
    closed: bool = False
    state: str = ""


class BrokenChainError(ValueError):
    """The entries of a ledger do not follow from each other."""


def sha256(data: bytes) -> str:
    """The digest that the ledger quotes."""
    return hashlib.sha256(data).hexdigest()


def canonical(value: Plain) -> str:
    """The one text of plain values.

    >>> canonical({"b": 1, "a": [1.5, None]})
    '{"a":[1.5,null],"b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def hash_of_rows(rows: Iterable[Row]) -> str:
    """One digest over all rows of the evidence, in the order of their names."""
    total = hashlib.sha256()
    for name, kind, shape, data in sorted(rows):
        total.update(canonical([name, kind, shape, len(data)]).encode())
        total.update(data)
    return total.hexdigest()


def write(tail: Tail, kind: str, facts: Mapping[str, Plain]) -> str:
    """The next entry as text."""
    entry: dict[str, Plain] = {"number": tail.number + 1, "kind": kind, "previous": tail.head}
    return canonical({**entry, **facts, "software": software()})


def follow(
    tail: Tail, number: object, text: object, digest: object
) -> tuple[Tail, dict[str, object]]:
    """The tail after one more entry, and the entry.

    Raises:
        BrokenChainError: it does not follow from ``tail``.
    """
    if not isinstance(text, str) or sha256(text.encode()) != digest:
        raise BrokenChainError(f"Entry {number!r} does not have its hash.")
    entry: dict[str, object] = json.loads(text)
    due = {"number": tail.number + 1, "previous": tail.head}
    if number != due["number"] or any(entry.get(name) != value for name, value in due.items()):
        raise BrokenChainError(f"Entry {number!r} does not follow the one before it.")
    if entry.get("kind") not in (KINDS[:1] if tail.number < 0 else KINDS[1:]):
        raise BrokenChainError(f"Entry {number!r} is of no known kind.")
    if tail.closed:
        raise BrokenChainError(f"Entry {number!r} comes after the end of the study.")
    return _after(tail, entry, str(digest)), entry


def _after(tail: Tail, entry: Mapping[str, object], digest: str) -> Tail:
    batch = entry["kind"] == "batch"
    users = int(str(entry["users"])) if batch else 0
    return replace(
        tail,
        number=tail.number + 1,
        head=digest,
        users=tail.users + users,
        batches=tail.batches + batch,
        closed=tail.closed or entry["kind"] == "close",
        state=str(entry["state"]),
    )


@cache
def software() -> dict[str, str]:
    """The versions behind an entry."""
    versions = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    versions["discreet"] = discreet.__version__
    for package in ("numpy", "opendp"):
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "none"
    return versions


FOLDER = "DISCREET_KEYS"
"""The environment variable that names the folder of keys; the study's own by default."""
_NONCE = 12
_BESIDE = ContextVar("_BESIDE", default=False)


@contextlib.contextmanager
def keys_beside() -> Iterator[None]:
    """Throwaway studies: their keys stand beside them, and go when their folder goes."""
    token = _BESIDE.set(True)
    try:
        yield
    finally:
        _BESIDE.reset(token)


class StudySeal:
    """Seals a central stream's sums that are not released yet (`privacy.mechanisms.tree`).

    They are written down encrypted (AES-256-GCM, a fresh nonce each time), so that copies of the
    study's file, its backups and what a crash leaves show no more than the releases do. The key at
    ``path``, a small file beside the study or wherever you say, is named after the study, whatever
    its file is called, and is read when it is first needed.
    """

    def __init__(self, study: Path, name: str) -> None:
        named = None if _BESIDE.get() else os.environ.get(FOLDER)
        folder = Path(named or study.resolve().parent)
        self.path = folder / f"discreet-{name}.key"

    def create(self) -> None:
        """Make a key, readable by its owner only."""
        _cipher()  # before anything is written
        try:
            write_atomically(self.path, secrets.token_bytes(32), private=True)
        except OSError as error:
            raise StudyError(
                f"Cannot write the study's key {str(self.path)!r}: {error.strerror}; nothing was "
                f"begun. Choose a folder in which you may write, or set {FOLDER}."
            ) from None

    def remove(self) -> None:
        """For a study that could not begin."""
        with contextlib.suppress(OSError):
            self.path.unlink()

    def close(self, content: bytes) -> bytes:
        nonce = secrets.token_bytes(_NONCE)
        sealed: bytes = self._key.encrypt(nonce, content, None)
        return nonce + sealed

    def open(self, sealed: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag

        try:
            content: bytes = self._key.decrypt(sealed[:_NONCE], sealed[_NONCE:], None)
        except InvalidTag:
            raise StudyError(
                f"{str(self.path)!r} holds another key than the study was written with; nothing "
                f"was counted, put back the key that was made with it."
            ) from None
        return content

    @cached_property
    def _key(self) -> Any:
        try:
            return _cipher()(self.path.read_bytes())
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "a key has 32 bytes"
            raise StudyError(
                f"Cannot read the study's key {str(self.path)!r}: {reason}; without it the study "
                f"can be read and nobody can be counted. Put it back, or set {FOLDER} to the "
                f"folder that holds it."
            ) from None


def _cipher() -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise MissingExtraError("cryptography", "secure") from None
    return AESGCM
