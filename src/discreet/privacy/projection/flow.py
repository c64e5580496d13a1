"""Flow-consistent counts: what a batch of people must satisfy, used against the noise.

The support's (h, s, a) are *rows*, sorted by step: row r belongs to state ``state[r]``, the rows of
step h are ``first[h]:first[h + 1]``. Potentials are ``u[h, s]`` for h = 0..H with u[H] = 0; at
h = 0 one potential, ``u[0, 0]``, serves all start states. Counts are bounded below by ``floor``:
zero, or minus infinity for signed flows; a cell is *active* where it lies above the floor.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from discreet import _validate
from discreet._jit import kernel
from discreet._types import BoolArray, FloatArray, IntArray
from discreet.errors import InvalidInputError, SolverError
from discreet.mdp.counts import dense_of, rows_of
from discreet.privacy.projection.measurements import Measurements, inflow_visits, known
from discreet.privacy.statistics import PrivateCounts


@kernel
def flows(
    y: FloatArray,
    variance: FloatArray,
    state: IntArray,
    first: IntArray,
    floor: float,
    u: FloatArray,
    x: FloatArray,
) -> None:
    """X = max(floor, y + variance·(u_h(s) - u_{h+1}(s'))), the minimiser for fixed potentials."""
    for h in range(first.size - 1):
        for r in range(first[h], first[h + 1]):
            own = u[h, state[r]] if h > 0 else u[0, 0]
            for j in range(y.shape[1]):
                x[r, j] = max(floor, y[r, j] + variance[r] * (own - u[h + 1, j]))


@kernel
def imbalance(x: FloatArray, state: IntArray, first: IntArray, users: float, g: FloatArray) -> None:
    """Inflow minus outflow at every (h, s): the gradient of the dual."""
    g[:] = 0.0
    g[0, 0] = users
    steps = first.size - 1
    for h in range(steps):
        for r in range(first[h], first[h + 1]):
            s = state[r] if h > 0 else 0
            for j in range(x.shape[1]):
                g[h, s] -= x[r, j]
                if h + 1 < steps:
                    g[h + 1, j] += x[r, j]


@kernel
def diagonal(
    x: FloatArray,
    variance: FloatArray,
    state: IntArray,
    first: IntArray,
    floor: float,
    d: FloatArray,
) -> None:
    """Diagonal of the dual's Hessian: the weight of the active cells at every (h, s)."""
    d[:] = 0.0
    steps = first.size - 1
    for h in range(steps):
        for r in range(first[h], first[h + 1]):
            s = state[r] if h > 0 else 0
            for j in range(x.shape[1]):
                if x[r, j] > floor:
                    d[h, s] += variance[r]
                    if h + 1 < steps:
                        d[h + 1, j] += variance[r]


@kernel
def newton(
    x: FloatArray,
    variance: FloatArray,
    state: IntArray,
    first: IntArray,
    floor: float,
    ridge: FloatArray,
    g: FloatArray,
    step: FloatArray,
) -> None:
    """Solve (Laplacian of the active cells + ridge) step = g by block-tridiagonal Cholesky."""
    steps, states = first.size - 1, x.shape[1]
    factor = np.zeros((steps, states, states))
    coupling = np.zeros((steps, states, states))
    for h in range(steps):
        for s in range(states):
            step[h, s] = g[h, s]
    for h in range(steps):
        block = factor[h]
        for s in range(states):
            block[s, s] += ridge[h, s]
        for r in range(first[h], first[h + 1]):
            s = state[r] if h > 0 else 0
            for j in range(states):
                if x[r, j] > floor:
                    block[s, s] += variance[r]
                    if h + 1 < steps:
                        factor[h + 1, j, j] += variance[r]
                        coupling[h, s, j] -= variance[r]
        _cholesky(block)
        _forward_vector(block, step[h])
        if h + 1 < steps:
            _forward_matrix(block, coupling[h])
            _eliminate(coupling[h], factor[h + 1], step[h], step[h + 1])
    for h in range(steps - 1, -1, -1):
        if h + 1 < steps:
            for s in range(states):
                for j in range(states):
                    step[h, s] -= coupling[h, s, j] * step[h + 1, j]
        _backward_vector(factor[h], step[h])


@kernel
def _cholesky(a: FloatArray) -> None:
    """Lower Cholesky factor in place; a pivot lost to rounding becomes a tiny one."""
    size = a.shape[0]
    for i in range(size):
        for j in range(i + 1):
            total = a[i, j]
            for k in range(j):
                total -= a[i, k] * a[j, k]
            if i == j:
                a[i, i] = np.sqrt(max(total, 1e-300))
            else:
                a[i, j] = total / a[j, j]


@kernel
def _forward_vector(lower: FloatArray, b: FloatArray) -> None:
    for i in range(b.size):
        for k in range(i):
            b[i] -= lower[i, k] * b[k]
        b[i] /= lower[i, i]


@kernel
def _backward_vector(lower: FloatArray, b: FloatArray) -> None:
    for i in range(b.size - 1, -1, -1):
        for k in range(i + 1, b.size):
            b[i] -= lower[k, i] * b[k]
        b[i] /= lower[i, i]


@kernel
def _forward_matrix(lower: FloatArray, b: FloatArray) -> None:
    size = b.shape[0]
    for i in range(size):
        for k in range(i):
            if lower[i, k] != 0.0:
                for j in range(size):
                    b[i, j] -= lower[i, k] * b[k, j]
        for j in range(size):
            b[i, j] /= lower[i, i]


@kernel
def _eliminate(
    coupling: FloatArray, block: FloatArray, solved: FloatArray, rest: FloatArray
) -> None:
    """Schur complement of one block in the next: block -= C'C, rest -= C'solved."""
    size = block.shape[0]
    for k in range(size):
        for i in range(size):
            c = coupling[k, i]
            if c != 0.0:
                rest[i] -= c * solved[k]
                for j in range(i + 1):
                    block[i, j] -= c * coupling[k, j]


# Loops, not array expressions: what these compare and allocate is compiled for seconds.


@kernel
def _scale(values: FloatArray, factor: float, more: float) -> None:
    """``values`` times a factor, and ``more``, in place."""
    for h in range(values.shape[0]):
        for s in range(values.shape[1]):
            values[h, s] = values[h, s] * factor + more


@kernel
def _inner(left: FloatArray, right: FloatArray) -> float:
    total = 0.0
    for h in range(left.shape[0]):
        for s in range(left.shape[1]):
            total += left[h, s] * right[h, s]
    return total


@kernel
def _largest(values: FloatArray) -> float:
    """In absolute value; not a number if one of them is none."""
    most = 0.0
    for h in range(values.shape[0]):
        for s in range(values.shape[1]):
            size = abs(values[h, s])
            if size > most or np.isnan(size):
                most = size
    return most


@kernel
def _move(u: FloatArray, length: float, step: FloatArray, out: FloatArray) -> None:
    """``out`` = u + length·step; ``u`` has one row more, which stays."""
    for h in range(step.shape[0]):
        for s in range(step.shape[1]):
            out[h, s] = u[h, s] + length * step[h, s]
    last = step.shape[0]
    for s in range(step.shape[1]):
        out[last, s] = u[last, s]


@kernel
def project_rows(
    y: FloatArray,
    variance: FloatArray,
    state: IntArray,
    first: IntArray,
    users: float,
    tolerance: float,
    floor: float,
    x: FloatArray,
) -> tuple[float, int]:
    """Newton's method on the dual with a line search; returns (largest imbalance, iterations).

    The dual is concave and piecewise quadratic, so Newton steps with an exact line search end at
    its maximum after finitely many active sets.
    """
    steps = first.size - 1
    u = np.zeros((steps + 1, y.shape[1]))
    trial = np.empty_like(u)
    g = np.zeros((steps, y.shape[1]))
    moved = np.empty_like(g)
    step = np.zeros((steps, y.shape[1]))
    ridge = np.empty_like(g)
    x[:] = 1.0  # start with every cell active: the projection onto the flow equations alone
    imbalance(y, state, first, users, g)
    for iteration in range(200):
        diagonal(x, variance, state, first, floor, ridge)
        _scale(ridge, 1e-10, 1e-8 * np.max(variance))
        newton(x, variance, state, first, floor, ridge, g, step)
        if iteration > 0:
            slope = _inner(g, step)
            length = _line_search(
                y, variance, state, first, floor, users, slope, u, step, trial, x, moved
            )
        else:
            length = 1.0
        _move(u, length, step, u)
        flows(y, variance, state, first, floor, u, x)
        imbalance(x, state, first, users, g)
        worst = _largest(g)
        if worst <= tolerance:
            break
    return worst, iteration + 1


@kernel
def next_length(low: float, high: float, slope_low: float, slope_high: float) -> float:
    """Where a line through both slopes is zero, at least a tenth away from both ends."""
    guess = low + (high - low) * slope_low / (slope_low - slope_high)
    return min(max(guess, low + 0.1 * (high - low)), high - 0.1 * (high - low))


@kernel
def _line_search(
    y: FloatArray,
    variance: FloatArray,
    state: IntArray,
    first: IntArray,
    floor: float,
    users: float,
    slope: float,
    u: FloatArray,
    step: FloatArray,
    trial: FloatArray,
    x: FloatArray,
    g: FloatArray,
) -> float:
    """A length at which the dual's slope along ``step`` has fallen close to zero from above."""
    low, high = 0.0, 1.0
    length = 1.0
    slope_low, slope_high = slope, -1.0
    for _ in range(40):
        _move(u, length, step, trial)
        flows(y, variance, state, first, floor, trial, x)
        imbalance(x, state, first, users, g)
        here = _inner(g, step)
        if abs(here) <= 0.1 * slope or (length == 1.0 and here >= 0.0):
            return length
        if here > 0.0:
            low, slope_low = length, here
        else:
            high, slope_high = length, here
        length = next_length(low, high, slope_low, slope_high)
    return low


# Flow-consistent counts: what a batch of people must satisfy, used against the noise.
#
# In a batch of n users that run a public policy, every user is in exactly one state at each step:
# the first layer sums to n and lies in the start states, what flows into (h, s) flows out of it,
# and no count is negative. The noisy transition counts y satisfy none of this. The nearest counts
# that do,
#
#     minimise  sum (x - y)^2 / variance   subject to
#     x >= 0,   sum of x at step 0 = n,   inflow(h, s) = outflow(h, s)  for h = 1..H-1,
#
# are computed over the cells that the policy can play; all others are exactly zero. Visits follow
# from the flow, so they need not be released. Post-processing: it costs no privacy. What a release
# holds besides (another measurement of the visits, users who left the policy) joins in:
# `network`. Without transitions of the last step, its visits are what flows in.
#
# With one potential u_h(s) per constraint (u_H = 0) the minimiser is x(h,s,a,s') = max(0, y +
# variance·(u_h(s) - u_{h+1}(s'))), and the potentials maximise a concave, piecewise quadratic dual
# whose gradient is inflow minus outflow and whose Hessian is a block-tridiagonal graph Laplacian.
# Newton's method with a line search takes 1 to 25 iterations of O(H·S^3) (direct), or, with many
# states, of a time that grows with the cells that carry flow (`sparse_flow`). Because x has the
# form above by construction, it satisfies every optimality condition except the flow equations; so
# their residual is a complete certificate, and it is checked in every call.


NOTHING_ELSE = Measurements()
DIRECT_STATES = 64
"""Up to this many states the Newton systems are factorised; beyond, only cells that carry flow are
worked on, by conjugate gradients."""


class Flow(NamedTuple):
    """Flow-consistent counts with the certificate of the solve.

    Attributes:
        transitions: ``[H, S, A, S]``, zero outside the support, or ``[R, S]`` if the noisy
            counts were given as rows.
        visits: ``[H, S, A]`` or ``[R]``.
        imbalance: the largest violation of a flow equation, in users.
        iterations: Newton steps.
        dropped_out: users who have left the policy by each step, if more have than noise explains.
    """

    transitions: FloatArray
    visits: FloatArray
    imbalance: float
    iterations: int
    dropped_out: FloatArray | None = None


def consistent_flow(
    transitions: ArrayLike,
    *,
    users: float,
    support: BoolArray | None = None,
    start: BoolArray | None = None,
    variance: ArrayLike = 1.0,
    signed: bool = False,
    measurements: Measurements = NOTHING_ELSE,
) -> Flow:
    """Project noisy counts of one batch (or of a sum of batches) onto consistent flows.

    Args:
        transitions: noisy counts ``[H, S, A, S]``, or the rows ``[R, S]`` that ``support`` marks.
        users: how many users they come from.
        support: ``bool[H, S, A]``, the cells their policies can play (all by default).
        start: ``bool[S]``, the states an episode can begin in (all by default).
        variance: noise variance per counter, a number or ``[H, S, A]``; only ratios matter.
        signed: leave out x >= 0. The result is then linear in the data: unbiased, and safe to add
            up over batches. It takes transitions of all steps, and no other measurement.
        measurements: what else was released: another measurement of the visits (in the form of the
            transitions), users who left, or no transitions of the last step (`measurements`).

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
    found = _projected(_Rows(given, spread, np.nonzero(cells), kept.shape[0]), users, signed, other)
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


class _Rows(NamedTuple):
    """Rows that can carry flow: counts, variances, (h, s, a), and the number of steps."""

    counts: FloatArray
    variance: FloatArray
    where: tuple[IntArray, ...]
    horizon: int


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


def _projected(rows: _Rows, users: float, signed: bool, measurements: Measurements) -> Flow:
    """The projection of what can carry flow, by the solver that its measurements need."""
    if measurements.visits is None and measurements.dropped_out is None:
        return _transitions_only(rows, users, signed, measurements)
    if signed:
        raise InvalidInputError(
            "Expected transitions alone for a signed flow, got visits or users who left; drop "
            "those measurements, or signed=True."
        )
    from discreet.privacy.projection.network import project_measurements

    found = project_measurements(
        rows.counts, rows.variance, rows.where, users, rows.horizon, measurements
    )
    _certify(found.imbalance, _tolerance(rows.variance, users), found.iterations)
    return Flow(
        found.transitions, found.visits, found.imbalance, found.iterations, found.dropped_out
    )


def _transitions_only(rows: _Rows, users: float, signed: bool, measurements: Measurements) -> Flow:
    """Without transitions of the last step, the flow of the steps before it ends there."""
    if measurements.last_transitions:
        moved, imbalance, iterations = project(*rows[:3], users, signed)
        return Flow(moved, moved.sum(axis=-1), imbalance, iterations)
    steps = rows.where[0]
    before = steps < rows.horizon - 1
    if not before.any():
        raise InvalidInputError(
            "Expected some measurement of the visits of a single step: its transitions, or visits."
        )
    earlier = tuple(axis[before] for axis in rows.where)
    solved, imbalance, iterations = project(
        rows.counts[before], rows.variance[before], earlier, users, signed
    )
    moved = _spread_out(solved, before)
    return Flow(moved, inflow_visits(moved, rows.where, rows.horizon), imbalance, iterations)


def _spread_out(rows: FloatArray, inside: BoolArray) -> FloatArray:
    out = np.zeros((inside.size, *rows.shape[1:]))
    out[inside] = rows
    return out


def project(
    y: FloatArray,
    variance: FloatArray,
    rows: tuple[IntArray, ...],
    users: float,
    signed: bool,
) -> tuple[FloatArray, float, int]:
    """The projection of compressed rows ``y[R, S]`` of the support in ``rows``."""
    steps, state = rows[0], np.ascontiguousarray(rows[1])  # one layout: kernels compile once
    first = np.searchsorted(steps, np.arange(steps[-1] + 2))
    deviation, tolerance = float(np.sqrt(variance.max())), _tolerance(variance, users)
    solved, floor, weight = np.empty_like(y), -np.inf if signed else 0.0, variance / variance.max()
    if y.shape[1] <= DIRECT_STATES:
        worst, iterations = project_rows(
            y, weight, state, first, float(users), tolerance, floor, solved
        )
    else:
        from discreet.privacy.projection.sparse_flow import Rows, project_large

        support = Rows(weight, np.where(steps > 0, state, 0), first)
        worst, iterations = project_large(
            y, support, float(users), tolerance, deviation, floor, solved
        )
    _certify(worst, tolerance, iterations)
    return solved, float(worst), int(iterations)


def _tolerance(variance: FloatArray, users: float) -> float:
    """The largest imbalance that a solution may have."""
    return max(1e-6 * float(np.sqrt(variance.max())), 1e-12 * users)


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
