"""`Trajectories`: the raw episodes of a group of users."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidInputError
from discreet.mdp._arrays import FloatArray, frozen_copy, unit_interval
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Whole episodes of n users, one row each. Raw personal data: never released.

    >>> one = Trajectories(np.array([[0, 1, 1]]), np.array([[1, 0]]), np.array([[0.0, 1.0]]))
    >>> one.counts(Shape(states=2, actions=2, horizon=2), np.random.default_rng(0)).users
    1

    Attributes:
        states: ``int64[n, H + 1]``, the last column is the state after the last step.
        actions: ``int64[n, H]``.
        rewards: ``float64[n, H]`` in [0, 1].
    """

    states: Ints
    actions: Ints
    rewards: FloatArray

    def __post_init__(self) -> None:
        rewards = unit_interval(self.rewards, "rewards")
        for name in ("states", "actions"):
            array = np.asarray(getattr(self, name))
            if not np.issubdtype(array.dtype, np.integer):
                raise InvalidInputError(f"Expected integer {name}, got dtype {array.dtype}.")
            object.__setattr__(self, name, frozen_copy(array, np.int64))
        object.__setattr__(self, "rewards", rewards)
        users, horizon = rewards.shape if rewards.ndim == 2 else (-1, -1)
        if self.actions.shape != (users, horizon) or self.states.shape != (users, horizon + 1):
            raise InvalidInputError(
                f"Expected states (n, H + 1), actions (n, H) and rewards (n, H), got shapes "
                f"{self.states.shape}, {self.actions.shape} and {rewards.shape}."
            )

    def __len__(self) -> int:
        """The number of users."""
        return len(self.states)

    @property
    def horizon(self) -> int:
        """Steps per episode."""
        return int(self.actions.shape[1])

    def __getitem__(self, users: slice) -> "Trajectories":
        """The episodes of some of the users."""
        return Trajectories(self.states[users], self.actions[users], self.rewards[users])

    def counts(self, shape: Shape, rng: np.random.Generator) -> Counts:
        """Their sums. Rewards strictly between 0 and 1 are rounded to bits at random, unbiased.

        Args:
            shape: the problem's size; episodes that do not fit are refused.
            rng: rounds the rewards.
        """
        self.check(shape)
        steps = np.broadcast_to(np.arange(shape.horizon), self.actions.shape)
        pairs = np.ravel_multi_index((steps, self.states[:, :-1], self.actions), shape.visits)
        played = np.zeros(shape.visits, np.bool_)
        played.ravel()[pairs] = True
        rows = (np.cumsum(played) - 1)[pairs]
        moves = rows * shape.states + self.states[:, 1:]
        bits = rng.random(self.rewards.shape) < self.rewards
        count = int(played.sum())
        transitions = np.bincount(moves.ravel(), minlength=count * shape.states)
        rewards = np.bincount(rows[bits], minlength=count)
        return Counts(
            len(self),
            transitions.astype(np.int64).reshape(count, shape.states),
            rewards.astype(np.int64),
            played,
        )

    def check(self, shape: Shape) -> None:
        """Refuse episodes that do not fit the problem's size."""
        if self.horizon != shape.horizon:
            raise InvalidInputError(
                f"Expected episodes of {shape.horizon} steps, got {self.horizon}."
            )
        for name, size in (("states", shape.states), ("actions", shape.actions)):
            array = getattr(self, name)
            if array.size and not 0 <= array.min() <= array.max() < size:
                raise InvalidInputError(
                    f"Expected {name} from 0 to {size - 1}, got {array.min()} to {array.max()}."
                )
