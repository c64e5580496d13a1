"""Compiled chi-squares over steps (equations in `gate`)."""

import numpy as np

from discreet._jit import kernel
from discreet._types import FloatArray, IntArray
from discreet.learners.flow_ucb.evidence import COLUMNS, DOUBT, NOISE, SAMPLING, TOTAL, VISITS

LEAST_SPREAD = 0.01
"""Of p(1 - p), so that what never happened is not taken for certain. Inherited."""


@kernel
def normal(square: float, freedom: float) -> float:
    """The standard normal that is as unlikely as this chi-square (Wilson and Hilferty, 1931)."""
    part = 2.0 / (9.0 * freedom)
    return float((np.cbrt(square / freedom) - (1.0 - part)) / np.sqrt(part))


@kernel
def component(counts: FloatArray, sums: FloatArray, steps: int, alone: FloatArray) -> float:
    """Chi-square of one component over ``steps`` steps; adds each step against the others."""
    visits, sampling, noise = sums[VISITS], sums[SAMPLING], sums[NOISE]
    total, all_visits = 0.0, 0.0
    for k in range(steps):
        total += counts[k]
        all_visits += visits[k]
    share = min(max(total / all_visits, 0.0), 1.0)
    spread = max(share * (1.0 - share), LEAST_SPREAD)
    information, weighted = 0.0, 0.0
    for k in range(steps):
        each = visits[k] ** 2 / (noise[k] + sampling[k] * spread)
        information += each
        weighted += each * counts[k] / visits[k]
    mean, square = weighted / information, 0.0
    for k in range(steps):
        each = visits[k] ** 2 / (noise[k] + sampling[k] * spread)
        value = counts[k] / visits[k]
        square += each * (value - mean) ** 2
        others = information - each
        if others > 1e-9 * each:
            mean_others = (weighted - each * value) / others
            alone[k] += each * others / information * (value - mean_others) ** 2
    return square


@kernel
def row_chi_square(
    counts: FloatArray, sums: FloatArray, steps: int, alone: FloatArray
) -> tuple[float, float, float]:
    """Of ``counts[component, step]``: the chi-square, its degrees of freedom and the worst z.

    ``sums[column, step]`` has the columns of the evidence.
    """
    if steps < 2:
        return 0.0, 0.0, -np.inf
    components = counts.shape[0]
    alone[:steps] = 0.0
    square = 0.0
    for j in range(components):
        square += component(counts[j], sums, steps, alone)
    freedom = float(components * (steps - 1))
    worst = normal(square, freedom)
    for k in range(steps):
        worst = max(worst, normal(alone[k], float(components)))
    return square, freedom, worst


@kernel
def row_score(counts: FloatArray, sums: FloatArray, steps: int, out: FloatArray) -> None:
    """Chi-square, degrees of freedom and worst z of a row with ``sums[column, step]``."""
    out[0], out[1], out[2] = row_chi_square(counts, sums, steps, np.empty(counts.shape[1]))


@kernel
def _put(row: FloatArray, step: int, out: FloatArray) -> None:
    """``out[:, step] = row``, without the comparison of shapes that is compiled for seconds."""
    for i in range(row.size):
        out[i, step] = row[i]


@kernel
def move_scores(
    number: IntArray, transitions: FloatArray, moves: FloatArray, out: FloatArray
) -> None:
    """``out[s, a]``: chi-square, degrees of freedom and worst z of transitions."""
    layers, states, actions = number.shape
    counts, sums = np.empty((states, layers)), np.empty((COLUMNS, layers))
    for s, a in np.ndindex(states, actions):
        steps = 0
        for h in range(layers):
            row = moves[h, s, a]
            if number[h, s, a] >= 0 and row[VISITS] > np.sqrt(row[DOUBT]):
                _put(transitions[number[h, s, a]], steps, counts)
                _put(row, steps, sums)
                steps += 1
        row_score(counts, sums, steps, out[s, a])


@kernel
def possible_total(total: float, visits: float, lost: float) -> float:
    """A sum of rewards, nearer to what its visits could have paid by up to ``lost``."""
    if total < 0.0:
        return min(total + lost, 0.0)
    if total > visits:
        return max(total - lost, visits)
    return total


@kernel
def gain_scores(gains: FloatArray, lost: FloatArray, doubted: float, out: FloatArray) -> None:
    """``out[s, a]``: chi-square, degrees of freedom and worst z of rewards.

    Args:
        gains: of every step.
        lost: ``[H, S, A]``, by how much sums may be off because visits are missing behind them.
        doubted: how much of the variance of visits is in that of rewards.
        out: to be filled.
    """
    layers, states, actions = gains.shape[:3]
    counts, sums = np.empty((1, layers)), np.empty((COLUMNS, layers))
    for s, a in np.ndindex(states, actions):
        steps = 0
        for h in range(layers):
            row = gains[h, s, a]
            if row[VISITS] > np.sqrt(row[DOUBT]):
                counts[0, steps] = possible_total(row[TOTAL], row[VISITS], lost[h, s, a])
                _put(row, steps, sums)
                sums[NOISE, steps] += doubted * row[DOUBT]
                steps += 1
        row_score(counts, sums, steps, out[s, a])
