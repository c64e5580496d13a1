"""The package as a whole: light to import, lazy, with a small public surface."""

import functools
import importlib
import inspect
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import discreet
from helpers.loading import loaded

TESTS = Path(__file__).parent
HEAVY = ("numba", "scipy", "matplotlib", "gymnasium", "pyarrow", "opendp", "dp_accounting", "ray")
PACKAGES = ("", ".lab", ".learners", ".mdp", ".privacy", ".study", ".device")


@pytest.mark.core
def test_import_loads_nothing_heavy():
    assert loaded("import discreet", HEAVY) == []


@pytest.mark.core
def test_every_public_name_exists():
    for name in discreet.__all__:
        assert getattr(discreet, name) is not None
    assert len(discreet.__all__) <= 33


@pytest.mark.core
def test_the_core_alone_finds_no_extra():
    """What `make core-tests` hides: a test that needs an extra fails there, or is skipped."""
    hide = f"import sys; sys.path.insert(0, {str(TESTS)!r})\nfrom helpers.core import *"
    extras = "pyarrow", "openpyxl", "starlette", "cryptography"
    code = (
        f"{hide}\nhide_extras()\nimport importlib.util as util, numpy, opendp, discreet\n"
        f"print([name for name in {extras} if util.find_spec(name)], 'ray' in Core.hidden)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    here = "ray" in packages_distributions()
    assert (done.stdout, done.stderr) == (f"[] {here}\n", "")


@pytest.mark.core
def test_unknown_attribute_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = discreet.nothing


def undocumented(name, value):
    """Of a public name: what has no docstring, of its own or of what it overrides."""
    if not inspect.getdoc(value):
        yield name
    for member, kept in vars(value).items() if inspect.isclass(value) else ():
        code = getattr(kept, "__func__", kept)
        described = inspect.isfunction(code) or isinstance(
            kept, property | functools.cached_property
        )
        if described and not member.startswith("_") and not inspect.getdoc(getattr(value, member)):
            yield f"{name}.{member}"


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_has_a_docstring(package):
    module = importlib.import_module(f"discreet{package}")
    public = {name: getattr(module, name) for name in module.__all__}
    ours = {n: v for n, v in public.items() if callable(v) or inspect.ismodule(v)}
    assert len(ours) > 3
    assert [one for name, value in ours.items() for one in undocumented(name, value)] == []


@pytest.mark.parametrize(
    ("old", "new"), [("start", "start_study"), ("resume", "open_study"), ("load", "load_results")]
)
def test_an_old_name_says_the_new_one(old, new):
    assert new in discreet.__all__ and old not in discreet.__all__
    with pytest.raises(ImportError, match=f"discreet.{old} is called discreet.{new} now"):
        getattr(discreet, old)
