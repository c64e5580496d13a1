"""Acting right after another package is imported."""

import importlib
import sys

import pytest

from discreet._import_hook import when_imported


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An importable package of a fresh name, not imported yet."""
    name = f"late_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    finders = [*sys.meta_path]
    yield name
    sys.meta_path[:] = finders
    sys.modules.pop(name, None)


@pytest.mark.core
def test_the_action_follows_the_import_once(package):
    seen = []
    when_imported(package, lambda: seen.append(sys.modules[package].value))
    assert seen == []
    module = importlib.import_module(package)
    assert seen == [1]
    importlib.import_module(package)
    assert seen == [1]
    assert module.__spec__.loader is not None


def test_the_action_runs_at_once_if_the_package_is_loaded(package):
    importlib.import_module(package)
    seen = []
    when_imported(package, lambda: seen.append(1))
    assert seen == [1]


def test_other_imports_pass_untouched(package):
    seen = []
    when_imported(package, lambda: seen.append(1))
    importlib.import_module("colorsys")
    assert seen == []


def test_a_missing_package_stays_missing():
    before = [*sys.meta_path]
    when_imported("no_such_package_anywhere", lambda: None)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("no_such_package_anywhere")
    assert sys.meta_path == before
