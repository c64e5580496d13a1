"""Compiled sums and models of flow-ucb's rows (`belief`)."""

import numpy as np

from discreet._jit import kernel
from discreet._types import BoolArray, FloatArray, IntArray
from discreet.learners.flow_ucb.evidence import VISITS
from discreet.privacy.projection.valid_counts import valid_row

ROUNDING = 1e-12
"""Sums of the same numbers in other orders differ by less, as a part of them."""


@kernel
def add_rows(
    numbers: IntArray, weight: FloatArray, transitions: FloatArray, total: FloatArray
) -> None:
    """Add each row, times its weight, to row ``numbers[i]`` of the total; -1 for nowhere."""
    for i in range(numbers.size):
        if numbers[i] >= 0:
            for j in range(total.shape[1]):
                if transitions[i, j] != 0.0:
                    total[numbers[i], j] += weight[i] * transitions[i, j]


@kernel
def row_model(counts: FloatArray, visits: float, out: FloatArray) -> None:
    """The distribution nearest to the counts of one row; anything is as likely without visits.

    Counts whose sum is the visits but for rounding stay as they are: zeros stay zero.
    """
    if visits <= 0.0:
        out[:] = 1.0 / out.size
        return
    total = 0.0
    for count in counts:
        total += max(count, 0.0)
    if abs(total - visits) <= ROUNDING * visits:
        for j in range(out.size):
            out[j] = max(counts[j], 0.0) / visits
        return
    valid_row(counts, visits, visits, out)
    for j in range(out.size):
        out[j] /= visits


@kernel
def numbered(number: IntArray, pooled: BoolArray, out: IntArray) -> int:
    """Number the rows of a model: one for all steps of a pooled (s, a); returns how many."""
    layers, states, actions = number.shape
    count = 0
    for s in range(states):
        for a in range(actions):
            first = -1
            for h in range(layers):
                out[h, s, a] = -1
                if number[h, s, a] < 0:
                    continue
                if not pooled[s, a] or first < 0:
                    out[h, s, a] = count
                    first = count
                    count += 1
            if pooled[s, a]:
                for h in range(layers):
                    out[h, s, a] = first
    return count


@kernel
def models(
    number: IntArray,
    transitions: FloatArray,
    moves: FloatArray,
    pooled: BoolArray,
    places: IntArray,
    probabilities: FloatArray,
) -> None:
    """Transition probabilities ``[places, S]`` of own rows, and of pooled ones."""
    layers, states, actions = number.shape
    total = np.empty(probabilities.shape[1])
    for s in range(states):
        for a in range(actions):
            if pooled[s, a]:
                total[:] = 0.0
                visits = 0.0
                for h in range(layers):
                    if number[h, s, a] >= 0:
                        visits += moves[h, s, a, VISITS]
                        total += transitions[number[h, s, a]]
                if places[0, s, a] >= 0:
                    row_model(total, visits, probabilities[places[0, s, a]])
                continue
            for h in range(layers):
                if places[h, s, a] >= 0:
                    row_model(
                        transitions[number[h, s, a]],
                        moves[h, s, a, VISITS],
                        probabilities[places[h, s, a]],
                    )
