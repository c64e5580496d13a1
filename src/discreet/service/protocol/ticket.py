"""Tickets: 32 random bytes, one for each user, handed out by the enroller.

The shuffler is given their SHA-256 only, in an order that says nothing about the list of people:
it recognises a ticket when it comes and cannot make one.
"""

import secrets
from collections.abc import Iterable
from pathlib import Path

from discreet._files import read_parsed, write_atomically
from discreet.errors import InvalidInputError
from discreet.service.protocol.canonical import sha256

SIZE = 32


def make(count: int) -> list[bytes]:
    """Fresh tickets."""
    if count < 1:
        raise InvalidInputError(f"Expected at least one ticket, got {count}.")
    return [secrets.token_bytes(SIZE) for _ in range(count)]


def digest(ticket: bytes) -> bytes:
    """What the shuffler knows of a ticket."""
    return sha256(ticket)


def write(path: Path, values: Iterable[bytes], *, private: bool) -> None:
    """One value in hexadecimal digits per line."""
    text = "".join(f"{value.hex()}\n" for value in values)
    write_atomically(path, text.encode("ascii"), private=private)


def read(path: Path) -> list[bytes]:
    """Values that `write` wrote."""
    lines = read_parsed(path, lambda data: data.decode("ascii").split())
    return [_value(line, path, number) for number, line in enumerate(lines, 1)]


def _value(line: str, path: Path, number: int) -> bytes:
    try:
        value = bytes.fromhex(line)
    except ValueError:
        value = b""
    if len(value) != SIZE:
        raise InvalidInputError(
            f"Expected {2 * SIZE} hexadecimal digits in line {number} of {str(path)!r}."
        )
    return value
