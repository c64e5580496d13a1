"""The classes of a batch: how many cells, how many noise cells per user, in integers throughout.

For D cells, n users and noise of mean lambda per cell, lambda an exact fraction,

    K = ceil(D·lambda/n),    Q = min(2^32, ceil(2^32·D·lambda/(n·K))),

and a noise cell is not blank with probability q = Q/2^32. Device and analyser compute the same
numbers from the public description; an analyser cannot ask for less noise than lambda says.
"""

from collections.abc import Sequence
from typing import NamedTuple

from discreet.device.description import STATISTICS
from discreet.device.draws import WORD


class MessageClass(NamedTuple):
    """All messages of one statistic at one step.

    Attributes:
        statistic: transitions, rewards or visits.
        step: h.
        cells: D, with ``none``.
        noise: K, noise cells per user.
        weight: Q; a noise cell is not blank with probability Q/2^32.
    """

    statistic: str
    step: int
    cells: int
    noise: int
    weight: int

    @property
    def none(self) -> int:
        """The cell of users who have left the policy."""
        return self.cells - 1

    @property
    def messages(self) -> int:
        """Per user."""
        return 1 + self.noise


def layout(
    rows: Sequence[int],
    states: int,
    statistics: Sequence[str],
    *,
    last_transitions: bool,
    users: int,
    mean: tuple[int, int],
) -> tuple[MessageClass, ...]:
    """All classes of a batch, in the order in which they are sent.

    >>> for one in layout([2], 2, ["rewards"], last_transitions=False, users=100, mean=(50, 1)):
    ...     print(one)
    MessageClass(statistic='rewards', step=0, cells=5, noise=3, weight=3579139414)

    Args:
        rows: played pairs per step.
        states: S.
        statistics: which of transitions, rewards and visits.
        last_transitions: whether the last step has a class of transitions.
        users: n.
        mean: lambda as numerator and denominator.
    """
    width = {"transitions": states, "rewards": 2, "visits": 1}
    found = []
    for name in (name for name in STATISTICS if name in statistics):
        steps = len(rows) - (name == "transitions" and not last_transitions)
        for step in range(steps):
            cells = rows[step] * width[name] + 1
            noise, weight = _noise(cells, users, mean)
            found.append(MessageClass(name, step, cells, noise, weight))
    return tuple(found)


def _noise(cells: int, users: int, mean: tuple[int, int]) -> tuple[int, int]:
    """K and Q of a class."""
    numerator, denominator = cells * mean[0], users * mean[1]
    noise = -(-numerator // denominator)
    return noise, min(WORD, -(-WORD * numerator // (denominator * noise)))
