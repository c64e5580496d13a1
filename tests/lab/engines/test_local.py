"""The local engine when a worker dies, and what it does to the environment."""

import os
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool

import pytest

from discreet.lab.engines import local
from helpers.bundles import WORK, outcome_of


class Pool:
    """Workers in this process; the bundle ``broken`` kills its worker."""

    def __init__(self, broken=None):
        self.broken = broken
        self.stopped = []

    def submit(self, function, bundle):
        future = Future()
        if bundle is self.broken:
            future.set_exception(BrokenProcessPool("killed"))
        else:
            future.set_result(outcome_of(bundle))
        return future

    def shutdown(self, **options):
        self.stopped.append(options)


def test_a_dead_worker_is_one_failed_run():
    found = {o.task.run: o.error for o in local._as_completed(Pool(broken=WORK[1]), WORK)}
    assert found == {0: None, 1: "its worker process died; run again to repeat it", 2: None}


@pytest.fixture
def pool(monkeypatch):
    pool = Pool()
    monkeypatch.setattr(local, "ProcessPoolExecutor", lambda **options: pool)
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.setenv("NUMBA_NUM_THREADS", "")
    monkeypatch.delenv("NUMBA_NUM_THREADS")
    return pool


def test_workers_have_one_thread_each_and_limits_are_put_back(pool, monkeypatch):
    seen = []
    submit = pool.submit

    def watched(function, bundle):
        seen.append((os.environ["OMP_NUM_THREADS"], os.environ["NUMBA_NUM_THREADS"]))
        return submit(function, bundle)

    monkeypatch.setattr(pool, "submit", watched)
    assert {o.task.run for o in local.run_local(WORK, jobs=2)} == {0, 1, 2}
    assert seen == [("1", "1")] * 3
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "NUMBA_NUM_THREADS" not in os.environ


def test_leaving_early_cancels_what_has_not_started(pool):
    outcomes = local.run_local(WORK, jobs=2)
    next(outcomes)
    outcomes.close()
    assert pool.stopped == [{"wait": True, "cancel_futures": True}]
    assert os.environ["OMP_NUM_THREADS"] == "7"


def test_no_process_is_started_for_one_job_or_one_bundle(monkeypatch):
    def refused(**options):
        raise RuntimeError("a pool was started")

    monkeypatch.setattr(local, "ProcessPoolExecutor", refused)
    monkeypatch.setattr(local, "execute", outcome_of)
    assert [o.task.run for o in local.run_local(WORK, jobs=1)] == [0, 1, 2]
    assert [o.task.run for o in local.run_local(WORK[:1], jobs=8)] == [0]
    assert list(local.run_local([], jobs=8)) == []
