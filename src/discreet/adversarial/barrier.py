"""Log-barrier mirror descent over confidence boxes: the dual by damped Newton.

One step of the paper's update (4.3): minimise <c, q> - sum ln q over the occupancy measures whose
transitions lie in the boxes, with c = eta·loss + 1/q_k (the rest of the Bregman divergence is
constant). For fixed multipliers nu of the flow constraints the blocks separate: with the slopes
g(x') = c(x,a,x') + nu(x) - nu(x') block (x,a) minimises

    g·q - sum ln q   over the cone  lower·S <= q <= upper·S,  S = sum q.

The dual is concave and its Hessian block-tridiagonal. At nu = 0 the slopes are the costs: positive,
hence feasible, and exactly optimal if the losses are zero and the boxes are those of q_k: the
natural start. Dividing q into a policy and transitions and rolling them forward gives an exactly
feasible point: primal - dual is the certificate, and the stopping rule.
"""

import math
from typing import NamedTuple

import numpy as np

from discreet._jit import kernel
from discreet._types import Floats, Ints
from discreet.adversarial.occupancy import (
    Boxes,
    Tridiagonal,
    copy_table,
    empty_tridiagonal,
    rows,
    solve_tridiagonal,
)
from discreet.mdp.dense import occupancy

GOOD_GAP = 1e-8
"""Stop here, once the last Newton step was short too: mirror descent adds up tiny moves, and the
gap alone would let relative errors of its root, 1e-4, add up with them."""
SHORT_STEP = 1e-7
"""Squared Newton decrement below which a full step leaves an error of its square."""
MAX_STEPS = 60
FLOOR = 1e-30
"""Occupancies below this are treated as this (1/q must stay finite)."""


class BarrierState(NamedTuple):
    """Solution and workspace of one problem size; ``occupancy`` is the current iterate q_k."""

    occupancy: Floats
    policy: Floats
    transitions: Floats
    blocks: Floats
    masses: Floats
    logs: Floats
    potentials: Floats
    trial: Floats
    gradient: Floats
    direction: Floats
    system: Tridiagonal


def barrier_state(widths: Ints, actions: int) -> BarrierState:
    """The uniform start of the paper: q_1(x,a,x') = 1 / (X_h·A·X_{h+1})."""
    horizon, width = len(widths) - 1, int(widths.max())
    pairs, states = (horizon, width, actions), (horizon + 1, width)
    occupancy = np.ones((*pairs, width))
    occupancy /= (widths[:-1] * actions * widths[1:])[:, None, None, None]
    real = np.arange(width) < widths[1:, None, None, None]  # nobody comes to what is padded
    transitions = np.broadcast_to(real / widths[1:, None, None, None], (*pairs, width)).copy()
    policy, blocks = np.full(pairs, 1.0 / actions), np.ones((*pairs, width))
    masses, logs = np.zeros(pairs), np.zeros(pairs)
    potentials, trial, gradient, direction = (np.zeros(states) for _ in range(4))
    return BarrierState(
        *(occupancy, policy, transitions, blocks, masses, logs),
        *(potentials, trial, gradient, direction, empty_tridiagonal(horizon + 1, width)),
    )


@kernel
def _share_out(
    slopes: Floats,
    lower: Floats,
    upper: Floats,
    row: int,
    n: int,
    s: float,
    start: float,
    p: Floats,
) -> tuple[float, float, float]:
    """For a mass s: p = clip(1/(s·g - y)) with the y that makes it sum to one.

    Returns (y, g·p, derivative of s·(g·p) in s). The sum increases with y: bracketed Newton.
    """
    steepest = slopes[0]
    for j in range(1, n):
        steepest = max(steepest, slopes[j])
    low, high = -np.inf, s * steepest - 1.0 + 1e-9 * (1.0 + abs(s * steepest))
    y = start if start < high else high - 1.0
    mean, squares, first, second = 0.0, 0.0, 0.0, 0.0
    for _ in range(200):
        total, mean, squares, first, second = 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(n):
            price = s * slopes[j] - y
            if price * upper[row, j] <= 1.0:
                value = upper[row, j]
            elif price * lower[row, j] >= 1.0:
                value = lower[row, j]
            else:
                value = 1.0 / price
                squares += value * value
                first += value * value * slopes[j]
                second += (value * slopes[j]) ** 2
            p[row, j] = value
            total += value
            mean += value * slopes[j]
        missing = 1.0 - total
        if abs(missing) <= 1e-13:
            break
        if missing > 0.0:
            low = y
        else:
            high = y
        step = y + missing / squares if squares > 0.0 else -np.inf
        if not low < step < high:
            if low == -np.inf:
                step = y - 2.0 * (abs(high - y) + 1.0 + 0.5 * abs(y))
            else:
                step = 0.5 * (low + high)
        if step == y:
            break
        y = step
    slope = mean - s * (second - first * first / squares) if squares > 0.0 else mean
    return y, mean, slope


