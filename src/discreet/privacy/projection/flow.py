"""Flow-consistent counts: what a batch of people must satisfy, used against the noise.

In a batch of n users that run a public policy, every user is in exactly one state at each step:
the first layer sums to n and lies in the start states, what flows into (h, s) flows out of it,
and no count is negative. The noisy transition counts y satisfy none of this. The nearest counts
that do,

    minimise  sum (x - y)²/variance   subject to
    x >= 0,   sum of x at step 0 = n,   inflow(h, s) = outflow(h, s)  for h = 1..H-1,

are computed over the cells that the policy can play; all others are exactly zero. Visits follow
from the flow, so they need not be released. Post-processing: it costs no privacy.

**More than one measurement.** A release can hold, besides y, a second measurement w of the visits
of every row (s, a) of a step, and the noisy number l of users who have left the policy by each
step. Then the sum above gets the terms

    sum (v - w)²/(visit variance) + sum (L - l)²/(left variance)

over visits v and users L who have left, nonnegative too, where the inflow of (h, s) is the sum of v
over its rows plus the users who leave there, v is the sum of x over its row, and L_h is L_{h-1}
plus all who leave at step h. How many leave in each state is not measured: these numbers have a
variance of `FREE` times that of a counter, around what inflow and outflow suggest. Without
transitions of the last step its rows are where flow ends, measured by w; without w either, the
visits there are the inflow of their state, in equal parts if it has several rows.

**A network.** All of this is least squares on a network in which flow runs from node 0, where all
users enter, to the *ground*. Nodes are the states of every step (one for all start states), with a
second measurement every row as well, between its state and the next states, and with users who left
one node for each step. The cells of a row are edges from the node of the row to the S nodes of the
next states; they make up nearly all of the network and are never listed. The few others (visits,
who leaves where, who has left) are `Edges`. Tails come before heads, and the last S nodes are the
ground, so that every row leads to S nodes, also at the end.

**Solution.** With one potential u per node (0 on the ground) the minimiser is x = max(0, y +
variance·(u(tail) - u(head))). The potentials maximise a concave, piecewise quadratic dual whose
gradient is inflow minus outflow and whose Hessian is the Laplacian of the *active* edges, those
that carry flow. So Newton's method with a line search ends after finitely many active sets; it
takes 1 to 25 steps. The system of a small network is factorised (Cholesky inside the envelope: in a
layered network the neighbours of a node are near it), that of a large one is solved by conjugate
gradients over the active edges alone. Sums run in one fixed order: results are the same on any
machine. Because x has the form above by construction, it satisfies every optimality condition
except the flow equations; so their residual is a complete certificate, checked in every call.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from discreet import _validate
from discreet._jit import kernel
from discreet._types import BoolArray, FloatArray, Int32Array, IntArray
from discreet.errors import InvalidInputError, SolverError
from discreet.mdp.counts import dense_of, rows_of
from discreet.privacy.projection.measurements import Measurements, inflow_visits, known
from discreet.privacy.statistics import PrivateCounts

NOTHING_ELSE = Measurements()
FREE = 1e4
"""Variance of the users who leave in one state, in variances of a transition counter."""
DIRECT_NODES = 400
"""Up to this many nodes Newton systems are factorised."""
_MOST_ITERATIONS = 200


class Edges(NamedTuple):
    """Edges between numbered nodes; variances are relative to the largest of a counter."""

    tail: IntArray
    head: IntArray
    measured: FloatArray
    variance: FloatArray


class Network(NamedTuple):
    """What is measured, on which flow.

    Attributes:
        counts: ``[R, S]``: row r measures the flow from node ``tail[r]`` to each of the nodes
            ``head[r], ..., head[r] + S - 1``.
        variance: ``[R]``, relative, of a counter of each row.
        tail: ``[R]``.
        head: ``[R]``.
        edges: all others.
        ground: the first node of the ground, and so the number of the others.
    """

    counts: FloatArray
    variance: FloatArray
    tail: IntArray
    head: IntArray
    edges: Edges
    ground: int


@kernel
def flows(network: Network, u: FloatArray, x: FloatArray, other: FloatArray) -> None:
    """The minimiser for these potentials, of the rows ``x[R, S]`` and of the other edges."""
    counts, variance, tail, head, edges, _ = network
    for r in range(counts.shape[0]):
        for j in range(counts.shape[1]):
            x[r, j] = max(0.0, counts[r, j] + variance[r] * (u[tail[r]] - u[head[r] + j]))
    for e in range(other.size):
        rise = u[edges.tail[e]] - u[edges.head[e]]
        other[e] = max(0.0, edges.measured[e] + edges.variance[e] * rise)


@kernel
def imbalance(network: Network, users: float, u: FloatArray, g: FloatArray) -> float:
    """Inflow minus outflow at every node but the ground, and the largest: the dual's gradient."""
    counts, variance, tail, head, edges, ground = network
    g[:] = 0.0
    g[0] = users
    for r in range(counts.shape[0]):
        row, ahead, into = counts[r], u[head[r] :], g[head[r] :]
        own, scale, out = u[tail[r]], variance[r], 0.0
        for j in range(row.size):
            x = max(0.0, row[j] + scale * (own - ahead[j]))
            into[j] += x
            out += x
        g[tail[r]] -= out
    for e in range(edges.tail.size):
        start, end = edges.tail[e], edges.head[e]
        x = max(0.0, edges.measured[e] + edges.variance[e] * (u[start] - u[end]))
        g[start] -= x
        g[end] += x
    worst = 0.0
    for i in range(g.size):
        if i >= ground:
            g[i] = 0.0
        elif not abs(g[i]) <= worst:
            worst = abs(g[i])
    return worst


