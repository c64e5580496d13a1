"""What flow-ucb believes: evidence with steps pooled where they may be, and a model of it."""

import math
from typing import NamedTuple

import numpy as np

from discreet._types import BoolArray, FloatArray, IntArray
from discreet.learners.flow_ucb.evidence import BIAS, NOISE, VISITS, Evidence

LEAN = 0.2
"""The projection onto counts that are not negative leans one way, batch after batch: this share of
a standard deviation does not average out. Inherited from the rule set that was the start; what it
is worth is the variant ``no-lean`` of the ablation."""

POSITIVE = 1 / math.sqrt(2 * math.pi)
"""Mean of the positive part of a normal variable, in standard deviations."""
SEEN = 2.0
"""Times the visits that projected noise explains from which somebody was seen. Not varied."""


class Pooled(NamedTuple):
    """Which rows are taken to be the same at every step.

    Attributes:
        moves: ``bool[S, A]``, where transitions are pooled.
        gains: ``bool[S, A]``, where rewards are.
    """

    moves: BoolArray
    gains: BoolArray


class Belief(NamedTuple):
    """Rows as the planner reads them, in the layout of `Evidence`.

    A row is *alone* where neither its transitions nor its rewards are pooled: then its error is
    independent of that of every other row.

    Attributes:
        number: ``[L, S, A]``, the row of ``probabilities`` that belongs there, -1 for none.
        probabilities: ``[R, S]``, where rows lead.
        moves: ``[L, S, A, 5]``, the sums behind them; their noise holds the lean, but
            for a step's own rows (`own_step`).
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


def believed(evidence: Evidence, pooled: Pooled) -> Belief:
    """The model of the evidence, with the rows in ``pooled`` summed over steps."""
    from discreet.learners.flow_ucb import belief_kernels

    number = np.empty_like(evidence.number)
    count = belief_kernels.numbered(evidence.number, pooled.moves, number)
    probabilities = np.empty((count, evidence.transitions.shape[1]))
    belief_kernels.models(
        evidence.number,
        evidence.transitions,
        evidence.moves,
        pooled.moves,
        number,
        probabilities,
    )
    moves = _summed(evidence.moves, pooled.moves)
    moves[..., NOISE] += (LEAN * moves[..., BIAS]) ** 2
    return Belief(
        number,
        probabilities,
        moves,
        _summed(evidence.gains, pooled.gains),
        np.broadcast_to(pooled.moves, number.shape).copy(),
        np.broadcast_to(pooled.gains, number.shape).copy(),
    )


def unseen_states(belief: Belief) -> FloatArray:
    """``[L, S]``: 1 where visits are no more than projected noise explains, 0 from `SEEN` times on.

    Linear between, and by the action that was seen most. Projected noise looks like visits: of each
    of the S counters that lead to a state the positive part stays, `POSITIVE` standard deviations
    in the mean, and at least one is allowed for. Where the transitions of the last step are its
    own, they may not have been released: what counts is how often its rewards were seen, against
    the noise of the same action one step before.
    """
    nothing = max(1.0, POSITIVE * belief.number.shape[1]) * belief.moves[..., BIAS]
    visits = belief.moves[..., VISITS].copy()
    if len(visits) > 1:
        own = ~belief.pooled_moves[-1]
        visits[-1, own] = belief.gains[-1, own, VISITS]
        nothing[-1, own] = nothing[-2, own]
    seen = (visits / np.maximum(nothing, 1e-9)).max(axis=-1)
    unseen: FloatArray = np.clip(SEEN - seen, 0.0, 1.0)
    return unseen


def _summed(sums: FloatArray, pooled: BoolArray) -> FloatArray:
    """Sums over steps where they are pooled, each step's own elsewhere."""
    return np.where(pooled[None, :, :, None], sums.sum(axis=0)[None], sums)
