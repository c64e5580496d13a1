"""Explore with designed coverage, then commit: the baseline that every learner should beat.

**Privacy** is proven: every user is in exactly one batch, each batch is released once (parallel
composition), and all else is post-processing of releases. **No regret bound is claimed** (with a
known gap, or with n ~ K^(2/3), the textbook analysis of explore-then-commit applies without
privacy).

1. *Explore* with n users (`exploration_users`: from public facts, or ``length``), in
   ``rounds`` batches, each as large as all before it together; who does not come is not replaced,
   since another batch would pay its noise anew. The first plays every action with
   the same probability; the others play the policy whose visits cover, in the model so far, every
   (step, state, action) that some policy can visit more often than noise pretends
   (`designed_policy`). With ``exploration="uniform"`` all n users are one batch of
   random actions: the textbook.
2. *Commit*: all other users play the best policy of the model, which shuns what it does not know.

Every batch is projected onto consistent flows; sums over batches have equal weights. Pooled over
steps if the problem is declared stationary.
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from discreet import _validate
from discreet._types import BoolArray, FloatArray
from discreet.learners.base import Batch, FlowLearner, PublicFacts
from discreet.learners.elimination.active_set import (
    ImplicitActiveSet,
    check_decisions,
    coverage_design,
    merge_policies,
)
from discreet.learners.elimination.explorers import shuffled_actions
from discreet.learners.estimate import (
    TOTAL,
    VISIT_VARIANCE,
    VISITS,
    CountSums,
)
from discreet.learners.registry import LearnerSpec, by_name
from discreet.learners.settings import OwnSettings, at_least_two_batches
from discreet.mdp.policies import DeterministicPolicy, StochasticPolicy, uniform_policy
from discreet.mdp.shape import Shape
from discreet.privacy.mechanisms.base import BatchMechanism
from discreet.privacy.statistics import PrivateCounts


def known_rows(sums: CountSums) -> BoolArray:
    """``bool[L, S, A]``: rows with more visits than noise explains."""
    return np.asarray(
        sums.reward_sums[..., VISITS] > np.sqrt(sums.reward_sums[..., VISIT_VARIANCE])
    )


def model_probabilities(sums: CountSums, horizon: int) -> FloatArray:
    """``[H, S, A, S]``: transitions of the model; unknown rows lead anywhere."""
    states = sums.transitions.shape[1]
    transitions = np.where(sums.number[..., None] >= 0, sums.transitions[sums.number], 0.0)
    totals = transitions.sum(axis=-1, keepdims=True)
    chances = np.full(transitions.shape, 1.0 / states)
    seen = known_rows(sums)[..., None] & (totals > 0.0)
    np.divide(transitions, totals, out=chances, where=seen)
    return np.broadcast_to(chances, (horizon, *chances.shape[1:]))


def greedy_policy(sums: CountSums, horizon: int, luck: FloatArray) -> DeterministicPolicy:
    """The best policy of the model, which shuns what it does not know.

    ``luck[H, S, A]``, distinct numbers, breaks ties; an action with a negative one is not possible.
    """
    chances, known = model_probabilities(sums, horizon), known_rows(sums)
    rewards = sums.reward_sums
    means = np.clip(rewards[..., TOTAL] / np.maximum(rewards[..., VISITS], 1e-12), 0.0, 1.0)
    values = np.zeros(chances.shape[1])
    actions = np.zeros((horizon, values.size), np.int64)
    for h in range(horizon - 1, -1, -1):
        layer = h if len(means) > 1 else 0
        worth = np.where(known[layer], means[layer] + chances[h] @ values, 0.0)
        worth = np.where(luck[h] < 0.0, -1.0, worth)
        values = worth.max(axis=1)
        tied = worth > values[:, None] - 1e-9
        actions[h] = np.where(tied, luck[h], -1.0).argmax(axis=1)
    return DeterministicPolicy(actions)


def exploration_users(problem: PublicFacts, mechanism: BatchMechanism) -> int:
    """How many users explore: the n that minimises n + (K - n)·min(1, sd(n)), at most K/2.

    sd(n) is the standard deviation of a mean reward that n/(S·A) visits and the noise of a release
    of n users leave. Powers of the square root of two are tried. Public facts only, no constant.
    """
    rows = problem.shape.states * problem.shape.actions

    def loss(users: int) -> float:
        noise, visits = mechanism.noise_variance(users), users / rows
        variance = (
            (1 + mechanism.visit_variance) * visits / 4 + noise["rewards"] + noise["transitions"]
        )
        return users + (problem.episodes - users) * min(1.0, math.sqrt(variance) / visits)

    least = mechanism.min_users
    most = max(least, problem.episodes // 2)
    sizes = {min(most, max(least, round(2 ** (i / 2)))) for i in range(2 * most.bit_length() + 1)}
    return min(sorted(sizes), key=loss)


def designed_policy(
    problem: PublicFacts,
    chances: FloatArray,
    initial: FloatArray,
    least: float,
    rng: np.random.Generator,
) -> StochasticPolicy:
    """The policy whose visits cover, in a model, every (h, s, a) that some policy can visit.

    The coverage design of policy elimination over all policies, played as the one Markov policy
    with its occupancies; random actions where the model never is. What no policy visits with at
    least the probability ``least`` is not covered.
    """
    nothing = np.zeros(problem.shape.visits)
    order = shuffled_actions(problem.shape, rng)
    everything = ImplicitActiveSet(chances, initial, nothing, -np.inf, order)
    policies, visits = everything.visiting()
    within = visits >= max(least, 1e-12)
    if not within.any():
        return uniform_policy(problem.shape)
    starts, weights = merge_policies(policies[within], np.ones(int(within.sum())))
    # Only what is worth covering counts, whatever else those policies come past.
    occupancies = np.stack([everything.occupancy(policy) * within for policy in starts])
    design = coverage_design(
        starts, weights, occupancies, everything.maximise, tolerance=1.1, most_iterations=200
    )
    mixed = np.zeros_like(nothing)
    for policy, weight in zip(design.policies, design.weights, strict=True):
        mixed += weight * everything.occupancy(policy)
    return _markov(mixed, problem.shape)


def _markov(occupancy: FloatArray, shape: Shape) -> StochasticPolicy:
    total = occupancy.sum(axis=-1, keepdims=True)
    probabilities = uniform_policy(shape).probabilities.copy()
    np.divide(occupancy, total, out=probabilities, where=total > 1e-12)
    return StochasticPolicy(probabilities / probabilities.sum(axis=-1, keepdims=True))


@dataclass(frozen=True, kw_only=True)
class ExploreSettings(OwnSettings):
    """What may be chosen of explore-then-commit.

    Attributes:
        exploration: ``"designed"`` for coverage, ``"uniform"`` for random actions.
        length: users who explore; None: `exploration_users`.
        rounds: batches of a designed exploration, at most.
        batches: at most so many recruitments, the one that commits included; None: ``rounds`` and
            one.
    """

    exploration: Literal["designed", "uniform"] = "designed"
    length: int | None = None
    rounds: int = 3
    batches: int | None = None

    def check(self) -> None:
        """Somebody explores, in at least one round; there are no printed constants."""
        super().check()
        _validate.count(rounds=self.rounds)
        if self.length is not None:
            _validate.count(length=self.length)
        at_least_two_batches(self.batches)


class ExploreThenCommit(FlowLearner[ExploreSettings]):
    """Explore, then commit: see the module."""

    name = "explore-then-commit"
    summary = "explore with designed coverage, then commit: the baseline"
    settings_type = ExploreSettings

    def begin(self) -> None:
        """Decide when exploration ends, from public facts."""
        super().begin()
        problem, mechanism = self.problem, self.mechanism
        if self.chosen.exploration == "designed":
            check_decisions(problem.shape, "A designed exploration", "set exploration='uniform'")
        length = int(
            self.chosen.length or min(exploration_users(problem, mechanism), problem.episodes)
        )
        _validate.at_most(
            problem.episodes, "episodes counts all users, explorers included", length=length
        )
        if problem.episodes - length < mechanism.min_users:  # too few to be released on their own
            length = problem.episodes
        self._seed = int(self.rng.integers(2**62))
        self._sizes = _round_sizes(length, self._rounds(), mechanism.min_users)
        self.settings |= {"length": length, "rounds": self._rounds()}

    def add(self, counts: PrivateCounts, batch: Batch) -> None:
        """Learn from those who explored."""
        if isinstance(batch.policy, StochasticPolicy):
            super().add(counts, batch)

    def greedy(self) -> DeterministicPolicy:
        """The best policy of the model so far."""
        shape = self.problem.shape
        luck = np.random.default_rng(self._seed).random(shape.visits)
        return greedy_policy(self.sums, shape.horizon, np.where(shape.mask, luck, -1.0))

    def next_batch(self) -> Batch:
        """The next round of exploration, or all users who are left."""
        if self._batches < len(self._sizes):
            users = self._sizes[self._batches]
            return Batch(self._explore(users), users)
        return Batch(self.greedy(), self.problem.episodes - self._told)

    def _explore(self, users: int) -> StochasticPolicy:
        problem = self.problem
        if self._batches == 0:
            return uniform_policy(problem.shape)
        noise = self.mechanism.noise_variance(users)["transitions"]
        return designed_policy(
            problem,
            model_probabilities(self.sums, problem.shape.horizon),
            problem.start / problem.start.sum(),
            min(1.0, np.sqrt(1.0 + noise * problem.shape.states / 2) / users),
            np.random.default_rng((self._seed, self._batches)),
        )

    def _rounds(self) -> int:
        if self.chosen.exploration == "uniform":
            return 1
        rounds, batches = self.chosen.rounds, self.chosen.batches
        return rounds if batches is None else min(rounds, batches - 1)


def _round_sizes(length: int, rounds: int, least: int = 1) -> list[int]:
    """Users of each round, each round as large as all before it.

    >>> _round_sizes(1000, 3)
    [250, 250, 500]
    >>> _round_sizes(7, 3, least=2)
    [3, 4]
    """
    ends = [length]
    for earlier in range(1, rounds):
        end = length >> earlier
        if least <= end <= ends[0] - least:
            ends.insert(0, end)
    return [end - before for before, end in pairwise([0, *ends])]


_PAPER = "textbook; the design is policy elimination's (001, equation 3)"
SPECS = by_name(LearnerSpec.of_batch(ExploreThenCommit, paper=_PAPER))
