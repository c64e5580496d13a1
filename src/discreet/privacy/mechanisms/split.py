"""Local, split reports: one transition or one reward of one step, with the whole epsilon.

The user draws what to report: with probability 2/3 the move (s, a, s') of a uniformly drawn step,
else the reward bit (s, a, r) of a uniformly drawn step. She reports the one cell she was in there
as a vector of bits: the true bit is one with probability p = 1/2, every other bit with probability
q = 1/(e^epsilon + 1) (optimised unary encoding, Wang, Blocki, Li and Jha 2017). A cell of the
transitions of step h is estimated by L·(y - q·m)/(p - q), with y the ones among the m users who
reported it and L the inverse of the probability of reporting it: 3/2 times the number of steps for
transitions, 3·H for rewards. Of the two cells of (s, a), n1 and n0, the centred reward is
(n1 - n0)/2, a sum of r - 1/2; their sum is another look at the visits.

**Proof.** What a user reports about, the statistic and the step, is drawn independently of her
data, so it suffices to compare two episodes that report about the same. They are in cells c != c',
or one of them in none (she has left the policy; then no bit is true). Two cells: the reports differ
in the distribution of bits c and c' only, and every likelihood ratio is at most
(p/q)·((1-q)/(1-p)) = (1-q)/q = e^epsilon. A cell against none: one bit's ratio, at most
max(p/q, (1-q)/(1-p)) = max((e^epsilon + 1)/2, 2/(1 + e^-epsilon)), below e^epsilon. Pure epsilon,
no delta, whether users follow the policy or not. What is estimated from reports is post-processing.

**Why it is better than one category of everything** (`one_step`). There a transition counter sums 2
noisy categories and a reward counter S of them; here each is one cell or half the difference of
two, at the price of hearing of it from 2/3 or 1/3 of the users. Noise variance per user on a
counter nobody visits, in units of H·q(1-q)/(p-q)²: transitions 3/2·(H-1)/H instead of 2, rewards
3/2 instead of S.

A batch is simulated by splitting its users over what they report; a cell with x of m users is then
Binomial(x, p) + Binomial(m - x, q): the cost does not depend on the number of users.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet import _validate
from discreet._types import BoolArray, IntArray
from discreet.device.local import WEIGHTS, Part, parts
from discreet.errors import InvalidInputError
from discreet.mdp.shape import Shape
from discreet.privacy.mechanisms._devices import SplitEncoder
from discreet.privacy.mechanisms.additive import check_reports
from discreet.privacy.mechanisms.base import (
    BatchMechanism,
    Certified,
    Draw,
    Request,
    batch_release,
)
from discreet.privacy.mechanisms.cells import Cells
from discreet.privacy.mechanisms.one_step import KEEP, false_bit, one_category
from discreet.privacy.mechanisms.randomized_response import LISTED
from discreet.privacy.mechanisms.registry import MechanismSpec
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.sensitivity import CENTRED
from discreet.privacy.statistics import Debias, PrivateCounts, check_support, supported_counts

if TYPE_CHECKING:
    from discreet.privacy.trust import PrivateTrust


@dataclass(frozen=True, eq=False, kw_only=True)
class SplitBatch(BatchMechanism):
    """Every user reports a transition or a reward; ``flip`` is the probability of a false bit."""

    audit = replace(LISTED, statistics=CENTRED, last_transitions=False)
    flip: float

    @classmethod
    def designed(
        cls, spec: MechanismSpec, trust: "PrivateTrust", request: Request
    ) -> dict[str, Any]:
        request.check()
        centred = "rewards" in request.statistics
        more = {"centred": centred, "last_transitions": request.last_transitions}
        return false_bit(trust, request) | more

    @property
    def takes_counts(self) -> bool:
        """Each user reports something else."""
        return False

    @property
    def takes_reports(self) -> bool:
        return True

    def certified(self, users: int | None = None) -> Certified:
        return one_category(self.flip)

    @property
    def parts(self) -> dict[str, Part]:
        """What is reported, by statistic."""
        found = parts(
            self.statistics,
            self.shape.states,
            self.shape.horizon,
            last_transitions=self.last_transitions,
        )
        return {part.statistic: part for part in found}

    def rarity(self, statistic: str) -> float:
        """L: one of so many users reports a given step of the statistic."""
        total = sum(WEIGHTS[name] for name in self.parts)
        return self.parts[statistic].steps * total / WEIGHTS[statistic]

    def noise_variance(self, users: int) -> dict[str, float]:
        """On counters that nobody visits; visits beside rewards are their two cells' sum."""
        one = users * self.flip * (1 - self.flip) / (KEEP - self.flip) ** 2
        found = {}
        if "rewards" in self.parts:
            cell = one * self.rarity("rewards")
            found = {"visits": 2 * cell, "rewards": cell / 2}
        if "transitions" in self.statistics:
            # Of a single step nobody may report them: then what the rarest statistic carries.
            seen = "transitions" if "transitions" in self.parts else "rewards"
            found["transitions"] = one * self.rarity(seen)
        shown = {*self.statistics, *(("visits",) if "rewards" in self.statistics else ())}
        return {name: value for name, value in found.items() if name in shown}

    @property
    def visit_variance(self) -> float:
        """A move counts L/(p - q) with probability p/L: what that adds to an empty counter."""
        return self._thinning("transitions" if "transitions" in self.parts else "rewards")

    @property
    def reward_visit_variance(self) -> float:
        """Half the difference of two cells, one of which is the visit's: a quarter of its cell's.

        Besides r(1-r), whatever the reward r is on average.
        """
        return self._thinning("rewards" if "rewards" in self.parts else "transitions") / 4

    def _thinning(self, statistic: str) -> float:
        """L·(1/2 - 2q + 2q²)/(p - q)² - 1, by the second moments of true and false bits.

        The numerator is 2(p - q)², as p = 1/2: nothing is left to divide by.
        """
        return 2 * self.rarity(statistic) - 1

    def simulate(
        self, draw: Draw, users: int, *, sampler: Sampler, support: BoolArray | None = None
    ) -> PrivateCounts:
        """Split the users over what they report, run each group, randomise its cells."""
        _validate.count(users=users)
        mask = check_support(support, self.shape)
        slots, groups, cells = self._slots(), self._nobody(), self._cells(mask)
        rest, likely = users, 1.0
        for name, step in slots:
            weight, last = 1 / self.rarity(name), (name, step) == slots[-1]
            size = rest if last else int(sampler.binomial(rest, min(1.0, weight / likely), 1)[0])
            groups[name][step], rest, likely = size, rest - size, likely - weight
            if size:
                seen = supported_counts(draw(size), self.shape, mask)
                last = self.last_transitions
                true = Cells.of(seen, mask, (name,), last_transitions=last).rows[name]
                truth = true[cells.at(step)]
                kept = sampler.binomial(truth, KEEP, truth.shape)
                false = sampler.binomial(size - truth, self.flip, truth.shape)
                cells.rows[name][cells.at(step)] = kept + false
        released, estimate = self._estimated(cells, groups)
        return batch_release(self, released, users, mask, secure=sampler.secure, estimate=estimate)

    def _slots(self) -> list[tuple[str, int]]:
        """What a user may report about: a statistic at a step."""
        return [(name, step) for name, part in self.parts.items() for step in range(part.steps)]

    def _nobody(self) -> dict[str, IntArray]:
        return {name: np.zeros(self.shape.horizon, np.int64) for name in WEIGHTS}

    def _cells(self, support: BoolArray) -> Cells:
        return Cells.empty(support, CENTRED, last_transitions=self.last_transitions)

    def _estimated(
        self, cells: Cells, groups: dict[str, IntArray]
    ) -> tuple[dict[str, IntArray], Debias]:
        """From the ones in the cells of the support, and how many reported each step."""
        shown, unit = self.noise_variance(1), 1 / (KEEP - self.flip)
        found = {name: seen for name, seen in cells.counters().items() if name in shown}
        chance = {name: self.flip * reported.astype(float) for name, reported in groups.items()}
        return found, cells.worth(chance, {name: self.rarity(name) * unit for name in self.parts})

    def encoder(self, users: int = 1, *, support: BoolArray | None = None) -> SplitEncoder:
        """What runs on each device; it does not depend on ``users``."""
        return SplitEncoder.of(
            self.shape,
            self.statistics,
            self.flip,
            check_support(support, self.shape),
            last_transitions=self.last_transitions,
        )

    def add_up(
        self, reports: IntArray, users: int, support: BoolArray
    ) -> tuple[dict[str, IntArray], Debias]:
        """Add up the reports of ``users`` distinct users, slot by slot."""
        slots, groups, cells = self._slots(), self._nobody(), self._cells(support)
        rows = _check_rows(reports, users, self.shape, len(slots))
        pairs = self.shape.states * self.shape.actions
        for number, (name, step) in enumerate(slots):
            mine = rows[rows[:, 0] == number, 1:]
            width = self.parts[name].width
            ones = mine.sum(axis=0)[: pairs * width].reshape(*self.shape.visits[1:], width)
            cells.rows[name][cells.at(step)], groups[name][step] = ones[support[step]], len(mine)
        return self._estimated(cells, groups)


def _check_rows(reports: IntArray, users: int, shape: Shape, slots: int) -> IntArray:
    rows = check_reports(reports, users, 1 + report_width(shape))
    numbers, bits = rows[:, 0], rows[:, 1:]
    if ((numbers < 0) | (numbers >= slots)).any() or ((bits != 0) & (bits != 1)).any():
        raise InvalidInputError(
            f"Expected reports of a slot from 0 to {slots - 1} followed by bits."
        )
    return rows


def report_width(shape: Shape) -> int:
    """Bits of a report as the analyser takes it: all (s, a), of the wider statistic."""
    return shape.states * shape.actions * max(shape.states, 2)
