"""Compiled dynamic programming, and compiled simulation of single episodes.

Planning runs over sparse transition rows (`tabular.SparseRows`): O(entries) work per step, at most
O(H S^2 A) in all; rows that are dense are kept with their zeros and read four at a time (`dots`).
Simulation runs over cumulative rows (`tabular.EpisodeTables`) and draws from the NumPy generator
it is given, so that a learner's kernel can call it once per episode.

**Dot products whose sums are taken in one order, on any processor.** A compiler that keeps the
order of sums uses no vectors for a plain loop, and one that may change it makes results depend on
how wide a processor's vectors are. Here the order is written down: eight partial sums, number k of
the products k, k + 8, ...; then four of them, then one. Products are rounded before they are added
(no fused instructions). Four rows are read side by side: their sums do not wait for each other, nor
for the memory of one of them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from discreet._jit import kernel
from discreet._types import FloatArray, IntArray
from discreet.mdp.tabular import EpisodeTables, SparseRows

ROWS = 4
"""How many rows `dots` reads."""

_WIDE, _NARROW = 8, 4
_DOUBLE, _PLACE = ir.DoubleType(), ir.IntType(32)


def _dots(context: Any, rows: Any, numbers: Any, values: Any) -> tuple[Any, Callable[..., Any]]:
    """Type and code of the dot products of four rows with ``values``, which has their length."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        given = context.make_array(signature.args[0])(context, builder, arguments[0])
        factors = context.make_array(signature.args[2])(context, builder, arguments[2])
        length = builder.extract_value(factors.shape, 0)
        places = [builder.mul(builder.extract_value(arguments[1], k), length) for k in range(ROWS)]
        arrays = [builder.gep(given.data, [place]) for place in places], factors.data, length
        sums: list[Any] = [ir.Constant(_kind(_WIDE), [0.0] * _WIDE)] * ROWS
        sums, i = _add_products(builder, arrays, sums, length.type(0))
        halves = [[_part(builder, one, first) for first in (0, _NARROW)] for one in sums]
        sums, i = _add_products(builder, arrays, [builder.fadd(*two) for two in halves], i)
        sums, i = _add_products(builder, arrays, [_sum(builder, one) for one in sums], i)
        return context.make_tuple(builder, signature.return_type, sums)

    return types.UniTuple(types.float64, ROWS)(rows, numbers, values), generate


def _kind(width: int) -> Any:
    return ir.VectorType(_DOUBLE, width) if width > 1 else _DOUBLE


def _part(builder: Any, sums: Any, first: int) -> Any:
    """Partial sums ``first`` to ``first + _NARROW``."""
    places = ir.Constant(ir.VectorType(_PLACE, _NARROW), list(range(first, first + _NARROW)))
    return builder.shuffle_vector(sums, ir.Constant(sums.type, ir.Undefined), places)


def _sum(builder: Any, sums: Any) -> Any:
    a, b, c, d = (builder.extract_element(sums, _PLACE(k)) for k in range(_NARROW))
    return builder.fadd(builder.fadd(a, b), builder.fadd(c, d))


def _add_products(
    builder: Any, arrays: tuple[list[Any], Any, Any], sums: list[Any], start: Any
) -> tuple[list[Any], Any]:
    """A loop that adds as many products at a time as a row has sums, while so many are left."""
    rows, values, length = arrays
    kind, before = sums[0].type, builder.block
    width = kind.count if isinstance(kind, ir.VectorType) else 1
    head, body, after = (builder.append_basic_block(name) for name in ("head", "body", "after"))
    builder.branch(head)
    builder.position_at_end(head)
    i, totals = builder.phi(start.type), [builder.phi(kind) for _ in sums]
    stop = builder.add(i, start.type(width))
    builder.cbranch(builder.icmp_signed("<=", stop, length), body, after)
    builder.position_at_end(body)
    factor = _load(builder, values, i, width)
    products = [builder.fmul(_load(builder, row, i, width), factor) for row in rows]
    i.add_incoming(start, before)
    i.add_incoming(stop, body)
    for total, first, product in zip(totals, sums, products, strict=True):
        total.add_incoming(first, before)
        total.add_incoming(builder.fadd(total, product), body)
    builder.branch(head)
    builder.position_at_end(after)
    return totals, i


def _load(builder: Any, array: Any, i: Any, width: int) -> Any:
    """So many neighbours from place i on, which need not stand at a multiple of a vector."""
    place = builder.bitcast(builder.gep(array, [i]), _kind(width).as_pointer())
    loaded = builder.load(place)
    loaded.align = 8
    return loaded


