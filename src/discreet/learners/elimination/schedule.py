"""Exponential stages of policy elimination: who plays when, fixed before anybody is asked.

Stage b has length L_b; its parts take given shares of it. The lengths grow geometrically, so a
bounded share of the users is in the last stage and the price of privacy enters once per stage.
"""

import math
from dataclasses import dataclass

from discreet.mdp.shape import Shape


@dataclass(frozen=True)
class Schedule:
    """Users of every part of every stage, and of the exploit tail.

    Attributes:
        stages: for each stage, the users of each of its parts.
        tail: users who play the greedy policy of the last refined model.
    """

    stages: tuple[tuple[int, ...], ...]
    tail: int

    @property
    def users(self) -> int:
        return sum(map(sum, self.stages)) + self.tail


def first_length(shape: Shape, least: int) -> int:
    """A first stage in which every (h, x, a) can be played: a power of two near HXA/2.

    The papers start at 2, which leaves layers without a single episode.

    >>> first_length(Shape(states=4, actions=2, horizon=6), 32)
    32
    """
    tuples = shape.horizon * shape.states * shape.actions
    return max(least, 1 << math.ceil(math.log2(max(tuples / 2, 1))))


def staged_schedule(
    episodes: int, first: int, growth: float, shares: tuple[float, ...], *, tail: bool
) -> Schedule:
    """Stages of length ``first``, ``first * growth``, ... whose parts take ``shares`` of it.

    The data of the last stage would never be used. So with ``tail`` it is not played as a stage:
    the remaining users exploit. A stage that would leave a tail shorter than a quarter of itself
    is given to the tail too. Without ``tail`` the last stage is cut to what is left (as printed).

    >>> staged_schedule(1000, 32, 2, (1, 1, 1), tail=True)
    Schedule(stages=((32, 32, 32), (64, 64, 64), (128, 128, 128)), tail=328)
    >>> staged_schedule(400, 32, 2, (1, 1, 1), tail=False)
    Schedule(stages=((32, 32, 32), (64, 64, 64), (37, 37, 38)), tail=0)
    """
    stages: list[tuple[int, ...]] = []
    left, length = episodes, float(first)
    while left > 0:
        parts = tuple(round(share * length) for share in shares)
        size = sum(parts)
        if tail and left - size < size / 4:
            break
        if size >= left:
            parts, size = _in_proportion(left, shares), left
        stages.append(parts)
        left -= size
        length *= growth
    return Schedule(tuple(stages), left)


def _in_proportion(total: int, shares: tuple[float, ...]) -> tuple[int, ...]:
    """Integers in proportion to ``shares`` that sum to ``total``; the last takes the rest."""
    parts = [int(total * share / sum(shares)) for share in shares[:-1]]
    return (*parts, total - sum(parts))


def split_evenly(total: int, parts: int) -> tuple[int, ...]:
    """Integers that differ by at most one and sum to ``total``, the larger ones last.

    >>> split_evenly(11, 3)
    (3, 4, 4)
    """
    quotient, remainder = divmod(total, parts)
    return tuple(quotient + (i >= parts - remainder) for i in range(parts))
