"""The Ray engine: the same tasks on an existing cluster, or on a local one started here."""

from collections.abc import Iterator, Sequence
from types import ModuleType

from discreet._ray import connected
from discreet.lab.engines import Engine
from discreet.lab.tasks import Outcome, Task, execute, lost


def ray_engine(address: str | None) -> Engine:
    """An engine that joins the cluster at ``address``, or starts a local one."""

    def run(work: Sequence[Task], *, jobs: int) -> Iterator[Outcome]:
        with connected(address, jobs) as ray:
            yield from _outcomes(ray, work)

    return run


def _outcomes(ray: ModuleType, work: Sequence[Task]) -> Iterator[Outcome]:
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
