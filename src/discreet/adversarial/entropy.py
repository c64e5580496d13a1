"""Entropy FTRL over confidence boxes: the reduced dual by semi-smooth Newton.

Minimise <c, q> + sum q ln q over the occupancy measures whose transitions lie in the boxes, with
c = eta·L (equation (3.2) of the paper). Write q(x,a,x') = w(x,a)·p(x'|x,a). For fixed multipliers
nu of the flow constraints the blocks separate, and the multipliers of the boxes disappear into

    gain(x,a) = max over p in the box-simplex of  sum p(x')·(nu(x') - ln p(x')),

attained by p = clip(t·e^nu, lower, upper) with the scalar t that makes it sum to one
(`solve_layer`). What remains is

    F(nu) = sum over h of  ln sum over (x,a) of exp(-c(x,a) - nu(x) + gain(x,a)),

convex and unconstrained, one number per interior state, with a block-tridiagonal (generalised)
Hessian. The dual value is -F. The policy pi(a|x) ~ exp(-c + gain) is defined at unreachable states
too, and rolling (pi, p) forward gives an exactly feasible q: primal(q) + F(nu) >= 0 is the
certificate, and the stopping rule.

A block (x, a) is *column* x·A + a of arrays ``[H, X', X·A]``. Loops over columns carry nothing from
one to the next, so the compiler treats eight of them at a time without reordering a single sum:
results do not depend on the machine's vector width.
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
    largest,
    solve_tridiagonal,
    sort_descending,
    subtract_tables,
)

LINEAR_RANGE = 600.0
"""Differences of log weights up to this size are safe in plain floating point (e^600 < 1e261)."""
PASSES = 8
"""Newton steps for all blocks at once; blocks that need more (few) are finished one by one."""
GOOD_GAP = 1e-9
"""Stop here."""
WEAK_GAP = 1e-7
"""Above this, start again from another point."""
STEEP = math.sqrt(10 * GOOD_GAP)
"""Where a partial derivative of F exceeds this, the gap exceeds `GOOD_GAP`: no need to compute it.
The Hessian is at most 5 (each nu enters two layers; the covariance of vectors (-e_x, p) is at most
2, the mean of dp/dnu at most 1), so gap >= F - min F >= derivative²/10."""


class Columns(NamedTuple):
    """Bounds of all blocks as columns, b·ln b of every bound b, and room to work in."""

    lower: Floats  # [H, X', X·A]
    upper: Floats
    lower_entropy: Floats
    upper_entropy: Floats
    weights: Floats  # [X'], exp(nu - max nu) of the layer at hand
    totals: Floats  # [X·A]
    slopes: Floats


class Solution(NamedTuple):
    """What the inner problem has found in all layers: the t, p and gain of every block."""

    scales: Floats
    transitions: Floats
    gains: Floats


def empty_columns(horizon: int, width: int, actions: int) -> Columns:
    """Room for the boxes of one problem size."""
    blocks = width * actions
    size = (horizon, width, blocks)
    low, high, low_entropy, high_entropy = (np.zeros(size) for _ in range(4))
    weights, totals, slopes = np.zeros(width), np.zeros(blocks), np.zeros(blocks)
    return Columns(low, high, low_entropy, high_entropy, weights, totals, slopes)


@kernel
def fill_columns(boxes: Boxes, columns: Columns) -> None:
    horizon, _, actions, _ = boxes.lower.shape
    for h in range(horizon):
        for x in range(boxes.widths[h]):
            for a in range(actions):
                column = x * actions + a
                for y in range(boxes.widths[h + 1]):
                    low, high = boxes.lower[h, x, a, y], boxes.upper[h, x, a, y]
                    columns.lower[h, y, column] = low
                    columns.upper[h, y, column] = high
                    columns.lower_entropy[h, y, column] = _entropy(low)
                    columns.upper_entropy[h, y, column] = _entropy(high)


@kernel
def _entropy(value: float) -> float:
    return value * math.log(value) if value > 0.0 else 0.0


@kernel
def solve_layer(
    h: int, potentials: Floats, n: int, blocks: int, columns: Columns, found: Solution
) -> None:
    """Best transitions and gains of the ``blocks`` pairs of layer h, from the n potentials ahead.

    The scales of ``found`` say where to start each t (0: anywhere).
    """
    nu = potentials[h + 1]
    scales, p, gains = found
    if n == 1:
        p[h, 0, :blocks] = 1.0
        gains[h, :blocks] = nu[0]
        return
    peak, least, total = nu[0], nu[0], 0.0
    for y in range(1, n):
        peak = max(peak, nu[y])
        least = min(least, nu[y])
    for y in range(n):
        columns.weights[y] = math.exp(nu[y] - peak)
        total += columns.weights[y]
    if peak - least > LINEAR_RANGE:
        order = np.empty(n, np.int64)
        sort_descending(nu, n, order)
        for column in range(blocks):
            scales[h, column] = 0.0
            gains[h, column] = _wide_block(h, nu, order, columns, column, n, p)
        return
    for column in range(blocks):
        if not scales[h, column] > 0.0:
            scales[h, column] = 1.0 / total
    _find_scales(h, n, blocks, columns, scales)
    _fill_gains(h, nu, peak, n, blocks, columns, found)


@kernel
def _find_scales(h: int, n: int, blocks: int, columns: Columns, scales: Floats) -> None:
    """The t of every block: Newton's method on their sums, increasing and piecewise linear in t."""
    totals, slopes = columns.totals, columns.slopes
    tolerance = 1e-14 + 2e-16 * n
    for _ in range(PASSES):
        _add_up(h, n, blocks, columns, scales)
        unsettled = 0
        for column in range(blocks):
            missing = 1.0 - totals[column]
            off = abs(missing) > tolerance
            step = scales[h, column] + missing / slopes[column]
            unsettled += off
            scales[h, column] = step if off & (step > 0.0) & (step < np.inf) else scales[h, column]
        if unsettled == 0:
            return
    _add_up(h, n, blocks, columns, scales)
    for column in range(blocks):
        if abs(1.0 - totals[column]) > tolerance:
            scales[h, column] = box_scale(
                h, columns.weights, columns.lower, columns.upper, column, n, scales[h, column]
            )


