"""A small TOML writer for plain values (the standard library only reads)."""

import json
import re
from collections.abc import Mapping

from discreet._plain import Plain
from discreet.errors import InvalidInputError


def dumps(table: Mapping[str, Plain]) -> str:
    """Write nested dictionaries, lists and scalars as TOML.

    >>> print(dumps({"name": "x", "runs": 3, "learners": [{"name": "pe", "settings": {"b": 2}}]}))
    name = "x"
    runs = 3
    <BLANKLINE>
    [[learners]]
    name = "pe"
    settings = {b = 2}
    <BLANKLINE>
    """
    lines = [f"{_key(key)} = {_value(value)}" for key, value in table.items() if not _tables(value)]
    for key, value in table.items():
        for item in _tables(value):
            lines += ["", f"[[{_key(key)}]]"]
            lines += [f"{_key(name)} = {_value(inner)}" for name, inner in item.items()]
    return "\n".join(lines) + "\n"


def _tables(value: Plain) -> list[Mapping[str, Plain]]:
    """The tables of a list of nothing but tables; none if it is anything else."""
    if not isinstance(value, list):
        return []
    tables = [item for item in value if isinstance(item, Mapping)]
    return tables if len(tables) == len(value) else []


def _key(name: str) -> str:
    """Bare where TOML allows it: a dot in a bare key would open a table."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _quoted(text: str) -> str:
    """A JSON string is a TOML string, but for one character that JSON leaves as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Plain) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return (
            "{" + ", ".join(f"{_key(key)} = {_value(inner)}" for key, inner in value.items()) + "}"
        )
    if value is None:
        raise InvalidInputError("Expected a value that TOML can say, got None; leave the key out.")
    return "[" + ", ".join(_value(item) for item in value) + "]"
