"""Settings: read from TOML, checked against a dataclass, written to TOML.

Experiments, designs of studies, the files of a service's roles and the settings of learners are all
frozen dataclasses, whose annotations say what a value may be. Rules beyond a kind stand in
``__post_init__``.
"""

import json
import re
import tomllib
import types
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from discreet import _validate
from discreet._files import read_parsed
from discreet.errors import InvalidInputError, UnknownNameError

if TYPE_CHECKING:
    from discreet._types import Plain

T = TypeVar("T")


def read_toml(path: Path) -> dict[str, Any]:
    """The table in a TOML file.

    Raises:
        InvalidInputError: it cannot be read, or is no TOML.
    """
    return read_parsed(path, parse_toml)


def parse_toml(content: bytes) -> dict[str, Any]:
    """The table that a TOML file says; a ``ValueError`` says why there is none."""
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeError:
        raise ValueError("it is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"it is no TOML: {error}") from None
    except RecursionError:
        raise ValueError("it is no TOML that people write: nested too deep") from None


def make(cls: type[T], table: Mapping[str, Any], *, called: str, place: str = "", **own: Any) -> T:
    """A dataclass from a table as it was read: every key known, every value of its annotated kind.

    ``called`` is what the table is, in words for a person, ``place`` where it stands, before what
    is wrong; ``own`` are fields that the caller sets, and a table cannot.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Size:
    ...     states: int
    ...     names: tuple[str, ...] = ()
    >>> make(Size, {"states": 2, "names": ["ill", "well"]}, called="a size")
    Size(states=2, names=('ill', 'well'))
    >>> make(Size, {"states": "many"}, called="a size", place="x.toml")
    Traceback (most recent call last):
    ...
    discreet.errors.InvalidInputError: x.toml: Expected states to be an integer, got states='many'.
    """
    hints = get_type_hints(cls)
    known = {f.name: f for f in fields(cls) if f.name not in own}  # type: ignore[arg-type]
    check_names(f"key of {called}", table, known)
    try:
        values = {name: checked(name, value, hints[name]) for name, value in table.items()}
        for name, item in known.items():
            if name not in table and item.default is item.default_factory is MISSING:
                raise InvalidInputError(f"Expected the key {name!r} in {called}, which lacks it.")
        return cls(**values, **own)
    except InvalidInputError as error:
        raise InvalidInputError(f"{place}: {error}" if place else str(error)) from None


def check_names(kind: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a name that is not known, with a suggestion; ``kind`` says what it should name."""
    for name in given:
        if name not in known:
            raise UnknownNameError(kind, str(name), known)


def checked(name: str, value: Any, kind: Any) -> Any:
    """The value of a setting, if it is of its annotated kind.

    That is text, a number (no integer is negative), a truth value, `Literal` words, a tuple, a
    table, a dataclass, or None besides.
    """
    origin, parts = get_origin(kind) or kind, get_args(kind)
    given = {name: value}
    if origin in (Union, types.UnionType):
        inner = next(part for part in parts if part is not types.NoneType)
        return None if value is None else checked(name, value, inner)
    if origin is tuple:
        return _tuple(name, value, parts)
    if origin is Literal:
        _validate.choice(parts, **given)
    elif origin is bool:
        _validate.truth(**given)
    elif origin is int:
        _validate.integer(**given)
        _validate.count(0, **given)
    elif origin is float:
        _validate.real(**given)
        return float(value) if isinstance(value, int) else value
    elif origin is str and not isinstance(value, str):
        raise InvalidInputError(f"Expected {name} to be text, got {name}={value!r}.")
    elif origin is Mapping and not isinstance(value, Mapping):
        raise InvalidInputError(f"Expected {name} to be a table [{name}], got {name}={value!r}.")
    elif origin is Mapping and get_origin(parts[1]) is Mapping:
        return {key: checked(f"{name}.{key}", item, parts[1]) for key, item in value.items()}
    elif is_dataclass(kind):
        return make(kind, value, called=f"[[{name}]]")  # type: ignore[arg-type]
    return value


def _tuple(name: str, value: Any, kinds: tuple[Any, ...]) -> tuple[Any, ...]:
    tables = is_dataclass(kinds[0])
    listed = isinstance(value, list | tuple) and (
        not tables or all(isinstance(item, Mapping) for item in value)
    )
    if not listed:
        rule = f"tables [[{name}]]" if tables else "a list of values"
        raise InvalidInputError(f"Expected {name} to be {rule}, got {name}={value!r}.")
    if Ellipsis not in kinds and len(value) != len(kinds):
        raise InvalidInputError(f"Expected {name} to have {len(kinds)} values, got {name}={value}.")
    return tuple(checked(name, item, kinds[0]) for item in value)


def to_plain(value: Any) -> Any:
    """Dataclasses and tuples as tables and lists, as TOML and JSON say them."""
    if is_dataclass(value):
        return {item.name: to_plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items()}
    return value


def to_toml(table: "Mapping[str, Plain]") -> str:
    """Write nested dictionaries, lists and scalars as TOML (the standard library only reads).

    >>> print(to_toml({"name": "x", "runs": 3, "learners": [{"name": "pe", "settings": {"b": 2}}]}))
    name = "x"
    runs = 3
    <BLANKLINE>
    [[learners]]
    name = "pe"
    settings = {b = 2}
    <BLANKLINE>
    """
    lines, tables = list[str](), list[str]()
    for key, value in table.items():
        if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            for item in value:
                tables += ["", f"[[{_key(key)}]]"]
                tables += [f"{_key(name)} = {_value(inner)}" for name, inner in item.items()]
        else:
            lines.append(f"{_key(key)} = {_value(value)}")
    return "\n".join(lines + tables) + "\n"


def _key(name: str) -> str:
    """Bare where TOML allows it: a dot in a bare key would open a table."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _value(name)


def _value(value: "Plain") -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):  # a JSON string is a TOML string, but for one character
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items())
        return f"{{{inner}}}"
    if value is None:
        raise InvalidInputError("Expected a value that TOML can say, got None; leave the key out.")
    return "[" + ", ".join(_value(item) for item in value) + "]"
