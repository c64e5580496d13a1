"""How far the released statistics can move when one user's trajectory is replaced by any other.

At each of the H steps one unit leaves one cell of each statistic and enters another (of the reward
sums: at most one bit each way). So for k statistics at most kH cells go up by one and kH go down by
one: L1 = 2kH. With one counter per step the moved cells of different steps are distinct, hence
L2 = sqrt(2kH). Pooled over steps (stationary counts) they can pile up on one cell: a user who
visits one cell H times is replaced by one who visits another H times, L2 = H·sqrt(2k).
"""

import math
from dataclasses import dataclass

from discreet import _validate
from discreet.errors import InvalidInputError

STATISTICS = ("transitions", "visits", "rewards")


@dataclass(frozen=True)
class Sensitivity:
    """Worst-case change of the joint statistics under replace-one."""

    moves: int
    """Units that enter a cell; as many leave one (kH)."""
    pile: int
    """The most units that one user can put into a single cell (1, or H when pooled over steps)."""

    @property
    def l1(self) -> int:
        """Sum of absolute changes."""
        return 2 * self.moves

    @property
    def l2(self) -> float:
        """Root of the sum of squared changes: moves/pile cells change by pile, each way."""
        return math.sqrt(2 * self.moves * self.pile)


def sensitivity(
    horizon: int, statistics: tuple[str, ...] = STATISTICS, *, stationary: bool = False
) -> Sensitivity:
    """Sensitivity of a joint release of ``statistics``.

    >>> s = sensitivity(6)
    >>> s.l1, round(s.l2, 6)
    (36, 6.0)
    >>> round(sensitivity(6, stationary=True).l2 / 6, 6)  # sqrt(6)·H
    2.44949
    """
    _validate.count(horizon=horizon)
    if not statistics or len(set(statistics)) != len(statistics):
        raise InvalidInputError(f"Expected distinct statistics, got {statistics!r}.")
    for name in statistics:
        _validate.choice(STATISTICS, statistics=name)
    return Sensitivity(moves=horizon * len(statistics), pile=horizon if stationary else 1)
