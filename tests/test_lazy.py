"""Lazy packages: nothing loads before it is used, and a wrong name is an AttributeError."""

import ast
import importlib
from pathlib import Path

import pytest

import discreet
from discreet._lazy import attach
from helpers.loading import loaded

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
def test_type_checkers_are_told_what_the_table_says(stub):
    """A stub beside a lazy package: types for editors and for who checks their own code."""
    package = importlib.import_module(
        ".".join(("discreet", *stub.relative_to(STUBS[0].parent).parent.parts))
    )
    told = {}
    for node in ast.walk(ast.parse(stub.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                assert alias.asname == alias.name
                inside = node.module == package.__name__
                told[alias.name] = f"{node.module}.{alias.name}" if inside else node.module
    assert told == package._WHERE


def test_every_lazy_package_has_a_stub():
    home = Path(discreet.__file__).parent
    lazy = {
        path.parent for path in home.rglob("__init__.py") if "_WHERE = {" in path.read_text("utf-8")
    }
    assert lazy == {path.parent for path in STUBS}