@kernel
def _add_up(h: int, n: int, blocks: int, columns: Columns, scales: Floats) -> None:
    """Totals: sum over y of clip(t·weight, lower, upper) per block. Slopes: its derivative in t."""
    lower, upper, totals, slopes = columns.lower, columns.upper, columns.totals, columns.slopes
    for column in range(blocks):
        totals[column] = 0.0
        slopes[column] = 0.0
    for y in range(n):
        weight = columns.weights[y]
        for column in range(blocks):
            low, high, value = lower[h, y, column], upper[h, y, column], scales[h, column] * weight
            totals[column] += min(max(value, low), high)
            slopes[column] += weight if (low < value) & (value < high) else 0.0


@kernel
def _fill_gains(
    h: int, nu: Floats, peak: float, n: int, blocks: int, columns: Columns, found: Solution
) -> None:
    """Transitions and gains from the scales: nu - ln p is the same for all entries off a bound."""
    free = columns.totals
    scales, p, gains = found
    for column in range(blocks):
        free[column] = 0.0
        gains[h, column] = 0.0
    for y in range(n):
        weight, potential = columns.weights[y], nu[y]
        for column in range(blocks):
            value = scales[h, column] * weight
            low, high = columns.lower[h, y, column], columns.upper[h, y, column]
            below, above = value <= low, value >= high
            entropy = (
                columns.lower_entropy[h, y, column]
                if below
                else columns.upper_entropy[h, y, column]
            )
            value = min(max(value, low), high)
            p[h, y, column] = value
            free[column] += 0.0 if below | above else value
            gains[h, column] += value * potential - entropy if below | above else 0.0
    for column in range(blocks):
        gains[h, column] += free[column] * (peak - math.log(scales[h, column]))


