"""How far the released statistics can move when one user's trajectory is replaced by any other.

At each of the H steps one unit leaves one cell of each statistic and enters another (of the reward
sums: at most one bit each way). So for k statistics at most kH cells go up by one and kH go down by
one: L1 = 2kH. With one counter per step the moved cells of different steps are distinct, hence
L2 = sqrt(2kH). Pooled over steps (stationary counts) they can pile up on one cell: a user who
visits one cell H times is replaced by one who visits another H times, L2 = H·sqrt(2k).

*Users who leave the public policy* have a release like everybody: from the first step that the
policy cannot take (a foreign start included) they count as nothing. This changes no bound. What one
user adds to a statistic at a step is a unit in one cell or nothing, a function of that user's
episode and of the public policy alone; nobody else's part depends on it. So when the user is
replaced, at most one unit per statistic and step leaves a cell and at most one enters one, as
above, with "at most" where it said "one": L1 <= 2kH and, the cells of different steps being
distinct, L2 <= sqrt(2kH); pooled, each of a statistic's two vectors has norm at most H and
nonnegative entries, so they differ by at most H·sqrt(2). A change of fewer cells is also dominated
where a calibration composes cell by cell: a cell that does not move has the same law in both
worlds, which every pair of laws can be processed into. Without `followed` (counts that are given as
sums) steps outside the policy are dropped one by one, and the same lines hold.
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
