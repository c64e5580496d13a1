"""Users of many runs in lockstep, compiled: episodes, reports, noise and what is public.

`run_lanes` asks the learner's planner for the policies of all runs and hands it public counters,
nothing else. It takes its tuples apart once: in the loop that would cost a tenth of the time.
Every inner loop goes over the runs, so it vectorises. Arrays end with the axis of runs. Counters
are laid out as in a release: transitions (s,a,s'), visits (s,a), rewards (s,a).
"""

from collections.abc import Callable
from typing import NamedTuple

import numba
import numpy as np
from numba import types

from discreet._jit import inlined
from discreet._types import FloatArray, IntArray, WordArray
from discreet.privacy.mechanisms._lane_noise import FLIPS, LAPLACE, ONE_STEP, TABLE
from discreet.privacy.streams.lane_kernels import add_laplace, draw_table, draw_uniforms


class LaneLaw(NamedTuple):
    """The law of the noise, for kernels: see `mechanisms._lane_noise.LaneNoise`."""

    kind: int
    scale: float
    flip: float
    keep: float
    unit: float
    bits: FloatArray
    low: float
    cut: FloatArray
    other: FloatArray


class Twice(NamedTuple):
    """One array as ``table[..., runs]`` and in one dimension: reshaping in a loop costs time."""

    table: FloatArray
    flat: FloatArray


class Generators(NamedTuple):
    """The words of one xoshiro256++ generator per element."""

    s0: WordArray
    s1: WordArray
    s2: WordArray
    s3: WordArray


class LaneUsers(NamedTuple):
    """The users of all runs.

    Attributes:
        law: of the noise.
        cumulative: ``[S, A, S, runs]``, cumulative transition probabilities.
        means: ``[S, A, runs]``, mean rewards.
        start: ``[S, runs]``, cumulative initial distribution.
        raw: ``[cells, runs]``, cumulative counts, or what users answered: integers.
        noise: ``[cells, runs]``, cumulative noise: integers.
        public: ``[cells, runs]``.
        fresh: ``[draws, runs]``, what the users of this episode draw whatever they do.
        uniforms: ``[2H + 1, runs]``, what the environment draws in this episode.
        answers: ``[answers, runs]``, what the steps of this episode ask.
        asked: ``[cells, runs]`` for ``FLIPS``, no rows otherwise: bits of each counter asked.
        noise_states: ``[4, draws·runs]``, the generators of ``fresh``.
        answer_states: of ``answers``.
        world_states: of ``uniforms``.
    """

    law: LaneLaw
    cumulative: Twice
    means: Twice
    start: Twice
    raw: Twice
    noise: Twice
    public: Twice
    fresh: Twice
    uniforms: Twice
    answers: Twice
    asked: FloatArray
    noise_states: WordArray
    answer_states: Generators
    world_states: Generators


class LaneScratch(NamedTuple):
    """Where a planner of many runs computes.

    Attributes:
        model: ``[S·A, S + 2, runs]``.
        q: ``[S, A, runs]``.
        values: ``[H + 1, S, runs]``.
        room: for anything else.
        state: ``[4, generators·runs]``, the learner's generators.
        actions: ``[H, S, runs]``, the next policies.
    """

    model: FloatArray
    q: FloatArray
    values: FloatArray
    room: FloatArray
    state: WordArray
    actions: IntArray


class LaneRegret(NamedTuple):
    """The regret of all runs.

    Attributes:
        of_policy: ``[A^(H·S), runs]``, of every policy.
        totals: ``[runs]``, cumulative.
        points: episodes after which it is recorded.
        recorded: ``[len(points), runs]``.
    """

    of_policy: FloatArray
    totals: FloatArray
    points: IntArray
    recorded: FloatArray


_F1, _F2, _F3 = types.float64[::1], types.float64[:, ::1], types.float64[:, :, ::1]
_W1, _W2 = types.uint64[::1], types.uint64[:, ::1]
_I1, _I3 = types.int64[::1], types.int64[:, :, ::1]

_SCRATCH = types.NamedTuple((_F3, _F3, _F3, _F1, _W2, _I3), LaneScratch)
LANE_PLANNER = types.void(_F1, _F2, _SCRATCH)
"""coefficients, public counters, and where the planner computes."""


def _both(table: types.Array) -> types.NamedTuple:
    return types.NamedTuple((table, _F1), Twice)


_LAW = types.NamedTuple((types.int64, *[types.float64] * 4, _F1, types.float64, _F1, _F1), LaneLaw)
_GENERATORS = types.NamedUniTuple(_W1, 4, Generators)
_USERS = types.NamedTuple(
    (
        *(_LAW, _both(types.float64[:, :, :, ::1]), _both(_F3)),
        *[_both(_F2)] * 7,
        *(_F2, _W2, _GENERATORS, _GENERATORS),
    ),
    LaneUsers,
)
_REGRET = types.NamedTuple((_F2, _F1, _I1, _F2), LaneRegret)
_LOOP = types.void(types.FunctionType(LANE_PLANNER), _F2, _USERS, _SCRATCH, _REGRET, types.int64)
"""Planners come as first-class functions: the loop is compiled once, whatever the learner."""


