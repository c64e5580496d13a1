"""A service that was just service, on the command line."""

import importlib.util

import pytest

if any(importlib.util.find_spec(n) is None for n in ("cryptography", "starlette", "flint")):
    collect_ignore_glob = ["*"]  # the extras are not installed: nothing here can run
SMALL = ("--states", "2", "--actions", "2", "--steps", "2", "--start", "0", "--episodes", "40")
PROMISE = ("--epsilon", "4", "--delta", "1e-4")


@pytest.fixture
def small():
    """What founds a study of a second."""
    return (*SMALL, *PROMISE)


@pytest.fixture
def folder(discreet, small, tmp_path):
    where = tmp_path / "service"
    code, out, err = discreet("service", "init", str(where), *small, "--rehearsal")
    assert code == 0, err
    assert "SIMULATED, protects nobody" in out and "together they see" in " ".join(out.split())
    return where
