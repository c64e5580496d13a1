"""Entropy FTRL over confidence boxes: the reduced dual by semi-smooth Newton.

Minimise <c, q> + sum q ln q over the occupancy measures whose transitions lie in the boxes, with
c = eta·L (equation (3.2) of the paper). Write q(x,a,x') = w(x,a)·p(x'|x,a). For fixed multipliers
nu of the flow constraints the blocks separate, and the multipliers of the boxes disappear into

    gain(x,a) = max over p in the box-simplex of  sum p(x')·(nu(x') - ln p(x')),

solved by p = clip(t·e^nu, lower, upper) with one scalar t. What remains is

    F(nu) = sum over h of  ln sum over (x,a) of exp(-c(x,a) - nu(x) + gain(x,a)),

convex and unconstrained, one number per interior state, with a block-tridiagonal (generalised)
Hessian. The dual value is -F. The policy pi(a|x) ~ exp(-c + gain) is defined at unreachable states
too, and rolling (pi, p) forward gives an exactly feasible q: primal(q) + F(nu) >= 0 is the
certificate, and the stopping rule.
"""

import math
from typing import NamedTuple

import numpy as np

from discreet._jit import kernel
from discreet.learners.occupancy_kernels import (
    LINEAR_RANGE,
    Boxes,
    Floats,
    Integers,
    Tridiagonal,
    box_softmax,
    empty_tridiagonal,
    largest,
    marginal_entry,
    rows,
    solve_tridiagonal,
    sort_descending,
)

GOOD_GAP = 1e-9
"""Stop here."""
WEAK_GAP = 1e-7
"""Above this, start again from another point."""


class EntropyState(NamedTuple):
    """Solution and workspace of one problem size; reused from solve to solve (warm start)."""

    potentials: Floats
    scales: Floats
    transitions: Floats
    weights: Floats
    gains: Floats
    policy: Floats
    gradient: Floats
    direction: Floats
    trial: Floats
    trial_gradient: Floats
    spare_potentials: Floats
    spare_scales: Floats
    system: Tridiagonal


def entropy_state(widths: Integers, actions: int) -> EntropyState:
    """A cold start: potentials zero."""
    horizon, width = len(widths) - 1, int(widths.max())
    blocks, states = (horizon, width, actions), (horizon + 1, width)
    return EntropyState(
        potentials=np.zeros(states),
        scales=np.zeros(blocks),
        transitions=np.zeros((*blocks, width)),
        weights=np.zeros(blocks),
        gains=np.zeros(blocks),
        policy=np.zeros(blocks),
        gradient=np.zeros(states),
        direction=np.zeros(states),
        trial=np.zeros(states),
        trial_gradient=np.zeros(states),
        spare_potentials=np.zeros(states),
        spare_scales=np.zeros(blocks),
        system=empty_tridiagonal(horizon + 1, width),
    )


@kernel
def weigh_layer(
    potentials: Floats, n: int, weights: Floats, order: Integers
) -> tuple[float, float, bool]:
    """Weights = exp(nu - max nu); returns (max nu, sum of weights, is the range very wide?).

    ``order`` (of decreasing nu) is filled for very wide ranges only.
    """
    peak, least = potentials[0], potentials[0]
    for j in range(1, n):
        peak = max(peak, potentials[j])
        least = min(least, potentials[j])
    total = 0.0
    for j in range(n):
        weights[j] = math.exp(potentials[j] - peak)
        total += weights[j]
    wide = peak - least > LINEAR_RANGE
    if wide:
        sort_descending(potentials, n, order)
    return peak, total, wide


@kernel
def block_gain(
    nu: Floats, lower: Floats, upper: Floats, row: int, n: int, p: Floats, level: float
) -> float:
    """Sum p·(nu - ln p), where nu - ln p = ``level`` for all entries strictly inside their box."""
    gain, free = 0.0, 0.0
    for j in range(n):
        value = p[row, j]
        if lower[row, j] < value < upper[row, j]:
            free += value
        elif value > 0.0:
            gain += value * (nu[j] - math.log(value))
    return gain + free * level


