"""Compiled dynamic programming and compiled simulation of single episodes.

Planning runs over sparse transition rows (`tabular.SparseRows`): O(entries) work per step, at most
O(H S^2 A) in all; where rows are dense, over many of them at once. Simulation runs over cumulative
rows (`tabular.EpisodeTables`) and draws from the NumPy generator it is given, so that a learner's
kernel can call it once per episode.
"""

import numpy as np

from discreet._jit import kernel
from discreet._types import FloatArray, IntArray
from discreet.mdp.tabular import EpisodeTables, SparseRows


@kernel
def _expected(rows: SparseRows, row: int, values: FloatArray) -> float:
    """The mean of ``values`` at the next state; four partial sums keep the processor busy."""
    first, stop = rows.pointers[row], rows.pointers[row + 1]
    columns, entries = rows.columns, rows.entries
    one = two = three = four = 0.0
    i = first
    while i + 3 < stop:
        one += entries[i] * values[columns[i]]
        two += entries[i + 1] * values[columns[i + 1]]
        three += entries[i + 2] * values[columns[i + 2]]
        four += entries[i + 3] * values[columns[i + 3]]
        i += 4
    while i < stop:
        one += entries[i] * values[columns[i]]
        i += 1
    return (one + two) + (three + four)


@kernel
def _step(rows: SparseRows, h: int) -> int:
    """The step whose rows step h uses."""
    return h if rows.numbers.shape[0] > 1 else 0


@kernel
def _all_expected(rows: SparseRows, t: int, values: FloatArray) -> FloatArray:
    """The mean of ``values`` after each row of step t."""
    first, stop = rows.steps[t], rows.steps[t + 1]
    if rows.tiles.shape[0] > 0:
        return _side_by_side(rows.tiles[t], values)
    means = np.empty(stop - first)
    for row in range(first, stop):
        means[row - first] = _expected(rows, row, values)
    return means


@kernel
def _side_by_side(tiles: FloatArray, values: FloatArray) -> FloatArray:
    """The mean of ``values`` after each row, many rows at once (see `SparseRows`).

    Every row is summed in the same order, whatever stands beside it.
    """
    blocks, states, width = tiles.shape
    means = np.zeros(blocks * width)
    whole = states - states % 8
    for block in range(blocks):
        tile, sums = tiles[block], means[block * width : (block + 1) * width]
        for y in range(0, whole, 8):
            a, b, c, d = values[y], values[y + 1], values[y + 2], values[y + 3]
            e, f, g, h = values[y + 4], values[y + 5], values[y + 6], values[y + 7]
            for row in range(width):
                left = (tile[y, row] * a + tile[y + 1, row] * b) + (
                    tile[y + 2, row] * c + tile[y + 3, row] * d
                )
                right = (tile[y + 4, row] * e + tile[y + 5, row] * f) + (
                    tile[y + 6, row] * g + tile[y + 7, row] * h
                )
                sums[row] += left + right
        for y in range(whole, states):
            for row in range(width):
                sums[row] += tile[y, row] * values[y]
    return means


@kernel
def maximise(rows: SparseRows, rewards: FloatArray) -> tuple[FloatArray, IntArray]:
    """Value iteration: optimal values ``[H + 1, S]``, the first maximising actions ``[H, S]``."""
    horizon, states, actions = rewards.shape
    values = np.zeros((horizon + 1, states))
    best = np.zeros((horizon, states), np.int64)
    for h in range(horizon - 1, -1, -1):
        t = _step(rows, h)
        ahead, first = _all_expected(rows, t, values[h + 1]), rows.steps[t]
        for s in range(states):
            top = -np.inf
            for a in range(actions):
                q = rewards[h, s, a] + ahead[rows.numbers[t, s, a] - first]
                if q > top:
                    top = q
                    best[h, s] = a
            values[h, s] = top
    return values, best


@kernel
def evaluate_actions(rows: SparseRows, rewards: FloatArray, chosen: IntArray) -> FloatArray:
    """Values ``[H + 1, S]`` of a deterministic policy ``chosen[H, S]``."""
    horizon, states, _ = rewards.shape
    values = np.zeros((horizon + 1, states))
    for h in range(horizon - 1, -1, -1):
        for s in range(states):
            a = chosen[h, s]
            row = rows.numbers[_step(rows, h), s, a]
            values[h, s] = rewards[h, s, a] + _expected(rows, row, values[h + 1])
    return values


@kernel
def evaluate_probabilities(rows: SparseRows, rewards: FloatArray, chosen: FloatArray) -> FloatArray:
    """Values ``[H + 1, S]`` of a stochastic policy ``chosen[H, S, A]``."""
    horizon, states, actions = rewards.shape
    values = np.zeros((horizon + 1, states))
    for h in range(horizon - 1, -1, -1):
        t = _step(rows, h)
        ahead, first = _all_expected(rows, t, values[h + 1]), rows.steps[t]
        for s in range(states):
            for a in range(actions):
                q = rewards[h, s, a] + ahead[rows.numbers[t, s, a] - first]
                values[h, s] += chosen[h, s, a] * q
    return values


