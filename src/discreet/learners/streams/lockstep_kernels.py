"""LDP-OBI for many runs in lockstep: every inner loop goes over the runs, so it vectorises.

Equations in `ldp_obi`; noise from `privacy.mechanisms.lane_kernels`. Arrays end with the axis of
runs. Counters are laid out as in a release: transitions (s,a,s'), visits (s,a), rewards (s,a).
"""

import numpy as np
from numpy.typing import NDArray

from discreet._jit import inlined, kernel
from discreet.learners.streams.loop_kernels import TIE
from discreet.privacy.mechanisms.lane_kernels import (
    add_laplace,
    draw_table,
    draw_uniform,
    draw_uniforms,
)
from discreet.privacy.mechanisms.lane_noise import FLIPS, LAPLACE, ONE_STEP, TABLE
from discreet.privacy.mechanisms.one_step import KEEP

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

_SHIFT_R, _SHIFT_P, _ROOT_R, _LINEAR_R, _ROOT_P, _LINEAR_P = range(6)


@inlined
def _estimate(row: Floats, seen: Floats, model: Floats, pairs: int, states: int) -> bool:
    """``model[pair]`` = p (S rows), r + beta_r (infinite: unknown), beta_p; is any unknown?"""
    runs = seen.shape[1]
    least = np.inf
    for i in range(pairs):
        for_p, optimism = model[i, states + 1], model[i, states]
        visits, earned = seen[pairs * states + i], seen[pairs * (states + 1) + i]
        for_p[:] = row[_SHIFT_P]
        for t in range(states):
            moved = seen[i * states + t]
            for j in range(runs):
                for_p[j] += moved[j]
        for j in range(runs):
            for_r = visits[j] + row[_SHIFT_R]
            both = 1.0 / (for_r * for_p[j])  # one division for two reciprocals
            inverse = both * for_p[j]
            smaller = for_r if for_r < for_p[j] else for_p[j]
            beta_r = row[_ROOT_R] * np.sqrt(inverse) + row[_LINEAR_R] * inverse
            optimism[j] = earned[j] * inverse + beta_r if smaller > 0.0 else np.inf
            least = smaller if smaller < least else least
            for_p[j] = both * for_r
        for t in range(states):
            moved, out = seen[i * states + t], model[i, t]
            for j in range(runs):
                out[j] = moved[j] * for_p[j]
        for j in range(runs):
            for_p[j] = row[_ROOT_P] * np.sqrt(for_p[j]) + row[_LINEAR_P] * for_p[j]
    return least <= 0.0


@inlined
def _forget_unknown(model: Floats, pairs: int, states: int) -> None:
    """Where nothing is known, no transition and no bonus may turn infinity into not-a-number."""
    for i in range(pairs):
        for j in range(model.shape[2]):
            if model[i, states, j] == np.inf:
                for t in range(states):
                    model[i, t, j] = 0.0
                model[i, states + 1, j] = 0.0


@inlined
def _break_ties(q: Floats, s: int, pick: Ints, tie_state: Words) -> None:
    """A random one of the best actions where several are, from the generator of that run."""
    choices, runs = q.shape[1:]
    for j in range(runs):
        best = q[s, pick[j], j]
        ties = 0
        for a in range(choices):
            ties += int(q[s, a, j] >= best - TIE)
        if ties > 1:
            rank = int(ties * draw_uniform(tie_state, j))
            for a in range(choices):
                if q[s, a, j] >= best - TIE:
                    if rank == 0:
                        pick[j] = a
                    rank -= 1


@inlined
def _plan(
    model: Floats, q: Floats, values: Floats, actions: Ints, horizon: int, tie_state: Words
) -> None:
    """Equation 5 for all runs; ``actions[h, s, run]``."""
    states, choices, runs = q.shape
    values[horizon] = 0.0
    for h in range(horizon - 1, -1, -1):
        ahead = float(horizon - h)
        for s in range(states):
            pick, value = actions[h, s], values[h, s]
            close = 0
            for a in range(choices):
                i = s * choices + a
                out, optimism, beta_p = q[s, a], model[i, states], model[i, states + 1]
                p, v = model[i, 0], values[h + 1, 0]
                for j in range(runs):
                    out[j] = optimism[j] + ahead * beta_p[j] + p[j] * v[j]
                for t in range(1, states):
                    p, v = model[i, t], values[h + 1, t]
                    for j in range(runs):
                        out[j] += p[j] * v[j]
                if a == 0:
                    for j in range(runs):
                        value[j] = out[j]
                        pick[j] = 0
                    continue
                for j in range(runs):
                    # Not "at most TIE": infinity minus infinity must count as a tie.
                    close += int(not abs(out[j] - value[j]) > TIE)
                    better = out[j] > value[j]
                    pick[j] = a if better else pick[j]
                    value[j] = out[j] if better else value[j]
            if close > 0:
                _break_ties(q, s, pick, tie_state)
            for j in range(runs):
                value[j] = value[j] if value[j] < ahead else ahead


