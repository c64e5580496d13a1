"""What a learner is, in both schedules: from private statistics to the next policy.

A learner never draws noise and never sees a raw count: a *batch* learner asks for a policy and is
told the private statistics of its users; a *continual* learner turns the private statistics of all
users before into the policy of the next.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar, cast

import numpy as np

from discreet._types import BoolArray, FloatArray, Floats, Ints, JsonObject, Plain
from discreet.errors import UnsupportedError
from discreet.learners.estimate import CountSums, ReleasedRows
from discreet.learners.settings import ContinualSettings, Settings
from discreet.mdp.policies import DeterministicPolicy, Policy, StochasticPolicy
from discreet.mdp.shape import Shape
from discreet.privacy.mechanisms.base import BatchMechanism, ContinualMechanism
from discreet.privacy.statistics import PrivateCounts

FORBIDDEN = -1e300
"""The Q value of an action that is not possible: finite, so that zero times it is zero."""

Chosen_co = TypeVar("Chosen_co", bound=Settings, covariant=True)


@dataclass(frozen=True, eq=False)
class PublicFacts:
    """What a learner may know in advance: public facts only, never the model.

    Attributes:
        shape: states, actions, horizon, and the actions that are possible.
        episodes: K, the total number of users.
        start: ``bool[S]``, the states an episode can begin in (public, for instance a fixed start).
        stationary: True if the problem is declared stationary.
    """

    shape: Shape
    episodes: int
    start: BoolArray
    stationary: bool = False


@dataclass(frozen=True, eq=False)
class Batch:
    """The next request: ``users`` fresh users run ``policy``.

    ``occupancy[H, S]``: how likely a model is in each state, where a learner planned with one.
    """

    policy: Policy
    users: int
    occupancy: FloatArray | None = None

    def to_dict(self) -> dict[str, Plain]:
        """Plain values."""
        seen = None if self.occupancy is None else self.occupancy.tolist()
        return {**policy_to_dict(self.policy), "users": self.users, "occupancy": seen}

    @classmethod
    def from_dict(cls, data: JsonObject) -> "Batch":
        """The inverse of `to_dict`."""
        seen = data["occupancy"]
        seen = None if seen is None else np.array(seen)
        return cls(policy_from_dict(data), int(data["users"]), seen)


def policy_to_dict(policy: Policy) -> dict[str, Plain]:
    """Plain values of the policy of a batch."""
    if isinstance(policy, DeterministicPolicy):
        return {"actions": policy.actions.tolist()}
    if isinstance(policy, StochasticPolicy):
        return {"probabilities": policy.probabilities.tolist()}
    raise UnsupportedError("A learner asks for one policy, not for a mixture.")


def policy_from_dict(plain: JsonObject) -> DeterministicPolicy | StochasticPolicy:
    """The inverse of `policy_to_dict`."""
    if "actions" in plain:
        return DeterministicPolicy(np.array(plain["actions"], np.int64))
    return StochasticPolicy(np.array(plain["probabilities"], np.float64))


class BatchLearner(ABC):
    """A learner of the batch schedule.

    Subclasses take the same, and ``**settings``.

    Args:
        problem: public facts.
        mechanism: a calibrated batch release of `statistics`.
        rng: breaks ties and draws policies.

    Attributes:
        settings: resolved, as plain values, for the result.
    """

    statistics: ClassVar[tuple[str, ...]]
    """What it needs released with its usual settings; see `released`."""
    last_transitions: ClassVar[bool] = True
    """Whether it needs the transitions of the last step in a problem that is not stationary; in a
    stationary one, where steps are pooled, they are released anyway."""
    centred: ClassVar[bool] = False
    """Whether it reads sums of r - 1/2 where they are released; others are told sums of r."""
    settings_type: ClassVar[type[Settings] | None] = None
    """What may be set, where that is declared."""
    open_ended: ClassVar[bool] = False
    """Whether more users may come than were planned: nothing it did rests on their number, and
    what it does next follows the new one, as if it had always been that."""

    def __init__(
        self, problem: PublicFacts, mechanism: BatchMechanism, rng: np.random.Generator
    ) -> None:
        self.problem = problem
        self.mechanism = mechanism
        self.rng = rng
        self.settings: dict[str, Any] = {}

    @classmethod
    def released(cls, settings: Mapping[str, object]) -> tuple[str, ...]:
        """What it needs released with these settings; the sensitivity follows from it."""
        return cls.statistics

    @property
    def extras(self) -> dict[str, Plain]:
        """Series or numbers for the result."""
        return {}

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know of the run so far, in sentences."""
        return ()

    @abstractmethod
    def ask(self) -> Batch:
        """The next batch. Asking twice without `tell` returns the same batch."""

    @abstractmethod
    def tell(self, counts: PrivateCounts) -> None:
        """The private statistics of the batch that was asked for, or of those users who came."""

    def reading(self, counts: PrivateCounts) -> PrivateCounts:
        """A release in the form that this learner reads: what it is to be told."""
        return counts if self.centred else counts.plain()

    def greedy(self) -> DeterministicPolicy | None:
        """What it would play if nobody had to learn from it; None where it does not say.

        Asking changes nothing: no draws.
        """
        return None

    def extend(self, problem: PublicFacts, *, pending: bool) -> None:
        """Go on with more users; a ``pending`` batch stays as it was asked for."""
        self.problem = problem

    @abstractmethod
    def state(self) -> dict[str, Plain]:
        """Everything needed to resume, as plain JSON values (numbers, strings, lists)."""

    @abstractmethod
    def restore(self, state: JsonObject) -> None:
        """Resume from `state`."""


