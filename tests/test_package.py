"""The package as a whole: light to import, lazy, with a small public surface."""

import subprocess
import sys

import pytest

import discreet

HEAVY = ("numba", "scipy", "matplotlib", "gymnasium", "pyarrow", "opendp", "dp_accounting", "ray")


@pytest.mark.core
def test_import_loads_nothing_heavy():
    code = f"import sys, discreet; print([m for m in {HEAVY!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.core
def test_every_public_name_exists():
    for name in discreet.__all__:
        assert getattr(discreet, name) is not None
    assert len(discreet.__all__) <= 30


@pytest.mark.core
def test_unknown_attribute_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = discreet.nothing
