"""The local engine when a worker dies, and what it does to the environment."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

from discreet.lab import engines
from helpers.tasks import WORK, outcome_of


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


def test_a_dead_worker_is_one_failed_run():
    found = {o.task.run: o.error for o in engines._as_completed(Pool(broken=WORK[1]), WORK)}
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


def test_a_worker_ends_with_its_parent_and_leaves_interruptions_to_it():
    """In a process of its own: what `_serve` sets up stays there."""
    code = (
        "import signal, threading\n"
        "from discreet.lab.engines import local\n"
        "local._serve()\n"
        "assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


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
