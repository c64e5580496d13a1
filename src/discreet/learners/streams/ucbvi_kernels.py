"""Compiled optimistic value iteration, shared by the UCBVI family.

The learners differ only in how counts become a model and in the factors of the bonus

    b(h,s,a) = VARIANCE·sqrt(Var_P(V)/N) + ROOT/sqrt(N - SHIFT) + LINEAR/N + SQUARE/N²
               + sqrt(CORRECTION·sum_s' P(s')·min(NEAR/N'(s') + NEAR2/N'(s')², H²) / N),

so a learner computes one row of factors per release (`Column` names them) and the planners
below serve them all. N'(s') is the number of visits to s' at the next step.
"""

from enum import IntEnum

import numpy as np

from discreet._jit import inlined
from discreet._types import Floats, Ints
from discreet.learners.streams.planner_kernels import break_ties, greedy, planner
from discreet.privacy.postprocess.valid_counts_kernels import valid_row


class Column(IntEnum):
    """Coefficients of one release."""

    VARIANCE = 0
    ROOT = 1
    LINEAR = 2
    SQUARE = 3
    CORRECTION = 4
    NEAR = 5
    NEAR2 = 6
    SHIFT = 7
    MINIMUM = 8
    """With this many visits or fewer, Q is the cap."""
    ERROR = 9
    """How far a count may be off: enters the estimates."""
    MODEL = 10
    """0: valid distributions; 1: denominators max(1, N + ERROR); 2: denominators N."""
    REMAINING = 11
    """1: values are capped by the number of remaining steps; 0: by H."""
    CLIP = 12
    """1: Q never grows over the episodes."""
    RATE = 13
    """Step size of policy optimisation."""


# Plain integers for the kernels: compiled code does not index by enum.
_VARIANCE, _ROOT, _LINEAR, _SQUARE, _CORRECTION, _NEAR, _NEAR2, _SHIFT, _MINIMUM = range(9)
_ERROR, _MODEL, _REMAINING, _CLIP, _RATE = range(9, 14)


@inlined
def _valid_model(
    transitions: Floats, visits: Floats, rewards: Floats, error: float, model: Floats
) -> None:
    """Equations 4, 5 and 1 of Qiao and Wang (2023): model = P, r, N."""
    groups, states, choices = visits.shape
    share = error / (2 * states)
    for g in range(groups):
        for s in range(states):
            for a in range(choices):
                low, high = visits[g, s, a] - error / 4, visits[g, s, a] + error / 4
                valid_row(transitions[g, s, a], low, high, model[g, s, a, :states])
                n = 0.0
                for t in range(states):
                    model[g, s, a, t] += share
                    n += model[g, s, a, t]
                model[g, s, a, states + 1] = n
                if n > 0.0:
                    for t in range(states):
                        model[g, s, a, t] /= n
                    mean = rewards[g, s, a] / n
                    model[g, s, a, states] = min(1.0, max(0.0, mean))


@inlined
def estimate(
    row: Floats, transitions: Floats, visits: Floats, rewards: Floats, model: Floats
) -> None:
    """``model[g,s,a]`` = P[0..S-1], r and the bonus that needs no values, N, factor of the rest.

    All that does not depend on the step is computed here, once for all steps of pooled counts.
    """
    groups, states, choices = visits.shape
    if row[_MODEL] == 0.0:
        _valid_model(transitions, visits, rewards, row[_ERROR], model)
    else:
        _signed_model(row, transitions, visits, rewards, model)
    for g in range(groups):
        for s in range(states):
            for a in range(choices):
                n = model[g, s, a, states + 1]
                if n > row[_MINIMUM]:
                    linear = (row[_LINEAR] + row[_SQUARE] / n) / n
                    model[g, s, a, states] += row[_ROOT] / np.sqrt(n - row[_SHIFT]) + linear
                    model[g, s, a, states + 2] = row[_VARIANCE] / np.sqrt(n)


@inlined
def _signed_model(
    row: Floats, transitions: Floats, visits: Floats, rewards: Floats, model: Floats
) -> None:
    """Plain ratios of noisy counts: model = P, r, N."""
    groups, states, choices = visits.shape
    for g in range(groups):
        for s in range(states):
            for a in range(choices):
                n = visits[g, s, a]
                if row[_MODEL] == 1.0:
                    n = max(1.0, n + row[_ERROR])
                for t in range(states):
                    model[g, s, a, t] = transitions[g, s, a, t] / n
                model[g, s, a, states] = rewards[g, s, a] / n
                model[g, s, a, states + 1] = n


