"""`Trajectories`: the raw episodes of a group of users."""

from dataclasses import dataclass

import numpy as np

from discreet._types import BoolArray, FloatArray, IntArray
from discreet.errors import InvalidInputError
from discreet.mdp._arrays import frozen_copy, unit_interval
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape


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

    states: IntArray
    actions: IntArray
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
        return len(self.states)

    @property
    def horizon(self) -> int:
        """Steps per episode."""
        return int(self.actions.shape[1])

    def __getitem__(self, users: slice | IntArray) -> "Trajectories":
        return Trajectories(self.states[users], self.actions[users], self.rewards[users])

    def counts(
        self, shape: Shape, rng: np.random.Generator, support: BoolArray | None = None
    ) -> Counts:
        """Their sums. Rewards strictly between 0 and 1 are rounded to bits at random, unbiased.

        Every user draws H numbers for the rounding, whatever the episode: the generator's position
        tells nothing.

        Args:
            shape: the problem's size; episodes that do not fit are refused.
            rng: rounds the rewards.
            support: ``bool[H, S, A]``, what the batch's public policy can play. A user counts up to
                the first step outside it, and as nothing from there on (see `followed`).
        """
        self.check(shape)
        pairs = self._pairs(shape.visits)
        if support is None:
            support = np.zeros(shape.visits, np.bool_)
            support.ravel()[pairs] = True
        counted = self.followed(support)
        bits = rng.random(self.rewards.shape) < self.rewards
        rows = (np.cumsum(support) - 1)[pairs]
        moves = rows * shape.states + self.states[:, 1:]
        count = int(support.sum())
        transitions = np.bincount(moves[counted], minlength=count * shape.states)
        rewards = np.bincount(rows[counted & bits], minlength=count)
        return Counts(
            len(self),
            transitions.astype(np.int64).reshape(count, shape.states),
            rewards.astype(np.int64),
            support,
        )

    def followed(self, support: BoolArray) -> BoolArray:
        """``bool[n, H]``: True before a user's first step outside ``support``, False from it on.

        >>> one = Trajectories(np.array([[0, 0, 0]]), np.array([[1, 0]]), np.zeros((1, 2)))
        >>> one.followed(np.array([[[True, False]], [[True, False]]])).tolist()
        [[False, False]]
        """
        if support.ndim != 3 or support.dtype != np.bool_:
            raise InvalidInputError(
                f"Expected support to be bool[H, S, A], got {support.dtype}{list(support.shape)}."
            )
        horizon, states, actions = support.shape
        self.check(Shape(states, actions, horizon))
        inside = support.ravel()[self._pairs(support.shape)]
        kept: BoolArray = np.logical_and.accumulate(inside, axis=1)
        return kept

    def _pairs(self, visits: tuple[int, ...]) -> IntArray:
        """``int64[n, H]``, each step's (h, s, a) as one number."""
        steps = np.broadcast_to(np.arange(self.horizon), self.actions.shape)
        place = (steps, self.states[:, :-1], self.actions)
        return np.asarray(np.ravel_multi_index(place, visits), np.int64)

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
