"""The flow projection of large problems (mathematics in `flow`): work where there is flow.

With far more cells than users most cells end at zero and need no work. `network` climbs the dual
over the cells near the present potentials; what is particular here is that all cells of a layer
stand in one array, so that choosing some of them, or looking at all, is one pass over it.
"""

import numpy as np

from discreet._types import FloatArray
from discreet.privacy.postprocess import sparse_flow_kernels as kernels
from discreet.privacy.postprocess.flow_kernels import flows
from discreet.privacy.postprocess.network import climb
from discreet.privacy.postprocess.network_kernels import Edges
from discreet.privacy.postprocess.sparse_flow_kernels import Rows


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
        deviation: of the noise, where it is largest; the margin of `network`.
        floor: bound of the counts, zero or minus infinity.
        x: the projection is written here.
    """
    layers = _Layers(y, rows, floor)
    u, margin = np.zeros(layers.shape), np.inf
    if floor == 0.0:
        kernels.start(y, rows, users, u)
        margin = deviation
    nodes = u.reshape(-1)[: layers.ground + 1]  # the same memory
    worst, iterations = climb(layers, users, tolerance, margin, nodes)
    flows(y, rows.variance, rows.node, rows.first, floor, u, x)
    return worst, iterations


class _Layers:
    """The cells as edges from node h·S + s to node (h + 1)·S + s', or to the ground at the end."""

    def __init__(self, y: FloatArray, rows: Rows, floor: float) -> None:
        self.y, self.rows, self.floor = y, rows, floor
        steps, states = rows.first.size - 1, y.shape[1]
        self.shape, self.ground = (steps + 1, states), steps * states
        self._room = Edges.room(1 << 18)

    def near(self, u: FloatArray, margin: float) -> Edges:
        """The cells above minus ``margin``."""
        potentials = self._potentials(u)
        count, self._room = kernels.candidates(self.y, self.rows, potentials, margin, self._room)
        return self._room.first(count)

    def worst(self, u: FloatArray, users: float) -> float:
        """The largest imbalance of a node, over all cells."""
        g = np.zeros(self.shape)
        kernels.balance(self.y, self.rows, self.floor, users, self._potentials(u), g)
        return float(np.abs(g[:-1]).max())

    def rise(self, change: FloatArray) -> float:
        """The most by which a difference of potentials in successive layers can have grown."""
        grown = self._potentials(change)
        highest = grown[:-1].max(axis=1)
        highest[0] = grown[0, 0]
        return float((highest - grown[1:].min(axis=1)).max())

    def _potentials(self, u: FloatArray) -> FloatArray:
        """``[H + 1, S]``, zero in the last layer, which is the ground."""
        out = np.zeros(self.shape)
        out.reshape(-1)[: self.ground] = u[:-1]
        return out