@kernel
def wide_block(
    nu: Floats, order: Integers, lower: Floats, upper: Floats, row: int, n: int, p: Floats
) -> float:
    """Best ``p`` and gain of a block whose potentials span a very wide range.

    Weights are taken relative to the marginal entry: entries further than `LINEAR_RANGE` from it
    sit at a bound, so cutting their exponents there changes nothing.
    """
    weights = np.empty(n)
    centre = nu[marginal_entry(order, lower, upper, row, n)]
    for j in range(n):
        distance = nu[j] - centre
        weights[j] = math.exp(min(max(distance, -LINEAR_RANGE), LINEAR_RANGE))
    t = box_softmax(weights, lower, upper, row, n, 1.0, p)
    return block_gain(nu, lower, upper, row, n, p, centre - math.log(t))


@kernel
def dual_value(
    costs: Floats,
    boxes: Boxes,
    potentials: Floats,
    scales: Floats,
    gradient: Floats,
    state: EntropyState,
) -> float:
    """F(nu) and its gradient; leaves transitions, weights and gains of this nu in ``state``."""
    horizon, width, actions = costs.shape
    widths, w, gains = boxes.widths, state.weights, state.gains
    lower, upper = rows(boxes.lower), rows(boxes.upper)
    p = rows(state.transitions)
    weights, order = np.empty(width), np.empty(width, np.int64)
    gradient[:] = 0.0
    value = 0.0
    for h in range(horizon):
        n = widths[h + 1]
        nu = potentials[h + 1]
        peak, total, wide = weigh_layer(nu, n, weights, order)
        top = -np.inf
        for x in range(widths[h]):
            for a in range(actions):
                row = (h * width + x) * actions + a
                if wide:
                    t = 0.0
                    gain = wide_block(nu, order, lower, upper, row, n, p)
                else:
                    t = scales[h, x, a] if scales[h, x, a] > 0.0 else 1.0 / total
                    t = box_softmax(weights, lower, upper, row, n, t, p)
                    gain = block_gain(nu, lower, upper, row, n, p, peak - math.log(t))
                gains[h, x, a] = gain
                scales[h, x, a] = t
                w[h, x, a] = gain - costs[h, x, a] - potentials[h, x]
                top = max(top, w[h, x, a])
        value += top + _normalise_layer(w[h], widths[h], actions, top)
        for x in range(widths[h]):
            for a in range(actions):
                mass = w[h, x, a]
                gradient[h, x] -= mass
                row = (h * width + x) * actions + a
                for j in range(n):
                    gradient[h + 1, j] += mass * p[row, j]
    gradient[0] = 0.0
    gradient[horizon] = 0.0
    return value


@kernel
def _normalise_layer(w: Floats, states: int, actions: int, peak: float) -> float:
    """Turn exponents into weights that sum to one; returns ln of the sum relative to ``peak``."""
    total = 0.0
    for x in range(states):
        for a in range(actions):
            w[x, a] = math.exp(w[x, a] - peak)
            total += w[x, a]
    for x in range(states):
        for a in range(actions):
            w[x, a] /= total
    return math.log(total)


@kernel
def dual_hessian(boxes: Boxes, state: EntropyState) -> None:
    """Generalised Hessian of F into ``state.system``.

    Layer h adds the covariance under w of the vectors (-e_x, p(.|x,a)) plus the mean of
    dp/dnu = diag(f) - f·f'/sum(f), with f the entries of p strictly inside their box. Adding a
    constant to a layer's potentials changes nothing: 1/n in every entry fills that null space.
    """
    widths, w = boxes.widths, state.weights
    lower, upper, p = rows(boxes.lower), rows(boxes.upper), rows(state.transitions)
    horizon, width, actions = w.shape
    diagonal, coupling = state.system.diagonal, state.system.coupling
    flow, mass, free = np.empty(width), np.empty(width), np.empty(width)
    diagonal[:] = 0.0
    coupling[:] = 0.0
    for h in range(horizon):
        n, interior = widths[h + 1], h + 1 < horizon
        target = diagonal[h + 1]
        flow[:] = 0.0
        for x in range(widths[h]):
            mass[x] = 0.0
            for a in range(actions):
                row, v = (h * width + x) * actions + a, w[h, x, a]
                mass[x] += v
                for j in range(n):
                    flow[j] += v * p[row, j]
                    coupling[h, x, j] -= v * p[row, j]
                if interior and v > 0.0:
                    _add_block(target, v, p, lower, upper, row, n, free)
        if h > 0:
            for x in range(widths[h]):
                diagonal[h, x, x] += mass[x]
                for y in range(x + 1):
                    diagonal[h, x, y] += 1.0 / widths[h] - mass[x] * mass[y]
                for j in range(n):
                    coupling[h, x, j] += mass[x] * flow[j]
        if interior:
            for i in range(n):
                for j in range(i + 1):
                    diagonal[h + 1, i, j] -= flow[i] * flow[j]


