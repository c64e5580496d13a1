"""Flow-consistent counts: what a batch of people must satisfy, used against the noise.

In a batch of n users that run a public policy, every user is in exactly one state at each step: the
first layer sums to n and lies in the start states, what flows into (h, s) flows out of it, and no
count is negative. The noisy transition counts y satisfy none of this. The nearest counts that do,

    minimise  sum (x - y)^2 / variance   subject to
    x >= 0,   sum of x at step 0 = n,   inflow(h, s) = outflow(h, s)  for h = 1..H-1,

are computed over the cells that the policy can play; all others are exactly zero. Visits follow
from the flow, so they need not be released. Post-processing: it costs no privacy. What a release
holds besides (another look at the visits, users who left the policy) joins in: `batch_network`.
Without transitions of the last step, its visits are what flows in.

With one potential u_h(s) per constraint (u_H = 0) the minimiser is
x(h,s,a,s') = max(0, y + variance·(u_h(s) - u_{h+1}(s'))), and the potentials maximise a concave,
piecewise quadratic dual whose gradient is inflow minus outflow and whose Hessian is a
block-tridiagonal graph Laplacian. Newton's method with a line search takes 1 to 25 iterations of
O(H·S^3) (direct), or, with many states, of a time that grows with the cells that carry flow
(`sparse_flow`). Because x has the form above by
construction, it satisfies every optimality condition except the flow equations; so their residual
is a complete certificate, and it is checked in every call.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from discreet import _validate
from discreet._types import BoolArray, FloatArray, IntArray
from discreet.errors import InvalidInputError, SolverError
from discreet.mdp.counts import dense_of, rows_of
from discreet.privacy.postprocess.looks import Looks, inflow_visits, known
from discreet.privacy.statistics import PrivateCounts

NOTHING_ELSE = Looks()
DIRECT_STATES = 64
"""Up to this many states the Newton systems are factorised; beyond, only cells that carry flow are
worked on, by conjugate gradients."""


class Flow(NamedTuple):
    """Flow-consistent counts with the certificate of the solve.

    Attributes:
        transitions: ``[H, S, A, S]``, zero outside the played cells, or ``[R, S]`` if the noisy
            counts were given as rows.
        visits: ``[H, S, A]`` or ``[R]``.
        imbalance: the largest violation of a flow equation, in users.
        iterations: Newton steps.
        left: users who have left the policy by each step, if more have than noise explains.
    """

    transitions: FloatArray
    visits: FloatArray
    imbalance: float
    iterations: int
    left: FloatArray | None = None


def consistent_flow(
    transitions: ArrayLike,
    *,
    users: float,
    played: BoolArray | None = None,
    start: BoolArray | None = None,
    variance: ArrayLike = 1.0,
    signed: bool = False,
    looks: Looks = NOTHING_ELSE,
) -> Flow:
    """Project noisy counts of one batch (or of a sum of batches) onto consistent flows.

    Args:
        transitions: noisy counts ``[H, S, A, S]``, or the rows ``[R, S]`` that ``played`` marks.
        users: how many users they come from.
        played: ``bool[H, S, A]``, the cells their policies can play (all by default).
        start: ``bool[S]``, the states an episode can begin in (all by default).
        variance: noise variance per counter, a number or ``[H, S, A]``; only ratios matter.
        signed: leave out x >= 0. The result is then linear in the data: unbiased, and safe to add
            up over batches. It takes transitions of all steps, and no other look.
        looks: what else was released: another look at the visits (in the form of the
            transitions), users who left, or no transitions of the last step (`looks`).

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
    kept = _kept(noisy, played)
    y = rows_of(noisy, kept) if noisy.ndim == 4 else noisy
    cells = _cells(kept, start)
    inside = cells[kept]
    spread = np.broadcast_to(np.asarray(variance, np.float64), cells.shape)[cells]
    if not (np.isfinite(spread).all() and (spread > 0).all()):
        raise InvalidInputError("Expected variance > 0 and finite in every played cell.")
    given = y if inside.all() else y[inside]
    if not np.isfinite(given).all():
        raise InvalidInputError("Expected finite counts, got NaN or infinity.")
    other = _other_looks(looks, kept, inside)
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
    """Transitions ``[R, S]`` and visits ``[R]`` of the played rows of a release, made consistent.

    Exact counts are consistent as they are. Where nothing tells the last step's visits of a row but
    what flows into its state, actions are taken as often as the policy says.

    Args:
        counts: of one batch.
        start: ``bool[S]``, the states an episode can begin in.
        chosen: ``[R]``, how likely the policy takes each row's action; None: actions that it can
            take in a state are taken equally often.
    """
    transitions, visits = _made_consistent(counts, start)
    if chosen is not None and counts.row_visits is None and not counts.last_transitions:
        steps, states, _ = np.nonzero(counts.played)
        last = steps == len(counts.played) - 1
        arrived = transitions[steps == len(counts.played) - 2].sum(axis=0)
        visits[last] = arrived[states[last]] * chosen[last]
    return transitions, visits


