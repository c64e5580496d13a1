"""A Ray cluster, joined or started, and what is said where there is none."""

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from discreet.errors import DiscreetError, MissingExtraError


@contextlib.contextmanager
def connected(address: str | None, jobs: int, *, hint: str = "--address") -> Iterator[Any]:
    """Ray, connected for the time of the block unless somebody has connected it before.

    Args:
        address: of a cluster; None starts a local one.
        jobs: processors of a local one.
        hint: what a person leaves out to start a local one.
    """
    try:
        import ray
    except ImportError:
        raise MissingExtraError("ray", "ray") from None
    started = not ray.is_initialized()
    if started:
        # Ray reports usage to its makers unless told otherwise; a privacy library does tell it.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        local = {"num_cpus": jobs, "include_dashboard": False}
        options = {"address": address} if address else local
        try:
            ray.init(log_to_driver=False, logging_level="ERROR", **options)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise DiscreetError(
                f"Cannot reach a Ray cluster at {address!r}: {error}. Start one with "
                f"`ray start --head`, or leave {hint} out to start a local one."
            ) from None
    try:
        yield ray
    finally:
        if started:
            ray.shutdown()
