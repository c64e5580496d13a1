"""Which actions are told apart: the declared ones, and one row OTHER for all the rest.

Every (step, state) has its declared actions in slots 0, 1, ..., and, unless it declares all of
them, the last slot OTHER. An undeclared action is counted there and never recommended. Refusing it
would depend on the data: the refusal itself would say that somebody took it.

The map from episodes to episodes in slots looks at one user at a time, so replacing one user
before it is replacing one user after it.
"""

from dataclasses import dataclass

import numpy as np

from discreet._types import BoolArray, FloatArray, IntArray
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.mdp.trajectories import Trajectories

OTHER = -1
"""The action of a slot that stands for no single action."""


@dataclass(frozen=True, eq=False)
class Slots:
    """Declared actions and their slots.

    Attributes:
        declared: ``bool[H, S, A]``.
        slot_of: ``int64[H, S, A]``, where each action is counted.
        action_of: ``int64[H, S, K]``, the action of each slot, `OTHER` where it is none.
        played: ``bool[H, S, K]``, the slots that exist; at the first step in start states only.
    """

    declared: BoolArray
    slot_of: IntArray
    action_of: IntArray
    played: BoolArray

    @classmethod
    def of(cls, declared: BoolArray, start: BoolArray) -> "Slots":
        """The slots of these declared actions.

        >>> slots = Slots.of(np.array([[[False, True, False]]]), np.array([True]))
        >>> slots.slot_of.tolist(), slots.action_of.tolist(), slots.played.tolist()
        ([[[1, 0, 1]]], [[[1, -1]]], [[[True, True]]])
        """
        number = declared.sum(axis=2)
        most, all_declared = int(number.max()), bool(declared.all())
        slot_of = np.where(declared, np.cumsum(declared, axis=2) - 1, most).astype(np.int64)
        slots = most if all_declared else most + 1
        action_of = np.full((*number.shape, slots), OTHER, np.int64)
        step, state, action = np.nonzero(declared)
        action_of[step, state, slot_of[step, state, action]] = action
        played = action_of != OTHER
        if not all_declared:
            played[:, :, most] = ~declared.all(axis=2)
        played[0] &= start[:, None]
        return cls(declared, slot_of, action_of, played)

    @property
    def shape(self) -> Shape:
        """The size of the problem in slots."""
        horizon, states, slots = self.played.shape
        return Shape(states, slots, horizon)

    @property
    def named(self) -> BoolArray:
        """``bool[H, S, K]``: slots of one declared action, which may be recommended."""
        marked: BoolArray = self.played & (self.action_of != OTHER)
        return marked

    def shares(self, behaviour: FloatArray) -> FloatArray:
        """``[H, S, K]``: with which probability each slot is taken, from ``behaviour[H, S, A]``."""
        totals = np.zeros(self.action_of.shape)
        step, state, _ = np.indices(self.slot_of.shape)
        np.add.at(totals, (step, state, self.slot_of), behaviour)
        return totals

    def episodes(self, given: Trajectories, *, keep_last: bool) -> Trajectories:
        """Episodes with slots for actions.

        The state after the last step has no value. Unless ``keep_last``, it is written down as
        state 0 for everybody: all visits of a last row are then in one counter, with the noise of
        one counter and not of S.
        """
        horizon, states, actions = self.declared.shape
        given.check(Shape(states, actions, horizon))
        steps = np.arange(horizon)
        moved = self.slot_of[steps, given.states[:, :-1], given.actions]
        after = given.states
        if not keep_last:
            after = after.copy()
            after[:, -1] = 0
        return Trajectories(after, moved, given.rewards)

    def counts(self, given: Counts, *, keep_last: bool) -> Counts:
        """As `episodes`, of sums. Steps outside the declared starts count as nothing."""
        step, state, action = np.nonzero(given.played)
        rows = (np.cumsum(self.played) - 1).reshape(self.played.shape)
        place = (step, state, self.slot_of[step, state, action])
        inside, row = self.played[place], rows[place]
        moves = given.row_transitions
        if not keep_last:
            last = step == len(self.declared) - 1
            moves = moves.copy()
            moves[last] = np.eye(1, moves.shape[1], dtype=np.int64) * moves[last].sum(1)[:, None]
        count = int(self.played.sum())
        transitions = np.zeros((count, moves.shape[1]), np.int64)
        rewards = np.zeros(count, np.int64)
        _add(transitions, row[inside], moves[inside])
        _add(rewards, row[inside], given.row_rewards[inside])
        return Counts(given.users, transitions, rewards, self.played)


def _add(totals: IntArray, row: IntArray, values: IntArray) -> None:
    """Add each of ``values`` to its row of ``totals``; at once where no two share a row."""
    if np.unique(row).size == row.size:
        totals[row] += values
    else:
        np.add.at(totals, row, values)
