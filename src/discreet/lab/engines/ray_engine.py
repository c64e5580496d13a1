"""The Ray engine: the same tasks on an existing cluster, or on a local one started here."""

import os
from collections.abc import Iterator, Sequence

from discreet.errors import DiscreetError, MissingExtraError
from discreet.lab.engines import Engine
from discreet.lab.tasks import Bundle, Outcome, execute, lost


def ray_engine(address: str | None) -> Engine:
    """An engine that joins the cluster at ``address``, or starts a local one."""

    def run(work: Sequence[Bundle], *, jobs: int) -> Iterator[Outcome]:
        try:
            import ray
        except ImportError:
            raise MissingExtraError("ray", "ray") from None
        started = not ray.is_initialized()
        if started:
            _connect(ray, address, jobs)
        try:
            yield from _outcomes(ray, work)
        finally:
            if started:
                ray.shutdown()

    return run


def _connect(ray: object, address: str | None, jobs: int) -> None:
    # Ray reports usage to its makers unless told otherwise; a privacy library tells it otherwise.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    options = {"address": address} if address else {"num_cpus": jobs, "include_dashboard": False}
    try:
        ray.init(log_to_driver=False, logging_level="ERROR", **options)  # type: ignore[attr-defined]
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise DiscreetError(
            f"Cannot reach a Ray cluster at {address!r}: {error}. Start one with "
            f"`ray start --head`, or leave --address out to start a local one."
        ) from None


def _outcomes(ray: object, work: Sequence[Bundle]) -> Iterator[Outcome]:
    remote = ray.remote(num_cpus=1, max_retries=2)(execute)  # type: ignore[attr-defined]
    pending = {remote.remote(bundle): bundle for bundle in work}
    while pending:
        done, _ = ray.wait(list(pending), num_returns=1)  # type: ignore[attr-defined]
        for reference in done:
            bundle = pending.pop(reference)
            try:
                yield from ray.get(reference)  # type: ignore[attr-defined]
            except ray.exceptions.RayError as error:  # type: ignore[attr-defined]
                yield from lost(bundle, f"its Ray worker failed: {str(error).splitlines()[0]}")
