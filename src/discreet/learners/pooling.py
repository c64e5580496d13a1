"""Steps pooled where released counts do not contradict it; compiled, and without any privacy cost.

*The gate.* Every component of a row (s, a), the share of one next state or the mean reward, has one
value x_h per step with the information I_h = N²/V, where V = F + M·max(p(1 - p), 0.01) with the
pooled share p, of the steps whose visits are certain (N > sqrt D). Of rewards, F is
G + D·max(c, 1 - c)²: G + D/4 where they are centred, and G + D where they are not. If the row is
stationary, the sum of I_h·(x_h - mean)² over steps and components is a chi-square; so is, for each
step, its difference from all others together, which finds a single step that differs. Wilson and
Hilferty make both a normal z; the larger is the row's.

A row is nonstationary from z = 4 on; it stands alone and says nothing about the others. The rest is
pooled if z of all its rows together is below 4 and no more than a tenth of the rows are
nonstationary (none in a problem of fewer than ten rows). Rewards are pooled if, besides, their own
z are below the same limit.

The gate cannot see a difference at a step where hardly anybody was: the check of flow-ucb does.
"""

import math
from typing import NamedTuple

import numpy as np

from discreet._jit import kernel
from discreet._types import BoolArray, FloatArray, IntArray
from discreet.learners.estimate import (
    COLUMNS,
    NOISE,
    SAMPLING,
    TOTAL,
    VISIT_VARIANCE,
    VISITS,
    CountSums,
    ModelEstimate,
)
from discreet.privacy.projection.valid_counts import valid_row

ROUNDING = 1e-12
"""Sums of the same numbers in other orders differ by less, as a part of them."""
LIMIT = 4.0
"""Of z, from which on a row, or all others together, are nonstationary."""
NONSTATIONARY_ROWS = 0.1
"""Share of rows that may be nonstationary in a problem that is stationary else. A tenth and a
quarter were compared; the figures were not kept."""
LEAST_SPREAD = 0.01
"""Of p(1 - p), so that what never happened is not taken for certain. Inherited."""


class Pooled(NamedTuple):
    """Which rows ``bool[S, A]`` are taken to be the same at every step."""

    transitions: BoolArray
    rewards: BoolArray

    @classmethod
    def all_or_none(cls, sums: CountSums, pooled: bool) -> "Pooled":
        """As declared, not found."""
        rows = sums.number.shape[1:]
        return cls(np.full(rows, pooled), np.full(rows, pooled))


def estimated(sums: CountSums, pooled: Pooled) -> ModelEstimate:
    """The model of the sums, with the rows in ``pooled`` summed over steps."""
    number = np.empty_like(sums.number)
    count = numbered(sums.number, pooled.transitions, number)
    probabilities = np.empty((count, sums.transitions.shape[1]))
    models(
        sums.number,
        sums.transitions,
        sums.transition_sums,
        pooled.transitions,
        number,
        probabilities,
    )
    transition_sums, reward_sums = (
        np.where(where[None, :, :, None], own.sum(axis=0)[None], own)
        for own, where in zip(sums[2:], pooled, strict=True)
    )
    return ModelEstimate(
        number,
        probabilities,
        transition_sums,
        reward_sums,
        *(np.broadcast_to(where, number.shape).copy() for where in pooled),
    )


def pooled_rows(sums: CountSums, reward_share: float) -> Pooled:
    """The rows that may be pooled.

    ``reward_share`` says how much of the variance of visits is in that of rewards, max(c, 1 - c)².
    """
    moved, paid = (np.empty((*sums.number.shape[1:], 3)) for _ in range(2))
    transition_scores(sums.number, sums.transitions, sums.transition_sums, moved)
    reward_scores(sums.reward_sums, reward_share, paid)
    transitions = _all_rows(moved) < LIMIT
    rewards = transitions and _all_rows(paid) < LIMIT
    return Pooled(transitions & (moved[..., 2] < LIMIT), rewards & (paid[..., 2] < LIMIT))


