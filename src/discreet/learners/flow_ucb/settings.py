"""What may be set of flow-ucb, and its usual confidence."""

import math
from dataclasses import dataclass
from typing import Literal

from discreet import _validate
from discreet.errors import InvalidInputError
from discreet.learners.base import Problem
from discreet.learners.settings import OwnSettings


@dataclass(frozen=True, kw_only=True)
class FlowSettings(OwnSettings):
    """The few numbers of flow-ucb.

    Attributes: confidence: the one multiplier on all bonuses; None: `usual_confidence`. shrink: a
        batch is sized to shrink the expected bonus of its policy by this factor. 0.7 is inherited
        from the rule set that was the start. ease: variance per visit against which noise is
        weighed in a batch's weight. 0.1 is inherited. pooling: steps are pooled where released
        counts do not contradict it, or never. mixing: where users are scarce, or a batch has to be
        large, it holds several candidate policies, played as one stochastic policy; what they do
        not need of a least size plays the greedy one; False: every batch has one candidate policy,
        one action per state and step, for all its users.
    """

    confidence: float | None = None
    shrink: float = 0.7
    ease: float = 0.1
    pooling: Literal["gated", "never"] = "gated"
    mixing: bool = True

    def check(self) -> None:
        """All positive, and a batch leaves less unknown than there was."""
        super().check()
        if self.confidence is not None:
            _validate.positive(confidence=self.confidence)
        _validate.truth(mixing=self.mixing)
        _validate.positive(shrink=self.shrink, ease=self.ease)
        if self.shrink >= 1:
            raise InvalidInputError(
                f"Expected shrink < 1, got shrink={self.shrink!r}: a batch that may leave all that "
                "is unknown teaches nothing."
            )


SCARCE = 30.0
"""Users per noise unit and row below which a batch holds several candidate policies. Inherited."""


def users_per_unit(problem: Problem, noise_variance: float) -> float:
    """K/(sigma·HSA): users per unit of noise and row; K without noise."""
    rows = math.prod(problem.shape.visits)
    return problem.episodes / max(math.sqrt(noise_variance) * rows, 1.0)


AHEAD = 100.0
"""Where every batch pays its noise anew, caution is for so many times the users so far: to visit
a row again costs another batch's noise, so that what will be needed soon is better learnt now.
Measured: 1, 10, 30, 100 and all users left."""
AHEAD_CONFIDENCE = 0.8
"""What remains of the confidence there, since widths are larger from the start. Measured: 0.7 and
0.85; 0.8 lies between."""


def usual_confidence(plenty: float) -> float:
    """Cautious where users are many: caution is dear at first and cheap later.

    0.035 up to 10 users per unit and 0.08 from 1e3 on are inherited; 0.12 from 1e6 on was measured
    at K = 1e8 (small gaps, chains; RiverSwim was in view), and 0.2 from 1e7 on, where there is
    hardly any noise to pay for, at K = 1e7 without privacy.
    """
    orders = _orders(plenty)
    rises = (
        0.045 * _ramp((orders - 1) / 2),
        0.04 * _ramp((orders - 4) / 2),
        0.08 * _ramp(orders - 6),
    )
    return 0.035 + sum(rises)


HIDING = 1.0
"""Standard deviations of noise that may hide, in every batch, a way to a state in which nobody was
seen (`planning.hidden_deviation`), and visits behind rewards (`gate`): what is lost with ten
states. Measured for ways: 0.5, 0.7 and 1."""


def hiding(plenty: float) -> float:
    """Standard deviations that noise is taken to hide: none up to 10 users per unit so far.

    All of them from 100 on.

    At first nobody was seen anywhere, and there are nearer things to find out. Measured: from the
    start, and from 10 users per unit on.
    """
    return HIDING * _ramp(_orders(plenty) - 1)


CLOSE = 0.3
"""Share of the value of a state by which an action may be worse to be a close call. Measured: 0.15
and 0.3; the same caution for all actions costs RiverSwim 5 to 16%."""


def close_caution(plenty: float) -> float:
    """What is added to the width of close calls, as a part of it.

    Nothing up to 1e3 users per unit so far, as much again from 1e4 on.

    To look again at what is almost as good costs every user little. Measured: 0.5 and 1, from 1e2
    and from 1e3 users per unit on; of all actions, 0.25 and 0.5.
    """
    return _ramp(_orders(plenty) - 3)


def _orders(plenty: float) -> float:
    return math.log10(max(plenty, 1e-9))


def _ramp(x: float) -> float:
    return min(1.0, max(0.0, x))