@kernel
def occupancies(rows: SparseRows, initial: FloatArray, chosen: FloatArray) -> FloatArray:
    """Probability ``[H, S, A]`` that step h of an episode is at (s, a)."""
    horizon, states, actions = chosen.shape
    occupied = np.zeros((horizon, states, actions))
    here = initial.copy()
    for h in range(horizon):
        ahead = np.zeros(states)
        for s in range(states):
            for a in range(actions):
                mass = here[s] * chosen[h, s, a]
                if mass > 0:
                    occupied[h, s, a] = mass
                    row = rows.numbers[_step(rows, h), s, a]
                    for i in range(rows.pointers[row], rows.pointers[row + 1]):
                        ahead[rows.columns[i]] += mass * rows.entries[i]
        here = ahead
    return occupied


@kernel
def draw(cumulative: FloatArray, uniform: float) -> int:
    """The first index whose cumulative probability exceeds ``uniform`` (in [0, 1))."""
    low, high = 0, cumulative.shape[0] - 1
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] > uniform:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def take_step(
    tables: EpisodeTables, h: int, s: int, a: int, rng: np.random.Generator
) -> tuple[int, int]:
    """The next state and the reward bit (one with probability equal to the mean reward)."""
    bit = 1 if rng.random() < tables.rewards[h, s, a] else 0
    step = h if tables.transitions.shape[0] > 1 else 0
    return draw(tables.transitions[step, s, a], rng.random()), bit


@kernel
def run_probabilities(
    tables: EpisodeTables,
    cumulative: FloatArray,
    rng: np.random.Generator,
    episode: tuple[IntArray, IntArray, IntArray],
) -> None:
    """One episode of a stochastic policy given by cumulative probabilities ``[H, S, A]``.

    ``episode`` is (states[H + 1], actions[H], bits[H]), written in place.
    """
    states, actions, bits = episode
    states[0] = draw(tables.initial, rng.random())
    for h in range(cumulative.shape[0]):
        actions[h] = draw(cumulative[h, states[h]], rng.random())
        states[h + 1], bits[h] = take_step(tables, h, states[h], actions[h], rng)


@kernel
def run_many(
    tables: EpisodeTables,
    cumulative: FloatArray,
    rng: np.random.Generator,
    episodes: tuple[IntArray, IntArray, IntArray],
) -> None:
    """One episode for each row of ``episodes``: states[n, H + 1], actions[n, H], bits[n, H]."""
    states, actions, bits = episodes
    for i in range(states.shape[0]):
        run_probabilities(tables, cumulative, rng, (states[i], actions[i], bits[i]))


@kernel
def split(total: int, probabilities: FloatArray, rng: np.random.Generator, parts: IntArray) -> None:
    """Multinomial split of ``total``, by conditional binomial draws; adds to ``parts``.

    What is left over goes to the last *possible* category, so that float rounding (about 1e-16 of
    the total: 10^12 users would show it) never reaches a category of probability zero.
    """
    last = probabilities.shape[0] - 1
    while probabilities[last] <= 0:
        last -= 1
    left, mass = total, probabilities.sum()
    for i in range(last):
        p = probabilities[i]
        if left > 0 and p > 0:
            share = rng.binomial(left, p / mass) if p < mass else left
            parts[i] += share
            left -= share
            mass -= p
    parts[last] += left


@kernel
def flow(
    model: tuple[SparseRows, FloatArray, FloatArray],
    chosen: FloatArray,
    users: int,
    rng: np.random.Generator,
    counts: tuple[IntArray, IntArray, IntArray],
) -> None:
    """All users of a batch at once, step by step, under a stochastic policy ``chosen[H, S, A]``.

    ``model`` is (rows, initial, mean rewards); ``counts`` is (numbers[H, S, A], transitions[R, S],
    rewards[R]): (h, s, a) is added to row ``numbers[h, s, a]``. The cost does not depend on the
    number of users.
    """
    rows, initial, means = model
    numbers, transitions, rewards = counts
    horizon, states, actions = chosen.shape
    here = np.zeros(states, np.int64)
    split(users, initial, rng, here)
    visits = np.zeros(actions, np.int64)
    shares = np.zeros(states, np.int64)
    for h in range(horizon):
        ahead = np.zeros(states, np.int64)
        for s in range(states):
            if here[s] == 0:
                continue
            visits[:] = 0
            split(here[s], chosen[h, s], rng, visits)
            for a in range(actions):
                if visits[a] == 0:
                    continue
                number = numbers[h, s, a]
                rewards[number] += rng.binomial(visits[a], means[h, s, a])
                row = rows.numbers[_step(rows, h), s, a]
                first, stop = rows.pointers[row], rows.pointers[row + 1]
                shares[: stop - first] = 0
                split(visits[a], rows.entries[first:stop], rng, shares)
                for i in range(first, stop):
                    transitions[number, rows.columns[i]] += shares[i - first]
                    ahead[rows.columns[i]] += shares[i - first]
        here = ahead