@kernel
def active(
    network: Network, u: FloatArray, tail: Int32Array, head: Int32Array, weight: FloatArray
) -> int:
    """Write the edges that carry flow, as far as there is room; returns how many they are."""
    counts, variance, first, last, edges, _ = network
    n = 0
    for r in range(counts.shape[0]):
        row, ahead, own, scale = counts[r], u[last[r] :], u[first[r]], variance[r]
        for j in range(row.size):
            if row[j] + scale * (own - ahead[j]) > 0.0:
                if n < tail.size:
                    tail[n], head[n], weight[n] = first[r], last[r] + j, scale
                n += 1
    for e in range(edges.tail.size):
        rise = u[edges.tail[e]] - u[edges.head[e]]
        if edges.measured[e] + edges.variance[e] * rise > 0.0:
            if n < tail.size:
                tail[n], head[n], weight[n] = edges.tail[e], edges.head[e], edges.variance[e]
            n += 1
    return n


@kernel
def diagonal(tail: Int32Array, head: Int32Array, weight: FloatArray, d: FloatArray) -> None:
    """Diagonal of the Laplacian of these edges."""
    d[:] = 0.0
    for e in range(weight.size):
        d[tail[e]] += weight[e]
        d[head[e]] += weight[e]


@kernel
def envelope(network: Network) -> IntArray:
    """The first neighbour of every node before it (or itself): where its row of a matrix begins."""
    counts, _, tail, head, edges, ground = network
    first = np.arange(ground)
    for r in range(counts.shape[0]):
        for j in range(counts.shape[1] if head[r] < ground else 0):
            first[head[r] + j] = min(first[head[r] + j], tail[r])
    for e in range(edges.tail.size):
        if edges.head[e] < ground:
            first[edges.head[e]] = min(first[edges.head[e]], edges.tail[e])
    return first


@kernel
def factorised(
    tail: Int32Array,
    head: Int32Array,
    weight: FloatArray,
    ridge: FloatArray,
    first: IntArray,
    step: FloatArray,
) -> None:
    """Solve (Laplacian of these edges + ridge) step = g, where ``step`` holds g at first.

    Entry (i, j) of the Cholesky factor stands at ``row[i] + j``, for j from ``first[i]`` to i.
    """
    ground = first.size
    row, size = np.empty(ground, np.int64), 0
    for i in range(ground):
        row[i] = size - first[i]
        size += i + 1 - first[i]
    a = np.zeros(size)
    for i in range(ground):
        a[row[i] + i] = ridge[i]
    for e in range(weight.size):
        i, j = head[e], tail[e]
        a[row[j] + j] += weight[e]
        if i < ground:
            a[row[i] + i] += weight[e]
            a[row[i] + j] -= weight[e]
    for i in range(ground):
        for j in range(first[i], i):
            left = max(first[i], first[j])
            total = a[row[i] + j] - _dot(a[row[i] + left : row[i] + j], a[row[j] + left :])
            a[row[i] + j] = total / a[row[j] + j]
        own = a[row[i] + first[i] : row[i] + i]
        # A pivot lost to rounding becomes a tiny one.
        a[row[i] + i] = np.sqrt(max(a[row[i] + i] - _dot(own, own), 1e-300))
        step[i] = (step[i] - _dot(own, step[first[i] :])) / a[row[i] + i]
    for i in range(ground - 1, -1, -1):
        step[i] /= a[row[i] + i]
        for j in range(first[i], i):
            step[j] -= a[row[i] + j] * step[i]