def contradictions(sums: CountSums, reward_share: float) -> tuple[str, ...]:
    """What the counts of every step say against a stationarity that was declared: a note, or none.

    The limit is the gate's, z = 4; a problem that is stationary may exceed it, too: projected noise
    is not quite unbiased.
    """
    pooled = pooled_rows(sums, reward_share)
    differ = np.argwhere(~(pooled.transitions & pooled.rewards))
    if not len(differ):
        return ()
    rows = ", ".join(f"({s}, {a})" for s, a in differ[:5].tolist())
    rows += f" and {len(differ) - 5} more" if len(differ) > 5 else ""
    return (
        f"stationary=True was declared, and the counts contradict it: {len(differ)} of "
        f"{sums.number[0].size} pairs (state, action) differ between steps by more than noise "
        f"explains, each or together: {rows}. What was learnt is an average over the steps; for "
        f"people to come do not declare it.",
    )


def _all_rows(scores: FloatArray) -> float:
    compared, nonstationary = scores[..., 1] > 0, scores[..., 2] >= LIMIT
    few = NONSTATIONARY_ROWS * nonstationary.size < 1
    if nonstationary.sum() > (0.0 if few else max(1.0, NONSTATIONARY_ROWS * compared.sum())):
        return math.inf
    square, freedom, _ = scores[compared & ~nonstationary].sum(axis=0)
    return float(normal(square, freedom)) if freedom > 0 else -math.inf


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
    sums: FloatArray,
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
                        visits += sums[h, s, a, VISITS]
                        for j in range(total.size):
                            total[j] += transitions[number[h, s, a], j]
                if places[0, s, a] >= 0:
                    row_model(total, visits, probabilities[places[0, s, a]])
                continue
            for h in range(layers):
                if places[h, s, a] >= 0:
                    counts, visits = transitions[number[h, s, a]], sums[h, s, a, VISITS]
                    row_model(counts, visits, probabilities[places[h, s, a]])


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
def _put(row: FloatArray, step: int, out: FloatArray) -> None:
    for i in range(row.size):
        out[i, step] = row[i]


@kernel
def transition_scores(
    number: IntArray, transitions: FloatArray, moved: FloatArray, out: FloatArray
) -> None:
    """``out[s, a]``: chi-square, degrees of freedom and worst z of transitions."""
    layers, states, actions = number.shape
    counts, sums, alone = np.empty((states, layers)), np.empty((COLUMNS, layers)), np.empty(layers)
    for s, a in np.ndindex(states, actions):
        steps = min(layers, 0)  # zero; callees would be compiled for the literal, too
        for h in range(layers):
            row = moved[h, s, a]
            if number[h, s, a] >= 0 and row[VISITS] > np.sqrt(row[VISIT_VARIANCE]):
                _put(transitions[number[h, s, a]], steps, counts)
                _put(row, steps, sums)
                steps += 1
        out[s, a, 0], out[s, a, 1], out[s, a, 2] = row_chi_square(counts, sums, steps, alone)


@kernel
def reward_scores(gains: FloatArray, reward_share: float, out: FloatArray) -> None:
    """``out[s, a]``: chi-square, degrees of freedom and worst z of rewards."""
    layers, states, actions = gains.shape[:3]
    counts, sums, alone = np.empty((1, layers)), np.empty((COLUMNS, layers)), np.empty(layers)
    for s, a in np.ndindex(states, actions):
        steps = min(layers, 0)  # zero; callees would be compiled for the literal, too
        for h in range(layers):
            row = gains[h, s, a]
            if row[VISITS] > np.sqrt(row[VISIT_VARIANCE]):
                counts[0, steps] = row[TOTAL]
                _put(row, steps, sums)
                sums[NOISE, steps] += reward_share * row[VISIT_VARIANCE]
                steps += 1
        out[s, a, 0], out[s, a, 1], out[s, a, 2] = row_chi_square(counts, sums, steps, alone)
