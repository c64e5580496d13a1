"""What a learner is: ask for the next policy, be told private statistics."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet.mdp.policies import Policy
from discreet.mdp.shape import Shape
from discreet.privacy.release import BatchPlan, PrivateCounts


@dataclass(frozen=True, eq=False)
class Problem:
    """What a learner may know in advance: public facts only, never the model.

    Attributes:
        shape: states, actions, horizon.
        episodes: K, the total number of users.
        start: ``bool[S]``, the states an episode can begin in (public, for instance a fixed start).
        stationary: True if the problem is declared stationary.
    """

    shape: Shape
    episodes: int
    start: NDArray[np.bool_]
    stationary: bool = False


@dataclass(frozen=True, eq=False)
class Batch:
    """The next request: ``users`` fresh users run ``policy``."""

    policy: Policy
    users: int


class BatchLearner(ABC):
    """A learner of the batch rhythm. It never draws noise and never sees a raw count.

    Subclasses take ``(problem, plan, rng, **settings)``; ``rng`` breaks ties and draws policies.
    """

    statistics: ClassVar[tuple[str, ...]]
    """What it needs released; the sensitivity follows from it."""

    def __init__(self, problem: Problem, plan: BatchPlan, rng: np.random.Generator) -> None:
        self.problem = problem
        self.plan = plan
        self.rng = rng

    @abstractmethod
    def ask(self) -> Batch:
        """The next batch. Asking twice without `tell` returns the same batch."""

    @abstractmethod
    def tell(self, counts: PrivateCounts) -> None:
        """The private statistics of the batch that was asked for."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Everything needed to resume, as plain JSON values (numbers, strings, lists)."""

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Resume from `state`."""