@kernel
def conjugate_gradients(
    tail: Int32Array,
    head: Int32Array,
    weight: FloatArray,
    ridge: FloatArray,
    scale: FloatArray,
    ground: int,
    step: FloatArray,
) -> None:
    """As `factorised`, to a percent; ``scale`` is the diagonal of the system."""
    residual, product, direction = step.copy(), np.empty_like(step), step / scale
    step[:] = 0.0
    rho = _dot(residual, direction)
    goal = 1e-4 * rho
    for _ in range(500):
        if rho <= goal:
            break
        product[:] = ridge * direction
        for e in range(weight.size):
            flow = weight[e] * (direction[tail[e]] - direction[head[e]])
            product[tail[e]] += flow
            product[head[e]] -= flow
        product[ground:] = 0.0
        alpha = rho / _dot(direction, product)
        for i in range(step.size):
            step[i] += alpha * direction[i]
            residual[i] -= alpha * product[i]
            product[i] = residual[i] / scale[i]
        fresh = _dot(residual, product)
        for i in range(step.size):
            direction[i] = product[i] + (fresh / rho) * direction[i]
        rho = fresh


@kernel
def _dot(a: FloatArray, b: FloatArray) -> float:
    """The inner product with the beginning of b; four partial sums keep the processor busy."""
    one = two = three = four = 0.0
    whole = a.size - a.size % 4
    for i in range(0, whole, 4):
        one += a[i] * b[i]
        two += a[i + 1] * b[i + 1]
        three += a[i + 2] * b[i + 2]
        four += a[i + 3] * b[i + 3]
    for i in range(whole, a.size):
        one += a[i] * b[i]
    return (one + two) + (three + four)


@kernel
def climb(
    network: Network, users: float, tolerance: float, direct: bool, u: FloatArray
) -> tuple[float, int]:
    """Newton's method on the dual, from the potentials ``u``, which it changes.

    Returns the largest imbalance of a node and the number of steps.
    """
    g, step = np.empty_like(u), np.empty_like(u)
    first = envelope(network) if direct else np.empty(0, np.int64)
    room = network.edges.tail.size + (network.counts.size if direct else 1 << 18)
    tail, head, weight = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room)
    scale, ridge = np.empty_like(u), np.empty_like(u)
    worst, iterations = imbalance(network, users, u, g), 0
    while not worst <= tolerance and iterations < _MOST_ITERATIONS:
        n = active(network, u, tail, head, weight)
        if n > tail.size:
            more = n + n // 4
            tail, head, weight = np.empty(more, np.int32), np.empty(more, np.int32), np.empty(more)
            n = active(network, u, tail, head, weight)
        diagonal(tail[:n], head[:n], weight[:n], scale)
        for i in range(u.size):
            step[i], ridge[i] = g[i], 1e-10 * scale[i] + 1e-8
            scale[i] += ridge[i]
        if direct:
            factorised(tail[:n], head[:n], weight[:n], ridge, first, step)
        else:
            conjugate_gradients(tail[:n], head[:n], weight[:n], ridge, scale, network.ground, step)
        worst = _search(network, users, _dot(g, step), step, u, g)
        iterations += 1
    return worst, iterations


