"""More than one look at a batch: visits that were counted beside transitions, and who left.

A release can hold, besides noisy transitions y, a second look w at the visits of every row (s, a)
of a step, and the noisy number of users who have left the policy by each step. Together:

    minimise  sum (x - y)²/variance + sum (v - w)²/(visit variance) + sum (L - l)²/(left variance)

over transitions x, visits v and users L who have left, all nonnegative, where the inflow of (h, s)
is the sum of v over its rows plus the users who leave there, v is the sum of x over its row, L_h is
L_{h-1} plus all who leave at step h, and everybody is somewhere: all n users enter at step 0. In
the network of `network` a row is a node between its state and the next states, and ``left`` is one
more node per step. How many leave in each state is not measured: those edges have a variance of
`FREE` times that of a counter, around what inflow and outflow suggest by themselves.

Without last transitions the rows of the last step lead to the ground, measured by w; without w
either, the visits there are the inflow of their state, in equal parts if it has several rows.
"""

from typing import NamedTuple

import numpy as np

from discreet._types import FloatArray, IntArray
from discreet.privacy.postprocess.looks import Looks, inflow_visits
from discreet.privacy.postprocess.network import Network, solve
from discreet.privacy.postprocess.network_kernels import Edges

FREE = 1e4
"""Variance of the users who leave in one state, in variances of a transition counter."""
_SMALL = 64
"""Up to this many states every cell is worked on."""


class Projected(NamedTuple):
    """Consistent transitions, visits and users who have left, with the solver's certificate."""

    transitions: FloatArray
    visits: FloatArray
    left: FloatArray | None
    imbalance: float
    iterations: int


def project_looks(
    y: FloatArray,
    variance: FloatArray,
    rows: tuple[IntArray, ...],
    users: float,
    horizon: int,
    looks: Looks,
) -> Projected:
    """The projection of rows ``y[R, S]`` of the played (h, s, a) in ``rows``, sorted by step."""
    plan = _Plan(y, variance, rows, horizon, looks)
    network, place = plan.network()
    deviation = float(np.sqrt(variance.max()))
    tolerance = max(1e-6 * deviation, 1e-12 * users)
    large = y.shape[1] > _SMALL
    start = plan.start(users) if large else np.zeros(plan.nodes + 1)
    solved = solve(network, users, tolerance, deviation if large else np.inf, start)
    transitions, visits, left = place(solved.flow)
    return Projected(transitions, visits, left, solved.imbalance, solved.iterations)


