"""flow-ucb: optimism on batches, with everything that costs no privacy. Ours.

**Privacy** is proven: every user is in exactly one batch, each batch is released once (parallel
composition), and all else is post-processing of releases. Sizes and number of batches depend on
released statistics only. **No regret bound is claimed.**

A *row* is (h, s, a); N, M, F, G and D are its sums (`learners.estimate`), B = sum w·sigma, sd² the
variance of r + P·V, with lower-order reach 2(H - h) for transitions and 2 for rewards; t users have
been told, K - t are left. The nine rules:

1. *Release* transitions and rewards r - 1/2 of the actions in the policy's support, and project
   them onto consistent flows (`discreet.privacy.projection.flow`), with the visits they tell.
2. *Weigh* a batch in each row by w = m/(m + sigma²/0.1), m the visits that the model predicted.
3. *Pool* steps unless counts contradict it (`learners.pooling`): z >= 4.
4. *Width* = 2·c·ln(1 + (K - t)/(S·A·N)) with c = ``confidence`` = 0.2/H^(1/3).
5. *Bonus* = sqrt((width·sd)² + (b·B·(max V - P·V)/(N - sqrt D))²): the projection takes from what
   is rare, so that B visits of a row may have led, unseen, to the best next state; b = min(1,
   t/(100·sigma·H·S·A)). A row whose visits noise explains, N <= sqrt D, is worth 1 + max V, and
   nothing is worth more.
6. *Size*: the smallest batch that is predicted to leave 0.7 of min(bonus, value) along its policy,
   through rows that are known; at most as many users as before it, the first one as many as show a
   reward above its noise, at most a tenth of all.
7. *Mix* up to three candidate policies in a batch, each made as if those before it had been played;
   their users play one stochastic policy whose flow is the mixture of theirs.
8. *Stop*: a batch that would be larger than what it leaves is the last and plays the best policy of
   the model. With ``batches=N`` the first has K^((1 + 1/N)/2) users and plays every action alike,
   a later one after b others at least t·((K/t)^(1/(N - b)) - 1); who is not needed plays greedily.
9. *Check* pooled rows at single steps where that costs at most 3e-4 of all users
   (`FlowUCB.checked`): counts cannot contradict what nobody looks at.
"""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from discreet import _validate
from discreet._types import FloatArray
from discreet.errors import InvalidInputError
from discreet.learners.base import Batch, FlowLearner
from discreet.learners.estimate import (
    VISITS,
    ModelEstimate,
    ReleasedRows,
    mechanism_factors,
    weight_of,
)
from discreet.learners.flow_ucb import planning
from discreet.learners.flow_ucb.planning import CandidatePolicy, Planner, ReleaseTerms
from discreet.learners.pooling import Pooled, estimated, pooled_rows
from discreet.learners.registry import LearnerSpec, by_name
from discreet.learners.settings import OwnSettings, at_least_two_batches
from discreet.mdp.policies import DeterministicPolicy, StochasticPolicy, uniform_policy
from discreet.privacy.mechanisms.base import BatchMechanism
from discreet.privacy.statistics import PrivateCounts

EASE = 0.1
"""Variance per visit against which noise is weighed."""
CONFIDENCE = 0.2
"""Of one step; over H^(1/3) for H."""
HIDING = 100.0
"""Users per unit of noise and row from which on the projection is taken to hide ways."""
SHRINK = 0.7
"""What a batch may leave of what is not known."""
CANDIDATES = 3
"""In a batch; three times as many where batches are limited."""
CHECKING = 3e-4
"""Share of all users that the check of a state at a step may cost."""


@dataclass(frozen=True, kw_only=True)
class FlowSettings(OwnSettings):
    """What may be set of flow-ucb.

    Attributes:
        confidence: the one multiplier on widths; None: 0.2/H^(1/3).
        pooling: steps are pooled where released counts do not contradict it, or never.
        mixing: False: every batch has one candidate policy, one action per state and step.
        batches: at most so many recruitments; None: as many as it takes.
    """

    confidence: float | None = None
    pooling: Literal["gated", "never"] = "gated"
    mixing: bool = True
    batches: int | None = None

    def check(self) -> None:
        super().check()
        if self.confidence is not None:
            _validate.positive(confidence=self.confidence)
        at_least_two_batches(self.batches)


def noise_by_users(mechanism: BatchMechanism) -> Callable[[float], tuple[float, float]]:
    """Variances of transitions and rewards by batch size, interpolated between powers of two.

    Exact for noise that is constant (central, shuffle) or proportional to the users (local); a
    mechanism may need milliseconds for each size, and sizing a batch asks for many.
    """

    @functools.cache
    def at(power: int) -> tuple[float, float]:
        noise = mechanism.noise_variance(max(2**power, mechanism.min_users))
        return noise["transitions"], noise["rewards"]

    def noise(users: float) -> tuple[float, float]:
        power = max(0, math.floor(math.log2(users)))
        (low, low_rewards), (high, high_rewards) = at(power), at(power + 1)
        share = users / 2**power - 1
        return low + share * (high - low), low_rewards + share * (high_rewards - low_rewards)

    return noise


