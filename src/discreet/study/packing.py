"""Plain values with long lists in them as rows of a table: arrays as bytes, the rest as JSON.

Nothing is pickled: reading a row can only ever give numbers and text.
"""

import json
from collections.abc import Iterable, Mapping

import numpy as np

from discreet._plain import Plain
from discreet._types import NumberArray
from discreet.study.ledger import Row, canonical

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
