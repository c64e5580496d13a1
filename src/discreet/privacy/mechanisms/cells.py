"""The counters of a batch as cells, of which every user is in one per group.

A group is a statistic at a step. Of the transitions its cells are (s, a, s'), of the rewards
(s, a, 0) and (s, a, 1), of the visits, where they are asked for beside them, (s, a); in every group
one more counts the users who have left the public policy. Whoever adds noise adds it to cells; what
is published follows from them: visits are the sum of a reward's two cells, centred rewards half of
their difference (`sensitivity` has the bounds).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet._types import BoolArray, FloatArray, IntArray
from discreet.mdp.counts import Counts
from discreet.privacy.mechanisms.base import BatchMechanism, batch_release
from discreet.privacy.statistics import Debias, PrivateCounts, debias

Draw = Callable[[str, int], IntArray]
"""``draw(statistic, n)`` returns n independent integers."""


@dataclass(eq=False)
class Cells:
    """Rows are those of the support, in the order of their steps.

    Attributes:
        support: ``bool[H, S, A]``, what the public policy can reach.
        rows: statistic -> ``[R, width]``: transitions S, rewards (no reward, reward), visits 1.
        left: statistic -> ``[steps]``, users who have left the policy; as many as it has groups.
    """

    support: BoolArray
    rows: dict[str, IntArray]
    left: dict[str, IntArray]

    @classmethod
    def empty(
        cls, support: BoolArray, statistics: tuple[str, ...], *, last_transitions: bool
    ) -> "Cells":
        """Nobody yet."""
        horizon, rows = len(support), int(support.sum())
        widths = {"transitions": support.shape[1], "visits": 1, "rewards": 2}
        steps = {"transitions": horizon if last_transitions else horizon - 1}
        return cls(
            support,
            {name: np.zeros((rows, widths[name]), np.int64) for name in statistics},
            {name: np.zeros(steps.get(name, horizon), np.int64) for name in statistics},
        )

    @classmethod
    def of(
        cls,
        counts: Counts,
        support: BoolArray,
        statistics: tuple[str, ...],
        *,
        last_transitions: bool,
    ) -> "Cells":
        """Of counts that have exactly the rows of the support."""
        made = cls.empty(support, statistics, last_transitions=last_transitions)
        visits, rewards = counts.row_visits, counts.row_rewards
        own = {"transitions": counts.row_transitions, "visits": visits[:, None]}
        own["rewards"] = np.stack([visits - rewards, rewards], axis=1)
        here = np.bincount(made.steps, visits, len(support)).astype(np.int64)  # exact below 2^53
        for name, left in made.left.items():
            reached = made.ends[len(left)]
            made.rows[name][:reached] = own[name][:reached]
            left[:] = counts.users - here[: len(left)]
        return made

    @cached_property
    def steps(self) -> IntArray:
        """``[R]``, the step of every row."""
        return np.nonzero(self.support)[0]

    @cached_property
    def ends(self) -> list[int]:
        """Rows up to each step, zero first."""
        return [0, *np.cumsum(self.support.sum(axis=(1, 2))).tolist()]

    def at(self, step: int) -> slice:
        """The rows of a step."""
        return slice(self.ends[step], self.ends[step + 1])

    def plus(self, draw: Draw) -> None:
        """Add noise of its own to every cell: statistic by statistic, then to who has left."""
        for name, left in self.left.items():
            cells = self.rows[name][: self.ends[len(left)]]
            own = cells.T if name == "rewards" else cells
            own += draw(name, own.size).reshape(own.shape)
        for left in self.left.values():
            np.add(left, draw("dropped_out", left.size), out=left)

    def add(self, statistic: str, step: int, seen: IntArray) -> None:
        """Add to all cells of a group, who has left the last of them."""
        rows = self.rows[statistic][self.at(step)]
        rows += seen[:-1].reshape(rows.shape)
        self.left[statistic][step] += seen[-1]

    def counters(self) -> dict[str, IntArray]:
        """Released integers by statistic, as rows: rewards are sums of 2r - 1."""
        found = {name: rows for name, rows in self.rows.items() if name == "transitions"}
        if "visits" in self.rows:
            found["visits"] = self.rows["visits"][:, 0]
        if "rewards" in self.rows:
            zero, one = self.rows["rewards"].T
            found["rewards"] = one - zero
            found.setdefault("visits", zero + one)
        return found

    def worth(
        self,
        means: Mapping[str, FloatArray] | None = None,
        units: Mapping[str, float] | None = None,
    ) -> Debias:
        """What the integers are worth.

        Args:
            means: statistic -> ``[steps]``, of the noise on one of its cells (zero if left out).
            units: statistic -> what one cell counts (one if left out).
        """
        centres: dict[str, FloatArray | float] = {}
        for name, mean in (means or {}).items():
            rows = np.zeros(len(self.steps))
            here = self.ends[len(mean)]
            rows[:here] = mean[self.steps[:here]]
            if name == "rewards" and "visits" not in self.rows:
                centres["visits"] = 2 * rows
            elif name != "rewards":
                centres[name] = rows[:, None] if name == "transitions" else rows
        known = units or {}
        scales = {name: known.get(name, 1.0) for name in ("transitions", "visits")}
        if "rewards" in self.rows and "visits" not in self.rows:
            scales["visits"] = known.get("rewards", 1.0)
        return Debias(centres=centres, scales=scales | {"rewards": known.get("rewards", 1.0) / 2})

    def published(
        self,
        mechanism: BatchMechanism,
        users: int,
        *,
        secure: bool,
        means: Mapping[str, FloatArray] | None = None,
        noise_variance: Mapping[str, float] | None = None,
    ) -> PrivateCounts:
        """What a curator or an analyser who sees all cells publishes."""
        mean = means or {}
        left = {name: debias(seen, 1.0, mean.get(name, 0.0)) for name, seen in self.left.items()}
        return batch_release(
            mechanism,
            self.counters(),
            users,
            self.support,
            secure=secure,
            estimate=self.worth(means),
            dropped_out=left,
            noise_variance=noise_variance,
        )
