"""Types that rooms share: arrays have one home, words need none, checks are judged alike."""

import re
from functools import partial
from pathlib import Path

import pytest

import discreet
from discreet._types import Checked
from discreet.auditing.conformance import Conformance
from discreet.learners.check import LearnerReport
from discreet.mdp import RiverSwim
from discreet.mdp.check import check_mdp
from helpers.loading import loaded

pytestmark = pytest.mark.core
SOURCE = Path(discreet.__file__).parent
ALIAS = re.compile(r"^\w+(: TypeAlias)? = (NDArray\[.*|\w+Array)$", re.MULTILINE)


def test_no_room_has_an_alias_of_its_own():
    files = [path for path in SOURCE.rglob("*.py") if path.name != "_types.py"]
    assert len(files) > 150
    assert [path.name for path in files if ALIAS.search(path.read_text("utf-8"))] == []


@pytest.mark.parametrize("module", ["_settings", "_registry", "_files", "cli.options"])
def test_no_arrays_are_loaded_for_words(module):
    assert loaded(f"import discreet.{module}", ["numpy"]) == []


def test_what_has_a_problem_is_not_ok():
    for made in (lambda said: LearnerReport("mine", (), said, {}), partial(Conformance, "mine")):
        assert isinstance(made(()), Checked) and made(()).ok
        assert not made(("It forgets its users.",)).ok
    assert check_mdp(RiverSwim(states=3, horizon=4)).ok
    assert not check_mdp(RiverSwim(states=3, horizon=1)).ok
