"""The size of a problem: all that a mechanism needs to know about it."""

from dataclasses import dataclass

from discreet import _validate
from discreet.errors import InvalidInputError


@dataclass(frozen=True)
class Shape:
    """States S, actions A and horizon H of a finite-horizon problem.

    >>> Shape(states=4, actions=2, horizon=6).transitions
    (6, 4, 2, 4)
    """

    states: int
    actions: int
    horizon: int

    def __post_init__(self) -> None:
        _validate.count(states=self.states, actions=self.actions, horizon=self.horizon)

    @property
    def transitions(self) -> tuple[int, int, int, int]:
        """Shape of the array ``transitions[h, s, a, next]``."""
        return self.horizon, self.states, self.actions, self.states

    @property
    def visits(self) -> tuple[int, int, int]:
        """Shape of ``visits[h, s, a]`` and of ``rewards[h, s, a]``."""
        return self.horizon, self.states, self.actions


def check_shape(shape: object) -> None:
    """Refuse what is no `Shape`, a plain tuple for instance: its order could be mistaken."""
    if not isinstance(shape, Shape):
        raise InvalidInputError(
            f"Expected a Shape, got shape={shape!r}; write for instance "
            f"Shape(states=4, actions=2, horizon=6)."
        )
