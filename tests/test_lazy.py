"""Lazy packages: nothing loads before it is used, and a wrong name is an AttributeError."""

import importlib
import importlib.util
from pathlib import Path

import pytest

import discreet
from discreet._lazy import attach
from helpers.loading import homes, loaded

pytestmark = pytest.mark.core
STUBS = sorted(Path(discreet.__file__).parent.rglob("__init__.pyi"))
LAZY = ["discreet", "discreet.lab", "discreet.mdp", "discreet.mdp.environments"]


def test_a_name_is_looked_up_where_it_lives():
    find, listed, public = attach("package", {"dumps": "json", "path": "os"})
    import json
    import os

    assert find("dumps") is json.dumps
    assert find("path") is os.path
    assert listed() == public == ["dumps", "path"]


def test_a_submodule_is_itself():
    find, *_ = attach("xml", {"dom": "xml.dom"})
    assert find("dom") is importlib.import_module("xml.dom")


def test_an_unknown_name_is_an_attribute_error():
    find, *_ = attach("package", {})
    with pytest.raises(AttributeError, match="module 'package' has no attribute 'nothing'"):
        find("nothing")


def test_an_old_name_says_the_new_one():
    find, *_ = attach("package", {"new": "json"}, renamed={"old": "new"})
    with pytest.raises(ImportError, match=r"package\.old is called package\.new now"):
        find("old")
    with pytest.raises(ImportError, match=r"mdp\.solve now"):
        from discreet.mdp import plan  # noqa: F401


@pytest.mark.parametrize("package", LAZY)
def test_every_name_of_a_lazy_package_exists(package):
    module = importlib.import_module(package)
    assert dir(module)
    for name in dir(module):
        assert getattr(module, name) is not None


@pytest.mark.parametrize(
    "package", ["discreet.lab", "discreet.learners", "discreet.mdp", "discreet.privacy"]
)
def test_exports_are_the_lazy_names(package):
    module = importlib.import_module(package)
    assert sorted(module.__all__) == dir(module)


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import discreet.lab", ["numpy", "matplotlib", "pyarrow", "numba"]),
        ("from discreet.lab import load_experiment", ["matplotlib", "pyarrow", "numba", "scipy"]),
        ("import discreet.lab.style", ["matplotlib", "pyarrow"]),
        ("import discreet.cli.run", ["matplotlib", "pyarrow", "numba", "numpy"]),
    ],
)
def test_heavy_packages_load_when_used(code, heavy):
    assert loaded(code, heavy) == []


@pytest.mark.parametrize("stub", STUBS, ids=lambda path: path.parent.name)
def test_the_stub_for_type_checkers_is_the_table(stub):
    parts = stub.relative_to(STUBS[0].parent).parent.parts
    package = importlib.import_module(".".join(("discreet", *parts)))
    told = homes(package)
    assert sorted(told) == dir(package)
    for name, module in told.items():
        inside = module == package.__name__
        home = importlib.import_module(f"{module}.{name}" if inside else module)
        assert getattr(package, name) is (home if inside else getattr(home, name))