class _Plan:
    """Numbers of the nodes: the start, then by step the rows (with a second look) and states."""

    def __init__(
        self,
        y: FloatArray,
        variance: FloatArray,
        rows: tuple[IntArray, ...],
        horizon: int,
        looks: Looks,
    ) -> None:
        self.y, self.scale, self.looks, self.horizon = y, float(variance.max()), looks, horizon
        self.relative = variance / self.scale
        self.steps, self.states, _ = rows
        self.moving = horizon if looks.last_transitions else horizon - 1
        self.first = np.searchsorted(self.steps, np.arange(horizon + 1))
        self.row_node = np.zeros(len(self.steps), np.int64)
        self.state_node = np.full((horizon + 1, y.shape[1]), -1, np.int64)
        self.state_node[0] = 0
        self.groups: list[tuple[int, int, int, int]] = []
        self.nodes = self._number()

    def _number(self) -> int:
        """Number all nodes; -1 stands for the ground. Returns how many there are without it."""
        looked, count, size = self.looks.visits is not None, 1, self.y.shape[1]
        tails = (0, 1)
        for h in range(self.moving):
            here = slice(self.first[h], self.first[h + 1])
            if looked:
                self.row_node[here] = count + np.arange(self.first[h + 1] - self.first[h])
                tails = (count, count + int(self.first[h + 1] - self.first[h]))
                count = tails[1]
            else:
                self.row_node[here] = self.state_node[h, self.states[here]]
            if h + 1 < self.moving or (looked and h + 1 < self.horizon):
                self.state_node[h + 1] = count + np.arange(size)
                self.groups.append((*tails, count, count + size))
                tails = (count, count + size)
                count += size
            else:
                self.groups.append((*tails, -1, -1))
        self.left_first = count
        gone = self.looks.left
        return count if gone is None else count + len(gone)

    def start(self, users: float) -> FloatArray:
        """Potentials that are constant in each layer, such that every layer sums to the users."""
        from discreet.privacy.postprocess.sparse_flow_kernels import Rows, start

        u = np.zeros(self.nodes + 1)
        if not self.moving:
            return u
        cells, moved = self._cells()
        layers = np.zeros((self.moving + 1, self.y.shape[1]))
        nodes = np.where(self.steps[cells] > 0, self.states[cells], 0)
        start(
            moved, Rows(self.relative[cells], nodes, self.first[: self.moving + 1]), users, layers
        )
        for h in range(self.moving):
            u[self.state_node[h]] = layers[h, 0]
            u[self.row_node[self.first[h] : self.first[h + 1]]] = layers[h, 0]
        u[-1] = 0.0
        if self.looks.left is not None:
            steps = np.minimum(np.arange(len(self.looks.left)), self.moving)
            u[self.left_first : -1] = layers[steps, 0]
        return u

    def network(self) -> "tuple[Network, _Place]":
        """All edges, and what to read off their flow."""
        parts = [self._transitions(), self._visits(), self._leaving(), self._left()]
        tail, head, count, relative = (
            np.concatenate([part[i] for part in parts]) for i in range(4)
        )
        ground = self.nodes
        groups = [[ground if end < 0 else end for end in group] for group in self.groups]
        for group in groups:
            group[3] = max(group[3], group[2] + 1)
        edges = Edges(
            tail.astype(np.int32),
            np.where(head < 0, ground, head).astype(np.int32),
            count,
            relative,
        )
        sizes = [part[0].size for part in parts]
        network = Network(edges, sizes[0], np.array(groups, np.int64).reshape(-1, 4))
        return network, _Place(self, np.cumsum([0, *sizes]))

    def _cells(self) -> tuple[slice, FloatArray]:
        rows = slice(0, int(self.first[self.moving]))
        return rows, self.y[rows]

    def _transitions(self) -> "_Part":
        rows, moved = self._cells()
        size = self.y.shape[1]
        head = self.state_node[self.steps[rows] + 1]
        return (
            np.repeat(self.row_node[rows], size),
            head.ravel(),
            moved.ravel(),
            np.repeat(self.relative[rows], size),
        )

    def _visits(self) -> "_Part":
        if self.looks.visits is None:
            return _NOTHING
        tail = self.state_node[self.steps, self.states]
        head = np.where(self.steps < self.moving, self.row_node, -1)
        return tail, head, self.looks.visits, self._relative(self.looks.visit_variance, tail.size)

    def _leaving(self) -> "_Part":
        """From every state to ``left``, around the difference of its inflow and its outflow."""
        if self.looks.left is None:
            return _NOTHING
        tails: list[IntArray] = []
        heads: list[IntArray] = []
        for h in range(len(self.looks.left)):
            nodes = np.unique(self.state_node[h])
            nodes = nodes[nodes >= 0]
            tails.append(nodes)
            heads.append(np.full(nodes.size, self.left_first + h))
        tail, head = np.concatenate(tails), np.concatenate(heads)
        return tail, head, self._missing(tail), np.full(tail.size, FREE)

    def _missing(self, nodes: IntArray) -> FloatArray:
        """Noisy inflow minus noisy outflow of these nodes, if positive."""
        balance = np.zeros(self.nodes + 1)
        rows, moved = self._cells()
        np.add.at(balance, self.state_node[self.steps[rows] + 1], moved)
        looked = self.looks.visits
        out = self.y.sum(axis=1) if looked is None else looked
        np.subtract.at(balance, self.state_node[self.steps, self.states], out)
        balance[0] = 0.0  # who does not even begin is in the first count of those who left
        return np.maximum(balance[nodes], 0.0)

    def _left(self) -> "_Part":
        if self.looks.left is None or self.looks.left_variance is None:
            return _NOTHING
        tail = self.left_first + np.arange(len(self.looks.left))
        head = np.where(tail + 1 < self.nodes, tail + 1, -1)
        return tail, head, self.looks.left, self.looks.left_variance / self.scale

    def _relative(self, variance: float, size: int) -> FloatArray:
        return np.full(size, variance / self.scale)


_Part = tuple[IntArray, IntArray, FloatArray, FloatArray]
_NOTHING: _Part = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0))


class _Place:
    """Reads transitions, visits and users who left off the flow of all edges."""

    def __init__(self, plan: _Plan, ends: IntArray) -> None:
        self.plan, self.ends = plan, ends

    def __call__(self, flow: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        plan, ends = self.plan, self.ends
        transitions = np.zeros_like(plan.y)
        rows, moved = plan._cells()
        transitions[rows] = flow[: ends[1]].reshape(moved.shape)
        if plan.looks.visits is not None:
            visits = flow[ends[1] : ends[2]]
        elif plan.looks.last_transitions:
            visits = transitions.sum(axis=1)
        else:
            visits = inflow_visits(transitions, (plan.steps, plan.states, plan.steps), plan.horizon)
        left = None if plan.looks.left is None else flow[ends[3] :]
        return transitions, visits, left
