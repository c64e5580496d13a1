"""`Counts`: the raw statistics of one batch of users, before any release."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidInputError
from discreet.mdp.shape import Shape


@dataclass(frozen=True, eq=False)
class Counts:
    """Sums over the whole episodes of ``users`` distinct users. Raw personal data: never released.

    Attributes:
        users: number of users (= episodes) in the batch.
        transitions: ``int64[H, S, A, S]``, how often (h, s, a) was followed by s'.
        rewards: ``int64[H, S, A]``, sums of reward *bits*. A reward in [0, 1] is rounded to a bit
            that is one with probability equal to the reward: unbiased, it keeps every guarantee by
            convexity, adds at most 1/4 of variance per visit, and lets all mechanisms see integers.
    """

    users: int
    transitions: NDArray[np.int64]
    rewards: NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.transitions.ndim != 4 or self.transitions.shape[:3] != self.rewards.shape:
            raise InvalidInputError(
                f"Expected transitions (H,S,A,S) and rewards (H,S,A), got shapes "
                f"{self.transitions.shape} and {self.rewards.shape}."
            )

    @property
    def visits(self) -> NDArray[np.int64]:
        """``int64[H, S, A]``, how often (h, s, a) was visited."""
        total: NDArray[np.int64] = self.transitions.sum(axis=-1)
        return total

    @property
    def shape(self) -> Shape:
        """The problem's size."""
        horizon, states, actions = self.rewards.shape
        return Shape(states=states, actions=actions, horizon=horizon)

    def __add__(self, other: Self) -> "Counts":
        """Counts of two disjoint groups of users."""
        return Counts(
            self.users + other.users,
            self.transitions + other.transitions,
            self.rewards + other.rewards,
        )

    @classmethod
    def zeros(cls, shape: Shape) -> "Counts":
        """No users yet."""
        return cls(0, np.zeros(shape.transitions, np.int64), np.zeros(shape.visits, np.int64))
