"""The plain path of a plan: `release` of a batch, `add` of a stream."""

from discreet.errors import UnsupportedError
from discreet.privacy.auditing.neighbours import Plan
from discreet.privacy.auditing.paths.batches import RELEASE, batch_path
from discreet.privacy.auditing.paths.path import Path
from discreet.privacy.auditing.paths.streams import ADD, stream_path
from discreet.privacy.plans import BatchMechanism


def main_path(plan: Plan, users: int = 1) -> Path:
    """Counts in, statistics out."""
    if isinstance(plan, BatchMechanism):
        return batch_path(plan, RELEASE, users)
    if plan.response != "unit":
        raise UnsupportedError("This stream randomises the data instead of adding noise.")
    return stream_path(plan, ADD, plan.episodes)
