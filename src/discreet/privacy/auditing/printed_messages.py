"""The shuffle protocol as papers 000 and 001 print it: users send integers, not bits.

The analyser receives every message, so what counts is the *multiset* of the users' sums. Two users
are enough to see it fail: where nobody else has a bit, the largest sum betrays the one who has it;
where everybody has it, a zero betrays the one who has not. The library does not offer the protocol;
it is audited because it is printed.
"""

import numpy as np

from discreet._types import FloatArray
from discreet.mdp.shape import Shape
from discreet.privacy.auditing import pairs
from discreet.privacy.auditing.exact import exact_delta, exact_epsilon
from discreet.privacy.errata import printed_shuffle
from discreet.privacy.sampling.samplers import Sampler

SHAPE = Shape(states=4, actions=2, horizon=2)
RATIO = 10
"""Ten times tau users, as in 597,240 for H = 2, epsilon = 1, delta = 1e-6."""


class IntegerMessages:
    """One counter of the printed protocol, when all other users have the bit, or none has.

    >>> [round(IntegerMessages(1.0, 1e-6, crowd).delta(50.0), 2) for crowd in (0, 1)]
    [0.05, 0.95]
    """

    def __init__(self, epsilon: float, delta: float, crowd: int) -> None:
        tau = printed_shuffle(SHAPE, epsilon, delta).tau
        self.users = round(RATIO * tau)
        self.chance = tau / (2 * self.users)
        self.crowd = crowd

    def epsilon(self, delta: float) -> float:
        """Over both orders of the two data sets."""
        return max(exact_epsilon([(pair, 1)], delta) for pair in self._pairs())

    def delta(self, epsilon: float) -> float:
        """Over both orders of the two data sets."""
        return max(exact_delta([(pair, 1)], epsilon) for pair in self._pairs())

    def samples(self, sampler: Sampler, runs: int) -> tuple[FloatArray, FloatArray]:
        """How many messages the analyser sees that nobody in the crowd can have sent."""
        odd = 0 if self.crowd else 2
        first, second = (
            np.array(
                [[bit + int(sampler.binomial(1, self.chance, 1)[0]) == odd] for _ in range(runs)]
            )
            for bit in (0, 1)
        )
        return first.astype(np.float64), second.astype(np.float64)

    def _pairs(self) -> list[pairs.Pair]:
        """The one message that the crowd cannot have sent is seen, or it is not."""
        seen = 1 - self.chance if self.crowd else self.chance
        betrayed, safe = {b"odd": seen, b"none": 1 - seen}, {b"none": 1.0}
        return [pairs.outcomes(betrayed, safe), pairs.outcomes(safe, betrayed)]