@kernel
def _add_block(
    target: Floats,
    v: float,
    p: Floats,
    lower: Floats,
    upper: Floats,
    row: int,
    n: int,
    free: Floats,
) -> None:
    """Add v·(p·p' + diag(f) - f·f'/sum(f)) of one block to a lower triangle."""
    total, count = 0.0, 0
    for j in range(n):
        free[j] = 0.0
        if lower[row, j] < p[row, j] < upper[row, j]:
            free[j] = p[row, j]
            total += free[j]
            count += 1
    for i in range(n):
        vp = v * p[row, i]
        for j in range(i + 1):
            target[i, j] += vp * p[row, j]
    if count > 1:
        for i in range(n):
            if free[i] > 0.0:
                target[i, i] += v * free[i]
                vf = v * free[i] / total
                for j in range(i + 1):
                    target[i, j] -= vf * free[j]


@kernel
def policy_and_gap(
    costs: Floats, boxes: Boxes, potentials: Floats, value: float, state: EntropyState
) -> float:
    """The policy of this nu, and primal(q) + F(nu) for the occupancy q of (policy, transitions)."""
    horizon, width, actions = costs.shape
    widths, policy = boxes.widths, state.policy
    reach, ahead = np.zeros(width), np.zeros(width)
    reach[0] = 1.0
    primal = 0.0
    for h in range(horizon):
        ahead[:] = 0.0
        for x in range(widths[h]):
            peak = -np.inf
            for a in range(actions):
                peak = max(peak, state.gains[h, x, a] - costs[h, x, a])
            total = 0.0
            for a in range(actions):
                policy[h, x, a] = math.exp(state.gains[h, x, a] - costs[h, x, a] - peak)
                total += policy[h, x, a]
            for a in range(actions):
                policy[h, x, a] /= total
                mass = reach[x] * policy[h, x, a]
                if mass > 0.0:
                    expected = 0.0
                    for j in range(widths[h + 1]):
                        flow = state.transitions[h, x, a, j]
                        ahead[j] += mass * flow
                        expected += flow * potentials[h + 1, j]
                    entropy = expected - state.gains[h, x, a]
                    primal += mass * (costs[h, x, a] + math.log(mass) + entropy)
        reach[:] = ahead
    return abs(primal + value)


@kernel
def soft_backup(
    costs: Floats, boxes: Boxes, potentials: Floats, scales: Floats, state: EntropyState
) -> None:
    """A starting point: nu(x) = ln sum over a of exp(-c(x,a) + gain(x,a)), backwards."""
    horizon, width, actions = costs.shape
    lower, upper, p = rows(boxes.lower), rows(boxes.upper), rows(state.transitions)
    weights, order = np.empty(width), np.empty(width, np.int64)
    potentials[:] = 0.0
    for h in range(horizon - 1, 0, -1):
        n = boxes.widths[h + 1]
        nu = potentials[h + 1]
        peak, total, wide = weigh_layer(nu, n, weights, order)
        for x in range(boxes.widths[h]):
            best = -np.inf
            for a in range(actions):
                row = (h * width + x) * actions + a
                if wide:
                    t = 0.0
                    gain = wide_block(nu, order, lower, upper, row, n, p)
                else:
                    t = box_softmax(weights, lower, upper, row, n, 1.0 / total, p)
                    gain = block_gain(nu, lower, upper, row, n, p, peak - math.log(t))
                scales[h, x, a] = t
                value = gain - costs[h, x, a]
                best = max(best, value) + math.log1p(math.exp(-abs(best - value)))
            potentials[h, x] = best