@kernel
def _search(
    network: Network, users: float, slope: float, step: FloatArray, u: FloatArray, g: FloatArray
) -> float:
    """Move ``u`` along ``step`` to where the dual's slope has fallen close to zero from above.

    ``g`` becomes the gradient there; returns the largest imbalance.
    """
    low, high, length = 0.0, 1.0, 1.0
    slope_low, slope_high = slope, -1.0
    start = u.copy()
    for _ in range(40):
        for i in range(u.size):
            u[i] = start[i] + length * step[i]
        worst = imbalance(network, users, u, g)
        here = _dot(g, step)
        if abs(here) <= 0.1 * slope or (length == 1.0 and here >= 0.0):
            return worst
        if here > 0.0:
            low, slope_low = length, here
        else:
            high, slope_high = length, here
        # Where a line through both slopes is zero, at least a tenth away from both ends.
        guess = low + (high - low) * slope_low / (slope_low - slope_high)
        length = min(max(guess, low + 0.1 * (high - low)), high - 0.1 * (high - low))
    for i in range(u.size):  # still uphill: the dual has grown
        u[i] = start[i] + low * step[i]
    return imbalance(network, users, u, g)


class _Nodes(NamedTuple):
    """Numbers of the nodes; what has none is -1 and belongs to the ground.

    Attributes:
        states: ``[H + 1, S]``.
        rows: ``[R]``.
        dropped_out: ``[steps]``.
        numbered: how many have one.
    """

    states: IntArray
    rows: IntArray
    dropped_out: IntArray
    numbered: int


def _numbered(
    rows: tuple[IntArray, ...], size: int, horizon: int, measurements: Measurements
) -> _Nodes:
    """Step by step: rows, if visits are measured as well, then the next states."""
    steps, state, _ = rows
    twice, gone = measurements.visits is not None, measurements.dropped_out
    moving = horizon if measurements.last_transitions else horizon - 1
    states, own = np.full((horizon + 1, size), -1), np.full(len(steps), -1)
    states[0], count = 0, 1
    for h in range(moving):
        here = np.flatnonzero(steps == h)
        own[here] = count + np.arange(here.size) if twice else states[h, state[here]]
        count += here.size if twice else 0
        if h + 1 < (horizon if twice else moving):
            states[h + 1] = count + np.arange(size)
            count += size
    left = count + np.arange(0 if gone is None else len(gone))
    return _Nodes(states, own, left, count + left.size)


def network_of(
    counts: FloatArray,
    variance: FloatArray,
    rows: tuple[IntArray, ...],
    horizon: int,
    measurements: Measurements,
) -> Network:
    """The network of the rows ``counts[R, S]`` at the (h, s, a) in ``rows``, sorted by step."""
    steps, state, _ = rows
    size, scale = counts.shape[1], float(variance.max())
    nodes = _numbered(rows, size, horizon, measurements)
    own, moved = nodes.states[steps, state], steps < horizon - (not measurements.last_transitions)
    tail, head = nodes.rows[moved], nodes.states[steps[moved] + 1, 0]
    parts = [(own[:0], own[:0], variance[:0], variance[:0])]
    if measurements.visits is not None:
        spread = np.full(own.size, measurements.visit_variance / scale)
        parts.append((own, nodes.rows, measurements.visits, spread))
    if measurements.dropped_out is not None and measurements.dropped_out_variance is not None:
        out = counts.sum(axis=1) if measurements.visits is None else measurements.visits
        missing = np.zeros(nodes.numbered + 1)  # the last one is the ground's
        np.add.at(missing, nodes.states[steps[moved] + 1], counts[moved])
        np.subtract.at(missing, own, out)
        missing[0] = 0.0  # who does not even begin is in the first count of those who left
        for h, node in enumerate(nodes.dropped_out):
            leaving = np.unique(nodes.states[h][nodes.states[h] >= 0])
            suggested = np.maximum(missing[leaving], 0.0)
            parts.append(
                (leaving, np.full_like(leaving, node), suggested, np.full(leaving.size, FREE))
            )
        parts.append(
            (
                nodes.dropped_out,
                np.append(nodes.dropped_out[1:], -1),
                measurements.dropped_out,
                measurements.dropped_out_variance / scale,
            )
        )
    start, end, measured, spread = (np.concatenate(part) for part in zip(*parts, strict=True))
    ground = nodes.numbered
    return Network(
        np.ascontiguousarray(counts[moved]),
        variance[moved] / scale,
        tail,
        np.where(head < 0, ground, head),
        Edges(start, np.where(end < 0, ground, end), measured, spread),
        ground,
    )