dots: Callable[[FloatArray, tuple[int, int, int, int], FloatArray], tuple[float, ...]] = intrinsic(
    _dots
)
"""``rows[k] @ values`` for four numbers k (contiguous doubles; in compiled code only)."""

_WORTH = 64
"""Entries per state and action from which on it pays to ask which rows can be left unread."""
_TINY = 2.2250738585072014e-308
"""Below it a product rounds by up to 2.5e-324 whatever its size; S of them stay far below it."""


@kernel
def mean_values(rows: SparseRows, wanted: IntArray, values: FloatArray, means: FloatArray) -> None:
    """Writes the mean of ``values`` after each wanted row, by four sums at a time."""
    if rows.dense.shape[0] == 0:
        columns, entries = rows.columns, rows.entries
        for row in wanted:
            i, stop = rows.pointers[row], rows.pointers[row + 1]
            one = two = three = four = 0.0
            while i + 3 < stop:
                one += entries[i] * values[columns[i]]
                two += entries[i + 1] * values[columns[i + 1]]
                three += entries[i + 2] * values[columns[i + 2]]
                four += entries[i + 3] * values[columns[i + 3]]
                i += 4
            while i < stop:
                one += entries[i] * values[columns[i]]
                i += 1
            means[row] = (one + two) + (three + four)
        return
    dense, last = rows.dense, wanted.shape[0] - 1
    for i in range(0, last + 1, ROWS):
        k, m, n = min(i + 1, last), min(i + 2, last), min(i + 3, last)
        read = (wanted[i], wanted[k], wanted[m], wanted[n])
        means[read[0]], means[read[1]], means[read[2]], means[read[3]] = dots(dense, read, values)


@kernel
def _step(rows: SparseRows, h: int) -> int:
    """The step whose rows step h uses."""
    return h if rows.numbers.shape[0] > 1 else 0


class Means(NamedTuple):
    """What is known of the mean of the values of the next step after each row."""

    last: FloatArray  # as it was last computed (after the last step all values are 0)
    when: IntArray  # of which step's values it is the mean
    low: FloatArray  # a lower bound, less what values fell at most from the last step on
    high: FloatArray  # an upper bound, less what values rose at most


def maximise(rows: SparseRows, rewards: FloatArray) -> tuple[FloatArray, IntArray]:
    """Value iteration: optimal values ``[H + 1, S]``, the first maximising actions ``[H, S]``."""
    (horizon, states), count = rewards.shape[:2], int(rows.steps[-1])
    values, best = np.zeros((horizon + 1, states)), np.zeros((horizon, states), np.int64)
    if rows.entries.size >= _WORTH * rows.numbers.size:
        means = Means(np.zeros(count), np.full(count, horizon), np.zeros(count), np.zeros(count))
        _maximise_sparingly(rows, rewards, means, values, best)
    else:
        _maximise(rows, rewards, np.arange(count), np.zeros(count), values, best)
    return values, best


@kernel
def _maximise(
    rows: SparseRows,
    rewards: FloatArray,
    every: IntArray,
    means: FloatArray,
    values: FloatArray,
    best: IntArray,
) -> None:
    """Reads all rows at every step."""
    for h in range(rewards.shape[0] - 1, -1, -1):
        t = _step(rows, h)
        mean_values(rows, every[rows.steps[t] : rows.steps[t + 1]], values[h + 1], means)
        _choose(rows.numbers[t], rewards[h], means, values[h], best[h])


@kernel
def _maximise_sparingly(
    rows: SparseRows, rewards: FloatArray, means: Means, values: FloatArray, best: IntArray
) -> None:
    """Reads the rows that can matter.

    A mean of values cannot move by more than the values do. So a row that was read at a later step
    gives bounds now, and is read again only if its action could still be the best: what is found
    is bit for bit what reading all rows would find. Rounding widens the bounds, relative to all
    that values have moved, by eight times the sum of: rows that miss one by 1e-12
    (`_arrays.probability_rows`), S products and sums of a mean, H sums of a bound.
    """
    horizon, states, _ = rewards.shape
    rounding = 8 * (1e-12 + (states + horizon) * 2.3e-16)
    fell = rose = moved = 0.0
    ask, pause = horizon - 1, 0
    for h in range(horizon - 1, -1, -1):
        t, ahead, change, crowded = _step(rows, h), (values[h + 1], h + 1), (fell, rose), True
        numbers, gains = rows.numbers[t], rewards[h]
        if h <= ask:
            slack = rounding * (moved + np.abs(gains).max()) + _TINY
            pairs = possible_actions(numbers.ravel(), gains, means, change, slack)
            crowded = 2 * pairs.size > numbers.size
            ask, pause = (h - 1 - pause, max(1, 2 * pause)) if crowded else (h - 1, 0)
            if not crowded:
                _renew(rows, numbers.ravel()[pairs], ahead, change, means)
                _choose_among(pairs, numbers.ravel(), gains, means.last, values[h], best[h])
        if crowded:
            every = np.arange(rows.steps[t], rows.steps[t + 1])
            _renew(rows, every, ahead, change, means)
            _choose(numbers, gains, means.last, values[h], best[h])
        difference = values[h] - values[h + 1]
        down, up = difference.min(), difference.max()
        fell, rose, moved = fell + down, rose + up, moved + max(-down, up)


