"""`Counts`: the raw statistics of one batch of users, before any release.

A batch is played with a public policy, so most counters cannot be touched: a deterministic policy
has H·S rows (h, s, a) of S counters each, not H·S·A. Counts are therefore kept as *rows*: a mask
``support[H, S, A]`` and, in the order of ``np.nonzero(support)``, one entry per marked row. Dense
arrays are made where somebody asks for them.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from discreet._types import BoolArray, IntArray, NumberArray
from discreet.errors import InvalidInputError
from discreet.mdp.shape import Shape


def rows_of(dense: NumberArray, support: BoolArray) -> NumberArray:
    """The marked rows ``[R, ...]`` of an array ``[H, S, A, ...]``; a view if all are marked."""
    if support.all():
        return dense.reshape(support.size, *dense.shape[3:])
    return dense[support]


def dense_of(rows: NumberArray, support: BoolArray) -> NumberArray:
    """The array ``[H, S, A, ...]`` with these rows and zeros elsewhere; the inverse of `rows_of`.

    >>> dense_of(np.array([7, 8]), np.array([[[True, False], [False, True]]])).tolist()
    [[[7, 0], [0, 8]]]
    """
    shape = (*support.shape, *rows.shape[1:])
    if len(rows) == support.size:
        return rows.reshape(shape)
    dense = np.zeros(shape, rows.dtype)
    dense[support] = rows
    return dense


@dataclass(frozen=True, eq=False, init=False)
class Counts:
    """Sums over the whole episodes of ``users`` distinct users. Raw personal data: never released.

    ``Counts(users, transitions, rewards)`` takes dense arrays ``[H, S, A, S]`` and ``[H, S, A]``;
    ``Counts(users, transitions, rewards, support)`` takes the marked rows, ``[R, S]`` and ``[R]``.

    Attributes:
        users: number of users (= episodes) in the batch.
        support: ``bool[H, S, A]``, the R rows that are kept; all others are zero.
        row_transitions: ``int64[R, S]``, how often the row (h, s, a) was followed by s'.
        row_rewards: ``int64[R]``, sums of reward *bits*. A reward in [0, 1] is rounded to a bit
            that is one with probability equal to the reward: unbiased, it keeps every guarantee by
            convexity, adds at most 1/4 of variance per visit, and lets all mechanisms see integers.
    """

    users: int
    support: BoolArray
    row_transitions: IntArray
    row_rewards: IntArray

    def __init__(
        self,
        users: int,
        transitions: IntArray,
        rewards: IntArray,
        support: BoolArray | None = None,
    ) -> None:
        if support is None:
            if transitions.ndim != 4 or transitions.shape[:3] != rewards.shape:
                raise InvalidInputError(
                    f"Expected transitions (H,S,A,S) and rewards (H,S,A), got shapes "
                    f"{transitions.shape} and {rewards.shape}."
                )
            support = np.ones(rewards.shape, np.bool_)
            transitions, rewards = rows_of(transitions, support), rows_of(rewards, support)
        else:
            _check_rows(transitions, rewards, support)
        put = object.__setattr__
        put(self, "users", users)
        put(self, "support", support)
        put(self, "row_transitions", transitions)
        put(self, "row_rewards", rewards)

    @property
    def row_visits(self) -> IntArray:
        """``int64[R]``, how often each row was visited."""
        total: IntArray = self.row_transitions.sum(axis=-1)
        return total

    @property
    def transitions(self) -> IntArray:
        """``int64[H, S, A, S]``, dense."""
        return dense_of(self.row_transitions, self.support)

    @property
    def visits(self) -> IntArray:
        """``int64[H, S, A]``, how often (h, s, a) was visited."""
        return dense_of(self.row_visits, self.support)

    @property
    def rewards(self) -> IntArray:
        """``int64[H, S, A]``, dense."""
        return dense_of(self.row_rewards, self.support)

    @property
    def shape(self) -> Shape:
        """The problem's size."""
        horizon, states, actions = self.support.shape
        return Shape(states=states, actions=actions, horizon=horizon)

    def at(self, support: BoolArray) -> "Counts":
        """The same counts in other rows: those not kept so far are zero, those left out are lost.

        >>> one = Counts(1, np.ones((1, 1, 2, 1), np.int64), np.zeros((1, 1, 2), np.int64))
        >>> one.at(np.array([[[False, True]]])).visits.tolist()
        [[[0, 1]]]
        """
        if np.array_equal(support, self.support):
            return self
        both = support & self.support
        kept, taken = both[support], both[self.support]
        transitions = np.zeros((len(kept), self.row_transitions.shape[1]), np.int64)
        rewards = np.zeros(len(kept), np.int64)
        transitions[kept] = self.row_transitions[taken]
        rewards[kept] = self.row_rewards[taken]
        return Counts(self.users, transitions, rewards, support)

    def outside(self, support: BoolArray) -> int:
        """How many steps were taken in rows that ``support`` does not mark."""
        return int(self.row_transitions[~support[self.support]].sum())

    def __add__(self, other: Self) -> "Counts":
        """Counts of two disjoint groups of users."""
        if self.shape != other.shape:
            raise InvalidInputError(f"Expected counts of {self.shape}, got {other.shape}.")
        support = self.support | other.support
        one, two = self.at(support), other.at(support)
        return Counts(
            self.users + other.users,
            one.row_transitions + two.row_transitions,
            one.row_rewards + two.row_rewards,
            support,
        )

    @classmethod
    def zeros(cls, shape: Shape, support: BoolArray | None = None) -> "Counts":
        """No users yet, in all rows or in those of ``support``."""
        rows = np.ones(shape.visits, np.bool_) if support is None else support
        count = int(rows.sum())
        return cls(0, np.zeros((count, shape.states), np.int64), np.zeros(count, np.int64), rows)


def _check_rows(transitions: IntArray, rewards: IntArray, support: BoolArray) -> None:
    if support.ndim != 3 or support.dtype != np.bool_:
        raise InvalidInputError(
            f"Expected support to be bool[H, S, A], got {support.dtype}{list(support.shape)}."
        )
    rows, states = int(support.sum()), support.shape[1]
    if transitions.shape != (rows, states) or rewards.shape != (rows,):
        raise InvalidInputError(
            f"Expected transitions ({rows}, {states}) and rewards ({rows},), one row for each of "
            f"support, got shapes {transitions.shape} and {rewards.shape}."
        )
