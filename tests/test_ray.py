"""A Ray cluster: joined, started, missing."""

import builtins
import os
import sys
from types import SimpleNamespace

import pytest

from discreet._ray import _connect, connected
from discreet.errors import DiscreetError, MissingExtraError
from helpers.experiments import without


def test_a_cluster_that_cannot_be_reached_is_one_sentence(monkeypatch):
    monkeypatch.delenv("RAY_USAGE_STATS_ENABLED", raising=False)

    def init(**options):
        assert options["address"] == "nowhere:1"
        raise ConnectionError("refused")

    with pytest.raises(DiscreetError, match=r"'nowhere:1': refused.*leave --address out"):
        _connect(SimpleNamespace(init=init), "nowhere:1", 2, "--address")


def test_ray_reports_no_usage(monkeypatch):
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "")
    monkeypatch.delenv("RAY_USAGE_STATS_ENABLED")
    seen = {}
    _connect(SimpleNamespace(init=lambda **options: seen.update(options)), None, 3, "--address")
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
    assert (seen["num_cpus"], seen["include_dashboard"]) == (3, False)


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(builtins, "__import__", without("ray"))
    with pytest.raises(MissingExtraError, match="ray"), connected(None, 1):
        pass


@pytest.mark.parametrize("before", [False, True])
def test_only_who_has_connected_ends_it(monkeypatch, before):
    done = []
    fake = SimpleNamespace(
        is_initialized=lambda: before,
        init=lambda **_: done.append("init"),
        shutdown=lambda: done.append("shutdown"),
    )
    monkeypatch.setitem(sys.modules, "ray", fake)
    with connected(None, 1) as ray:
        assert ray is fake
    assert done == ([] if before else ["init", "shutdown"])