@kernel
def possible_actions(
    numbers: IntArray, gains: FloatArray, means: Means, change: tuple[float, float], slack: float
) -> IntArray:
    """Numbers ``s * A + a`` of actions whose upper bound reaches the best lower bound.

    ``change`` is what values fell and rose at most, ``slack`` how much rounding widens a bound.
    """
    states, actions = gains.shape
    low, high = means.low, means.high
    pairs, count = np.empty(states * actions, np.int64), 0
    for s in range(states):
        floor, first = -np.inf, s * actions
        for a in range(actions):
            floor = max(floor, gains[s, a] + (low[numbers[first + a]] + change[0]))
        floor -= slack
        for a in range(actions):
            pairs[count] = first + a
            count += 0 if gains[s, a] + (high[numbers[first + a]] + change[1]) < floor else 1
    return pairs[:count]


@kernel
def _renew(
    rows: SparseRows,
    wanted: IntArray,
    ahead: tuple[FloatArray, int],
    change: tuple[float, float],
    means: Means,
) -> None:
    """Read the wanted rows (a list of our own, changed here), each once."""
    last, when, low, high = means
    values, step = ahead
    count = 0
    for row in wanted:
        wanted[count] = row
        count += 0 if when[row] == step else 1
        when[row] = step
    mean_values(rows, wanted[:count], values, last)
    for row in wanted[:count]:
        low[row], high[row] = last[row] - change[0], last[row] - change[1]


@kernel
def _choose(
    numbers: IntArray, gains: FloatArray, means: FloatArray, values: FloatArray, best: IntArray
) -> None:
    """Values and first best actions of all states."""
    for s in range(gains.shape[0]):
        top, first = -np.inf, 0
        for a in range(gains.shape[1]):
            q = gains[s, a] + means[numbers[s, a]]
            first = a if q > top else first
            top = q if q > top else top
        values[s], best[s] = top, first


@kernel
def _choose_among(
    pairs: IntArray,
    numbers: IntArray,
    gains: FloatArray,
    means: FloatArray,
    values: FloatArray,
    best: IntArray,
) -> None:
    """The same from the `possible_actions`: at least one of each state, in order."""
    actions = gains.shape[1]
    values[:] = -np.inf
    for pair in pairs:
        s = pair // actions
        a = pair - s * actions
        q = gains[s, a] + means[numbers[pair]]
        if q > values[s]:
            values[s] = q
            best[s] = a


@kernel
def evaluate_actions(rows: SparseRows, rewards: FloatArray, chosen: IntArray) -> FloatArray:
    """Values ``[H + 1, S]`` of a deterministic policy ``chosen[H, S]``."""
    horizon, states, _ = rewards.shape
    values = np.zeros((horizon + 1, states))
    wanted, means = np.empty(states, np.int64), np.empty(rows.steps[-1])
    for h in range(horizon - 1, -1, -1):
        numbers = rows.numbers[_step(rows, h)]
        for s in range(states):
            wanted[s] = numbers[s, chosen[h, s]]
        mean_values(rows, wanted, values[h + 1], means)
        for s in range(states):
            values[h, s] = rewards[h, s, chosen[h, s]] + means[wanted[s]]
    return values


@kernel
def evaluate_probabilities(rows: SparseRows, rewards: FloatArray, chosen: FloatArray) -> FloatArray:
    """Values ``[H + 1, S]`` of a stochastic policy ``chosen[H, S, A]``."""
    horizon, states, actions = rewards.shape
    values = np.zeros((horizon + 1, states))
    every, means = np.empty(rows.steps[-1], np.int64), np.empty(rows.steps[-1])
    for row in range(every.size):
        every[row] = row
    for h in range(horizon - 1, -1, -1):
        t = _step(rows, h)
        numbers = rows.numbers[t]
        mean_values(rows, every[rows.steps[t] : rows.steps[t + 1]], values[h + 1], means)
        for s in range(states):
            for a in range(actions):
                q = rewards[h, s, a] + means[numbers[s, a]]
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
                    if rows.dense.shape[0] > 0:
                        for y in range(states):
                            ahead[y] += mass * rows.dense[row, y]
                    else:
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
