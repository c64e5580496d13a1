"""Posterior sampling for many runs in lockstep; equations in `psrl`, the same law.

Other random numbers than those of `psrl_kernels`, in an order of their own: each counter of each
run has generators that nobody else uses, so a run does not depend on which others go along.
A reward mu + N/sqrt(lambda·tau) with tau ~ Gamma(a, rate b) is one Student t of 2a degrees,
mu + sqrt(b/(lambda·a))·t, and is drawn as that.
"""

import numpy as np

from discreet._jit import inlined
from discreet._types import Floats
from discreet.learners.streams.lane_draws_kernels import (
    add_students,
    draw_gammas,
    draw_normals,
    shrink_gammas,
    some_generators,
)
from discreet.learners.streams.lane_planner_kernels import greedy_policies, lane_planner
from discreet.privacy.streams.lane_users_kernels import LaneScratch


def lane_generators(pairs: int, states: int) -> int:
    """Of each run: ties; two normals, then one test per counter; two words per reward."""
    cells = pairs * states
    return 1 + (cells + cells % 2) + cells + 2 * pairs


def lane_room(pairs: int, states: int) -> int:
    """Rows to compute in: normals, shapes and gammas per counter, three numbers per reward."""
    cells = pairs * states
    return (cells + cells % 2) + 2 * cells + 3 * pairs


@inlined
def _posterior(
    row: Floats,
    seen: Floats,
    shapes: Floats,
    degrees: Floats,
    squares: Floats,
    rewards: Floats,
    pairs: int,
    states: int,
) -> None:
    """Shapes of the gammas (one more where the prior is below one), and the rewards' law."""
    runs = seen.shape[1]
    prior, noise = row[0], row[1]
    lowest = prior if prior >= 1.0 else prior + 1.0
    for i in range(pairs):
        visits, earned = seen[pairs * states + i], seen[pairs * (states + 1) + i]
        share, square, mean = (
            degrees[i * runs : (i + 1) * runs],
            squares[i * runs : (i + 1) * runs],
            rewards[i * runs : (i + 1) * runs],
        )
        for j in range(runs):
            n = visits[j] if visits[j] > 0.0 else 0.0
            share[j] = n / (n + noise) if n > 0.0 else 0.0
        for t in range(states):
            moved, cell = seen[i * states + t], i * states + t
            out = shapes[cell * runs : (cell + 1) * runs]
            for j in range(runs):
                out[j] = lowest + share[j] * (moved[j] if moved[j] > 0.0 else 0.0)
        for j in range(runs):
            visited = visits[j] if visits[j] > 0.0 else 0.0
            total = earned[j] if earned[j] > 0.0 else 0.0
            total = share[j] * (total if total < visited else visited)
            n = share[j] * visited
            m = total / n if n > 0.0 else 0.5
            inverse = 1.0 / (1.0 + n)
            centre = m - 0.5
            mean[j] = (0.5 + total) * inverse
            b = 1.0 + total * (1.0 - m) / 2 + n * (centre * centre) * (0.5 * inverse)
            square[j] = 2.0 * b * inverse
            share[j] = 2.0 + n


@inlined
def _fill(model: Floats, gammas: Floats, rewards: Floats, pairs: int, states: int) -> None:
    """``model[pair]`` = p (S rows), then r, then nothing that every step ahead would add."""
    runs = model.shape[2]
    for i in range(pairs):
        total = model[i, states + 1]
        total[:] = 0.0
        for t in range(states):
            cell = i * states + t
            drawn = gammas[cell * runs : (cell + 1) * runs]
            for j in range(runs):
                total[j] += drawn[j]
        for j in range(runs):
            total[j] = 1.0 / total[j]
        for t in range(states):
            cell, out = i * states + t, model[i, t]
            drawn = gammas[cell * runs : (cell + 1) * runs]
            for j in range(runs):
                out[j] = drawn[j] * total[j]
        reward, drawn = model[i, states], rewards[i * runs : (i + 1) * runs]
        for j in range(runs):
            reward[j] = drawn[j]
            total[j] = 0.0


@lane_planner
def sampled_lanes(row: Floats, public: Floats, scratch: LaneScratch) -> None:
    """The next policy of every run: optimal for a model of its own, drawn from its posterior."""
    model, q, values, room, state, actions = scratch
    states, choices, runs = q.shape
    pairs = states * choices
    counters, each = pairs * states * runs, pairs * runs
    half = (pairs * states + 1) // 2 * runs
    first, second, end = room[:half], room[half : 2 * half], 2 * half
    normals, shapes = room[:counters], room[end : end + counters]
    gammas = room[end + counters : end + 2 * counters]
    end += 2 * counters
    degrees, squares = room[end : end + each], room[end + each : end + 2 * each]
    rewards = room[end + 2 * each : end + 3 * each]
    _posterior(row, public, shapes, degrees, squares, rewards, pairs, states)
    draw_normals(
        some_generators(state, runs, half), some_generators(state, runs + half, half), first, second
    )
    tests = some_generators(state, runs + 2 * half, counters)
    draw_gammas(tests, shapes, normals, gammas)
    if row[0] < 1.0:
        shrink_gammas(tests, shapes, gammas)
    place = runs + 2 * half + counters
    turns = some_generators(state, place + each, each)
    add_students(some_generators(state, place, each), turns, degrees, squares, rewards)
    _fill(model, gammas, rewards, pairs, states)
    greedy_policies(model, q, values, actions, np.inf, state)