@kernel
def newton(
    costs: Floats, boxes: Boxes, state: EntropyState, start: float, cap: float, max_steps: int
) -> tuple[float, int]:
    """Damped semi-smooth Newton from ``state.potentials``, where F = ``start``; (gap, steps).

    The step is capped (potentials move by at most ``cap``) and damped until F decreases.
    """
    widths, system = boxes.widths, state.system
    last = costs.shape[0] - 1
    value, damping, steps = start, 1e-10, 0
    gap = policy_and_gap(costs, boxes, state.potentials, value, state)
    while gap > GOOD_GAP and steps < max_steps:
        dual_hessian(boxes, state)
        accepted, step, trial_value = False, 1.0, value
        while not accepted and damping < 1e12:
            if solve_tridiagonal(
                widths, 1, last, system, damping, 1e-13, state.gradient, state.direction
            ):
                accepted, step, trial_value = _line_search(costs, boxes, state, value, cap)
            if not accepted:
                damping = max(damping * 30.0, 1e-8)
        if not accepted:  # rounding: leave transitions and gains as they are at the potentials
            dual_value(costs, boxes, state.potentials, state.scales, state.gradient, state)
            break
        steps += 1
        state.potentials[:] = state.trial
        state.gradient[:] = state.trial_gradient
        value = trial_value
        if step == 1.0:
            damping = max(damping * 0.05, 1e-12)
        gap = policy_and_gap(costs, boxes, state.potentials, value, state)
    return gap, steps


@kernel
def _line_search(
    costs: Floats, boxes: Boxes, state: EntropyState, value: float, cap: float
) -> tuple[bool, float, float]:
    """Try up to four steps along -direction; (accepted, step, F there)."""
    widths, last = boxes.widths, costs.shape[0] - 1
    slope = 0.0
    for h in range(1, last + 1):
        for x in range(widths[h]):
            slope -= state.gradient[h, x] * state.direction[h, x]
    longest = largest(state.direction, widths, 1, last)
    steepest = largest(state.gradient, widths, 1, last)
    step = min(1.0, cap / longest) if longest > 0.0 else 1.0
    for _ in range(4):
        for h in range(1, last + 1):
            for x in range(widths[h]):
                state.trial[h, x] = state.potentials[h, x] - step * state.direction[h, x]
        trial = dual_value(costs, boxes, state.trial, state.scales, state.trial_gradient, state)
        flatter = largest(state.trial_gradient, widths, 1, last) < 0.9 * steepest
        if trial <= value + 1e-4 * step * slope or (
            flatter and trial <= value + 1e-12 * abs(value)
        ):
            return True, step, trial
        step *= 0.3
    return False, step, value


@kernel
def solve_entropy(
    costs: Floats, boxes: Boxes, state: EntropyState, warm: bool
) -> tuple[float, int]:
    """Solve from the better of two starts, then from safer ones; returns (gap, Newton steps).

    Afterwards ``state.policy`` and ``state.transitions`` are a feasible solution whose objective is
    within the gap of the optimum.
    """
    centre_costs(costs, boxes.widths)
    state.spare_scales[:] = 0.0
    soft_backup(costs, boxes, state.spare_potentials, state.spare_scales, state)
    value = dual_value(
        costs, boxes, state.spare_potentials, state.spare_scales, state.gradient, state
    )
    if warm:
        warm_value = dual_value(
            costs, boxes, state.potentials, state.scales, state.trial_gradient, state
        )
        warm = warm_value <= value
        value = min(value, warm_value)
    if warm:
        state.gradient[:] = state.trial_gradient
    else:
        state.potentials[:] = state.spare_potentials
        state.scales[:] = state.spare_scales
        value = dual_value(costs, boxes, state.potentials, state.scales, state.gradient, state)
    gap, steps = newton(costs, boxes, state, value, 50.0, 200)
    for attempt in range(3):
        if gap <= WEAK_GAP:
            break
        _restart(costs, boxes, state, attempt)
        value = dual_value(costs, boxes, state.potentials, state.scales, state.gradient, state)
        gap, more = newton(costs, boxes, state, value, 10.0 / (1 + attempt), 400)
        steps += more
    return gap, steps


@kernel
def _restart(costs: Floats, boxes: Boxes, state: EntropyState, attempt: int) -> None:
    """Where to begin again: the soft backup, zero, the soft backup of halved costs."""
    state.scales[:] = 0.0
    if attempt == 1:
        state.potentials[:] = 0.0
    else:
        scaled = costs if attempt == 0 else 0.5 * costs
        soft_backup(scaled, boxes, state.potentials, state.scales, state)


@kernel
def centre_costs(costs: Floats, widths: Integers) -> None:
    """Subtract each layer's smallest cost, in place: no change of the solution, less rounding."""
    horizon, _, actions = costs.shape
    for h in range(horizon):
        least = np.inf
        for x in range(widths[h]):
            for a in range(actions):
                least = min(least, costs[h, x, a])
        for x in range(widths[h]):
            for a in range(actions):
                costs[h, x, a] -= least