@kernel
def cone_minimum(
    slopes: Floats, lower: Floats, upper: Floats, row: int, n: int, guess: float, q: Floats
) -> float:
    """Minimise g·q - sum ln q over the cone of one block; returns S = sum q, or -1 if unbounded.

    q = 1/g where that lies in the cone. Else q = S·p with p from `_share_out` and S the root of
    S·(g·p) = n: bracketed Newton.
    """
    total, inside = 0.0, True
    for j in range(n):
        if slopes[j] <= 0.0:
            inside = False
            break
        q[row, j] = 1.0 / slopes[j]
        total += q[row, j]
    if n == 1:
        return total if inside else -1.0
    if inside:
        for j in range(n):
            inside &= lower[row, j] <= q[row, j] / total <= upper[row, j]
        if inside:
            return total
    s, low, high = guess if guess > 0.0 else 1.0 / n, 0.0, np.inf
    y = s * slopes[:n].min() - 1.0
    for _ in range(100):
        y, mean, slope = _share_out(slopes, lower, upper, row, n, s, y, q)
        if mean <= 0.0:
            return -1.0
        excess = s * mean - n
        if abs(excess) <= 1e-12 * n:
            break
        if excess < 0.0:
            low = s
        else:
            high = s
        step = s - excess / slope if slope > 0.0 else -1.0
        if not low < step < high:
            middle = 0.25 * s if low == 0.0 else 0.5 * (low + high)
            step = middle if high < np.inf else 4.0 * s
        if step == s:
            break
        s = step
    for j in range(n):
        q[row, j] *= s
    return s


@kernel
def dual_value(costs: Floats, boxes: Boxes, nu: Floats, state: BarrierState) -> float:
    """The dual at nu, or -inf; fills blocks, masses, logs and the gradient of ``state``."""
    horizon, width, actions = state.masses.shape
    widths, masses, gradient = boxes.widths, state.masses, state.gradient
    lower, upper, cost = rows(boxes.lower), rows(boxes.upper), rows(costs)
    q = rows(state.blocks)
    slopes = np.empty(width)
    value = -float(nu[0, 0])
    gradient[:] = 0.0
    gradient[0, 0] = -1.0
    for h in range(horizon):
        n = widths[h + 1]
        for x in range(widths[h]):
            for a in range(actions):
                row = (h * width + x) * actions + a
                for j in range(n):
                    slopes[j] = cost[row, j] + nu[h, x] - nu[h + 1, j]
                s = cone_minimum(slopes, lower, upper, row, n, masses[h, x, a], q)
                if s < 0.0:
                    return -np.inf
                masses[h, x, a] = s
                gradient[h, x] += s
                logs = 0.0
                for j in range(n):
                    logs += math.log(q[row, j])
                    gradient[h + 1, j] -= q[row, j]
                state.logs[h, x, a] = logs
                value += n - logs
    gradient[horizon] = 0.0
    return value


@kernel
def dual_hessian(boxes: Boxes, state: BarrierState) -> None:
    """Minus the Hessian of the dual into ``state.system``: the responses -dq/dg of all blocks."""
    horizon, width, actions = state.masses.shape
    widths, diagonal, coupling = boxes.widths, state.system.diagonal, state.system.coupling
    lower, upper, q = rows(boxes.lower), rows(boxes.upper), rows(state.blocks)
    parts = np.empty((4, width))
    diagonal[:] = 0.0
    coupling[:] = 0.0
    for h in range(horizon):
        n = widths[h + 1]
        for x in range(widths[h]):
            for a in range(actions):
                row, s = (h * width + x) * actions + a, state.masses[h, x, a]
                squares, shares = _response(q, lower, upper, row, n, s, parts)
                f, r, to_f, to_r = parts
                for j in range(n):
                    response = f[j] + squares * to_f[j] + shares * to_r[j]
                    diagonal[h, x, x] += response
                    coupling[h, x, j] -= response
                if h + 1 < horizon:
                    for i in range(n):
                        diagonal[h + 1, i, i] += f[i]
                        for j in range(i + 1):
                            diagonal[h + 1, i, j] += f[i] * to_f[j] + r[i] * to_r[j]


@kernel
def _response(
    q: Floats, lower: Floats, upper: Floats, row: int, n: int, s: float, parts: Floats
) -> tuple[float, float]:
    """K = -dq/dg of one block as diag(f) + f·to_f' + r·to_r'; returns (sum f, sum r).

    Entries off their bounds move freely, clipped ones keep their share r = q/T of the free total T.
    With f = q² on the free entries (0 elsewhere), F = sum f and k = clipped/T²,
    K = diag(f) + (f·(r - k·f)' + r·(f + F·r)')/(1 + k·F). If all entries are clipped only the mass
    can move: K = q·q'/n.
    """
    f, r, to_f, to_r = parts
    count, total, squares = 0, 0.0, 0.0
    for j in range(n):
        value = q[row, j]
        share = value / s
        free = n == 1 or lower[row, j] * (1 + 1e-11) < share < upper[row, j] * (1 - 1e-11)
        f[j] = value * value if free else 0.0
        r[j] = 0.0 if free else value
        count += free
        total += value if free else 0.0
        squares += f[j]
    if count == 0:
        for j in range(n):
            to_f[j], to_r[j] = 0.0, r[j] / n
        return 0.0, s
    kappa = (n - count) / (total * total)
    denominator = 1.0 + kappa * squares
    for j in range(n):
        r[j] /= total
        to_f[j] = (r[j] - kappa * f[j]) / denominator
        to_r[j] = (f[j] + squares * r[j]) / denominator
    return squares, (s - total) / total


