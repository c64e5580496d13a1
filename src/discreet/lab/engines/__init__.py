"""Engines execute tasks; which one is used never changes a result."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from discreet.errors import UnknownNameError
from discreet.lab.tasks import Outcome, Task


class Engine(Protocol):
    """Executes independent tasks and yields their outcomes in any order."""

    def __call__(self, work: Sequence[Task], *, jobs: int) -> Iterator[Outcome]:
        """Run all of ``work`` on ``jobs`` workers."""


def _local(address: str | None) -> Engine:
    from discreet.lab.engines.local import run_local

    return run_local


def _ray(address: str | None) -> Engine:
    from discreet.lab.engines.ray_engine import ray_engine

    return ray_engine(address)


ENGINES: dict[str, Callable[[str | None], Engine]] = {"local": _local, "ray": _ray}


def get_engine(name: str, address: str | None = None) -> Engine:
    """The engine called ``name``; ``address`` joins an existing Ray cluster."""
    if name not in ENGINES:
        raise UnknownNameError("engine", name, ENGINES)
    return ENGINES[name](address)
