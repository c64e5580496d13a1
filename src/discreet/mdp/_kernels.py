"""Compiled dynamic programming, and compiled simulation of single episodes.

Planning runs over transition rows (`tabular.Rows`): O(entries) work per step, at most O(H S^2 A) in
all. Simulation of single episodes runs over cumulative rows (`tabular.EpisodeTables`) and draws
from the NumPy generator it is given, so that a learner's kernel can call it once per episode.

**Sums are taken in the order of the states, on any processor.** A compiler that keeps the order of
sums uses no vectors for a dot product. It does use them for many dot products side by side: so
dense rows lie across (`Rows.across`), and a sweep adds one next state after the other to them all.
"""

import numpy as np

from discreet._jit import kernel
from discreet._types import FloatArray, IntArray
from discreet.mdp.tabular import EpisodeTables, Rows


@kernel
def expected(rows: Rows, t: int, values: FloatArray, wanted: FloatArray, means: FloatArray) -> None:
    """Writes the mean of ``values`` after each (s, a) of step t whose ``wanted`` is not 0."""
    pairs = means.shape[0]
    if rows.across.shape[0] > 0:
        across, odd = rows.across[t], values.shape[0] % 2
        for k in range(pairs):
            means[k] = across[0, k] * values[0] if odd else 0.0
        for y in range(odd, values.shape[0], 2):  # two at a time: means are read half as often
            one, two = values[y], values[y + 1]
            for k in range(pairs):
                means[k] = (means[k] + across[y, k] * one) + across[y + 1, k] * two
        return
    for k in range(pairs):
        if wanted[k] != 0:
            total, row = 0.0, t * pairs + k
            for i in range(rows.pointers[row], rows.pointers[row + 1]):
                total += rows.entries[i] * values[rows.columns[i]]
            means[k] = total


@kernel
def _step(rows: Rows, h: int, pairs: int) -> int:
    """The step whose rows step h uses."""
    return h if rows.pointers.shape[0] > pairs + 1 else 0


@kernel
def maximise(rows: Rows, rewards: FloatArray) -> tuple[FloatArray, IntArray]:
    """Value iteration: optimal values ``[H + 1, S]``, the first maximising actions ``[H, S]``."""
    horizon, states, actions = rewards.shape
    values, best = np.zeros((horizon + 1, states)), np.zeros((horizon, states), np.int64)
    wanted, means = np.ones(states * actions), np.zeros(states * actions)
    for h in range(horizon - 1, -1, -1):
        expected(rows, _step(rows, h, means.size), values[h + 1], wanted, means)
        for s in range(states):
            top = -np.inf
            for a in range(actions):
                q = rewards[h, s, a] + means[s * actions + a]
                if q > top:
                    top = q
                    best[h, s] = a
            values[h, s] = top
    return values, best


@kernel
def evaluate(rows: Rows, rewards: FloatArray, chosen: FloatArray) -> FloatArray:
    """Values ``[H + 1, S]`` of a policy ``chosen[H, S, A]``."""
    horizon, states, actions = rewards.shape
    values, means = np.zeros((horizon + 1, states)), np.zeros(states * actions)
    for h in range(horizon - 1, -1, -1):
        expected(rows, _step(rows, h, means.size), values[h + 1], chosen[h].ravel(), means)
        for s in range(states):
            for a in range(actions):
                q = rewards[h, s, a] + means[s * actions + a]
                values[h, s] += chosen[h, s, a] * q
    return values


@kernel
def _spread(rows: Rows, row: int, mass: float, ahead: FloatArray) -> None:
    """Adds ``mass`` to the next states as the row says; a row without zeros needs no columns."""
    first, stop = rows.pointers[row], rows.pointers[row + 1]
    if stop - first == ahead.shape[0]:
        for y in range(ahead.shape[0]):
            ahead[y] += mass * rows.entries[first + np.uint64(y)]
    else:
        for i in range(first, stop):
            ahead[rows.columns[i]] += mass * rows.entries[i]


@kernel
def occupancies(rows: Rows, initial: FloatArray, chosen: FloatArray) -> FloatArray:
    """Probability ``[H, S, A]`` that step h of an episode is at (s, a)."""
    horizon, states, actions = chosen.shape
    pairs = states * actions
    occupied = np.zeros((horizon, states, actions))
    here = initial.copy()
    for h in range(horizon):
        ahead, first = np.zeros(states), _step(rows, h, pairs) * pairs
        for s in range(states):
            for a in range(actions):
                mass = here[s] * chosen[h, s, a]
                if mass > 0:
                    occupied[h, s, a] = mass
                    row = first + s * actions + a
                    _spread(rows, row, mass, ahead)
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
def run_many(
    tables: EpisodeTables,
    cumulative: FloatArray,
    rng: np.random.Generator,
    episodes: tuple[IntArray, IntArray, IntArray],
) -> None:
    """Episodes of a stochastic policy given by cumulative probabilities ``[H, S, A]``.

    One for each row of ``episodes``: states[n, H + 1], actions[n, H], and reward bits[n, H], one
    with probability equal to the mean reward.
    """
    states, actions, bits = episodes
    for i in range(states.shape[0]):
        states[i, 0] = draw(tables.initial, rng.random())
        for h in range(cumulative.shape[0]):
            s = states[i, h]
            a = draw(cumulative[h, s], rng.random())
            actions[i, h] = a
            bits[i, h] = 1 if rng.random() < tables.rewards[h, s, a] else 0
            step = h if tables.transitions.shape[0] > 1 else 0
            states[i, h + 1] = draw(tables.transitions[step, s, a], rng.random())


@kernel
def split(total: int, probabilities: FloatArray, rng: np.random.Generator, parts: IntArray) -> None:
    """Multinomial split of ``total``, by conditional binomial draws; adds to ``parts``.

    What is left over goes to the last *possible* category, so that float rounding (about 1e-16 of
    the total: 10^12 users would show it) never reaches a category of probability zero.
    """
    last = probabilities.shape[0] - 1
    while probabilities[last] <= 0:
        last -= 1
    left, mass = total, 0.0
    for p in probabilities:
        mass += p
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
    model: tuple[Rows, FloatArray, FloatArray],
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
                row = _step(rows, h, states * actions) * states * actions + s * actions + a
                first, stop = rows.pointers[row], rows.pointers[row + 1]
                shares[: stop - first] = 0
                split(visits[a], rows.entries[first:stop], rng, shares)
                for i in range(first, stop):
                    transitions[number, rows.columns[i]] += shares[i - first]
                    ahead[rows.columns[i]] += shares[i - first]
        here = ahead