@inlined
def _correction(row: Floats, model: Floats, group: int, s: int, a: int, horizon: int) -> float:
    """sqrt(CORRECTION·sum_s' P(s')·min(NEAR/N'(s') + NEAR2/N'(s')², H²)/N), N' = sum_a N'(s',a)."""
    states, choices = model.shape[1:3]
    following = group + 1 if model.shape[0] > 1 else 0
    total = 0.0
    for t in range(states):
        near = 0.0
        for b in range(choices):
            near += model[following, t, b, states + 1]
        ceiling = float(horizon * horizon)
        if near > 0.0:
            ceiling = min(ceiling, row[_NEAR] / near + row[_NEAR2] / (near * near))
        total += model[group, s, a, t] * ceiling
    return float(np.sqrt(row[_CORRECTION] * total / model[group, s, a, states + 1]))


@inlined
def _fill_q(
    row: Floats, model: Floats, memory: Floats, values: Floats, h: int, s: int, horizon: int
) -> None:
    """memory[0,h,s,a] = min(cap, max(0, r + P·V + b)), or the cap where too little is known."""
    states = values.shape[1]
    g = h if model.shape[0] > 1 else 0
    cap = float(horizon - h) if row[_REMAINING] == 1.0 else float(horizon)
    for a in range(model.shape[2]):
        q = cap
        if model[g, s, a, states + 1] > row[_MINIMUM]:
            mean = 0.0
            square = 0.0
            for t in range(states):
                ahead = model[g, s, a, t] * values[h + 1, t]
                mean += ahead
                square += ahead * values[h + 1, t]
            q = model[g, s, a, states] + mean
            spread = square - mean * mean
            if spread > 0.0:
                q += model[g, s, a, states + 2] * np.sqrt(spread)
            if row[_CORRECTION] > 0.0 and h < horizon - 1:
                q += _correction(row, model, g, s, a, horizon)
            q = min(cap, max(0.0, q))
        if row[_CLIP] == 1.0 and q > memory[0, h, s, a]:
            q = memory[0, h, s, a]
        memory[0, h, s, a] = q


@planner
def optimistic_values(
    row: Floats,
    transitions: Floats,
    visits: Floats,
    rewards: Floats,
    memory: Floats,
    model: Floats,
    values: Floats,
    actions: Ints,
    probabilities: Floats,
    rng: np.random.Generator,
) -> None:
    """Greedy for optimistic Q values; ``memory[0]`` holds Q (start it at H)."""
    estimate(row, transitions, visits, rewards, model)
    horizon, states = actions.shape
    values[horizon, :] = 0.0
    close = False
    for h in range(horizon - 1, -1, -1):
        for s in range(states):
            _fill_q(row, model, memory, values, h, s, horizon)
            close |= greedy(memory, h, s, actions, values)
    if close:
        break_ties(memory, actions, rng)


@planner
def optimistic_policy(
    row: Floats,
    transitions: Floats,
    visits: Floats,
    rewards: Floats,
    memory: Floats,
    model: Floats,
    values: Floats,
    actions: Ints,
    probabilities: Floats,
    rng: np.random.Generator,
) -> None:
    """Play the policy in ``memory[1]`` (start it uniform), then move it by mirror ascent."""
    estimate(row, transitions, visits, rewards, model)
    horizon, states, choices = probabilities.shape
    values[horizon, :] = 0.0
    for h in range(horizon - 1, -1, -1):
        for s in range(states):
            _fill_q(row, model, memory, values, h, s, horizon)
            value = 0.0
            total = 0.0
            for a in range(choices):
                weight = memory[1, h, s, a]
                probabilities[h, s, a] = weight
                value += weight * memory[0, h, s, a]
                memory[1, h, s, a] = weight * np.exp(row[_RATE] * memory[0, h, s, a])
                total += memory[1, h, s, a]
            for a in range(choices):
                memory[1, h, s, a] /= total
            values[h, s] = value