@kernel
def box_scale(
    h: int, weights: Floats, lower: Floats, upper: Floats, column: int, n: int, scale: float
) -> float:
    """The t of one block, from t = ``scale``, whatever it takes.

    Newton's method inside a bracket; it walks to the next breakpoint where nothing is free to move.
    """
    least, most, t = 0.0, np.inf, scale
    tolerance = 1e-14 + 2e-16 * n
    for _ in range(40 + 2 * n):
        total, slope = 0.0, 0.0
        for y in range(n):
            low, high, value = lower[h, y, column], upper[h, y, column], t * weights[y]
            total += min(max(value, low), high)
            slope += weights[y] if low < value < high else 0.0
        missing = 1.0 - total
        if abs(missing) <= tolerance:
            break
        if missing > 0.0:
            least = t
        else:
            most = t
        step = t + missing / slope if slope > 0.0 else -1.0
        if not least < step < most:
            step = next_breakpoint(h, weights, lower, upper, column, n, t, missing > 0.0)
            if not least < step < most:
                step = 0.5 * (least + most)
        if step == t or step == np.inf:  # noqa: PLR1714
            break
        t = step
    return t


@kernel
def next_breakpoint(
    h: int,
    weights: Floats,
    lower: Floats,
    upper: Floats,
    column: int,
    n: int,
    t: float,
    upwards: bool,
) -> float:
    """The nearest t at which an entry starts or stops to be clipped, and a hair beyond it."""
    best = np.inf if upwards else 0.0
    for y in range(n):
        for point in (lower[h, y, column] / weights[y], upper[h, y, column] / weights[y]):
            if (upwards and t < point < best) or (not upwards and best < point < t):
                best = point
    return best * (1.0 + 1e-12) if upwards else best * (1.0 - 1e-12)


@kernel
def _wide_block(
    h: int, nu: Floats, order: Ints, columns: Columns, column: int, n: int, p: Floats
) -> float:
    """Best ``p`` and gain of a block whose potentials span a very wide range.

    Weights are taken relative to the marginal entry, at which the mass runs out when it is given to
    the best entries first: entries further than `LINEAR_RANGE` from it sit at a bound, so cutting
    their exponents there changes nothing.
    """
    weights, lower, upper = columns.weights, columns.lower, columns.upper
    spare, marginal = 1.0, order[n - 1]
    for y in range(n):
        spare -= lower[h, y, column]
    for k in range(n):
        spare -= upper[h, order[k], column] - lower[h, order[k], column]
        if spare <= 0.0:
            marginal = order[k]
            break
    centre = nu[marginal]
    for y in range(n):
        weights[y] = math.exp(min(max(nu[y] - centre, -LINEAR_RANGE), LINEAR_RANGE))
    t = box_scale(h, weights, lower, upper, column, n, 1.0)
    gain, level = 0.0, centre - math.log(t)
    for y in range(n):
        value = t * weights[y]
        clipped = min(max(value, lower[h, y, column]), upper[h, y, column])
        p[h, y, column] = clipped
        gain += value * level if clipped == value else clipped * nu[y] - _entropy(clipped)
    return gain


class EntropyState(NamedTuple):
    """Solution and workspace of one problem size; reused from solve to solve (warm start)."""

    policy: Floats  # [H, X, A], the solution
    transitions: Floats  # [H, X', X·A], the solution
    potentials: Floats  # [H + 1, X], nu
    scales: Floats  # [H, X·A], the t of every block
    gains: Floats  # [H, X·A]
    weights: Floats  # [H, X·A], w normalised over each layer
    mass: Floats  # [H + 1, X], w summed over actions: what leaves a state
    flow: Floats  # [H + 1, X], what arrives; the gradient of F is flow - mass
    columns: Columns
    system: Tridiagonal


def entropy_state(widths: Ints, actions: int) -> EntropyState:
    """A cold start: potentials zero."""
    horizon, width = len(widths) - 1, int(widths.max())
    blocks, states = (horizon, width * actions), (horizon + 1, width)
    return EntropyState(
        policy=np.zeros((horizon, width, actions)),
        transitions=np.zeros((horizon, width, width * actions)),
        potentials=np.zeros(states),
        scales=np.zeros(blocks),
        gains=np.zeros(blocks),
        weights=np.zeros(blocks),
        mass=np.zeros(states),
        flow=np.zeros(states),
        columns=empty_columns(horizon, width, actions),
        system=empty_tridiagonal(horizon + 1, width),
    )


@kernel
def dual_value(
    costs: Floats, widths: Ints, potentials: Floats, scales: Floats, state: EntropyState
) -> float:
    """F(nu); leaves transitions, gains, weights, mass and flow of nu in ``state``."""
    horizon, _, actions = costs.shape
    found = Solution(scales, state.transitions, state.gains)
    for h in range(horizon):
        solve_layer(h, potentials, widths[h + 1], widths[h] * actions, state.columns, found)
    return value_from_gains(costs, widths, potentials, state)


