"""Which of several calibrated plans carries the least noise.

All candidates keep the same promise or a stronger one (Laplace noise has delta = 0), so the choice
is a matter of accuracy alone. It depends on the problem's size and on (epsilon, delta), which are
public, and on no data.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from discreet.privacy.plans import BatchPlan, StreamPlan

_Plan = TypeVar("_Plan", bound=BatchPlan | StreamPlan)


def worst_noise(plan: BatchPlan | StreamPlan, users: int) -> dict[str, float]:
    """Standard deviation of the noise by statistic; of streams at the worst time."""
    variances = [plan.noise_variance(time) for time in _times(plan, users)]
    return {name: math.sqrt(max(v[name] for v in variances)) for name in plan.statistics}


def least_noise(plans: Sequence[_Plan], users: int) -> _Plan:
    """The plan whose noisiest counter has the least noise; the first of equals."""
    if len(plans) == 1:
        return plans[0]
    return min(plans, key=lambda plan: max(worst_noise(plan, users).values()))


def _times(plan: BatchPlan | StreamPlan, users: int) -> Iterable[int]:
    if isinstance(plan, BatchPlan):
        return [users]
    from discreet.privacy.mechanisms.toeplitz import ToeplitzStream  # brings scipy along

    if isinstance(plan, ToeplitzStream):
        return [plan.noise.worst_episode]
    return _worst_times(users)


def _worst_times(episodes: int) -> Iterator[int]:
    """The last release, and below it the numbers with the most ones in base two (trees).

    >>> list(_worst_times(12))
    [12, 11, 7]
    """
    yield episodes
    for position in range(episodes.bit_length()):
        if episodes >> position & 1 and (time := (episodes >> position << position) - 1) > 0:
            yield time
