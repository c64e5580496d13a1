"""Settings of policy elimination, and the constants that follow from them.

The practical knobs were chosen once, on a slippery chain and on random MDPs (not on RiverSwim), and
are used for every problem and every trust model alike; the printed constants are kept beside them.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from discreet import _validate
from discreet._types import FloatArray
from discreet.errors import InvalidInputError
from discreet.learners.base import PublicFacts
from discreet.learners.settings import ConstantSet, Settings, failure_probability

INFREQUENT = 0.5
"""A transition is infrequent if its count is at most so many standard deviations of its noise."""
LEAST = 32
"""Users of a part of the first stage, at least."""
GROWTH = 2.0
"""Ratio of the lengths of consecutive stages."""


@dataclass(frozen=True, kw_only=True)
class EliminationSettings(Settings):
    """What can be chosen; the defaults are used for every problem and every trust model.

    Attributes:
        fine: ``"coverage"`` (paper 001: the design of its equation 3 and the auxiliary mixture) or
            ``"mixture"`` (paper 000: every exploration policy once more).
        structure: ``"practical"`` (implicit active set, accumulated counts, exploit tail) or
            ``"paper"`` (the pseudocode where it is consistent, on an explicit list of policies).
        constants: ``"practical"`` (the knobs below) or ``"theory"`` (the printed constants, which
            leave the knobs aside).
        literal: with ``structure="paper"``, iota without its X, stages from 2 and (000) every
            exploration policy for the same number of episodes, as printed; False repairs them.
        forgetting: use the current stage's data only; None means what the structure does (True for
            ``"paper"``, False for ``"practical"``).
        confidence: multiplies the confidence widths; there is no theorem below 1.
        failure: delta of the papers, the probability that a confidence bound fails.
        batches: at most so many recruitments; None: as many as stages take.
    """

    fine: Literal["coverage", "mixture"] = "coverage"
    structure: Literal["practical", "paper"] = "practical"
    constants: ConstantSet = "practical"
    literal: bool = False
    forgetting: bool | None = None
    confidence: float = 0.05
    failure: float = 0.1
    batches: int | None = None

    def check(self) -> None:
        """Widths are positive, and what is printed is printed."""
        _validate.positive(confidence=self.confidence)
        if self.literal and self.structure != "paper":
            raise InvalidInputError(
                f"Expected literal=False beside structure={self.structure!r}, got literal=True: "
                f"only structure='paper' is printed; leave one of the two out."
            )
        failure_probability(self.failure)
        if self.batches is not None and self.batches < 3:
            raise InvalidInputError(
                f"Expected batches >= 3, got batches={self.batches!r}: a stage explores twice, and "
                "the last batch plays what was learnt; leave batches out for as many as it takes."
            )

    @property
    def forgets(self) -> bool:
        """Whether a stage uses its own data alone."""
        return self.structure == "paper" if self.forgetting is None else self.forgetting

    @property
    def stage_shares(self) -> tuple[float, ...]:
        """Of crude exploration, and of fine exploration with its auxiliary policy, in lengths."""
        return (1.0, 1.0) if self.fine == "mixture" else (1.0, 2.0)


@dataclass(frozen=True)
class PrintedConstants:
    """The numbers of the papers' proofs for one problem.

    Attributes:
        problem: states X, actions A, horizon H, episodes K.
        settings: which version, which constants.
    """

    problem: PublicFacts
    settings: EliminationSettings

    @property
    def iota(self) -> float:
        """log(2·H·A·K/delta) if literal, otherwise with the X that its union bound needs."""
        shape = self.problem.shape
        states = 1 if self.settings.literal else shape.states
        events = 2 * shape.horizon * states * shape.actions * self.problem.episodes
        return math.log(events / self.settings.failure)

    def count_error(self, deviation: float) -> float:
        """E of Assumption 4: a bound on the error of every post-processed counter of a batch.

        Raw noise stays within E/4; for sub-Gaussian noise of this standard deviation that is
        deviation·sqrt(2·log(2·counters/delta)) over all H·X·A·(X + 2) counters.
        """
        shape = self.problem.shape
        counters = math.prod(shape.visits) * (shape.states + 2)
        return 4.0 * deviation * math.sqrt(2.0 * math.log(2.0 * counters / self.settings.failure))

    def infrequent(self, variance: FloatArray) -> FloatArray:
        """A transition counted at most so often is infrequent, given its noise variance.

        Printed: 6·E·H²·iota. Without noise E would be 0 and the printed threshold with it; at least
        1 is what the non-private analysis has.
        """
        if self.settings.constants == "practical":
            return INFREQUENT * np.sqrt(variance)
        error = max(1.0, self.count_error(math.sqrt(float(variance.max()))))
        return np.full(variance.shape, 6.0 * error * self.problem.shape.horizon**2 * self.iota)

    def printed_width(self, length: float, deviation: float) -> float:
        """2C(...) of line 9 of Algorithm 1 with C = 1: a policy so far below the best goes.

        ``length`` is L, the episodes of one part of the stage; ``deviation`` that of one counter.
        """
        X, A, H = self.problem.shape.states, self.problem.shape.actions, self.problem.shape.horizon
        error = max(1.0, self.count_error(deviation))
        if self.settings.fine == "coverage":
            statistical, private = X * A * H**3, X**3 * A * H**5
        else:
            statistical, private = X**2 * A * H**5, X**3 * A**2 * H**5
        root = math.sqrt(statistical * self.iota / length)
        return 2.0 * (root + private * error * self.iota / length)
