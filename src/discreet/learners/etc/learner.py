"""etc: explore with designed coverage, then commit. The baseline that every learner should beat.

**Privacy** is proven: every user is in exactly one batch, each batch is released once (parallel
composition), and all else is post-processing of releases. **No regret bound is claimed** (with a
known gap, or with n ~ K^(2/3), the textbook analysis of explore-then-commit applies without
privacy).

1. *Explore* with n users (`exploration.exploration_users`: from public facts, or ``length``), in
   ``rounds`` batches, each as large as all before it together; who does not come is not replaced,
   since another batch would pay its noise anew. The first plays every action with
   the same probability; the others play the policy whose visits cover, in the model so far, every
   (step, state, action) that some policy can visit more often than noise pretends
   (`exploration.designed_policy`). With ``exploration="uniform"`` all n users are one batch of
   random actions: the textbook.
2. *Commit*: all other users play the best policy of the model, which shuns what it does not know.

Every batch is projected onto consistent flows; sums over batches have equal weights. Pooled over
steps if the problem is declared stationary.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from discreet import _validate
from discreet._plain import JsonObject, Plain
from discreet.learners.base import Batch, FlowLearner
from discreet.learners.etc.exploration import check_size, designed_policy, exploration_users
from discreet.learners.etc.model import ExploredModel
from discreet.learners.registry import LearnerSpec, by_name
from discreet.learners.settings import OwnSettings
from discreet.mdp.policies import DeterministicPolicy, StochasticPolicy, uniform_policy
from discreet.privacy.statistics import PrivateCounts


@dataclass(frozen=True, kw_only=True)
class EtcSettings(OwnSettings):
    """What may be chosen of etc.

    Attributes:
        exploration: ``"designed"`` for coverage, ``"uniform"`` for random actions.
        length: users who explore; None: `exploration_users`.
        rounds: batches of a designed exploration.
    """

    exploration: Literal["designed", "uniform"] = "designed"
    length: int | None = None
    rounds: int = 3

    def check(self) -> None:
        """Somebody explores, in at least one round; there are no printed constants."""
        super().check()
        _validate.count(rounds=self.rounds)
        if self.length is not None:
            _validate.count(length=self.length)


class ExploreThenCommit(FlowLearner[EtcSettings]):
    """Explore, then commit: see the module."""

    name = "etc"
    summary = "explore with designed coverage, then commit: the baseline"
    settings_type = EtcSettings

    def begin(self) -> None:
        """Decide when exploration ends, from public facts."""
        problem, plan = self.problem, self.plan
        if self.chosen.exploration == "designed":
            check_size(problem)
        length = int(self.chosen.length or min(exploration_users(problem, plan), problem.episodes))
        _validate.at_most(
            problem.episodes, "episodes counts all users, explorers included", length=length
        )
        if problem.episodes - length < plan.least_users:  # too few to be released on their own
            length = problem.episodes
        self._sizes = _round_sizes(length, self._rounds(), plan.least_users)
        self.settings |= {
            "length": length,
            "rounds": self._rounds(),
            "stationary": problem.stationary,
        }
        self._model = ExploredModel.empty(problem.shape, pooled=problem.stationary)
        self._seed = int(self.rng.integers(2**62))
        self._told = 0
        self._batches = 0
        self._pending: Batch | None = None

    def ask(self) -> Batch:
        """The next round of exploration, or all users who are left."""
        if self._pending is None:
            self._pending = self._next()
        return self._pending

    def tell(self, counts: PrivateCounts) -> None:
        """Add the batch to the model, if it explored."""
        policy = self.ask().policy
        if isinstance(policy, StochasticPolicy):
            start, per_visit = self.problem.start, self.plan.visit_variance
            self._model.add(counts, policy, start, per_visit)
        self._told += counts.users
        self._batches += 1
        self._pending = None

    def greedy(self) -> DeterministicPolicy:
        """The best policy of the model so far."""
        luck = np.random.default_rng(self._seed).random(self.problem.shape.visits)
        return self._model.greedy(self.problem.shape.horizon, luck)

    def _next(self) -> Batch:
        if self._batches < len(self._sizes):
            users = self._sizes[self._batches]
            return Batch(self._explore(users), users)
        return Batch(self.greedy(), self.problem.episodes - self._told)

    def _explore(self, users: int) -> StochasticPolicy:
        """The policy of the next round of exploration."""
        problem = self.problem
        if self._batches == 0:
            return uniform_policy(problem.shape)
        noise = self.plan.noise_variance(users)["transitions"]
        return designed_policy(
            problem,
            self._model.probabilities(problem.shape.horizon),
            problem.start / problem.start.sum(),
            min(1.0, np.sqrt(1.0 + noise * problem.shape.states / 2) / users),
            np.random.default_rng((self._seed, self._batches)),
        )

    def _rounds(self) -> int:
        return self.chosen.rounds if self.chosen.exploration == "designed" else 1

    def state(self) -> dict[str, Plain]:
        """Progress and evidence; what is pending follows from them."""
        return {
            "told": self._told,
            "batches": self._batches,
            "seed": self._seed,
            "model": self._model.to_dict(),
        }

    def restore(self, state: JsonObject) -> None:
        self._told, self._seed = int(state["told"]), int(state["seed"])
        self._batches = int(state["batches"])
        self._model = ExploredModel.from_dict(state["model"])
        self._pending = None


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
