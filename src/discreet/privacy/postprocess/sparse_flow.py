"""The flow projection of large problems (mathematics in `flow`): work where there is flow.

With far more cells than users most cells end at zero and need no work. Around the present
potentials the dual is built from *candidates* only, the cells that lie above minus ``margin``: as
long as no difference u_h(s) - u_{h+1}(s') has risen by more than the margin, all other cells are
zero and the restricted dual is the whole one. Newton's method climbs inside this region, each
system solved by conjugate gradients over the active cells. Then all cells are looked at: if the
flow equations hold, this is the solution; otherwise candidates are chosen anew, more of them if the
climb ended at the border and fewer if it did not.
"""

import numpy as np

from discreet._types import FloatArray
from discreet.privacy.postprocess import sparse_flow_kernels as kernels
from discreet.privacy.postprocess.dual_steps import conjugate_gradients, search
from discreet.privacy.postprocess.flow_kernels import flows, imbalance
from discreet.privacy.postprocess.sparse_flow_kernels import Cells, Rows


def project_large(
    y: FloatArray,
    rows: Rows,
    users: float,
    tolerance: float,
    deviation: float,
    floor: float,
    x: FloatArray,
) -> tuple[float, int]:
    """As `flow_kernels.project_rows`; returns (largest imbalance, iterations).

    Args:
        y: noisy counts ``[R, S]``.
        rows: what they belong to, with the relative variance of each row.
        users: the sum of each layer.
        tolerance: the largest imbalance that counts as none.
        deviation: of the noise, where it is largest; the first margin.
        floor: bound of the counts, zero or minus infinity.
        x: the projection is written here.
    """
    horizon, states = rows.first.size - 1, y.shape[1]
    u, g = np.zeros((horizon + 1, states)), np.zeros((horizon, states))
    margin = np.inf
    if floor == 0.0:
        kernels.start(y, rows, users, u)
        margin = deviation
    iterations = 0
    while True:
        flows(y, rows.variance, rows.node, rows.first, floor, u, x)
        imbalance(x, rows.node, rows.first, users, g)
        worst = float(np.abs(g).max())
        if worst <= tolerance or iterations >= 500:
            return worst, iterations
        dual = _Dual(kernels.candidates(y, rows, u, margin), rows, floor, users)
        steps, at_border = _climb(dual, u, max(1e-3 * worst, tolerance / 4), margin)
        iterations += steps
        margin *= 2.0 if at_border else 0.1


def _climb(dual: "_Dual", u: FloatArray, goal: float, margin: float) -> tuple[int, bool]:
    """Newton's method until no node is out of balance by more than ``goal``, or at the border.

    Changes ``u``; returns the number of steps, at least one, and whether the border was reached.
    """
    center, g = u.copy(), dual.gradient(u)
    steps, at_border = 0, False
    while steps == 0 or not (at_border or steps == 60 or np.abs(g).max() <= goal):
        step = dual.newton(u, g)
        rise = _rise(step)
        most = (margin - _rise(u - center)) / rise if rise > 0 else np.inf
        length, g = search(dual.gradient, u, step, float((g * step).sum()), min(most, 1.0))
        u += length * step
        steps, at_border = steps + 1, length == most
    return steps, at_border


def _rise(change: FloatArray) -> float:
    """The most by which a difference of potentials in successive layers can have grown."""
    highest = change[:-1].max(axis=1)
    highest[0] = change[0, 0]
    return float((highest - change[1:].min(axis=1)).max())


class _Dual:
    """The dual restricted to the candidates."""

    def __init__(self, cells: Cells, rows: Rows, floor: float, users: float) -> None:
        self.cells, self.rows, self.floor, self.users = cells, rows, floor, users

    def gradient(self, u: FloatArray) -> FloatArray:
        """Inflow minus outflow at every node."""
        g = np.zeros_like(u)
        kernels.gradient(self.cells, self.rows, self.floor, self.users, u, g)
        return g

    def newton(self, u: FloatArray, g: FloatArray) -> FloatArray:
        """Solve (Laplacian of the active cells + a little) step = g, to a percent."""
        active = kernels.active(self.cells, self.rows, self.floor, u)
        scale = np.empty_like(g)
        kernels.diagonal(active, self.rows, scale)
        ridge = 1e-10 * scale + 1e-8 * self.rows.variance.max()

        def apply(v: FloatArray, out: FloatArray) -> None:
            kernels.laplacian(active, self.rows, v, out)

        return conjugate_gradients(apply, g, scale + ridge, ridge)
