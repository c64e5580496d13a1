"""What each rule of flow-ucb is worth: its regret with one of them off, over its own.

    python -m research.rules run rules.csv --learners flow-ucb no-weights flow-ucb:mixing=false
    python -m research.rules summary rules.csv --against flow-ucb

As `research.regret`, with more learners; the numbers are those of the rules on
its page. Settings switch off rules 3 with 9 (``flow-ucb:pooling=never``) and 7.
"""

import numpy as np

from discreet.learners.flow_ucb import learner as flow_ucb
from discreet.learners.flow_ucb.learner import FlowUCB
from discreet.learners.registry import LearnerSpec, register
from research.regret import main


class NoProjection(FlowUCB):
    """Rule 1: noisy counts as they are, at least zero."""

    name = "no-projection"

    def tell(self, counts):
        projected, flow_ucb.released_flow = flow_ucb.released_flow, unprojected
        try:
            super().tell(counts)
        finally:
            flow_ucb.released_flow = projected


def unprojected(counts, start, chosen):
    """Released transitions and visits, at least zero."""
    moves = np.maximum(counts.row_transitions, 0.0)
    return moves, np.maximum(counts.row_visits, 0.0)


class NoWeights(FlowUCB):
    """Rule 2: every batch has weight one."""

    name = "no-weights"

    def _terms(self, users):
        return super()._terms(users)._replace(ease=1e12)


class FlatWidth(FlowUCB):
    """Rule 4: the same width for every row, that of one with its share of the users so far."""

    name = "flat-width"

    def width(self, model):
        shape, told = self.problem.shape, max(self._told, 1)
        level = np.log1p((self.problem.episodes - told) / told)
        return np.full(shape.visits, 2 * float(self.settings["confidence"]) * level)


class NoHiding(FlowUCB):
    """Rule 5: noise is not taken to hide ways."""

    name = "no-hiding"
    hiding = 0.0


class NoSizes(FlowUCB):
    """Rule 6: every batch has as many users as all before it."""

    name = "no-sizes"

    def sized(self, model, tie, most):
        part = super().sized(model, tie, most)
        return part if not self._told else part._replace(users=most)


class NoStop(FlowUCB):
    """Rule 8: the last batch explores."""

    name = "no-stop"

    def _greedy(self, tie):
        left = self.problem.episodes - self._told
        return self.sized(self.model(), tie, left).candidate if left else super()._greedy(tie)


class NoCheck(FlowUCB):
    """Rule 9: the gate alone decides what is pooled."""

    name = "no-check"

    def checked(self, model, *, exploring):
        return model


if __name__ == "__main__":
    for kind in FlowUCB.__subclasses__():
        register(LearnerSpec.of_batch(kind, paper="ours"))
    main()
