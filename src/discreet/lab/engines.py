"""Engines execute tasks; which one is used never changes a result."""

import functools
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Protocol

from discreet._ray import connected
from discreet.errors import UnknownNameError
from discreet.lab.tasks import Outcome, Task, execute, lost


class Engine(Protocol):
    """Executes independent tasks and yields their outcomes in any order."""

    def __call__(self, work: Sequence[Task], *, jobs: int) -> Iterator[Outcome]:
        """Run all of ``work`` on ``jobs`` workers."""


ENGINES = ("local", "ray")


def get_engine(name: str, address: str | None = None) -> Engine:
    """The engine called ``name``; ``address`` joins an existing Ray cluster."""
    if name not in ENGINES:
        raise UnknownNameError("engine", name, ENGINES)
    return run_local if name == "local" else functools.partial(run_on_ray, address=address)


_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


def run_local(work: Sequence[Task], *, jobs: int) -> Iterator[Outcome]:
    """Yield outcomes as they finish. Leaving the iteration early cancels what has not started."""
    if jobs == 1 or len(work) <= 1:
        yield from map(execute, work)
        return
    # One thread per worker: the workers are the parallelism.
    saved = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(
        max_workers=min(jobs, len(work)), mp_context=context, initializer=_serve
    )
    finished = False
    try:
        yield from _as_completed(pool, work)
        finished = True
    finally:
        if not finished:  # interrupted: what is under way is not worth waiting for
            for process in list((getattr(pool, "_processes", None) or {}).values()):
                process.kill()
        pool.shutdown(wait=True, cancel_futures=True)
        for name, value in saved.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _serve() -> None:
    """A worker leaves interruptions to its parent, and ends when its parent ends, however."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":  # the kernel ends us; a compiled loop lets no thread look
        import ctypes

        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, int(signal.SIGKILL))
    parent = multiprocessing.parent_process()
    if parent is not None:  # elsewhere, and if the parent has ended meanwhile
        threading.Thread(target=_end_after, args=[parent], daemon=True).start()


def _end_after(parent: "multiprocessing.process.BaseProcess") -> None:
    parent.join()
    os._exit(1)


def _as_completed(pool: ProcessPoolExecutor, work: Sequence[Task]) -> Iterator[Outcome]:
    pending: dict[Future[Outcome], Task] = {pool.submit(execute, task): task for task in work}
    while pending:
        done, _ = wait(pending, return_when=FIRST_COMPLETED)
        for future in done:
            task = pending.pop(future)
            try:
                yield future.result()
            except BrokenProcessPool:
                # The worker was killed (out of memory, a signal); the run can be repeated.
                yield lost(task, "its worker process died; run again to repeat it")


def run_on_ray(work: Sequence[Task], *, jobs: int, address: str | None) -> Iterator[Outcome]:
    """The same tasks on the cluster at ``address``, or on a local one started here."""
    with connected(address, jobs) as ray:
        remote = ray.remote(num_cpus=1, max_retries=2)(execute)
        pending = {remote.remote(task): task for task in work}
        while pending:
            done, _ = ray.wait(list(pending), num_returns=1)
            for reference in done:
                task = pending.pop(reference)
                try:
                    yield ray.get(reference)
                except ray.exceptions.RayError as error:
                    yield lost(task, f"its Ray worker failed: {str(error).splitlines()[0]}")
