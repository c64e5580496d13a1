"""What flow-ucb believes: evidence with steps pooled where they may be, and a model of it."""

from typing import NamedTuple

import numpy as np

from discreet._types import BoolArray, FloatArray, IntArray
from discreet.learners.flow_ucb.evidence import BIAS, NOISE, Evidence

LEAN = 0.2
"""The projection onto counts that are not negative leans one way, batch after batch: this share of
a standard deviation does not average out."""


class Shared(NamedTuple):
    """Which rows are taken to be the same at every step.

    Attributes:
        moves: ``bool[S, A]``, where transitions are pooled.
        gains: ``bool[S, A]``, where rewards are.
    """

    moves: BoolArray
    gains: BoolArray


class Belief(NamedTuple):
    """Rows as the planner reads them, in the layout of `Evidence`.

    Attributes:
        number: ``[L, S, A]``, the row of ``probabilities`` that belongs there, -1 for none.
        probabilities: ``[R, S]``, where rows lead.
        moves: ``[L, S, A, 5]``, the sums behind them.
        gains: ``[L, S, A, 5]``, sums of rewards.
        pooled_moves: ``bool[L, S, A]``, whose sums are those of all steps.
        pooled_gains: likewise.
    """

    number: IntArray
    probabilities: FloatArray
    moves: FloatArray
    gains: FloatArray
    pooled_moves: BoolArray
    pooled_gains: BoolArray


def believed(evidence: Evidence, shared: Shared) -> Belief:
    """The model of the evidence, with the rows in ``shared`` summed over steps."""
    from discreet.learners.flow_ucb import belief_kernels

    number = np.empty_like(evidence.number)
    count = belief_kernels.numbered(evidence.number, shared.moves, number)
    probabilities = np.empty((count, evidence.transitions.shape[1]))
    belief_kernels.models(
        evidence.number,
        evidence.transitions,
        evidence.moves,
        shared.moves,
        number,
        probabilities,
    )
    moves = _summed(evidence.moves, shared.moves)
    moves[..., NOISE] += (LEAN * moves[..., BIAS]) ** 2
    return Belief(
        number,
        probabilities,
        moves,
        _summed(evidence.gains, shared.gains),
        np.broadcast_to(shared.moves, number.shape).copy(),
        np.broadcast_to(shared.gains, number.shape).copy(),
    )


def _summed(sums: FloatArray, shared: BoolArray) -> FloatArray:
    """Sums over steps where they are shared, each step's own elsewhere."""
    return np.where(shared[None, :, :, None], sums.sum(axis=0)[None], sums)
