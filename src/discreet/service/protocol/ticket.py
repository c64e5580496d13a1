"""Tickets: 32 random bytes, one for each user, handed out by the enroller.

The shuffler is given their SHA-256 only, in an order that says nothing about the list of people:
it recognises a ticket when it comes and cannot make one. A digest that was made after the
shuffler's store was recovered bears the mark of that recovery, 32 bytes more.
"""

import secrets
from collections.abc import Iterable
from pathlib import Path

from discreet._files import read_parsed, write_atomically
from discreet.errors import InvalidInputError
from discreet.service.protocol.canonical import sha256

SIZE = 32
_MARK = "sha256:"
_RECOVERY = "recovery:"


def make(count: int) -> list[bytes]:
    if count < 1:
        raise InvalidInputError(f"Expected at least one ticket, got {count}.")
    return [secrets.token_bytes(SIZE) for _ in range(count)]


def digest(ticket: bytes, mark: bytes = b"") -> bytes:
    """What the shuffler knows of a ticket, and the mark of the recovery after which it was made."""
    return sha256(ticket) + mark


def write(path: Path, tickets: Iterable[bytes]) -> None:
    """One ticket in hexadecimal digits per line: for the enroller's eyes."""
    _write(path, tickets, "")


def write_digests(path: Path, digests: Iterable[bytes]) -> None:
    """One digest per line, each marked as one, so that nobody takes it for a ticket."""
    _write(path, digests, _MARK)


def read(path: Path) -> list[bytes]:
    return _read(path, "", "a ticket")


def read_digests(path: Path) -> list[bytes]:
    """Digests that `write_digests` wrote; a file of tickets is refused, whoever handed it over."""
    return _read(path, _MARK, "the digest of a ticket")


def _write(path: Path, values: Iterable[bytes], mark: str) -> None:
    text = "".join(f"{mark}{value.hex()}\n" for value in values)
    write_atomically(path, text.encode("ascii"), private=True)


def _read(path: Path, mark: str, kind: str) -> list[bytes]:
    lines = read_parsed(path, lambda data: data.decode("ascii").split())
    return [_value(line, mark, f"{kind} in line {i} of {path}") for i, line in enumerate(lines, 1)]


def write_mark(path: Path, mark: bytes) -> None:
    """The mark of a recovery, for the enroller."""
    _write(path, [mark], _RECOVERY)


def read_mark(path: Path) -> bytes:
    """That mark; none if there is no such file."""
    return _read(path, _RECOVERY, "the mark of a recovery")[0] if path.exists() else b""


def _value(line: str, mark: str, what: str) -> bytes:
    try:
        value = bytes.fromhex(line.removeprefix(mark))
    except ValueError:
        value = b""
    sizes = (SIZE, 2 * SIZE) if mark == _MARK else (SIZE,)
    if len(value) not in sizes or not line.startswith(mark):  # a ticket is not said again
        raise InvalidInputError(
            f"Expected {what}, '{mark}' and {2 * SIZE} hexadecimal digits: the enroller keeps "
            f"tickets.txt, the shuffler gets digests.txt."
        )
    return value
