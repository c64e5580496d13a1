"""Engines: chosen by name; a worker, a cluster or the package that is missing; no worker stays."""

import builtins
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from types import SimpleNamespace

import pytest

from discreet.errors import MissingExtraError, UnknownNameError
from discreet.lab import runner as engines
from discreet.lab.runner import ENGINES, get_engine, run_local
from helpers.experiments import without
from helpers.tasks import WORK, outcome_of


def test_an_unknown_engine_is_named():
    with pytest.raises(UnknownNameError, match="known: local, ray"):
        get_engine("slurm")


def test_the_local_engine_needs_no_address():
    assert get_engine("local") is run_local
    assert get_engine("local", "ignored:1") is run_local


def test_choosing_an_engine_starts_nothing():
    loaded = "ray" in sys.modules
    assert callable(get_engine("ray", "nowhere:1"))
    assert ("ray" in sys.modules) is loaded
    assert list(ENGINES) == ["local", "ray"]


class Pool:
    """Workers in this process; the task ``broken`` kills its worker."""

    def __init__(self, broken=None):
        self.broken = broken
        self.stopped = []

    def submit(self, function, task):
        future = Future()
        if task is self.broken:
            future.set_exception(BrokenProcessPool("killed"))
        else:
            future.set_result(outcome_of(task))
        return future

    def shutdown(self, **options):
        self.stopped.append(options)


def test_a_dead_worker_is_one_failed_run(pool):
    pool.broken = WORK[1]
    found = {o.task.run: o.error for o in engines.run_local(WORK, jobs=2)}
    assert found == {0: None, 1: "its worker process died; run again to repeat it", 2: None}


@pytest.fixture
def pool(monkeypatch):
    pool = Pool()
    monkeypatch.setattr(engines, "ProcessPoolExecutor", lambda **options: pool)
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.setenv("NUMBA_NUM_THREADS", "")
    monkeypatch.delenv("NUMBA_NUM_THREADS")
    return pool


def test_workers_have_one_thread_each_and_limits_are_put_back(pool, monkeypatch):
    seen = []
    submit = pool.submit

    def watched(function, task):
        seen.append((os.environ["OMP_NUM_THREADS"], os.environ["NUMBA_NUM_THREADS"]))
        return submit(function, task)

    monkeypatch.setattr(pool, "submit", watched)
    assert {o.task.run for o in engines.run_local(WORK, jobs=2)} == {0, 1, 2}
    assert seen == [("1", "1")] * 3
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "NUMBA_NUM_THREADS" not in os.environ


def test_leaving_early_cancels_what_has_not_started(pool):
    outcomes = engines.run_local(WORK, jobs=2)
    next(outcomes)
    outcomes.close()
    assert pool.stopped == [{"wait": True, "cancel_futures": True}]
    assert os.environ["OMP_NUM_THREADS"] == "7"


def test_no_process_is_started_for_one_job_or_one_task(monkeypatch):
    def refused(**options):
        raise RuntimeError("a pool was started")

    monkeypatch.setattr(engines, "ProcessPoolExecutor", refused)
    monkeypatch.setattr(engines, "execute", outcome_of)
    assert [o.task.run for o in engines.run_local(WORK, jobs=1)] == [0, 1, 2]
    assert [o.task.run for o in engines.run_local(WORK[:1], jobs=8)] == [0]
    assert list(engines.run_local([], jobs=8)) == []


LONG = """
name = "long"
title = "Long"
runs = 4
episodes = [1_000_000_000]
[[environments]]
name = "RandomMDP"
[[learners]]
name = "psrl"
[[trusts]]
model = "none"
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_no_worker_outlives_a_run_that_is_ended(tmp_path, ending):
    """Workers are inside compiled loops, which no thread of theirs can interrupt."""
    (tmp_path / "long.toml").write_text(LONG)
    mark = f"DISCREET_TEST={tmp_path}"
    command = [sys.executable, "-m", "discreet", "run", "long.toml", "--jobs", "2", "--json"]
    environment = {**os.environ, "DISCREET_TEST": str(tmp_path)}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, start_new_session=True, stderr=subprocess.PIPE
    ) as process:
        wait_until(lambda: len(marked(mark)) >= 3)  # it, and two workers
        time.sleep(1.0)  # into their loops
        os.kill(process.pid, ending)
        _, errors = process.communicate(timeout=300)
    wait_until(lambda: not marked(mark))  # a run that goes on takes many minutes
    if ending == signal.SIGINT:
        assert process.returncode == 130
        assert b"0 of 4 runs are kept in results/long" in errors
        assert b"Traceback" not in errors


def marked(mark):
    """Processes whose environment has the mark."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append(entry.name)
        except OSError:  # it has ended meanwhile
            continue
    return found


def wait_until(true):
    """For some minutes, on however busy a machine."""
    deadline = time.monotonic() + 300
    while not true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


class Ray:
    """A cluster on which the last task fails."""

    exceptions = SimpleNamespace(RayError=RuntimeError)

    def remote(self, **_):
        return lambda function: SimpleNamespace(remote=WORK.index)

    def is_initialized(self):
        return True

    def wait(self, pending, num_returns):
        return pending[:num_returns], pending[num_returns:]

    def get(self, number):
        if number == 2:
            raise RuntimeError("out of memory\nand a long trace")
        return outcome_of(WORK[number])


def test_a_failing_ray_worker_is_one_failed_run(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", Ray())
    found = {o.task.run: o.error for o in get_engine("ray")(WORK, jobs=1)}
    assert found == {0: None, 1: None, 2: "its Ray worker failed: out of memory"}


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(builtins, "__import__", without("ray"))
    with pytest.raises(MissingExtraError, match="ray"):
        list(get_engine("ray")(WORK, jobs=1))