@kernel
def roll_forward(costs: Floats, boxes: Boxes, state: BarrierState, dual: float) -> float:
    """Policy, transitions and the gap of the feasible occupancy they give."""
    horizon, width, actions = state.masses.shape
    widths, cost, q, p = boxes.widths, rows(costs), rows(state.blocks), rows(state.transitions)
    reach, ahead = np.zeros(width), np.zeros(width)
    reach[0] = 1.0
    primal = 0.0
    for h in range(horizon):
        n = widths[h + 1]
        ahead[:] = 0.0
        for x in range(widths[h]):
            total = 0.0
            for a in range(actions):
                total += state.masses[h, x, a]
            for a in range(actions):
                row, s = (h * width + x) * actions + a, state.masses[h, x, a]
                state.policy[h, x, a] = s / total
                mass = reach[x] * s / total
                price = 0.0
                for j in range(n):
                    p[row, j] = q[row, j] / s
                    price += cost[row, j] * p[row, j]
                    ahead[j] += mass * p[row, j]
                primal += mass * price - n * math.log(mass / s) - state.logs[h, x, a]
        reach, ahead = ahead, reach
    return abs(primal - dual)


@kernel
def solve_barrier(costs: Floats, boxes: Boxes, state: BarrierState) -> tuple[float, int]:
    """Solve from nu = 0; returns (gap, Newton steps) and leaves policy and transitions."""
    state.potentials[:] = 0.0
    value = dual_value(costs, boxes, state.potentials, state)
    gap, steps, settled, last = np.inf, 0, False, state.masses.shape[0] - 1
    first = np.int64(0)  # a literal would be compiled for by itself
    right, out = state.gradient, state.direction
    while not settled and steps < MAX_STEPS:
        dual_hessian(boxes, state)
        damping, decrement = 1e-14, 0.0
        while damping < 1.0 and not solve_tridiagonal(
            boxes.widths, first, last, state.system, damping, 1e-300, right, out
        ):
            damping = max(100.0 * damping, 1e-12)
        for h in range(last + 1):
            for x in range(boxes.widths[h]):
                decrement += right[h, x] * out[h, x]
        step, trial_value = _line_search(costs, boxes, state, value, decrement)
        if step == 0.0:  # rounding: stay
            value = dual_value(costs, boxes, state.potentials, state)
            return roll_forward(costs, boxes, state, value), steps
        steps += 1
        copy_table(state.trial, state.potentials)
        value = trial_value
        gap = roll_forward(costs, boxes, state, value)
        short = step == 1.0 and decrement < SHORT_STEP
        settled = short and (gap < GOOD_GAP or decrement < SHORT_STEP**2)
    return gap, steps


@kernel
def _line_search(
    costs: Floats, boxes: Boxes, state: BarrierState, value: float, decrement: float
) -> tuple[float, float]:
    """Backtrack until the dual is finite and rises enough; (step, value), step 0 if it never is."""
    step = 1.0
    for _ in range(60):
        for h in range(state.masses.shape[0]):
            for x in range(boxes.widths[h]):
                state.trial[h, x] = state.potentials[h, x] + step * state.direction[h, x]
        trial = dual_value(costs, boxes, state.trial, state)
        if trial >= value + 1e-4 * step * decrement - 1e-12 * abs(value):
            return step, trial
        step *= 0.4
    return 0.0, value


@kernel
def barrier_step(
    losses: Floats, rate: float, boxes: Boxes, state: BarrierState, costs: Floats
) -> tuple[float, int]:
    """One mirror-descent step on ``losses[h, x, a]``; updates occupancy, policy and transitions."""
    horizon, width, actions = losses.shape
    q, cost, p = rows(state.occupancy), rows(costs), rows(state.transitions)
    widths = boxes.widths
    for h in range(horizon):
        for x in range(widths[h]):
            for a in range(actions):
                row = (h * width + x) * actions + a
                for j in range(widths[h + 1]):
                    cost[row, j] = rate * losses[h, x, a] + 1.0 / q[row, j]
    gap, steps = solve_barrier(costs, boxes, state)
    start = np.zeros(width)
    start[0] = 1.0
    reached = occupancy(state.transitions, start, state.policy)
    for h in range(horizon):
        for x in range(widths[h]):
            for a in range(actions):
                row = (h * width + x) * actions + a
                for j in range(widths[h + 1]):
                    q[row, j] = max(reached[h, x, a] * p[row, j], FLOOR)
    return gap, steps
