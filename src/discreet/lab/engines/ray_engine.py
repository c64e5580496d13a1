"""The Ray engine: the same tasks on an existing cluster, or on a local one started here."""

from collections.abc import Iterator, Sequence
from types import ModuleType

from discreet._ray import connected
from discreet.lab.engines import Engine
from discreet.lab.tasks import Bundle, Outcome, execute, lost


def ray_engine(address: str | None) -> Engine:
    """An engine that joins the cluster at ``address``, or starts a local one."""

    def run(work: Sequence[Bundle], *, jobs: int) -> Iterator[Outcome]:
        with connected(address, jobs) as ray:
            yield from _outcomes(ray, work)

    return run


def _outcomes(ray: ModuleType, work: Sequence[Bundle]) -> Iterator[Outcome]:
    remote = ray.remote(num_cpus=1, max_retries=2)(execute)
    pending = {remote.remote(bundle): bundle for bundle in work}
    while pending:
        done, _ = ray.wait(list(pending), num_returns=1)
        for reference in done:
            bundle = pending.pop(reference)
            try:
                yield from ray.get(reference)
            except ray.exceptions.RayError as error:
                yield from lost(bundle, f"its Ray worker failed: {str(error).splitlines()[0]}")
