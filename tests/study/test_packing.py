"""States become rows and come back as they were, to the last bit and type."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.study.store import packed, unpacked

LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=5),
)
LISTS = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=6, max_size=12),
    st.lists(st.floats(allow_nan=False), min_size=6, max_size=12),
    st.lists(st.one_of(st.integers(), st.floats(allow_nan=False)), min_size=8, max_size=10),
    st.lists(st.booleans(), min_size=8, max_size=9),
)
STATES = st.dictionaries(
    st.text("abc.", min_size=1, max_size=3),
    st.recursive(st.one_of(LEAVES, LISTS), lambda one: st.lists(one, max_size=4), max_leaves=6),
    max_size=4,
)


def typed(value):
    """Values with their types: 1, 1.0 and True differ."""
    if isinstance(value, dict):
        return {key: typed(part) for key, part in value.items()}
    if isinstance(value, list):
        return [typed(part) for part in value]
    return type(value), math.copysign(1, value) if value == 0 else 0, value


@settings(max_examples=60)
@given(STATES)
def test_every_state_comes_back(state):
    assert typed(unpacked(packed(state))) == typed(state)


def test_arrays_are_bytes_and_nothing_is_pickled():
    rows = packed({"a": {"b": np.arange(12.0).reshape(3, 4)}, "c": [True] * 9})
    assert [row[:3] for row in rows] == [
        ("", "json", "[]"),
        ("a.b", "float64", "[3,4]"),
        ("c", "bool", "[9]"),
    ]
    assert rows[1][3] == np.arange(12.0).tobytes()


@pytest.mark.parametrize(
    "value", [[1, 2.0] * 5, [[1], [2, 3]] * 5, [2**80] * 9, ["x"] * 9, [1] * 3]
)
def test_what_is_no_long_array_stays_text(value):
    assert [row[1] for row in packed({"a": value})] == ["json"]