def _made_consistent(counts: PrivateCounts, start: BoolArray) -> tuple[FloatArray, FloatArray]:
    transitions = np.asarray(counts.row_transitions)
    if counts.noise_variance["transitions"] > 0:
        found = consistent_flow(
            transitions,
            users=counts.users,
            played=counts.played,
            start=start,
            variance=counts.noise_variance["transitions"],
            looks=Looks.of(counts),
        )
        return found.transitions, found.visits
    if counts.last_transitions:
        return transitions, transitions.sum(axis=-1)
    return transitions, inflow_visits(transitions, np.nonzero(counts.played), len(counts.played))


class _Rows(NamedTuple):
    """Rows that can carry flow: counts, variances, (h, s, a), and the number of steps."""

    counts: FloatArray
    variance: FloatArray
    where: tuple[IntArray, ...]
    horizon: int


def _other_looks(looks: Looks, kept: BoolArray, inside: BoolArray) -> Looks:
    if looks.visits is not None:
        visits = np.asarray(looks.visits, np.float64)
        visits = visits[kept] if visits.ndim == 3 else visits
        if visits.shape != inside.shape or not np.isfinite(visits).all():
            raise InvalidInputError(
                f"Expected the visits of {inside.size} played rows, all finite, got shape "
                f"{visits.shape}."
            )
        _validate.positive(visit_variance=looks.visit_variance)
        looks = looks._replace(visits=visits)
    return known(looks, inside)


def _projected(rows: _Rows, users: float, signed: bool, looks: Looks) -> Flow:
    """The projection of what can carry flow, by the solver that its looks need."""
    if looks.visits is None and looks.left is None:
        return _transitions_only(rows, users, signed, looks)
    if signed:
        raise InvalidInputError(
            "Expected transitions alone for a signed flow, got visits or users who left; drop "
            "those looks, or signed=True."
        )
    from discreet.privacy.postprocess.batch_network import project_looks

    found = project_looks(rows.counts, rows.variance, rows.where, users, rows.horizon, looks)
    _certify(found.imbalance, _tolerance(rows.variance, users), found.iterations)
    return Flow(found.transitions, found.visits, found.imbalance, found.iterations, found.left)


def _transitions_only(rows: _Rows, users: float, signed: bool, looks: Looks) -> Flow:
    """Without transitions of the last step, the flow of the steps before it ends there."""
    if looks.last_transitions:
        moved, imbalance, iterations = project(*rows[:3], users, signed)
        return Flow(moved, moved.sum(axis=-1), imbalance, iterations)
    steps = rows.where[0]
    before = steps < rows.horizon - 1
    if not before.any():
        raise InvalidInputError(
            "Expected some look at the visits of a single step: its transitions, or visits."
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
    """The projection of compressed rows ``y[R, S]`` of the played (h, s, a) in ``rows``."""
    steps, state = rows[0], np.ascontiguousarray(rows[1])  # one layout: kernels compile once
    first = np.searchsorted(steps, np.arange(steps[-1] + 2))
    deviation, tolerance = float(np.sqrt(variance.max())), _tolerance(variance, users)
    solved, floor, weight = np.empty_like(y), -np.inf if signed else 0.0, variance / variance.max()
    if y.shape[1] <= DIRECT_STATES:
        from discreet.privacy.postprocess import flow_kernels

        worst, iterations = flow_kernels.project_rows(
            y, weight, state, first, float(users), tolerance, floor, solved
        )
    else:
        from discreet.privacy.postprocess.sparse_flow import project_large
        from discreet.privacy.postprocess.sparse_flow_kernels import Rows

        played = Rows(weight, np.where(steps > 0, state, 0), first)
        worst, iterations = project_large(
            y, played, float(users), tolerance, deviation, floor, solved
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


def _kept(noisy: FloatArray, played: BoolArray | None) -> BoolArray:
    """``bool[H, S, A]``, the rows that the noisy counts hold or that are taken of them."""
    if noisy.ndim == 2 and played is not None:
        kept = np.asarray(played, bool)
        if kept.ndim != 3 or noisy.shape != (kept.sum(), kept.shape[1]):
            raise InvalidInputError(
                f"Expected the {kept.sum()} rows of played, got transitions of shape {noisy.shape} "
                f"and played of shape {kept.shape}."
            )
        return kept
    if noisy.ndim != 4 or noisy.shape[1] != noisy.shape[3] or 0 in noisy.shape:
        raise InvalidInputError(f"Expected transitions [H, S, A, S], got shape {noisy.shape}.")
    kept = np.ones(noisy.shape[:3], bool) if played is None else np.asarray(played, bool)
    if kept.shape != noisy.shape[:3]:
        raise InvalidInputError(
            f"Expected played of shape {noisy.shape[:3]}, got shape {kept.shape}."
        )
    return kept


def _cells(kept: BoolArray, start: BoolArray | None) -> BoolArray:
    """The rows that can carry flow: those kept, at the first step in start states only."""
    cells = kept
    if start is not None:
        cells = kept.copy()
        cells[0] &= np.asarray(start, bool)[:, None]
    if not cells[1:].any(axis=2).all() or not cells[0].any():
        raise InvalidInputError("Expected at least one played action in every state of every step.")
    return cells
