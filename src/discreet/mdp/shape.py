"""The size of a problem: all that a mechanism needs to know about it."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from discreet import _validate
from discreet._types import BoolArray, IntArray
from discreet.errors import InvalidInputError


@dataclass(frozen=True)
class Shape:
    """States S, actions A and horizon H of a finite-horizon problem, and what is possible in it.

    >>> Shape(states=4, actions=2, horizon=6).transitions
    (6, 4, 2, 4)
    >>> Shape(2, 3, 1, allowed=[[True, True, False], [False, False, True]]).first.tolist()
    [[0, 2]]

    Attributes:
        allowed: ``bool[S, A]`` or ``bool[H, S, A]``, the actions that are possible in each state
            (and step), at least one; None if all are. It is public. No policy of the problem plays
            another action. It is no part of the size: shapes that differ in it alone are equal.
    """

    states: int
    actions: int
    horizon: int
    allowed: BoolArray | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        _validate.count(states=self.states, actions=self.actions, horizon=self.horizon)
        if self.allowed is not None:
            object.__setattr__(self, "allowed", _checked(self.allowed, self.visits))

    @cached_property
    def mask(self) -> BoolArray:
        """``bool[H, S, A]``: the actions that are possible; all of them without a mask."""
        return np.ones(self.visits, np.bool_) if self.allowed is None else self.allowed

    @cached_property
    def first(self) -> IntArray:
        """``int64[H, S]``: the first action that is possible, which is what is done today."""
        return np.asarray(self.mask.argmax(axis=-1))

    @property
    def transitions(self) -> tuple[int, int, int, int]:
        """Shape of the array ``transitions[h, s, a, next]``."""
        return self.horizon, self.states, self.actions, self.states

    @property
    def visits(self) -> tuple[int, int, int]:
        """Shape of ``visits[h, s, a]`` and of ``rewards[h, s, a]``."""
        return self.horizon, self.states, self.actions


def _checked(allowed: BoolArray, visits: tuple[int, int, int]) -> BoolArray | None:
    given = np.asarray(allowed)
    if given.dtype != np.bool_ or given.shape not in (visits, visits[1:]):
        raise InvalidInputError(
            f"Expected allowed to be bool{list(visits[1:])} or bool{list(visits)}, got "
            f"{given.dtype}{list(given.shape)}."
        )
    if given.all():
        return None
    full = np.ascontiguousarray(np.broadcast_to(given, visits)).copy()
    if not full.any(axis=-1).all():
        step, state = np.argwhere(~full.any(axis=-1))[0].tolist()
        raise InvalidInputError(
            f"Expected an allowed action in every state at every step, got none in state {state} "
            f"at step {step}; allow at least one there."
        )
    full.flags.writeable = False
    return full


def check_shape(shape: object) -> None:
    """Refuse what is no `Shape`, a plain tuple for instance: its order could be mistaken."""
    if not isinstance(shape, Shape):
        raise InvalidInputError(
            f"Expected a Shape, got shape={shape!r}; write for instance "
            f"Shape(states=4, actions=2, horizon=6)."
        )