@kernel
def value_from_gains(costs: Floats, widths: Ints, potentials: Floats, state: EntropyState) -> float:
    """F(nu), when transitions and gains are those of nu already."""
    horizon, _, actions = costs.shape
    value = 0.0
    for h in range(horizon):
        w, p = state.weights[h], state.transitions[h]
        peak, total = -np.inf, 0.0
        for x in range(widths[h]):
            for a in range(actions):
                exponent = state.gains[h, x * actions + a] - costs[h, x, a] - potentials[h, x]
                w[x * actions + a] = exponent
                peak = max(peak, exponent)
        for block in range(widths[h] * actions):
            w[block] = math.exp(w[block] - peak)
            total += w[block]
        for block in range(widths[h] * actions):
            w[block] /= total
        value += peak + math.log(total)
        for x in range(widths[h]):
            state.mass[h, x] = 0.0
            for a in range(actions):
                state.mass[h, x] += w[x * actions + a]
        for y in range(widths[h + 1]):
            state.flow[h + 1, y] = dot(w, p, y, widths[h] * actions)
    return value


@kernel
def dot(left: Floats, right: Floats, row: int, n: int) -> float:
    """``left @ right[row]`` over n entries, in four sums that do not wait for each other."""
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    whole = n - n % 4
    for k in range(0, whole, 4):
        first += left[k] * right[row, k]
        second += left[k + 1] * right[row, k + 1]
        third += left[k + 2] * right[row, k + 2]
        fourth += left[k + 3] * right[row, k + 3]
    for k in range(whole, n):
        first += left[k] * right[row, k]
    return (first + third) + (second + fourth)


@kernel
def dual_hessian(widths: Ints, actions: int, state: EntropyState) -> None:
    """Generalised Hessian of F into ``state.system``.

    Layer h adds the covariance under w of the vectors (-e_x, p(.|x,a)) plus the mean of
    dp/dnu = diag(f) - f·f'/sum(f), with f the entries of p strictly inside their box. Adding a
    constant to a layer's potentials changes nothing: 1/n in every entry fills that null space.
    """
    horizon = len(widths) - 1
    diagonal, coupling = state.system.diagonal, state.system.coupling
    for h in range(1, horizon):
        for x in range(widths[h]):
            for y in range(x + 1):
                diagonal[h, x, y] = 1.0 / widths[h] - state.mass[h, x] * state.mass[h, y]
            diagonal[h, x, x] += state.mass[h, x]
    for h in range(1, horizon - 1):
        w, p = state.weights[h], state.transitions[h]
        for x in range(widths[h]):
            for y in range(widths[h + 1]):
                total = state.mass[h, x] * state.flow[h + 1, y]
                for a in range(actions):
                    total -= w[x * actions + a] * p[y, x * actions + a]
                coupling[h, x, y] = total
    for h in range(horizon - 1):
        _add_spread(h, widths[h + 1], widths[h] * actions, state)


@kernel
def _add_spread(h: int, n: int, blocks: int, state: EntropyState) -> None:
    """Add sum w·(p·p' + diag(f) - f·f'/sum(f)) - flow·flow' of layer h to the next diagonal block.

    The two products are one: of the rows (w·p, -w·f/sum(f)) with the rows (p, f).
    """
    diagonal, flow, w = state.system.diagonal, state.flow, state.weights
    p, lower, upper = state.transitions, state.columns.lower, state.columns.upper
    left, right, free = np.empty(2 * blocks), np.empty((n, 2 * blocks)), np.zeros(blocks)
    for y in range(n):
        for block in range(blocks):
            value = p[h, y, block]
            inside = (lower[h, y, block] < value) & (value < upper[h, y, block])
            right[y, block] = value
            right[y, blocks + block] = value if inside else 0.0
            free[block] += right[y, blocks + block]
    for block in range(blocks):
        free[block] = w[h, block] / free[block] if free[block] > 0.0 else 0.0
    for i in range(n):
        for block in range(blocks):
            left[block] = w[h, block] * right[i, block]
            left[blocks + block] = -free[block] * right[i, blocks + block]
        for j in range(i + 1):
            diagonal[h + 1, i, j] += (
                dot(left, right, j, 2 * blocks) - flow[h + 1, i] * flow[h + 1, j]
            )
        for block in range(blocks):
            diagonal[h + 1, i, i] += w[h, block] * right[i, blocks + block]


