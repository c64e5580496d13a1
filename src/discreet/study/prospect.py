"""What a study can promise and roughly how many users it needs, before anybody is asked."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from discreet.mdp.shape import Shape
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.plans import BatchPlan, StreamPlan

PRECISION = 0.1
"""Standard error of a mean reward at which actions can be told apart, roughly."""
_MOST = 10**13


@dataclass(frozen=True)
class Prospect:
    """What lies ahead of a study.

    Attributes:
        guarantee: what will be promised.
        users_needed: until the mean reward of every action in every state at every step is known
            within `PRECISION` (one standard error, noise included), if users tried all of them
            evenly and met all states evenly; None: never, at any number of users. A rule of thumb:
            learners need not try everything, and states are not met evenly.
        episodes: users that the study has.
    """

    guarantee: Guarantee
    users_needed: int | None
    episodes: int

    def __str__(self) -> str:
        """Two sentences."""
        return f"Promised: {self.guarantee}. {self.needed}"

    @property
    def needed(self) -> str:
        """How many users it takes, in a sentence."""
        if self.users_needed is None:
            return "No number of users is enough to learn anything."
        about = f"Roughly {self.users_needed:,} users are needed to tell actions apart everywhere"
        if self.users_needed > self.episodes:
            return f"{about}; this study has {self.episodes:,}: expect to learn little."
        return f"{about}; this study has {self.episodes:,}."


def users_needed(shape: Shape, plan: BatchPlan | StreamPlan, episodes: int) -> int | None:
    """See `Prospect`; rounded up to two digits."""

    def enough(users: int) -> bool:
        time = users if isinstance(plan, BatchPlan) else min(users, episodes)
        noise = plan.noise_variance(time)["rewards"]
        visits = users / (shape.states * shape.actions)
        return 0.25 / visits + noise / visits**2 <= PRECISION**2

    found = _least(enough)
    if found is None:
        return None
    unit = int(10 ** max(0, math.floor(math.log10(found)) - 1))
    return -(-found // unit) * unit


def _least(enough: Callable[[int], bool]) -> int | None:
    """The smallest number that is enough, within one part in a hundred."""
    high = 2
    while not enough(high):
        high *= 2
        if high > _MOST:
            return None
    low = high // 2
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
