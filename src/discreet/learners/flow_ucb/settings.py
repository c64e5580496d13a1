"""What may be set of flow-ucb, and its usual confidence."""

import math
from dataclasses import dataclass
from typing import Literal

from discreet import _validate
from discreet.learners.base import Problem
from discreet.learners.settings import OwnSettings


@dataclass(frozen=True, kw_only=True)
class FlowSettings(OwnSettings):
    """The few numbers of flow-ucb.

    Attributes:
        confidence: the one multiplier on all bonuses; None: `usual_confidence`.
        shrink: a batch is sized to shrink the expected bonus of its policy by this factor.
        ease: variance per visit against which noise is weighed in a batch's credit.
        pooling: steps share what released counts do not contradict, or never do.
        mixing: where users are scarce a batch holds several plans, played as one stochastic policy;
            False: every batch has one plan, one action per state and step.
    """

    confidence: float | None = None
    shrink: float = 0.7
    ease: float = 0.1
    pooling: Literal["gated", "never"] = "gated"
    mixing: bool = True

    def check(self) -> None:
        """All positive, and a batch leaves less than there was."""
        super().check()
        if self.confidence is not None:
            _validate.positive(confidence=self.confidence)
        _validate.truth(mixing=self.mixing)
        _validate.positive(shrink=self.shrink, ease=self.ease)
        _validate.probability(shrink=self.shrink)


SCARCE = 30.0
"""Users per noise unit and row below which a batch holds several plans."""


def users_per_unit(problem: Problem, noise_variance: float) -> float:
    """K/(sigma·HSA): users per unit of noise and row; K without noise."""
    rows = math.prod(problem.shape.visits)
    return problem.episodes / max(math.sqrt(noise_variance) * rows, 1.0)


def usual_confidence(plenty: float) -> float:
    """Cautious where users are many: caution is dear at first and cheap later.

    0.035 up to 10 users per unit, 0.08 at 1e3, 0.12 at 1e6, 0.2 from 1e7 on, where there is hardly
    any noise to pay for; how these values were chosen is on the docs page.

    Args:
        plenty: `users_per_unit`.
    """
    orders = math.log10(max(plenty, 1e-9))
    rises = (
        0.045 * _ramp((orders - 1) / 2),
        0.04 * _ramp((orders - 4) / 2),
        0.08 * _ramp(orders - 6),
    )
    return 0.035 + sum(rises)


def _ramp(x: float) -> float:
    return min(1.0, max(0.0, x))
