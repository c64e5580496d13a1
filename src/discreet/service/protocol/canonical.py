"""The one JSON text of plain values: ASCII, keys sorted, no spaces, no floating-point numbers.

What is hashed or signed is compared byte by byte, so a text that says the same in other words is
refused: two readers can never disagree on what was signed.
"""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NoReturn

from discreet._types import JsonObject, Plain
from discreet.errors import InvalidInputError


def to_bytes(value: Mapping[str, object]) -> bytes:
    """The canonical text.

    >>> to_bytes({"b": [1, "x"], "a": True})
    b'{"a":true,"b":[1,"x"]}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def from_bytes(data: bytes, name: str) -> dict[str, Plain]:
    """The dictionary whose canonical text these bytes are.

    Args:
        data: the text.
        name: of the document, for the sentence of a refusal.
    """
    try:
        value = json.loads(data, parse_float=_no_float, parse_constant=_no_float)
        same = isinstance(value, dict) and to_bytes(value) == data
    except (ValueError, RecursionError) as error:
        reason = (
            "it holds a number that is no integer" if "float" in str(error) else "it is no JSON"
        )
        raise InvalidInputError(f"Expected a {name} in canonical JSON, but {reason}.") from None
    if not same:
        raise InvalidInputError(f"Expected a {name} in canonical JSON: keys sorted, no spaces.")
    found: dict[str, Any] = value
    return found


def sha256(data: bytes) -> bytes:
    """The digest by which charters and manifests are named."""
    return hashlib.sha256(data).digest()


class Document(ABC):
    """Something public that is named by the hash of its text."""

    @abstractmethod
    def fields(self) -> JsonObject:
        """All that it says, as plain values."""

    @cached_property
    def data(self) -> bytes:
        return to_bytes(self.fields())

    @cached_property
    def hash(self) -> bytes:
        return sha256(self.data)


def _no_float(text: str) -> NoReturn:
    raise ValueError(f"float {text}")
