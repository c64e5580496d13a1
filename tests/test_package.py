"""The package as a whole: light to import, lazy, with a small public surface."""

import pytest

import discreet
from helpers.loading import loaded

HEAVY = ("numba", "scipy", "matplotlib", "gymnasium", "pyarrow", "opendp", "dp_accounting", "ray")


@pytest.mark.core
def test_import_loads_nothing_heavy():
    assert loaded("import discreet", HEAVY) == []


@pytest.mark.core
def test_every_public_name_exists():
    for name in discreet.__all__:
        assert getattr(discreet, name) is not None
    assert len(discreet.__all__) <= 30


@pytest.mark.core
def test_unknown_attribute_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = discreet.nothing
