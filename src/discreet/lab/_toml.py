"""A small TOML writer for plain values (the standard library only reads)."""

import json
from collections.abc import Mapping
from typing import Any


def dumps(table: Mapping[str, Any]) -> str:
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
    lines = [f"{key} = {_value(value)}" for key, value in table.items() if not _is_tables(value)]
    for key, value in table.items():
        if _is_tables(value):
            for item in value:
                lines += ["", f"[[{key}]]"]
                lines += [f"{name} = {_value(inner)}" for name, inner in item.items()]
    return "\n".join(lines) + "\n"


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, Mapping) for v in value)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)  # a JSON string is a valid TOML basic string
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {_value(inner)}" for key, inner in value.items()) + "}"
    return "[" + ", ".join(_value(item) for item in value) + "]"
