"""Engines when things go wrong: a worker dies, a cluster is missing, a package is missing."""

import builtins
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from types import SimpleNamespace

import pytest

from discreet.errors import DiscreetError, MissingExtraError, UnknownNameError
from discreet.lab.engines import get_engine, local
from discreet.lab.engines.ray_engine import _connect, _outcomes
from discreet.lab.spec import parse_experiment
from discreet.lab.tasks import Outcome, bundles, tasks_of

EXPERIMENT = parse_experiment("""
name = "x"
title = "X"
runs = 3
[[environments]]
name = "RandomMDP"
[[learners]]
name = "ldp-obi"
[[trusts]]
model = "none"
""")
WORK = bundles(tasks_of(EXPERIMENT))


def outcome_of(bundle):
    return [Outcome(task, 0.1, record={}) for task in bundle]


class BrokenPool:
    """The second bundle kills its worker."""

    def submit(self, function, bundle):
        future = Future()
        if bundle is WORK[1]:
            future.set_exception(BrokenProcessPool("killed"))
        else:
            future.set_result(outcome_of(bundle))
        return future


def test_a_dead_worker_is_one_failed_run():
    found = {o.task.run: o.error for o in local._as_completed(BrokenPool(), WORK)}
    assert found == {0: None, 1: "its worker process died; run again to repeat it", 2: None}


class Ray:
    """A cluster on which the last bundle fails."""

    exceptions = SimpleNamespace(RayError=RuntimeError)

    def remote(self, **_):
        return lambda function: SimpleNamespace(remote=WORK.index)

    def wait(self, pending, num_returns):
        return pending[:num_returns], pending[num_returns:]

    def get(self, number):
        if number == 2:
            raise RuntimeError("out of memory\nand a long trace")
        return outcome_of(WORK[number])


def test_a_failing_ray_worker_is_one_failed_run():
    found = {o.task.run: o.error for o in _outcomes(Ray(), WORK)}
    assert found == {0: None, 1: None, 2: "its Ray worker failed: out of memory"}


def test_a_cluster_that_cannot_be_reached_is_one_sentence(monkeypatch):
    monkeypatch.delenv("RAY_USAGE_STATS_ENABLED", raising=False)

    def init(**options):
        assert options["address"] == "nowhere:1"
        raise ConnectionError("refused")

    with pytest.raises(DiscreetError, match=r"'nowhere:1': refused.*ray start --head"):
        _connect(SimpleNamespace(init=init), "nowhere:1", 2)


def test_ray_reports_no_usage(monkeypatch):
    import os

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "")
    monkeypatch.delenv("RAY_USAGE_STATS_ENABLED")
    seen = {}
    _connect(SimpleNamespace(init=lambda **options: seen.update(options)), None, 3)
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
    assert (seen["num_cpus"], seen["include_dashboard"]) == (3, False)


def test_without_ray_the_extra_is_named(monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **more):
        if name == "ray":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match="ray"):
        list(get_engine("ray")(WORK, jobs=1))


def test_an_unknown_engine_is_named():
    with pytest.raises(UnknownNameError, match="known: local, ray"):
        get_engine("slurm")


def test_thread_limits_are_put_back(monkeypatch):
    import os

    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    monkeypatch.setattr(local, "ProcessPoolExecutor", lambda **_: Pool())
    assert {o.task.run for o in local.run_local(WORK, jobs=2)} == {0, 1, 2}
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "NUMBA_NUM_THREADS" not in os.environ


class Pool(BrokenPool):
    def submit(self, function, bundle):
        import os

        assert os.environ["OMP_NUM_THREADS"] == os.environ["NUMBA_NUM_THREADS"] == "1"
        future = Future()
        future.set_result(outcome_of(bundle))
        return future

    def shutdown(self, **_):
        pass