class Flow(NamedTuple):
    """Flow-consistent counts.

    Attributes:
        transitions: ``[H, S, A, S]``, zero outside the support, or ``[R, S]`` if the noisy
            counts were given as rows.
        visits: ``[H, S, A]`` or ``[R]``.
        dropped_out: users who have left the policy by each step, if more have than noise explains.
    """

    transitions: FloatArray
    visits: FloatArray
    dropped_out: FloatArray | None = None


def consistent_flow(
    transitions: ArrayLike,
    *,
    users: float,
    support: BoolArray | None = None,
    start: BoolArray | None = None,
    variance: ArrayLike = 1.0,
    measurements: Measurements = NOTHING_ELSE,
) -> Flow:
    """Project noisy counts of one batch (or of a sum of batches) onto consistent flows.

    Args:
        transitions: noisy counts ``[H, S, A, S]``, or the rows ``[R, S]`` that ``support`` marks.
        users: how many users they come from.
        support: ``bool[H, S, A]``, the cells their policies can play (all by default).
        start: ``bool[S]``, the states an episode can begin in (all by default).
        variance: noise variance per counter, a number or ``[H, S, A]``; only ratios matter.
        measurements: what else was released: another measurement of the visits (in the form of the
            transitions), users who left, or no transitions of the last step.

    Raises:
        SolverError: the certificate was missed (nothing is returned).

    >>> noisy = np.zeros((2, 2, 1, 2))
    >>> noisy[0, 0, 0] = [7, 1]
    >>> noisy[1, :, 0] = [[5, 3], [-2, 0]]
    >>> flow = consistent_flow(noisy, users=8, start=np.array([True, False]))
    >>> flow.visits[..., 0].round(3).tolist()
    [[8.0, 0.0], [7.429, 0.571]]
    """
    noisy = np.asarray(transitions, dtype=np.float64)
    _validate.positive(users=users)
    kept = _kept(noisy, support)
    y = rows_of(noisy, kept) if noisy.ndim == 4 else noisy
    cells = _cells(kept, start)
    inside = cells[kept]
    spread = np.broadcast_to(np.asarray(variance, np.float64), cells.shape)[cells]
    if not (np.isfinite(spread).all() and (spread > 0).all()):
        raise InvalidInputError("Expected variance > 0 and finite in every cell of the support.")
    given = y if inside.all() else y[inside]
    if not np.isfinite(given).all():
        raise InvalidInputError("Expected finite counts, got NaN or infinity.")
    other = _other_measurements(measurements, kept, inside)
    found = _projected(given, spread, np.nonzero(cells), kept.shape[0], float(users), other)
    if not inside.all():
        found = found._replace(
            transitions=_spread_out(found.transitions, inside),
            visits=_spread_out(found.visits, inside),
        )
    if noisy.ndim == 2:
        return found
    return found._replace(
        transitions=dense_of(found.transitions, kept), visits=dense_of(found.visits, kept)
    )