@inlined
def _draw_noise(
    law: tuple[int, float, float, float],
    cut: FloatArray,
    other: FloatArray,
    state: WordArray,
    fresh: FloatArray,
    noise: FloatArray,
    flat: FloatArray,
    total: FloatArray,
    pairs: int,
) -> None:
    """What every user's report adds whatever she did; ``fresh`` keeps the draws of this episode.

    ``law`` is (kind, scale, flip, low); ``flat`` and ``total`` are ``fresh`` and ``noise`` in one
    dimension.
    """
    kind, scale, flip, low = law
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    if kind == LAPLACE:
        add_laplace(s0, s1, s2, s3, scale, total)
    elif kind in (TABLE, FLIPS):
        draw_table(s0, s1, s2, s3, cut, other, flat)
        for j in range(flat.size):
            total[j] += low + flat[j]
    elif kind == ONE_STEP:
        draw_uniforms(s0, s1, s2, s3, flat)
        next_states = fresh.shape[0] // (2 * pairs)
        for category in range(fresh.shape[0]):
            move, bit = category // 2, category % 2
            pair = move // next_states
            false = fresh[category]
            for j in range(noise.shape[1]):
                false[j] = 1.0 if false[j] < flip else 0.0
                noise[move, j] += false[j]
                noise[pairs * next_states + pair, j] += false[j]
                noise[pairs * (next_states + 1) + pair, j] += bit * false[j]


@inlined
def _publish(
    unit: float,
    flip: float,
    bits: FloatArray,
    users: int,
    true: FloatArray,
    noise: FloatArray,
    seen: FloatArray,
) -> None:
    """What is public: counts plus noise, debiased from their integers (arrays are flat)."""
    if bits.size == 0:
        for j in range(seen.size):
            seen[j] = true[j] + noise[j]
        return
    runs = seen.size // bits.size
    for cell in range(bits.size):
        centre = flip * (bits[cell] * users)
        for j in range(cell * runs, (cell + 1) * runs):
            seen[j] = unit * (true[j] + noise[j] - centre)


@inlined
def _answer(
    flips: FloatArray, asked: FloatArray, cell: int, j: int, u: float, horizon: int
) -> float:
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
    uniforms: FloatArray,
    cumulative: FloatArray,
    means: FloatArray,
    start: FloatArray,
    actions: IntArray,
    true: FloatArray,
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
    keep: float,
    uniforms: FloatArray,
    cumulative: FloatArray,
    means: FloatArray,
    start: FloatArray,
    actions: IntArray,
    asks: FloatArray,
    fresh: FloatArray,
    asked: FloatArray,
    true: FloatArray,
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
                kept = 1.0 if asks[1, j] < keep else 0.0
                gain = kept - fresh[2 * move + bit, j]
                true[move, j] += gain
                true[visit, j] += gain
                true[earn, j] += bit * gain
            s = t


@inlined
def _add_regret(of_policy: FloatArray, totals: FloatArray, actions: IntArray, choices: int) -> None:
    """Of the policies that are about to be played; a policy's number has its actions as digits."""
    horizon, states, runs = actions.shape
    for j in range(runs):
        number = 0
        for h in range(horizon):
            for s in range(states):
                number = number * choices + actions[h, s, j]
        totals[j] += of_policy[number, j]


@numba.njit(_LOOP, cache=True, fastmath=False, error_model="numpy")
def run_lanes(
    planner: Callable[..., None],
    coefficients: FloatArray,
    users: LaneUsers,
    scratch: LaneScratch,
    regret: LaneRegret,
    first: int,
) -> None:
    """Run ``len(coefficients)`` episodes of every run.

    Args:
        planner: the learner's.
        coefficients: for it, per episode.
        users: of all runs.
        scratch: the planner's.
        regret: is recorded here.
        first: episodes run before.
    """
    actions = scratch.actions
    of_policy, totals, points, recorded = regret
    kind, scale, flip, keep, unit, bits, low, cut, other = users.law
    noise_states = users.noise_states
    laws, flat_laws = users.cumulative
    means, flat_means = users.means
    start, flat_start = users.start
    raw, flat_raw = users.raw
    noise, flat_noise = users.noise
    public, flat_public = users.public
    fresh, flat_fresh = users.fresh
    uniforms, flat_uniforms = users.uniforms
    answers, flat_answers = users.answers
    asked = users.asked
    a0, a1, a2, a3 = users.answer_states
    w0, w1, w2, w3 = users.world_states
    flat_actions = actions.reshape(actions.size)
    horizon, states, runs = actions.shape
    choices = means.shape[1]
    sizes, pairs, law = (horizon, states, choices, runs), states * choices, (kind, scale, flip, low)
    point = np.searchsorted(points, first + 1)
    for k in range(coefficients.shape[0]):
        planner(coefficients[k], public, scratch)
        _add_regret(of_policy, totals, actions, choices)
        draw_uniforms(w0, w1, w2, w3, flat_uniforms)
        _draw_noise(law, cut, other, noise_states, fresh, noise, flat_fresh, flat_noise, pairs)
        if kind in (FLIPS, ONE_STEP):
            draw_uniforms(a0, a1, a2, a3, flat_answers)
            _play_asked(
                kind, keep, uniforms, laws, means, start, actions, answers, fresh, asked, raw
            )
        else:
            _play(flat_uniforms, flat_laws, flat_means, flat_start, flat_actions, flat_raw, sizes)
        _publish(unit, flip, bits, first + k + 1, flat_raw, flat_noise, flat_public)
        if point < points.size and points[point] == first + k + 1:
            recorded[point] = totals
            point += 1