class FlowLearner(BatchLearner, Generic[Chosen_co]):
    """A batch learner that is told transitions and rewards; visits follow from the flow.

    It keeps what it asked for, what it was told and how many users that was; a subclass says its
    `next_batch`, and may say how a batch is to be weighed (`add`).

    Attributes:
        chosen: what the caller set, checked; the rest has its usual value.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    """One line for `discreet list`."""
    settings_type: ClassVar[type[Settings]]
    statistics: ClassVar[tuple[str, ...]] = ("transitions", "rewards")
    last_transitions: ClassVar[bool] = False
    centred: ClassVar[bool] = True

    def __init__(
        self,
        problem: PublicFacts,
        mechanism: BatchMechanism,
        rng: np.random.Generator,
        **settings: object,
    ) -> None:
        super().__init__(problem, mechanism, rng)
        self.chosen = cast("Chosen_co", self.settings_type.choose(settings, learner=self.name))
        self.settings = self.chosen.to_dict()
        self._sums = CountSums.empty(*problem.shape.visits)
        self._told = self._batches = self._seed = 0
        self._pending: Batch | None = None
        self.begin()

    def begin(self) -> None:
        """Set up what is known before the first batch, and the settings that follow from it."""
        self.settings["stationary"] = self.problem.stationary

    @abstractmethod
    def next_batch(self) -> Batch:
        """The next batch; drawn once, and kept until its users are told."""

    def ask(self) -> Batch:
        self._pending = self._pending or self.next_batch()
        return self._pending

    def tell(self, counts: PrivateCounts) -> None:
        self.add(counts, self.ask())
        self._told += counts.users
        self._batches += 1
        self._pending = None

    def add(self, counts: PrivateCounts, batch: Batch) -> None:
        """Take the release of a batch in, with a weight of one."""
        policy = self.distribution(batch)
        released = ReleasedRows.of(counts, policy, self.problem.start, self.mechanism)
        self._sums.add(released, 1.0, 1.0)

    def distribution(self, batch: Batch) -> FloatArray:
        """``[H, S, A]``, of the policy of a batch."""
        policy = cast("DeterministicPolicy | StochasticPolicy", batch.policy)
        return policy.distribution(self.problem.shape)

    @property
    def sums(self) -> CountSums:
        """All that was released, of all steps together where these were declared to be one."""
        return self._sums.pooled() if self.problem.stationary else self._sums

    @property
    def reward_share(self) -> float:
        """Of the variance of visits in that of rewards: one visit moves r - c by max(c, 1 - c)."""
        return max(self.mechanism.centre, 1 - self.mechanism.centre) ** 2

    @property
    def notes(self) -> tuple[str, ...]:
        """Whether counts contradict a stationarity that was declared."""
        from discreet.learners.pooling import contradictions

        declared = self.problem.stationary and self._told
        return contradictions(self._sums, self.reward_share) if declared else ()

    def extend(self, problem: PublicFacts, *, pending: bool) -> None:
        super().extend(problem, pending=pending)
        self._pending = self._pending if pending else None

    def state(self) -> dict[str, Plain]:
        """Evidence and progress, and what is pending: with other users to come it were another."""
        return {
            "told": self._told,
            "batches": self._batches,
            "evidence": self._sums.to_dict(),
            "request": self._pending.to_dict() if self._pending else None,
            "seed": self._seed,
            "rng": self.rng.bit_generator.state,
        }

    def restore(self, state: JsonObject) -> None:
        self._told, self._batches = int(state["told"]), int(state["batches"])
        self._seed = int(state.get("seed", 0))  # flow-ucb kept none
        self._sums = CountSums.from_dict(state["evidence"])
        self._pending = Batch.from_dict(state["request"]) if state["request"] else None
        self.rng.bit_generator.state = state["rng"]


class ContinualLearner(ABC):
    """A learner of the continual schedule: `planner` or `next_policy` is all that it must have.

    Ours name a compiled kernel that reads like the paper, fed with the `coefficients` of every
    release. A learner without one says its `next_policy` in Python; its runs are slower.

    Attributes:
        problem: public facts.
        mechanism: the calibrated release; the learner reads its error bounds.
        rng: breaks ties and draws what the learner itself draws.
        settings: resolved.
        room: what its planner keeps between policies, outside of compiled runs.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    """One line for `discreet list`."""
    settings_type: ClassVar[type[ContinualSettings]] = ContinualSettings
    paper: ClassVar[str] = ""
    """The paper that it is printed in, where ``calibration="paper"`` would mean another's."""
    stochastic: ClassVar[bool] = False
    """The compiled planner leaves a stochastic policy."""

    def __init__(
        self,
        problem: PublicFacts,
        mechanism: ContinualMechanism,
        rng: np.random.Generator,
        settings: ContinualSettings,
    ) -> None:
        self.problem = problem
        self.mechanism = mechanism
        self.rng = rng
        self.settings = settings
        self.room: Any = None

    def next_policy(self, counts: PrivateCounts) -> Policy | None:
        """The policy for the next user, from the counts of all users before; None: its planner's.

        Who asks, asks `continual.planned`.
        """
        return None

    def planner(self) -> Callable[..., None] | None:
        """The compiled planner (see `continual.planner`), or None."""
        return None

    def coefficients(self, users: Ints) -> Floats:
        """``[n, columns]``: what the planner gets when that many users have been released."""
        return np.zeros((len(users), 0))

    def memory(self) -> Floats:
        """``[M, H, S, A]``: what the planner keeps, before the first episode.

        First comes Q, `FORBIDDEN` where an action is not possible, and planners leave it there.
        """
        shape = self.problem.shape
        return np.where(shape.mask, float(shape.horizon), FORBIDDEN)[None]

    def error_bounds(self, times: Ints, failure: float) -> Floats:
        """A bound on the size of the noise on one counter, at each time (0 before any user)."""
        bounds, some = np.zeros(len(times)), times > 0
        if some.any() and self.mechanism.guarantee.notion != "none":
            bounds[some] = self.mechanism.error_bounds(failure, times[some])
        return bounds
