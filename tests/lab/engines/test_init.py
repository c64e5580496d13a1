"""Which engines there are, and that each is chosen by its name."""

import pytest

from discreet.errors import UnknownNameError
from discreet.lab.engines import ENGINES, get_engine, run_local


def test_an_unknown_engine_is_named():
    with pytest.raises(UnknownNameError, match="known: local, ray"):
        get_engine("slurm")


def test_the_local_engine_needs_no_address():
    assert get_engine("local") is run_local
    assert get_engine("local", "ignored:1") is run_local


def test_choosing_an_engine_starts_nothing():
    import sys

    loaded = "ray" in sys.modules
    assert callable(get_engine("ray", "nowhere:1"))
    assert ("ray" in sys.modules) is loaded
    assert list(ENGINES) == ["local", "ray"]
