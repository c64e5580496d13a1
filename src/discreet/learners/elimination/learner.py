"""Policy elimination, non-private (`pe`) and under shuffle privacy (`sdp-pe`): one learner.

Papers: Bai, Talebi, Zhao, Cheng and Chen, "No-regret Exploration in Shuffle Private Reinforcement
Learning" (000) and "Secure Reinforcement Learning via Shuffle Privacy Model" (001). Both versions
stay available: ``fine="mixture"`` (000) and ``fine="coverage"`` (001, equation 3).

Stages of growing length, fixed before anybody is asked; each explores crudely, builds an absorbing
model from private counts, explores finely, and drops the policies that are provably worse than
another. Lengths grow geometrically, so a bounded share of the users is in the last stage and the
price of privacy enters once per stage. Every user is in exactly one batch, so the guarantee of one
release is the guarantee of the run; which component of a mixture a user plays is public and
independent of all data.

``structure="paper"`` runs the pseudocode where it is consistent (`PaperElimination`),
``"practical"`` (default) what learns at realistic K (`ImplicitElimination`). Deviations of the
default from print:

1. private counts are accumulated over stages, a batch with weight n/(n + sigma²), not forgotten;
2. crude exploration is one batch for all steps, planned in the accumulated model;
3. the active set is implicit: the policies that satisfy the *latest* constraint; earlier
   constraints live in other models and are dropped;
4. random actions where the model has no evidence;
5. the last stage, whose data nobody would use, is replaced by an exploit tail;
6. transitions and rewards are released, visits are their sums (with a second measurement where the
   mechanism gives one): two statistics instead of the three of ``structure="paper"``.

Proven: the privacy guarantee (parallel composition and post-processing). The papers' regret bounds
are proven for ``structure="paper"`` with ``constants="theory"``; with practical knobs there is no
theorem. `docs/understand/learners/sdp-pe.md` has the details and measurements.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from discreet._types import JsonObject, Plain
from discreet.errors import InvalidInputError
from discreet.learners.base import Batch, FlowLearner, PublicFacts
from discreet.learners.elimination.explorers import CountPool, ImplicitElimination, PaperElimination
from discreet.learners.elimination.settings import GROWTH, LEAST, EliminationSettings
from discreet.learners.registry import LearnerSpec, by_name
from discreet.mdp.policies import MixturePolicy
from discreet.mdp.shape import Shape
from discreet.privacy.sensitivity import STATISTICS
from discreet.privacy.statistics import PrivateCounts


@dataclass(frozen=True)
class Schedule:
    """Users of every part of every stage, and of the exploit tail.

    Attributes:
        stages: for each stage, the users of each of its parts.
        tail: users who play the greedy policy of the last refined model.
    """

    stages: tuple[tuple[int, ...], ...]
    tail: int

    @property
    def users(self) -> int:
        return sum(map(sum, self.stages)) + self.tail


def first_length(shape: Shape) -> int:
    """A first stage in which every (h, x, a) can be played: a power of two near HXA/2.

    The papers start at 2 (``literal``), which leaves layers without a single episode.

    >>> first_length(Shape(states=4, actions=2, horizon=6))
    32
    """
    tuples = shape.horizon * shape.states * shape.actions
    return max(LEAST, 1 << math.ceil(math.log2(max(tuples / 2, 1))))


def staged_schedule(
    episodes: int, first: float, growth: float, shares: tuple[float, ...], *, tail: bool
) -> Schedule:
    """Stages of length ``first``, ``first * growth``, ... whose parts take ``shares`` of it.

    The data of the last stage would never be used. So with ``tail`` it is not played as a stage:
    the remaining users exploit. A stage that would leave a tail shorter than a quarter of itself
    is given to the tail too. Without ``tail`` the last stage is cut to what is left (as printed).

    >>> staged_schedule(1000, 32, 2, (1, 1, 1), tail=True)
    Schedule(stages=((32, 32, 32), (64, 64, 64), (128, 128, 128)), tail=328)
    >>> staged_schedule(400, 32, 2, (1, 1, 1), tail=False)
    Schedule(stages=((32, 32, 32), (64, 64, 64), (37, 37, 38)), tail=0)
    """
    stages: list[tuple[int, ...]] = []
    left, length = episodes, float(first)
    while left > 0:
        parts = tuple(round(share * length) for share in shares)
        size = sum(parts)
        if tail and left - size < size / 4:
            break
        if size >= left:
            parts, size = _in_proportion(left, shares), left
        stages.append(parts)
        left -= size
        length *= growth
    return Schedule(tuple(stages), left)


def _in_proportion(total: int, shares: tuple[float, ...]) -> tuple[int, ...]:
    parts = [int(total * share / sum(shares)) for share in shares[:-1]]
    return (*parts, total - sum(parts))


def split_evenly(total: int, parts: int) -> tuple[int, ...]:
    """Integers that differ by at most one and sum to ``total``, the larger ones last.

    >>> split_evenly(11, 3)
    (3, 4, 4)
    """
    quotient, remainder = divmod(total, parts)
    return tuple(quotient + (i >= parts - remainder) for i in range(parts))


Entry = tuple[str, int, float]
"""One batch of the script: part of the stage, users, length of the stage."""


class PolicyElimination(FlowLearner[EliminationSettings]):
    """A script that is fixed in advance, and an explorer that fills it with policies."""

    name = "pe"
    summary = "policy elimination in stages, the non-private twin of sdp-pe"
    last_transitions: ClassVar[bool] = True
    """Its batches mix policies: nothing else tells in every trust model who played what last."""
    settings_type = EliminationSettings

    def begin(self) -> None:
        """Write the script; who explores depends on the structure."""
        problem = self.problem
        self.script = write_script(problem, self.chosen)
        self.explorer: ImplicitElimination | PaperElimination
        if self.chosen.structure == "paper":
            self.explorer = PaperElimination(problem, self.chosen)
        else:
            self.explorer = ImplicitElimination(problem, self.chosen)
        self._seed = int(self.rng.integers(2**62))

    @classmethod
    def released(cls, settings: Mapping[str, object]) -> tuple[str, ...]:
        """The papers release visits, too: without them Assumption 4 fails where X is large."""
        chosen = EliminationSettings.choose(settings, learner="policy elimination")
        return STATISTICS if chosen.structure == "paper" else cls.statistics

    @property
    def extras(self) -> dict[str, Plain]:
        """Numbers for the result: designs with their certificates, and what stages estimated."""
        return {
            "designs": list(self.explorer.designs),
            "estimates": list(self.explorer.estimates),
        }

    def next_batch(self) -> Batch:
        """The next batch of the script."""
        part, users, _ = self._entry()
        policy = self.explorer.policy(part, self._generator(0))
        if self.chosen.literal and self.chosen.fine == "mixture":  # 000: L_0 episodes each
            policy = policy.allotted(users) if isinstance(policy, MixturePolicy) else policy
        return Batch(policy, users)

    def add(self, counts: PrivateCounts, batch: Batch) -> None:
        """The private statistics of that batch; those of the exploit tail are not needed."""
        if counts.users > batch.users:
            raise InvalidInputError(
                f"Expected the counts of the batch asked for ({batch.users} users), got "
                f"{counts.users} users; nothing was counted."
            )
        part, _, length = self._entry()
        if part != "tail":
            self.explorer.learn(part, CountPool.of_release(counts), length, self._generator(1))

    def state(self) -> dict[str, Plain]:
        """Progress, seed and what was learnt; the pending batch follows from them."""
        return {
            "told": self._told,
            "batches": self._batches,
            "seed": self._seed,
            "explorer": self.explorer.state(),
        }

    def restore(self, state: JsonObject) -> None:
        self._told, self._batches = int(state["told"]), int(state["batches"])
        self._seed = int(state["seed"])
        self.explorer.restore(state["explorer"])
        self._pending = None

    def _entry(self) -> Entry:
        if self._batches < len(self.script):
            return self.script[self._batches]
        left = self.problem.episodes - self._told  # who was asked for and did not come
        if not left:
            raise InvalidInputError(
                f"All {self.problem.episodes} users have been asked for; start a new learner."
            )
        return "tail", left, 0.0

    def _generator(self, purpose: int) -> np.random.Generator:
        return np.random.default_rng((self._seed, self._batches, purpose))


def write_script(problem: PublicFacts, settings: EliminationSettings) -> list[Entry]:
    """Who plays when: every user in exactly one batch, all of them together K."""
    paper, shares = settings.structure == "paper", settings.stage_shares
    first, growth = 2.0 if settings.literal else float(first_length(problem.shape)), GROWTH
    schedule = staged_schedule(problem.episodes, first, growth, shares, tail=not paper)
    each = problem.shape.horizon + 1 if paper else 2
    taken, most = each * len(schedule.stages) + (not paper), settings.batches
    if most is not None and taken > most:
        if paper:
            raise InvalidInputError(
                f"Expected batches >= {taken}, which the printed stages of {problem.episodes} "
                f"episodes take, got batches={most!r}; leave structure='paper' out."
            )
        # Fewer stages: the first has K^((1 + 1/N)/2) users, the tail follows as one more would.
        first = max(first, problem.episodes ** ((1 + 1 / most) / 2) / sum(shares))
        stages = (most - 1) // 2
        growth = max(growth, (problem.episodes / (first * sum(shares))) ** (1 / stages))
        schedule = staged_schedule(problem.episodes, first, growth, shares, tail=True)
    script: list[Entry] = []
    for crude, fine in schedule.stages:
        length = (crude + fine) / sum(settings.stage_shares)
        if paper:
            layers = enumerate(split_evenly(crude, problem.shape.horizon))
            script += [(f"layer {h}", users, length) for h, users in layers if users]
        else:
            script.append(("crude", crude, length))
        script.append(("fine", fine, length))
    if schedule.tail:
        script.append(("tail", schedule.tail, 0.0))
    return script


_PAPER = "Bai et al., No-regret Exploration / Secure RL via Shuffle Privacy (000, 001)"
_TRUSTS = ("none", "shuffle", "central", "local")
_PE = LearnerSpec.of_batch(PolicyElimination, paper=_PAPER, trusts=_TRUSTS)
_SDP_PE = replace(
    _PE,
    name="sdp-pe",
    summary="policy elimination on shuffle-private counts, in polynomial time",
)

SPECS = by_name(_PE, _SDP_PE)