def released_flow(
    counts: PrivateCounts, start: BoolArray, chosen: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Transitions ``[R, S]`` and visits ``[R]`` of a release on its support, made consistent.

    Exact counts are consistent as they are. Where nothing tells the last step's visits of a row but
    what flows into its state, actions are taken as often as the policy says.

    Args:
        counts: of one batch.
        start: ``bool[S]``, the states an episode can begin in.
        chosen: ``[R]``, how likely the policy takes each row's action; None: actions that it can
            take in a state are taken equally often.
    """
    transitions = np.asarray(counts.row_transitions)
    if counts.noise_variance["transitions"] > 0:
        found = consistent_flow(
            transitions,
            users=counts.users,
            support=counts.support,
            start=start,
            variance=counts.noise_variance["transitions"],
            measurements=Measurements.of(counts),
        )
        transitions, visits = found.transitions, found.visits
    elif counts.row_visits is not None:
        visits = counts.row_visits
    elif counts.last_transitions:
        visits = transitions.sum(axis=-1)
    else:
        rows = np.nonzero(counts.support)
        visits = inflow_visits(transitions, rows, len(counts.support))
    if chosen is not None and counts.row_visits is None and not counts.last_transitions:
        steps, states, _ = np.nonzero(counts.support)
        last = steps == len(counts.support) - 1
        arrived = transitions[steps == len(counts.support) - 2].sum(axis=0)
        visits[last] = arrived[states[last]] * chosen[last]
    return transitions, visits


def _other_measurements(
    measurements: Measurements, kept: BoolArray, inside: BoolArray
) -> Measurements:
    if measurements.visits is not None:
        visits = np.asarray(measurements.visits, np.float64)
        visits = visits[kept] if visits.ndim == 3 else visits
        if visits.shape != inside.shape or not np.isfinite(visits).all():
            raise InvalidInputError(
                f"Expected the visits of {inside.size} rows of the support, all finite, got shape "
                f"{visits.shape}."
            )
        _validate.positive(visit_variance=measurements.visit_variance)
        measurements = measurements._replace(visits=visits)
    return known(measurements, inside)


def _projected(
    counts: FloatArray,
    variance: FloatArray,
    rows: tuple[IntArray, ...],
    horizon: int,
    users: float,
    measurements: Measurements,
) -> Flow:
    """The projection of the rows that can carry flow, at the (h, s, a) in ``rows``."""
    if horizon == 1 and measurements.visits is None and not measurements.last_transitions:
        raise InvalidInputError(
            "Expected some measurement of the visits of a single step: its transitions, or visits."
        )
    network = network_of(counts, variance, rows, horizon, measurements)
    deviation, u = float(np.sqrt(variance.max())), np.zeros(network.ground + counts.shape[1])
    goal = max(1e-9 * deviation, 1e-12 * users)
    worst, iterations = climb(network, users, goal, network.ground <= DIRECT_NODES, u)
    _certify(worst, goal, iterations)
    moved, other = np.empty_like(network.counts), np.empty_like(network.edges.measured)
    flows(network, u, moved, other)
    transitions = np.zeros_like(counts)
    transitions[: len(moved)] = moved  # rows are sorted by step
    if measurements.visits is not None:
        visits = other[: len(counts)]
    elif measurements.last_transitions:
        visits = transitions.sum(axis=1)
    else:
        visits = inflow_visits(transitions, rows, horizon)
    gone = measurements.dropped_out
    dropped_out = None if gone is None else other[other.size - len(gone) :]
    return Flow(transitions, visits, dropped_out)


def _spread_out(rows: FloatArray, inside: BoolArray) -> FloatArray:
    out = np.zeros((inside.size, *rows.shape[1:]))
    out[inside] = rows
    return out


def _certify(worst: float, tolerance: float, iterations: int) -> None:
    if not worst <= tolerance:
        raise SolverError(
            f"The flow projection stopped with an imbalance of {worst:.3g} users after "
            f"{iterations} iterations; the certificate asks for {tolerance:.3g}. On large problems "
            "this happens with far fewer users than noise, where nothing can be learnt: ask for a "
            "batch of more users, or a problem of fewer states."
        )


def _kept(noisy: FloatArray, support: BoolArray | None) -> BoolArray:
    """``bool[H, S, A]``, the rows that the noisy counts hold or that are taken of them."""
    if noisy.ndim == 2 and support is not None:
        kept = np.asarray(support, bool)
        if kept.ndim != 3 or noisy.shape != (kept.sum(), kept.shape[1]):
            raise InvalidInputError(
                f"Expected the {kept.sum()} rows of support, got transitions of shape "
                f"{noisy.shape} and support of shape {kept.shape}."
            )
        return kept
    if noisy.ndim != 4 or noisy.shape[1] != noisy.shape[3] or 0 in noisy.shape:
        raise InvalidInputError(f"Expected transitions [H, S, A, S], got shape {noisy.shape}.")
    kept = np.ones(noisy.shape[:3], bool) if support is None else np.asarray(support, bool)
    if kept.shape != noisy.shape[:3]:
        raise InvalidInputError(
            f"Expected support of shape {noisy.shape[:3]}, got shape {kept.shape}."
        )
    return kept


def _cells(kept: BoolArray, start: BoolArray | None) -> BoolArray:
    """The rows that can carry flow: those kept, at the first step in start states only."""
    cells = kept
    if start is not None:
        cells = kept.copy()
        cells[0] &= np.asarray(start, bool)[:, None]
    if not cells[1:].any(axis=2).all() or not cells[0].any():
        raise InvalidInputError("Expected an action of the support in every state of every step.")
    return cells