class Players(NamedTuple):
    """A candidate policy, and how many users of a batch play it."""

    candidate: CandidatePolicy
    users: int


def mixed(parts: Sequence[Players], users: int, choices: int) -> Batch:
    """A batch of ``users`` whose flow in the model is the weighted mean of the parts' flows."""
    if len(parts) == 1:
        candidate = parts[0].candidate
        return Batch(DeterministicPolicy(candidate.actions), users, candidate.occupancy)
    total = sum(part.users for part in parts)
    flow = np.zeros((*parts[0].candidate.actions.shape, choices))
    elsewhere = np.zeros_like(flow)
    for candidate, players in parts:
        taken = candidate.actions[..., None] == np.arange(choices)
        elsewhere += players / total * taken
        flow += players / total * taken * candidate.occupancy[..., None]
    occupancy = flow.sum(axis=-1)
    reached = occupancy > 1e-12
    share = np.where(
        reached[..., None], flow / np.where(reached, occupancy, 1.0)[..., None], elsewhere
    )
    share /= share.sum(axis=-1, keepdims=True)
    return Batch(StochasticPolicy(share), users, occupancy)


def smallest(enough: Callable[[int], bool], most: int) -> int:
    """The smallest number, within a percent, that is ``enough``; ``most`` if none is."""
    low, high = 1, most
    if not enough(high):
        return high
    while high - low > max(1, low // 100):
        middle = math.isqrt(low * high) if high > 4 * low else (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def rounded(users: int, left: int) -> int:
    """Up to two significant digits: round numbers are easier to recruit for."""
    unit = int(10 ** max(0, len(str(users)) - 2))
    return min(left, -(-users // unit) * unit)


def min_users(told: int, episodes: int, done: int, batches: int | None) -> int:
    """So many that ``batches`` suffice for all ``episodes``, of which ``done`` are over."""
    if batches is None:
        return 1
    if not told:
        return math.ceil(math.pow(episodes, (1 + 1 / batches) / 2))
    return math.ceil(told * (math.pow(episodes / told, 1 / max(1, batches - done)) - 1))


class FlowUCB(FlowLearner[FlowSettings]):
    """Optimism on flow-consistent batches."""

    name = "flow-ucb"
    summary = "optimism on flow-consistent batches: the practical private learner"
    settings_type = FlowSettings
    open_ended = True

    def begin(self) -> None:
        super().begin()
        problem, mechanism, shape = self.problem, self.mechanism, self.problem.shape
        if problem.stationary and self.chosen.pooling == "never":
            raise InvalidInputError(
                "Expected pooling='gated' where stationary=True declares that all steps are "
                "alike, got pooling='never'; leave one of the two out."
            )
        if self.chosen.confidence is None:
            self.settings["confidence"] = CONFIDENCE / shape.horizon ** (1 / 3)
        self._noise = noise_by_users(mechanism)
        self._factors = mechanism_factors(shape, problem.start, mechanism)
        initial = problem.start / problem.start.sum()
        self._planner = Planner(shape, initial, mechanism.centre)

    def add(self, counts: PrivateCounts, batch: Batch) -> None:
        """With each row's weight; `planning.expected_row` predicts the next's."""
        policy = self.distribution(batch)
        expected = counts.users * np.asarray(batch.occupancy)[..., None] * policy
        start, mechanism = self.problem.start, self.mechanism
        released = ReleasedRows.of(counts, policy, start, mechanism, expected)
        noise, reward_noise = (counts.noise_variance[name] for name in self.statistics)
        ease, foretold = EASE * (1 + mechanism.visit_variance), expected[released.rows]
        weight = weight_of(foretold, noise, ease)
        if not counts.last_transitions:
            weight = np.where(released.rows[0] == len(policy) - 1, 0.0, weight)
        self._sums.add(released, weight, weight_of(foretold, reward_noise, ease))

    def greedy(self) -> DeterministicPolicy:
        """The best policy of the model; actions that are not known are shunned."""
        return DeterministicPolicy(self._greedy(np.zeros(self.problem.shape.visits)).actions)

    def _greedy(self, tie: FloatArray) -> CandidatePolicy:
        return self._planner.made(self.model(exploring=False), tie)

    def model(self, *, exploring: bool = True) -> ModelEstimate:
        """The estimate, pooled where the gate and the check allow it (or as declared)."""
        sums = self._sums
        if self.problem.stationary or self.chosen.pooling == "never" or not self._told:
            return estimated(sums, Pooled.all_or_none(sums, self.problem.stationary))
        pooled = pooled_rows(sums, self.reward_share)
        return self.checked(estimated(sums, pooled), exploring=exploring)

    def checked(self, model: ModelEstimate, *, exploring: bool) -> ModelEstimate:
        """Pooled rows, checked at steps where that costs a vanishing share of all users.

        Counts cannot contradict what nobody looks at. A state is due at a step if

            V·n <= 3e-4·K·rho,

        n the visits that show its reward above the noise, V the greedy value, which is all that a
        user can lose, and rho the largest chance of being there. While ``exploring``, a pooled
        reward that was not seen at such a step counts as never seen, and the batch that goes there
        is large enough to see it; an own reward that is better than the pooled one by its standard
        deviation, or an own next value by two, is used instead.
        """
        if not (model.pooled_rewards.any() or model.pooled_transitions.any()):
            return model
        greedy = self._planner.made(model, np.zeros(self.problem.shape.visits))
        chances = self._planner.chances(model, greedy.occupancy)
        users = CHECKING * self.problem.episodes
        cost = self._planner.value(greedy) * self.visits_to_see(max(1.0, users))
        verdict = np.zeros(self.problem.shape.visits, np.int64)
        due = cost[:, None] <= users * chances
        planning.examine(self._sums, model, due, greedy.values, self._planner.centre, verdict)
        if not exploring:
            verdict[verdict == planning.UNCHECKED] = 0
        return planning.with_own(self._sums, model, verdict) if verdict.any() else model

    def visits_to_see(self, users: float) -> FloatArray:
        """Visits ``[H]`` that show a reward of a half above the noise of so many users."""
        transitions, rewards = self._noise(users)
        needed = np.sqrt(rewards + transitions * self._factors * self.reward_share)
        return np.asarray(np.maximum(needed, 1.0) / planning.SEEN)

    def width(self, model: ModelEstimate) -> FloatArray:
        """Rule 4, ``[H, S, A]``."""
        left = (self.problem.episodes - self._told) / self.problem.shape.states
        seen = np.maximum(model.reward_sums[..., VISITS], 1.0) * self.problem.shape.actions
        return np.asarray(2 * float(self.settings["confidence"]) * np.log1p(left / seen))

    @property
    def hiding(self) -> float:
        """The b of rule 5."""
        rows, noise = math.prod(self.problem.shape.visits), self._noise(self.problem.episodes)[0]
        return min(1.0, self._told / (HIDING * max(math.sqrt(noise), 1) * rows))

    def next_batch(self) -> Batch:
        problem, told = self.problem, self._told
        model, left = self.model(), problem.episodes - told
        tie = self.rng.random(problem.shape.visits)
        least = min(left, min_users(told, problem.episodes, self._batches, self.chosen.batches))
        most = max(1, least, min(left, told or left // 10))
        fewest = self.mechanism.min_users
        parts = [self.sized(model, tie, most)]
        while self.chosen.mixing and len(parts) < CANDIDATES * (3 if self.chosen.batches else 1):
            room = most - sum(part.users for part in parts)
            if room <= 0:
                break
            model = planning.expecting(model, self._terms(parts[-1].users), parts[-1].candidate)
            parts.append(self.sized(model, tie, room))
        needed = sum(part.users for part in parts)
        users = rounded(min(max(needed, least, fewest), left), left)
        over = self.chosen.batches is not None and self._batches + 1 >= self.chosen.batches
        if over or left - users < max(users, fewest):  # the last batch teaches nobody
            return mixed([Players(self._greedy(tie), left)], left, problem.shape.actions)
        if self.chosen.mixing and self.chosen.batches is not None and not told:
            even = np.full(tie.shape[:2], 1 / problem.shape.states)
            even[0] = self._planner.initial
            return Batch(uniform_policy(problem.shape), users, even)
        if self.chosen.mixing and needed < least:
            parts.append(Players(self._greedy(tie), users - needed))
        return mixed(parts, users, problem.shape.actions)

    def sized(self, model: ModelEstimate, tie: FloatArray, most: int) -> Players:
        """Rule 6: the optimistic policy of the model, with at most so many users."""
        width, planner = self.width(model), self._planner
        candidate = planner.made(model, tie, width, self.hiding)
        if not self._told:
            return Players(candidate, smallest(lambda n: n >= self.visits_to_see(n).max(), most))
        reachable = planner.reachable(model, candidate)
        unknown = float((reachable.occupancy * candidate.bonus).sum())
        goal = SHRINK * min(unknown, planner.value(candidate))

        def enough(users: int) -> bool:
            terms = self._terms(users)
            return planning.unknown_after(model, terms, reachable, width, planner.centre) <= goal

        return Players(candidate, smallest(enough, most))

    def _terms(self, users: float) -> ReleaseTerms:
        mechanism = self.mechanism
        return ReleaseTerms(
            float(users),
            *self._noise(users),
            mechanism.visit_variance,
            mechanism.reward_visit_variance,
            self._factors,
            EASE * (1 + mechanism.visit_variance),
            mechanism.last_transitions,
        )


SPECS = by_name(LearnerSpec.of_batch(FlowUCB, paper="ours"))
