"""`ExposedModel`: the arrays that an environment of another package lets one read."""

from dataclasses import dataclass

from numpy.typing import ArrayLike

from discreet._types import FloatArray


@dataclass(frozen=True, eq=False)
class ExposedModel:
    """A stationary model in its own units, before rewards are mapped to [0, 1].

    Attributes:
        transitions: ``float64[S, A, S]``.
        rewards: ``float64[S, A]``, means of values from ``low`` to ``high``.
        initial: where episodes begin, a state or a distribution; None if it is not said.
        low: the smallest reward, at most 0 (the reward once an episode has ended).
        high: the largest reward, at least 0.
        fixed_rewards: True if a reward never differs from its mean.
    """

    transitions: FloatArray
    rewards: FloatArray
    initial: ArrayLike | int | None
    low: float
    high: float
    fixed_rewards: bool
