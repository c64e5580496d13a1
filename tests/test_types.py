"""Types that rooms share: arrays have one home, words need none, checks are judged alike."""

import re
from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet import _types
from discreet._types import Checked
from discreet.auditing.conformance import Conformance
from discreet.learners.check import LearnerReport
from discreet.mdp import RiverSwim
from discreet.mdp.check import check_mdp
from helpers.loading import loaded

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


@pytest.mark.parametrize("module", ["_settings", "_registry", "_files", "cli.options"])
def test_no_arrays_are_loaded_for_words(module):
    assert loaded(f"import discreet.{module}", ["numpy"]) == []


@pytest.mark.parametrize(
    "make",
    [
        lambda problems: LearnerReport("mine", (), problems, {}),
        lambda problems: Conformance("mine", problems),
    ],
    ids=["learner", "mechanism"],
)
def test_what_has_a_problem_is_not_ok(make):
    assert isinstance(make(()), Checked)
    assert make(()).ok
    assert not make(("It forgets its users.",)).ok


def test_a_model_is_judged_the_same_way():
    assert check_mdp(RiverSwim(states=3, horizon=4)).ok
    assert not check_mdp(RiverSwim(states=3, horizon=1)).ok
