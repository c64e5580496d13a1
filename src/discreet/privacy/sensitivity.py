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

**Cells of a group** (`CENTRED`). A release of transitions and rewards, central or shuffled, counts
each user in exactly one cell of every *group*, a statistic at a step: (s, a, s') of the
transitions, (s, a, 1) or (s, a, 0) of the rewards, and ``dropped_out`` if she has left the policy.
Replacing her moves one unit from a cell to another, or nothing, in every group: L1 = 2g and
L2 = sqrt(2g) for g groups, H of each statistic and one fewer without the transitions of the last
step, which teach nothing in a finite horizon. A pair of users who differ in fewer groups is a part
of the view of one who differs in all, so this is the worst, and with one distribution of noise on
every cell nothing else has to be composed. With noise of variance v, half the difference of the two
cells of a reward is the sum C of r - 1/2 with variance v/2, their sum is a measurement of the
visits with variance 2v, and the two are uncorrelated.

**People who return** up to m times, neighbours differing in all of a person's episodes. *In
separate releases* (batches, each of which holds a person once, and local reports): given all
earlier releases, the next one is that of neighbours who differ in one episode, whatever the person
and everybody else did in response, and which releases those are is public and the same on both
sides. So the whole view is an adaptive composition of m releases; each of them is dominated by the
pair of distributions that its calibration composes (the moves above), and adaptive compositions of
dominated pairs are dominated by the product of the pairs that dominate (Zhu, Dong and Wang 2022,
Theorem 10). Hence m times as many units move, by `pile` at most in one counter, and nothing else
changes: L1 grows by m, L2 by sqrt(m). *In one continual release* the moves meet in the same
counters; `tree` and `toeplitz` say how. *Together in one batch release* (logged episodes,
`discreet.fit`) they meet, too, and a sum of m is not a composition of m. A person who has up to m
episodes in it adds, at each step and to each statistic, k <= m units to cells of her choice; one
who replaces her adds k' <= m units to others. Whatever k and k' are, nothing included, at most 2m
units move, and at most m in one cell. With g groups that is L1 = 2gm and, at the worst all of a
group's units between two cells, L2 = m·sqrt(2g): both are m times as large as for one episode, and
the noise with them. It is reached: m equal episodes against m equal others. So `pile` is m there,
and participations count as one: nothing is composed, and no delta can be gained by composing.

*Other splits were tried* (`research.splits`). With variances v_t and v_r of transitions and centred
rewards, and 4·v_r of visits, Gaussian noise costs H/v_r + 2m/v_t (m groups of transitions), and an
estimated value r + P·V errs by about v_r·(1 + 4(r - 1/2)²) + v_t·S·(spread of V)²: the best
v_t/v_r is sqrt(2m·(1 + 4(r - 1/2)²)/(H·S))/spread, 1 to 4 for four to sixteen states, and within a
factor of two of it the error grows by 6% at most. Regret tells 2 and 4 not apart. Without visits
(C alone, in half units) noise is 14% less and visits have to be added up from S transitions.
"""

import math
from dataclasses import dataclass

from discreet import _validate
from discreet.errors import InvalidInputError

STATISTICS = ("transitions", "visits", "rewards")
CENTRED = ("transitions", "rewards")
"""What is released in groups of cells; with visits beside them, rewards are what papers print."""


@dataclass(frozen=True)
class Sensitivity:
    """How far one user can move the released counters (replace-one).

    Attributes:
        units: sum of absolute changes (L1) of all participations; each is a whole number of units.
        pile: the most units in one counter of one release that a participation is in.
        horizon: H, for printed constants.
        participations: in how many releases, or how often in a continual one.
        separation: the least number of episodes from one to the next, in a continual one.
    """

    units: int
    pile: int = 1
    horizon: int = 1
    participations: int = 1
    separation: int = 1

    @classmethod
    def of(
        cls,
        horizon: int,
        statistics: tuple[str, ...] = STATISTICS,
        *,
        stationary: bool = False,
        last_transitions: bool = True,
        participations: int = 1,
        separation: int = 1,
        together: bool = False,
    ) -> "Sensitivity":
        """Of a joint release of ``statistics``, with or without the transitions of the last step.

        ``together``: all participations of a person meet in one batch.

        >>> s = Sensitivity.of(6)
        >>> s.l1, round(s.l2, 6)
        (36, 6.0)
        >>> round(Sensitivity.of(6, stationary=True).l2 / 6, 6)  # sqrt(6)·H
        2.44949
        >>> Sensitivity.of(6, CENTRED, last_transitions=False).moves
        11
        >>> Sensitivity.of(6, participations=4).l2
        12.0
        >>> Sensitivity.of(6, participations=4, together=True).l2
        24.0
        """
        _validate.count(horizon=horizon)
        if not statistics or len(set(statistics)) != len(statistics):
            raise InvalidInputError(f"Expected distinct statistics, got {statistics!r}.")
        for name in statistics:
            _validate.choice(STATISTICS, statistics=name)
        moves = horizon * len(statistics)
        moves -= "transitions" in statistics and not last_transitions
        pile = horizon if stationary else 1
        units = 2 * moves * participations
        if together:
            return cls(units, pile * participations, horizon)
        return cls(units, pile, horizon, participations, separation)

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
        return -(-self.units // self.pile)

    @property
    def l2(self) -> float:
        """Root of the sum of squares at the worst moves, in releases of their own."""
        return math.sqrt(self.units * self.pile)

    @property
    def apart(self) -> str:
        """How participations in a continual release lie, in words."""
        return f"{self.separation:,} or more episodes apart"

    @property
    def squares(self) -> int:
        """The same of one participation, squared."""
        return self.units * self.pile // self.participations
