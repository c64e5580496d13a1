"""Source files, read without running them."""

import importlib
import inspect
import re
import sys

import pytest

from discreet import _sources
from discreet.mdp.environments.registry import MODULES, get_environment
from discreet.privacy.mechanisms.registry import everything

pytestmark = pytest.mark.core


@pytest.mark.parametrize("name", MODULES)
def test_environments_say_the_same_whether_they_are_read_or_run(name):
    spec = get_environment(name)
    assert _sources.first_line(MODULES[name], name) == spec.summary
    assert _sources.defaults(MODULES[name], name) == spec.parameters


@pytest.mark.parametrize(
    "mechanism", everything(), ids=lambda m: f"{m.trust}-{m.schedule}-{m.name}"
)
def test_mechanisms_say_the_same_whether_they_are_read_or_run(mechanism):
    assert mechanism.summary == (inspect.getdoc(mechanism.load()) or "").split("\n")[0]


def test_what_is_not_there_has_no_line():
    assert _sources.first_line("discreet.errors", "Nothing") == ""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Make, import and forget packages; returns a function that gives a class of one."""
    monkeypatch.syspath_prepend(tmp_path)

    def made(**files):
        for name, text in files.items():
            path = tmp_path / (name.replace("__", "/") + ".py")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        for name in [n for n in sys.modules if n.partition(".")[0] in ("alone", "several")]:
            del sys.modules[name]
        importlib.invalidate_caches()
        return importlib.import_module(next(iter(files)).replace("__", ".")).Thing

    yield made
    for name in [n for n in sys.modules if n.partition(".")[0] in ("alone", "several")]:
        del sys.modules[name]


def test_every_room_that_a_run_can_load_is_in_its_fingerprint():
    root = _sources._PACKAGE
    files = [path for part in _sources._LOGIC for path in (root / part).rglob("*.py")]
    found = {name for path in files for name in re.findall(r"discreet\.(\w+)", path.read_text())}
    rooms = {name for name in found if (root / name / "__init__.py").is_file()}
    assert rooms == {part for part in _sources._LOGIC if "." not in part}


def test_one_edited_line_changes_the_fingerprint_of_a_module(package):
    first = _sources.of_object(package(alone="class Thing:\n    x = 1\n"))
    same = _sources.of_object(package(alone="class Thing:\n    x = 1\n"))
    other = _sources.of_object(package(alone="class Thing:\n    x = 22\n"))
    assert first == same != other


def test_a_helper_beside_the_learner_counts(package):
    files = {"several__thing": "class Thing: ...\n", "several__helper": "x = 1\n"}
    first = _sources.of_object(package(**files))
    other = _sources.of_object(package(**files | {"several__helper": "x = 2\n"}))
    assert first != other


def test_ours_is_the_logic_and_what_has_no_file_its_name():
    assert _sources.of_object(_sources.first_line) == _sources.logic()
    assert _sources.of_object(int) == "builtins.int"