@inlined
def _draw_noise(
    kind: int,
    scale: float,
    low: float,
    cut: Floats,
    other: Floats,
    state: Words,
    fresh: Floats,
    noise: Floats,
    flat: Floats,
    total: Floats,
    horizon: int,
    pairs: int,
) -> None:
    """What every user's report adds whatever she did; ``fresh`` keeps the draws of this episode.

    ``flat`` and ``total`` are ``fresh`` and ``noise`` in one dimension.
    """
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    runs = noise.shape[1]
    if kind == LAPLACE:
        add_laplace(s0, s1, s2, s3, scale, total)
    elif kind == TABLE:
        draw_table(s0, s1, s2, s3, cut, other, flat)
        for j in range(flat.size):
            total[j] += low + flat[j]
    elif kind == FLIPS:
        draw_table(s0, s1, s2, s3, cut, other, flat)
        for j in range(flat.size):
            total[j] += flat[j]
    elif kind == ONE_STEP:
        draw_uniforms(s0, s1, s2, s3, flat)
        states = fresh.shape[0] // (2 * pairs)
        for category in range(fresh.shape[0]):
            move, bit = category // 2, category % 2
            pair = move // states
            false = fresh[category]
            for j in range(runs):
                false[j] = 1.0 if false[j] < scale else 0.0
                noise[move, j] += false[j]
                noise[pairs * states + pair, j] += false[j]
                noise[pairs * (states + 1) + pair, j] += bit * false[j]


@inlined
def _publish(
    kind: int,
    scale: float,
    users: int,
    true: Floats,
    noise: Floats,
    seen: Floats,
    sizes: tuple[int, int, int, int],
) -> None:
    """What is public: counts plus noise, debiased from their integers (arrays are flat)."""
    horizon, states, choices, runs = sizes
    if kind not in (FLIPS, ONE_STEP):
        for j in range(seen.size):
            seen[j] = true[j] + noise[j]
        return
    unit = horizon / (KEEP - scale) if kind == ONE_STEP else 1.0 / (1.0 - 2.0 * scale)
    pairs = states * choices * runs
    for j in range(seen.size):
        bits = horizon  # that all users flipped, or reported by chance, behind one counter
        if kind == ONE_STEP:
            bits = 2 if j < pairs * states else 2 * states if j < pairs * (states + 1) else states
        seen[j] = unit * (true[j] + noise[j] - scale * (bits * users))


@inlined
def _answer(flips: Floats, asked: Floats, cell: int, j: int, u: float, horizon: int) -> float:
    """1 if the next true bit of a counter is kept, -1 if it is one of its flipped bits."""
    flipped = u * (horizon - asked[cell, j]) < flips[cell, j]
    asked[cell, j] += 1.0
    flips[cell, j] -= 1.0 if flipped else 0.0
    return -1.0 if flipped else 1.0


@inlined
def _at(row: int, run: int, runs: int) -> np.uint64:
    """Where (row, run) is in a flat array; unsigned, so that no check for negatives is compiled."""
    return np.uint64(row * runs + run)


@inlined
def _play(
    uniforms: Floats,
    cumulative: Floats,
    means: Floats,
    start: Floats,
    actions: Ints,
    true: Floats,
    sizes: tuple[int, int, int, int],
) -> None:
    """One episode of every run, counted exactly. All arrays are flat."""
    horizon, states, choices, runs = sizes
    pairs = states * choices
    for j in range(runs):
        s = 0
        for x in range(states - 1):  # counting instead of stopping: no branch to mispredict
            s += int(uniforms[_at(0, j, runs)] >= start[_at(x, j, runs)])
        for h in range(horizon):
            i = s * choices + actions[_at(h * states + s, j, runs)]
            u, earned = uniforms[_at(1 + 2 * h, j, runs)], uniforms[_at(2 + 2 * h, j, runs)]
            s = 0
            for x in range(states - 1):
                s += int(u >= cumulative[_at(i * states + x, j, runs)])
            true[_at(i * states + s, j, runs)] += 1.0
            true[_at(pairs * states + i, j, runs)] += 1.0
            bit = np.int64(earned < means[_at(i, j, runs)])
            true[_at(pairs * (states + 1) + i, j, runs)] += bit


@inlined
def _play_asked(
    kind: int,
    uniforms: Floats,
    cumulative: Floats,
    means: Floats,
    start: Floats,
    actions: Ints,
    asks: Floats,
    fresh: Floats,
    asked: Floats,
    true: Floats,
) -> None:
    """One episode of every run, counted as users answer: flipped bits, or one step of each."""
    horizon, states, runs = actions.shape
    choices = means.shape[1]
    pairs = states * choices
    asked[:] = 0.0
    for j in range(runs):
        s = 0
        for x in range(states - 1):  # counting instead of stopping: no branch to mispredict
            s += int(uniforms[0, j] >= start[x, j])
        for h in range(horizon):
            a = actions[h, s, j]
            t = 0
            for x in range(states - 1):
                t += int(uniforms[1 + 2 * h, j] >= cumulative[s, a, x, j])
            i = s * choices + a
            bit = np.int64(uniforms[2 + 2 * h, j] < means[s, a, j])
            move, visit = i * states + t, pairs * states + i
            earn = pairs * (states + 1) + i
            if kind == FLIPS:
                true[move, j] += _answer(fresh, asked, move, j, asks[3 * h, j], horizon)
                true[visit, j] += _answer(fresh, asked, visit, j, asks[3 * h + 1, j], horizon)
                if bit:
                    true[earn, j] += _answer(fresh, asked, earn, j, asks[3 * h + 2, j], horizon)
            elif h == int(asks[0, j] * horizon):
                kept = 1.0 if asks[1, j] < KEEP else 0.0
                gain = kept - fresh[2 * move + bit, j]
                true[move, j] += gain
                true[visit, j] += gain
                true[earn, j] += bit * gain
            s = t


