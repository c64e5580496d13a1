"""A Ray cluster: joined, started, missing."""

import os
import sys
from types import SimpleNamespace

import pytest

from discreet._ray import connected
from discreet.errors import DiscreetError


def fake(init, shutdown=lambda: None, before=False):
    return SimpleNamespace(is_initialized=lambda: before, init=init, shutdown=shutdown)


def test_a_cluster_that_cannot_be_reached_is_one_sentence(monkeypatch):
    monkeypatch.delenv("RAY_USAGE_STATS_ENABLED", raising=False)

    def init(**options):
        assert options["address"] == "nowhere:1"
        raise ConnectionError("refused")

    monkeypatch.setitem(sys.modules, "ray", fake(init))
    refused = pytest.raises(DiscreetError, match=r"'nowhere:1': refused.*leave --address out")
    with refused, connected("nowhere:1", 2):
        pass


def test_ray_reports_no_usage(monkeypatch):
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "")
    monkeypatch.delenv("RAY_USAGE_STATS_ENABLED")
    seen = {}
    monkeypatch.setitem(sys.modules, "ray", fake(lambda **options: seen.update(options)))
    with connected(None, 3):
        pass
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
    assert (seen["num_cpus"], seen["include_dashboard"]) == (3, False)


@pytest.mark.parametrize("before", [False, True])
def test_only_who_has_connected_ends_it(monkeypatch, before):
    done = []
    made = fake(lambda **_: done.append("init"), lambda: done.append("shutdown"), before)
    monkeypatch.setitem(sys.modules, "ray", made)
    with connected(None, 1) as ray:
        assert ray is made
    assert done == ([] if before else ["init", "shutdown"])