@kernel
def policy_and_gap(
    costs: Floats, widths: Ints, potentials: Floats, value: float, state: EntropyState
) -> float:
    """The policy of this nu, and primal(q) + F(nu) for the occupancy q of (policy, transitions)."""
    horizon, width, actions = costs.shape
    reach, occupancy = np.zeros(width), np.zeros(width * actions)
    reach[0] = 1.0
    primal = 0.0
    for h in range(horizon):
        gains, policy, p = state.gains[h], state.policy[h], state.transitions[h]
        for x in range(widths[h]):
            peak = -np.inf
            for a in range(actions):
                peak = max(peak, gains[x * actions + a] - costs[h, x, a])
            total = 0.0
            for a in range(actions):
                policy[x, a] = math.exp(gains[x * actions + a] - costs[h, x, a] - peak)
                total += policy[x, a]
            for a in range(actions):
                policy[x, a] /= total
                mass = reach[x] * policy[x, a]
                occupancy[x * actions + a] = mass
                if mass > 0.0:  # what p·nu adds to a gain is taken off below, once per state
                    primal += mass * (costs[h, x, a] + math.log(mass) - gains[x * actions + a])
        for y in range(widths[h + 1]):
            reach[y] = dot(occupancy, p, y, widths[h] * actions)
            primal += reach[y] * potentials[h + 1, y]
    return abs(primal + value)


@kernel
def soft_backup(
    costs: Floats, widths: Ints, potentials: Floats, scales: Floats, state: EntropyState
) -> None:
    """A starting point: nu(x) = ln sum over a of exp(-c(x,a) + gain(x,a)), backwards.

    Leaves its transitions and gains in ``state``.
    """
    horizon, _, actions = costs.shape
    found = Solution(scales, state.transitions, state.gains)
    potentials[:] = 0.0
    for h in range(horizon - 1, -1, -1):
        solve_layer(h, potentials, widths[h + 1], widths[h] * actions, state.columns, found)
        for x in range(widths[h] if h > 0 else 0):
            best = -np.inf
            for a in range(actions):
                value = found.gains[h, x * actions + a] - costs[h, x, a]
                best = max(best, value) + math.log1p(math.exp(-abs(best - value)))
            potentials[h, x] = best


@kernel
def newton(
    costs: Floats, widths: Ints, state: EntropyState, start: float, cap: float, max_steps: int
) -> tuple[float, int]:
    """Damped semi-smooth Newton from ``state.potentials``, where F = ``start``; (gap, steps).

    The step is capped (potentials move by at most ``cap``) and damped until F decreases.
    """
    last, actions = costs.shape[0] - 1, costs.shape[2]
    gradient, direction = np.empty(state.flow.shape), np.zeros(state.flow.shape)
    subtract_tables(state.flow, state.mass, gradient)
    value, damping, steps, moving = start, 1e-10, 0, True
    gap = _gap_if_flat(costs, widths, gradient, value, state)
    while gap > GOOD_GAP and steps < max_steps and moving:
        dual_hessian(widths, actions, state)
        moving, step = False, 1.0
        while not moving and damping < 1e12:
            if solve_tridiagonal(
                widths, np.int64(1), last, state.system, damping, 1e-13, gradient, direction
            ):
                step, value = _line_search(costs, widths, gradient, direction, value, cap, state)
                moving = step > 0.0
            if not moving:
                damping = max(damping * 30.0, 1e-8)
        if moving:
            steps += 1
            subtract_tables(state.flow, state.mass, gradient)
            gap = _gap_if_flat(costs, widths, gradient, value, state)
            if step == 1.0:
                damping = max(damping * 0.05, 1e-12)
    if gap == np.inf or not moving:  # rounding: back to what belongs to the potentials
        value = dual_value(costs, widths, state.potentials, state.scales, state)
        gap = policy_and_gap(costs, widths, state.potentials, value, state)
    return gap, steps


