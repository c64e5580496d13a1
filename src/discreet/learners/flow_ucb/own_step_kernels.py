"""Compiled comparison of each step with all steps pooled (rule in `own_step`)."""

import numpy as np

from discreet._jit import kernel
from discreet._types import FloatArray, IntArray
from discreet.learners.flow_ucb.belief import Belief
from discreet.learners.flow_ucb.belief_kernels import row_model
from discreet.learners.flow_ucb.evidence import DOUBT, NOISE, SAMPLING, VISITS, Evidence
from discreet.learners.flow_ucb.own_step import OWN_GAINS, OWN_ROW, UNCHECKED
from discreet.learners.flow_ucb.plan_kernels import TIE, mean_reward

LARGEST_VARIANCE = 0.5
"""Per visit, while a reward is not known: twice the largest of a reward in [0, 1], which makes the
visits that `TIGHT` takes two. Not varied."""
USUAL_VARIANCE = 0.1
"""Per visit, where an own reward is compared with the pooled one. Not varied."""
SHARP = 0.2
"""Standard deviation down to which an own reward has to be known to count as known well (as known
at all: `TIGHT`). Measured: 0.1 and 0.2."""
SHARP_SURPRISE = 0.5
"""Standard deviations by which one that is known well has to exceed the pooled one at least. An
excess of a reward that is hardly known may be a large one; of one that is known well, it is noise
half of the time. Measured: 0, 0.5 and 1; with 1 (known to 0.1), two of 160 runs stayed with a wrong
policy where all gaps are small."""
MOVES_SURPRISE = 2.0
"""Standard deviations by which own transitions have to lead to more. Not varied."""


@kernel
def reward_known(gains: FloatArray, doubted: float, tight: float) -> bool:
    """Whether a step's own reward is known to ``tight``: above its noise, by enough visits.

    Of weighted visits N = sum w·n with M = sum w²·n, as many as N²/M count.
    """
    noise = np.sqrt(gains[NOISE] + doubted * gains[DOUBT])
    enough = (gains[VISITS] * tight) ** 2 >= LARGEST_VARIANCE * gains[SAMPLING]
    enough = enough and noise < tight * gains[VISITS]
    return bool(enough and gains[VISITS] > np.sqrt(gains[DOUBT]))


@kernel
def own_value(
    evidence: Evidence, h: int, s: int, a: int, following: FloatArray, row: FloatArray
) -> float:
    """Mean of the next value by this step's own transitions."""
    i = evidence.number[h, s, a]
    if i < 0:
        return 0.0
    row_model(evidence.transitions[i], evidence.moves[h, s, a, VISITS], row)
    mean = 0.0
    for j in range(following.size):
        mean += row[j] * following[j]
    return mean


@kernel
def examine(
    evidence: Evidence,
    belief: Belief,
    surprise: FloatArray,
    values: FloatArray,
    doubted: float,
    tight: float,
    verdict: IntArray,
) -> None:
    """``verdict[h, s, a]``: `UNCHECKED`, `OWN_GAINS` or `OWN_ROW`; zero where nothing changes.

    ``surprise[h, s]`` is by how many standard deviations an own reward has to exceed the pooled one
    to be used instead, at least `SHARP_SURPRISE` where it is known to `SHARP`; infinite where
    nothing is due.
    """
    horizon, states, actions = verdict.shape
    row = np.empty(states)
    for h in range(horizon):
        for s in range(states):
            if np.isinf(surprise[h, s]):
                continue
            for a in range(actions):
                pooled_gains = belief.pooled_gains[h, s, a]
                pooled_moves = belief.pooled_moves[h, s, a] and h < horizon - 1
                if not (pooled_gains or pooled_moves):
                    continue
                gains = evidence.gains[h, s, a]
                if not reward_known(gains, doubted, tight):
                    verdict[h, s, a] = UNCHECKED if pooled_gains else 0
                    continue
                own, pooled = mean_reward(gains), mean_reward(belief.gains[h, s, a])
                square = gains[NOISE] + doubted * gains[DOUBT] + USUAL_VARIANCE * gains[SAMPLING]
                deviation = np.sqrt(square) / gains[VISITS]
                needed = surprise[h, s]
                if deviation <= SHARP:
                    needed = max(needed, SHARP_SURPRISE)
                if pooled_gains and own - pooled > needed * deviation:
                    verdict[h, s, a] = OWN_GAINS
                if pooled_moves:
                    better_moves(evidence, belief, h, s, a, values[h + 1], row, verdict)


@kernel
def better_moves(
    evidence: Evidence,
    belief: Belief,
    h: int,
    s: int,
    a: int,
    following: FloatArray,
    row: FloatArray,
    verdict: IntArray,
) -> None:
    """`OWN_ROW` where this step's own transitions lead to more, beyond their noise."""
    moves, place = evidence.moves[h, s, a], belief.number[h, s, a]
    if place < 0 or moves[VISITS] <= np.sqrt(moves[DOUBT]):
        return
    mean = 0.0
    for j in range(following.size):
        mean += belief.probabilities[place, j] * following[j]
    variance, deviation = 0.0, 0.0
    for j in range(following.size):
        square = (following[j] - mean) ** 2
        variance += belief.probabilities[place, j] * square
        deviation += square
    own = own_value(evidence, h, s, a, following, row)
    spread = np.sqrt(moves[SAMPLING] * variance + moves[NOISE] * deviation) / moves[VISITS]
    if own - mean > MOVES_SURPRISE * spread + TIE:
        verdict[h, s, a] = OWN_ROW