@kernel
def run_lanes(
    rows: Floats,
    kind: int,
    scale: float,
    low: float,
    cut: Floats,
    other: Floats,
    cumulative: Floats,
    means: Floats,
    start: Floats,
    policy_regrets: Floats,
    true: Floats,
    noise: Floats,
    seen: Floats,
    noise_state: Words,
    answer_state: Words,
    world_state: Words,
    tie_state: Words,
    fresh: Floats,
    model: Floats,
    q: Floats,
    values: Floats,
    actions: Ints,
    totals: Floats,
    first: int,
    points: Ints,
    recorded: Floats,
) -> None:
    """Run ``len(rows)`` episodes of every run.

    Args:
        rows: coefficients per episode (`LdpObi.rows`).
        kind: of the noise, with ``scale``, ``low``, ``cut`` and ``other``: see `lane_noise`.
        scale: of the noise.
        low: of its table.
        cut: of its table.
        other: of its table.
        cumulative: ``[S, A, S, runs]``, cumulative transition probabilities.
        means: ``[S, A, runs]``, mean rewards.
        start: ``[S, runs]``, cumulative initial distribution.
        policy_regrets: ``[A^(H·S), runs]``, the regret of every policy.
        true: ``[cells, runs]``, cumulative counts, or what users answered: integers.
        noise: ``[cells, runs]``, cumulative noise: integers.
        seen: ``[cells, runs]``, what is public.
        noise_state: ``[4, draws·runs]``; the users' generators.
        answer_state: ``[4, answers·runs]``; the same, for what their steps ask.
        world_state: ``[4, (2H + 1)·runs]``; the environment's generators.
        tie_state: ``[4, runs]``; the learner's generators.
        fresh: ``[draws, runs]``, scratch.
        model: ``[S·A, S + 2, runs]``, scratch; ``q[S, A, runs]``, ``values[H + 1, S, runs]``,
            ``actions[H, S, runs]`` likewise.
        q: scratch.
        values: scratch.
        actions: the policy.
        totals: ``[runs]``, cumulative regret.
        first: episodes run before.
        points: episodes after which regret is recorded.
        recorded: ``[len(points), runs]``.
    """
    horizon, states, runs = actions.shape
    choices = means.shape[1]
    pairs = states * choices
    drawn = np.zeros((2 * horizon + 1) * runs)
    uniforms = drawn.reshape(2 * horizon + 1, runs)
    answers = np.zeros(answer_state.shape[1])
    asks = answers.reshape(answers.size // runs, runs)
    asked = np.zeros(true.shape if kind == FLIPS else (0, runs))
    flat_noise, flat_fresh = noise.reshape(noise.size), fresh.reshape(fresh.size)
    flat_true, flat_seen = true.reshape(true.size), seen.reshape(seen.size)
    a0, a1, a2, a3 = answer_state[0], answer_state[1], answer_state[2], answer_state[3]
    w0, w1, w2, w3 = world_state[0], world_state[1], world_state[2], world_state[3]
    sizes = (horizon, states, choices, runs)
    flat_cumulative, flat_means = cumulative.reshape(cumulative.size), means.reshape(means.size)
    flat_start, flat_actions = start.reshape(start.size), actions.reshape(actions.size)
    point = np.searchsorted(points, first + 1)
    for k in range(rows.shape[0]):
        if _estimate(rows[k], seen, model, pairs, states):
            _forget_unknown(model, pairs, states)
        _plan(model, q, values, actions, horizon, tie_state)
        draw_uniforms(w0, w1, w2, w3, drawn)
        _draw_noise(
            *(kind, scale, low, cut, other, noise_state),
            *(fresh, noise, flat_fresh, flat_noise, horizon, pairs),
        )
        for j in range(runs):
            number = 0
            for h in range(horizon):
                for s in range(states):
                    number = number * choices + actions[h, s, j]
            totals[j] += policy_regrets[number, j]
        if kind in (FLIPS, ONE_STEP):
            draw_uniforms(a0, a1, a2, a3, answers)
            _play_asked(
                *(kind, uniforms, cumulative, means, start),
                *(actions, asks, fresh, asked, true),
            )
        else:
            _play(drawn, flat_cumulative, flat_means, flat_start, flat_actions, flat_true, sizes)
        _publish(kind, scale, first + k + 1, flat_true, flat_noise, flat_seen, sizes)
        if point < points.size and points[point] == first + k + 1:
            recorded[point] = totals
            point += 1
