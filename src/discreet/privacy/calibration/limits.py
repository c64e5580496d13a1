"""Which epsilons and deltas can be promised at all; loads nothing heavy."""

from discreet import _validate
from discreet.errors import InvalidInputError

_LEAST_DELTA, _LARGEST_EPSILON = 1e-300, 1e9


def check_delta(delta: float) -> None:
    """A delta is zero, or a number that doubles can be compared with."""
    _validate.delta(delta=delta)
    if 0 < delta < _LEAST_DELTA:
        raise InvalidInputError(
            f"Expected delta=0 or delta >= {_LEAST_DELTA:g}, got delta={float(delta)!r}: smaller "
            f"ones are lost in double precision; use delta=0 with a pure mechanism (laplace)."
        )


def check_epsilon(epsilon: float) -> None:
    """An epsilon is positive, and small enough for the arithmetic of every mechanism."""
    _validate.positive(epsilon=epsilon)
    remedy = "that protects nobody: use a smaller one, or trust 'none' to learn without privacy"
    _validate.at_most(_LARGEST_EPSILON, remedy, epsilon=epsilon)
