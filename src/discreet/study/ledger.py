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

import hashlib
import importlib.metadata
import json
import platform
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache

import discreet
from discreet._types import Plain

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
        weak: numbers of the batches that a person accepted although their noise was too little.
    """

    number: int = -1
    head: str = ""
    users: int = 0
    batches: int = 0
    closed: bool = False
    state: str = ""
    weak: tuple[int, ...] = ()


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
    note = entry.get("note")
    weak = (tail.batches,) if batch and isinstance(note, dict) and "accepted" in note else ()
    return replace(
        tail,
        number=tail.number + 1,
        head=digest,
        users=tail.users + users,
        batches=tail.batches + batch,
        closed=tail.closed or entry["kind"] == "close",
        state=str(entry["state"]),
        weak=tail.weak + weak,
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
