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

_ROUNDING = 1e-9
"""More than rounding can take from a sum of shares or add to N: what is at the cap stays there."""


@inlined
def _bonus(root: float, shift: float, linear: float, square: float, n: float) -> float:
    """The part of the bonus that needs no values."""
    return float(root / np.sqrt(n - shift) + (linear + square / n) / n)


@inlined
def _skips(row: Floats) -> bool:
    """Are there rows that nobody sees made valid? Noise on valid distributions must outweigh users.

    Signed rows have no least mean, and the correction asks for N of all rows one step ahead.
    """
    noisy = row[_ERROR] > 0.0 and row[_SHIFT] == 0.0
    return bool(noisy and row[_MODEL] == 0.0 and row[_CORRECTION] == 0.0)


@inlined
def _least_optimism(row: Floats, visits: Floats, rewards: Floats, model: Floats) -> None:
    """``model[S+6]``: what r and `_bonus` are at least, from noisy visits and rewards alone.

    Neither rises with N, and `_valid_model` makes N at most n: its row sums to at most visits +
    error/4 (to zero where that is negative), and all shares together are error/2.
    """
    error = row[_ERROR]
    root, shift, linear, square = row[_ROOT], row[_SHIFT], row[_LINEAR], row[_SQUARE]
    visited, earned = visits.reshape(visits.size), rewards.reshape(visits.size)
    least = model[visits.shape[1] + 6].reshape(visits.size)
    for x in range(visits.size):
        high = visited[x] + error / 4
        n = error / 2 + (high if high > 0.0 else 0.0)
        mean = earned[x] / n
        mean = mean if mean > 0.0 else 0.0
        least[x] = (mean if mean < 1.0 else 1.0) + _bonus(root, shift, linear, square, n)


@inlined
def _at_cap(model: Floats, g: int, ahead: Floats, cap: float) -> bool:
    """Is Q the cap at all pairs, whatever the rows of group g are made to be?

    The mean of the values ahead is at least the least of them, and all else adds to it. What is
    not a number is not known.
    """
    states = ahead.size
    least = ahead[0]
    for t in range(1, states):
        least = ahead[t] if ahead[t] < least else least
    needed = cap * (1 + _ROUNDING) - least
    known = 0
    for x in range(model.shape[2]):
        known += int(model[states + 6, g, x] >= needed)
    return bool(known == model.shape[2])


@inlined
def _valid_model(
    transitions: Floats,
    visits: Floats,
    rewards: Floats,
    error: float,
    model: Floats,
    first: int,
    last: int,
    valid: Floats,
) -> None:
    """Equations 4, 5 and 1 of Qiao and Wang (2023): model = P, r, N; ``valid[S]`` is room."""
    _, states, choices = visits.shape
    share = error / (2 * states)
    for g in range(first, last):
        for s in range(states):
            for a in range(choices):
                x = s * choices + a
                low, high = visits[g, s, a] - error / 4, visits[g, s, a] + error / 4
                valid_row(transitions[g, s, a], low, high, valid)
                n = 0.0
                for t in range(states):
                    n += valid[t] + share
                    model[t, g, x] = valid[t] + share
                model[states, g, x] = rewards[g, s, a]
                model[states + 1, g, x] = n
    table = model.reshape(model.shape[0], visits.size)  # pairs of all groups in line
    begin, end = first * model.shape[2], last * model.shape[2]
    means, total = table[states, begin:end], table[states + 1, begin:end]
    for t in range(states + 1):
        shares = table[t, begin:end]
        for x in range(total.size):  # not times 1/N: what is certain has probability one exactly
            shares[x] /= total[x]
    for x in range(total.size):
        mean = means[x] if means[x] > 0.0 else 0.0
        means[x] = mean if mean < 1.0 else 1.0


@inlined
def estimate(
    row: Floats,
    transitions: Floats,
    visits: Floats,
    rewards: Floats,
    model: Floats,
    first: int,
    last: int,
    room: Floats,
) -> None:
    """``model[:, g]`` = P[0..S-1], r and the bonus that needs no values, N, factor of the rest.

    Of groups ``first`` to before ``last`` (all of them, where rows are signed). All that does not
    depend on the step is computed here, once for all steps of pooled counts. What stands
    where N is at most MINIMUM is never used.
    """
    states = visits.shape[1]
    if row[_MODEL] == 0.0:
        _valid_model(transitions, visits, rewards, row[_ERROR], model, first, last, room)
    else:
        _signed_model(row, transitions, visits, rewards, model)
    root, shift, linear, square = row[_ROOT], row[_SHIFT], row[_LINEAR], row[_SQUARE]
    variance = row[_VARIANCE]
    table = model.reshape(model.shape[0], visits.size)
    begin, end = first * model.shape[2], last * model.shape[2]
    optimism, total = table[states, begin:end], table[states + 1, begin:end]
    rest = table[states + 2, begin:end]
    for x in range(total.size):
        optimism[x] += _bonus(root, shift, linear, square, total[x])
        rest[x] = variance / np.sqrt(total[x])


