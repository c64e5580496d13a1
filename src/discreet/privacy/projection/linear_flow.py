"""Flow-consistent counts that are linear in those released, and what their noise does to a value.

`flow` keeps counts from below zero, and is nearer to the truth for it. Here counts below zero stay,
so the projection is linear, x -> P·x + const, and without bias whatever the noise. It is made in
the norm of the covariance C of what was released, in which P is orthogonal: a linear function g'x
of projected counts has the variance g'P·C·P'g = g'P·(C·g), one more projection.

Transitions y of a row (h, s, a) with noise of variance sigma² each, and perhaps another measurement
v of its visits, of variance tau², are first combined: x = y + (v - sum y)·sigma²/(tau² + S·sigma²)
in every cell, with the covariance C = sigma²·I - sigma⁴/(tau² + S·sigma²)·11'. Then the first layer
has n users, and what comes into a state goes out of it. At the last step the next state means
nothing, and a row is a count of visits with sigma², in its first cell.
"""

from typing import NamedTuple

import numpy as np

from discreet._types import BoolArray, FloatArray
from discreet.privacy.statistics import PrivateCounts


class LinearFlow(NamedTuple):
    """Consistent counts, and the norm in which they were projected.

    Attributes:
        counts: x ``[R, S]``, the rows of the support.
        support: ``bool[H, S, K]``.
        variance: sigma² of the cells of each row ``[R]``.
        shared: of each row, what is subtracted from every entry of its covariance ``[R]``.
    """

    counts: FloatArray
    support: BoolArray
    variance: FloatArray
    shared: FloatArray

    @classmethod
    def of(cls, counts: PrivateCounts) -> "LinearFlow":
        """The consistent counts of a release whose last next states mean nothing."""
        support, noise = counts.support, counts.noise_variance["transitions"]
        (horizon, states, _), steps = support.shape, np.nonzero(support)[0]
        columns = np.full(horizon, float(states))
        columns[-1] = 1.0
        rows = np.array(counts.row_transitions, np.float64)
        rows[steps == horizon - 1] = rows[steps == horizon - 1, :1] / states
        variance, shared = noise * columns[steps] / states, np.zeros(len(rows))
        other = counts.noise_variance.get("visits", 0.0)
        if counts.row_visits is not None and other:
            share = variance / (other + states * variance)
            rows += ((counts.row_visits - rows.sum(axis=1)) * share)[:, None]
            shared = variance * share
        flow = cls(rows, support, variance, shared)
        return flow._replace(counts=flow.project(rows, counts.users)) if noise else flow

    def noise(self, gradient: FloatArray) -> float:
        """The variance that noise gives to a linear function of the counts, ``[R, S]``."""
        if not self.variance.any():
            return 0.0
        return float((gradient * self.project(self.spread(gradient), 0.0)).sum())

    def spread(self, rows: FloatArray) -> FloatArray:
        """C·g."""
        both: FloatArray = self.variance[:, None] * rows - (self.shared * rows.sum(axis=1))[:, None]
        return both

    def project(self, rows: FloatArray, users: float) -> FloatArray:
        """The nearest consistent rows, by elimination from layer to layer of the flow equations.

        With one potential for each state of a layer (for all of the first together) the solution is
        rows + C·A'u, and A·C·A' is block tridiagonal: two layers meet in the rows between them.
        """
        horizon, states, _ = self.support.shape
        steps, state, _ = np.nonzero(self.support)
        state = np.where(steps == 0, 0, state)
        own, total = rows.sum(axis=1), states * (self.variance - states * self.shared)
        missing, out = np.zeros((2, horizon, states))
        np.add.at(missing, (steps, state), own)
        np.add.at(out, (steps, state), total)
        missing[0, 0] -= users
        blocks, joint = [], []
        for step in range(horizon):
            block = np.diag(out[step])
            if step:
                before = steps == step - 1
                missing[step] -= rows[before].sum(axis=0)
                block -= self.shared[before].sum()
                block += np.eye(states) * self.variance[before].sum()
            else:
                block[np.arange(1, states), np.arange(1, states)] = 1.0
            blocks.append(block)
            joint.append(out[step] / states)
        u = missing.copy()
        for step in range(1, horizon):  # A·C·A' between layers: -joint in every column
            solved = np.linalg.solve(blocks[step - 1], np.stack([joint[step - 1], u[step - 1]], 1))
            blocks[step] = blocks[step] - joint[step - 1] @ solved[:, 0]
            u[step] += joint[step - 1] @ solved[:, 1]
        following = 0.0
        for step in reversed(range(horizon)):
            u[step] = np.linalg.solve(blocks[step], u[step] + joint[step] * following)
            following = float(u[step].sum())
        after = np.concatenate([u[1:], np.zeros((1, states))])[steps]
        return rows + self.spread(after - u[steps, state][:, None])