@kernel
def _gap_if_flat(
    costs: Floats, widths: Ints, gradient: Floats, value: float, state: EntropyState
) -> float:
    """The gap, or infinity if a derivative shows that it is too large."""
    if largest(gradient, widths, 1, costs.shape[0] - 1) > STEEP:
        return np.inf
    return float(policy_and_gap(costs, widths, state.potentials, value, state))


@kernel
def _line_search(
    costs: Floats,
    widths: Ints,
    gradient: Floats,
    direction: Floats,
    value: float,
    cap: float,
    state: EntropyState,
) -> tuple[float, float]:
    """Move ``state.potentials`` by the first of four steps that is good; (step or 0, F there)."""
    last, slope = costs.shape[0] - 1, 0.0
    for h in range(1, last + 1):
        for x in range(widths[h]):
            slope -= gradient[h, x] * direction[h, x]
    longest, steepest = largest(direction, widths, 1, last), largest(gradient, widths, 1, last)
    step = min(1.0, cap / longest) if longest > 0.0 else 1.0
    trial, slopes = np.empty(direction.shape), np.empty(direction.shape)
    for _ in range(4):
        for h in range(direction.shape[0]):
            for x in range(direction.shape[1]):
                trial[h, x] = state.potentials[h, x] - step * direction[h, x]
        there = dual_value(costs, widths, trial, state.scales, state)
        subtract_tables(state.flow, state.mass, slopes)
        flatter = largest(slopes, widths, 1, last) < 0.9 * steepest
        if there <= value + 1e-4 * step * slope or (
            flatter and there <= value + 1e-12 * abs(value)
        ):
            copy_table(trial, state.potentials)
            return step, there
        step *= 0.3
    return 0.0, value


@kernel
def solve_entropy(
    costs: Floats, boxes: Boxes, state: EntropyState, warm: bool
) -> tuple[float, int]:
    """Solve from the better of two starts, then from safer ones; returns (gap, Newton steps).

    Afterwards ``state.policy`` and ``state.transitions`` are a feasible solution whose objective is
    within the gap of the optimum.
    """
    widths = boxes.widths
    for h in range(costs.shape[0]):  # from each layer's smallest cost: the same, less rounding
        least = np.inf
        for x in range(widths[h]):
            for a in range(costs.shape[2]):
                least = min(least, costs[h, x, a])
        for x in range(widths[h]):
            for a in range(costs.shape[2]):
                costs[h, x, a] -= least
    fill_columns(boxes, state.columns)
    gap, steps = np.inf, 0
    for attempt in range(4):
        if attempt == 0:
            cap, most = 50.0, 200
            value = _start(costs, widths, state, warm)
        else:  # begin again: at the soft backup, at zero, at the backup of halved costs
            cap, most = 10.0 / attempt, 400
            state.scales[:] = 0.0
            if attempt == 2:
                state.potentials[:] = 0.0
            else:
                scaled = np.empty(costs.shape)
                scale_losses(costs, 1.0 if attempt == 1 else 0.5, scaled)
                soft_backup(scaled, widths, state.potentials, state.scales, state)
            value = dual_value(costs, widths, state.potentials, state.scales, state)
        gap, more = newton(costs, widths, state, value, cap, most)
        steps += more
        if gap <= WEAK_GAP:
            break
    return gap, steps


@kernel
def _start(costs: Floats, widths: Ints, state: EntropyState, warm: bool) -> float:
    """Potentials to start from, and F there: the soft backup's, or the last ones if better."""
    last_value = np.inf
    if warm:
        last_value = dual_value(costs, widths, state.potentials, state.scales, state)
    potentials, scales = np.zeros(state.potentials.shape), np.zeros(state.scales.shape)
    soft_backup(costs, widths, potentials, scales, state)
    value = value_from_gains(costs, widths, potentials, state)
    if last_value < value:
        return float(dual_value(costs, widths, state.potentials, state.scales, state))
    copy_table(potentials, state.potentials)
    copy_table(scales, state.scales)
    return float(value)


@kernel
def scale_losses(losses: Floats, rate: float, costs: Floats) -> None:
    """``costs[h, x, a]`` = rate·losses."""
    horizon, width, actions = losses.shape
    for h in range(horizon):
        for x in range(width):
            for a in range(actions):
                costs[h, x, a] = rate * losses[h, x, a]