@inlined
def _signed_model(
    row: Floats, transitions: Floats, visits: Floats, rewards: Floats, model: Floats
) -> None:
    """Plain ratios of noisy counts: model = P, r, N, of all groups: none is ever left out."""
    groups, states, choices = visits.shape
    for g in range(groups):
        for s in range(states):
            for a in range(choices):
                x, n = s * choices + a, visits[g, s, a]
                if row[_MODEL] == 1.0:
                    n = max(1.0, n + row[_ERROR])
                for t in range(states):
                    model[t, g, x] = transitions[g, s, a, t] / n
                model[states, g, x] = rewards[g, s, a] / n
                model[states + 1, g, x] = n


@inlined
def _correction(row: Floats, model: Floats, group: int, x: int, choices: int, most: float) -> float:
    """sqrt(CORRECTION·sum_s' P(s')·min(NEAR/N'(s') + NEAR2/N'(s')², H²)/N), N' = sum_a N'(s',a)."""
    states = model.shape[2] // choices
    following = group + 1 if model.shape[1] > 1 else 0
    total = 0.0
    for t in range(states):
        near = 0.0
        for b in range(choices):
            near += model[states + 1, following, t * choices + b]
        ceiling = most
        if near > 0.0:
            ceiling = min(ceiling, row[_NEAR] / near + row[_NEAR2] / (near * near))
        total += model[t, group, x] * ceiling
    return float(np.sqrt(row[_CORRECTION] * total / model[states + 1, group, x]))


@inlined
def _optimistic(row: Floats, model: Floats, values: Floats, h: int, g: int, cap: float) -> None:
    """``model[S+3, g]`` = min(cap, max(0, r + P·V + b)), or the cap where too little is known.

    All pairs at once, so that it vectorises. Two more rows of ``model`` are room for squares of
    the values ahead and for the corrections.
    """
    horizon, states = values.shape[0] - 1, values.shape[1]
    pairs = model.shape[2]
    minimum = row[_MINIMUM]
    for x in range(pairs):
        model[states + 3, g, x] = 0.0
        model[states + 4, g, x] = 0.0
        model[states + 5, g, x] = 0.0
    for t in range(states):
        value = values[h + 1, t]
        for x in range(pairs):
            ahead = model[t, g, x] * value
            model[states + 3, g, x] += ahead
            model[states + 4, g, x] += ahead * value
    if row[_CORRECTION] > 0.0 and h < horizon - 1:
        most = float(horizon * horizon)
        for x in range(pairs):
            if model[states + 1, g, x] > minimum:
                extra = _correction(row, model, g, x, pairs // states, most)
                model[states + 5, g, x] = extra
    for x in range(pairs):
        mean = model[states + 3, g, x]
        spread = model[states + 4, g, x] - mean * mean
        spread = spread if spread > 0.0 else 0.0
        new = model[states, g, x] + mean + model[states + 2, g, x] * np.sqrt(spread)
        new += model[states + 5, g, x]
        new = new if new > 0.0 else 0.0
        model[states + 3, g, x] = new if new < cap and model[states + 1, g, x] > minimum else cap


@inlined
def _keep(new: Floats, clip: bool, memory: Floats, h: int) -> None:
    """``memory[0, h]`` = the new Q values of all pairs, or the old where they are to stay below."""
    _, _, states, choices = memory.shape
    for s in range(states):
        for a in range(choices):
            q = new[s * choices + a]
            memory[0, h, s, a] = min(q, memory[0, h, s, a]) if clip else q


@inlined
def _play_and_move(
    rate: float, memory: Floats, h: int, probabilities: Floats, values: Floats
) -> None:
    """Play the policy in ``memory[1]`` at step h and value it, then move it by mirror ascent."""
    _, _, states, choices = memory.shape
    for s in range(states):
        value = 0.0
        total = 0.0
        for a in range(choices):
            weight = memory[1, h, s, a]
            probabilities[h, s, a] = weight
            value += weight * memory[0, h, s, a]
            memory[1, h, s, a] = weight * np.exp(rate * memory[0, h, s, a])
            total += memory[1, h, s, a]
        for a in range(choices):
            memory[1, h, s, a] /= total
        values[h, s] = value


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
    """Greedy for the optimistic Q values in ``memory[0]`` (start it at H).

    With a policy in ``memory[1]`` (start it uniform): that one, moved for the next user.

    Rows that cannot be seen are left as they are: while noise outweighs the users, nearly all
    values are at their cap because of the visits alone.
    """
    horizon, states = actions.shape
    groups = model.shape[1]
    moves, skips = memory.shape[0] > 1, _skips(row)
    if skips:
        _least_optimism(row, visits, rewards, model)
    values[horizon, :] = 0.0
    close = False
    estimated = groups  # the model has groups from here on
    for h in range(horizon - 1, -1, -1):
        g = h if groups > 1 else 0
        cap = float(horizon - h) if row[_REMAINING] == 1.0 else float(horizon)
        if skips and _at_cap(model, g, values[h + 1], cap):
            model[states + 3, g, :] = cap
        else:
            if g < estimated:
                first = g if skips else 0  # all at once where none can be left out
                estimate(row, transitions, visits, rewards, model, first, g + 1, values[h])
                estimated = first
            _optimistic(row, model, values, h, g, cap)
        _keep(model[states + 3, g], row[_CLIP] == 1.0, memory, h)
        if moves:
            _play_and_move(row[_RATE], memory, h, probabilities, values)
        else:
            for s in range(states):
                close |= greedy(memory, h, s, actions, values)
    if close:
        break_ties(memory, actions, rng)
