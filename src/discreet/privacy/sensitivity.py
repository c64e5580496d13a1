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
where a calibration composes cell by cell: a cell that does not move has the same distribution in
both worlds, which every pair of distributions can be processed into. Without `followed` (counts
that are given as sums) steps outside the policy are dropped one by one, and the same lines hold.

**Centred rewards** (`Sensitivity.of_centred`). Instead of the reward sums R, a release can hold the
sums C of r - 1/2, and leave out the transitions of the last step: they teach nothing in a finite
horizon. All counters are held in *half units*: a transition counts 2, a reward bit 2r - 1 counts
plus or minus 1. Per step there is one counter more, of the users who have left the policy (2 each),
so that everybody is in one counter of the transitions at every step.

Compare the *cells* (s, a) of a user and of the one who takes her place. If they are the same at a
step, its reward counter moves by 2 or not at all, and its transitions do not move unless the next
states differ: then two counters move by 2. If the cells differ, or one of the two has left, two
counters of the transitions and at most two of the rewards move, by 2 and by 1. After a step in the
same cell with the same next state, the cells of the next step may be the same or not (another
action, a user who leaves); after one with different next states they are not the same. So along an
episode of d steps in different cells, the transitions of a step stay unmoved only where the same
cell is followed by the same cell. With m the steps whose transitions are released and j <= m those
that stay unmoved, at most a(d) = 2(m - j) + (H - d) counters move by 2 and b(d) = 2d by 1.

*Lemma.* Nothing moves further than a* = 2m + H - d* counters by 2 and b* = 2d* by 1, with
d* = floor(H/2): the two users are in the same cell at every other step.

*Proof.* (1) A move of fewer counters is a part of the view of a move of more. (2) With discrete
Gaussian noise Z, a shift of one counter by 2 covers shifts of two counters by 1. Add fresh noise Z'
to the counter: Z + Z' + (0 or 2) has the distribution of the sum of the two counters, and the sum
is sufficient for a common shift of a Gaussian pair, discrete or not: given it, the distribution of
the two counters is the same in both worlds, so they can be drawn from it. (Signs do not matter,
noise is symmetric.) (3) d > d*: a(d) <= 2m + H - d = a* - (d - d*), b(d) = b* + 2(d - d*): by (2),
d - d* times, and (1). (4) d < d*: the H - d steps in the same cell fall into at most d + 1 runs, so
at least H - 2d - 1 of them are followed by another one; with m >= H - 1, a(d) <= 2m - 2(H - 2d - 1)
+ H - d = 2m - H + 3d + 2, which is at most a* because 3d + d* + 2 <= 4d* - 1 < 2H; b(d) < b*. So
this is (1). qed

For Laplace noise the sum of absolute changes counts, 2a(d) + b(d) <= 4m + 2H = 2a* + b*: the same
move is the worst. With equal noise on both, a transition counter and a centred reward sum have the
same standard deviation, and all moves lie on one lattice, where they are composed exactly.
At H = 6 the move has length sqrt(58) half units, 3.81 units, instead of sqrt(24) = 4.90 (plain
sums, all transitions).
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

from discreet import _validate
from discreet.errors import InvalidInputError

STATISTICS = ("transitions", "visits", "rewards")
CENTRED = ("transitions", "rewards")
"""What is released with centred rewards: with visits beside them, rewards are what papers print."""


@dataclass(frozen=True)
class Sensitivity:
    """How far one user can move the released counters (replace-one).

    Attributes:
        units: sum of absolute changes (L1); each is a whole number of units.
        pile: the most units in one counter.
        horizon: H, for printed constants.
        singles: counters that move by one unit only, however large ``pile`` is.
    """

    units: int
    pile: int = 1
    horizon: int = 1
    singles: int = 0

    @classmethod
    def of(
        cls, horizon: int, statistics: tuple[str, ...] = STATISTICS, *, stationary: bool = False
    ) -> "Sensitivity":
        """Of a joint release of plain ``statistics``.

        >>> s = Sensitivity.of(6)
        >>> s.l1, round(s.l2, 6)
        (36, 6.0)
        >>> round(Sensitivity.of(6, stationary=True).l2 / 6, 6)  # sqrt(6)·H
        2.44949
        """
        _validate.count(horizon=horizon)
        if not statistics or len(set(statistics)) != len(statistics):
            raise InvalidInputError(f"Expected distinct statistics, got {statistics!r}.")
        for name in statistics:
            _validate.choice(STATISTICS, statistics=name)
        moves = horizon * len(statistics)
        return cls(units=2 * moves, pile=horizon if stationary else 1, horizon=horizon)

    @classmethod
    def of_centred(cls, horizon: int, *, last_transitions: bool) -> "Sensitivity":
        """Of transitions and centred rewards, in half units: the lemma above.

        >>> worst = Sensitivity.of_centred(6, last_transitions=False)
        >>> worst.l1, worst.piles, worst.singles, round(worst.l2 / 2, 4)
        (32, 13, 6, 3.8079)
        """
        _validate.count(horizon=horizon)
        steps = horizon if last_transitions else horizon - 1
        singles = 2 * (horizon // 2)
        return cls(units=4 * steps + 2 * horizon, pile=2, horizon=horizon, singles=singles)

    @property
    def l1(self) -> int:
        """Sum of absolute changes."""
        return self.units

    @property
    def moves(self) -> int:
        """Units that enter a counter, where as many leave one."""
        return self.units // 2

    @property
    def cells(self) -> int:
        """Counters that change, when each changes by as much as it can."""
        return self.piles + self.singles

    @property
    def piles(self) -> int:
        """Counters that change by ``pile``."""
        return -(-(self.units - self.singles) // self.pile)

    @property
    def l2(self) -> float:
        """Root of the sum of squares at the worst move."""
        return math.sqrt((self.units - self.singles) * self.pile + self.singles)


class Form(NamedTuple):
    """In which form a batch of statistics is released; see `BatchMechanism`."""

    centred: bool = False
    last_transitions: bool = True

    @classmethod
    def of(cls, horizon: int, statistics: tuple[str, ...], *, last_transitions: bool) -> "Form":
        """What costs least for these statistics, where the aggregator sees whole episodes.

        With a single step the transitions are kept: nothing else tells the visits.

        >>> Form.of(6, ("transitions", "rewards"), last_transitions=False)
        Form(centred=True, last_transitions=False)
        """
        if set(statistics) != set(CENTRED):
            return cls()
        return cls(centred=True, last_transitions=last_transitions or horizon == 1)

    def sensitivity(self, horizon: int, statistics: tuple[str, ...]) -> Sensitivity:
        """How far one user moves the released integers, in units or, centred, in half units."""
        if self.centred:
            return Sensitivity.of_centred(horizon, last_transitions=self.last_transitions)
        return Sensitivity.of(horizon, statistics)
