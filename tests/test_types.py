"""The array types have one home."""

import re
from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet import _types

pytestmark = pytest.mark.core
SOURCE = Path(discreet.__file__).parent
ALIAS = re.compile(r"^\w+(: TypeAlias)? = (NDArray\[.*|\w+Array)$", re.MULTILINE)
ROOMS = sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("FloatArray", np.float64),
        ("IntArray", np.int64),
        ("BoolArray", np.bool_),
        ("Int32Array", np.int32),
        ("WordArray", np.uint64),
        ("ByteArray", np.uint8),
    ],
)
def test_names_mean_their_kinds(name, kind):
    alias = getattr(_types, name)
    assert alias.__origin__ is np.ndarray
    assert kind in alias.__args__[1].__args__


@pytest.mark.parametrize("room", ROOMS)
def test_no_room_has_an_alias_of_its_own(room):
    found = [p.name for p in (SOURCE / room).rglob("*.py") if ALIAS.search(p.read_text("utf-8"))]
    assert found == []


def test_all_rooms_are_looked_at():
    assert {"device", "mdp", "offline", "privacy", "service"} <= set(ROOMS)
