"""Parts of the flow solver against the formulas they quote, written with whole arrays."""

import numpy as np
import pytest

from discreet.privacy.projection import flow as kernels

HORIZON, STATES = 3, 2
FIRST = np.array([0, 2, 5, 8])
STATE = np.array([0, 1, 0, 0, 1, 0, 1, 1])
STEP = np.repeat(np.arange(3), np.diff(FIRST))


@pytest.fixture
def data():
    rng = np.random.default_rng(4)
    y = rng.normal(3, 4, (8, STATES))
    variance = rng.uniform(0.5, 2, 8)
    u = rng.normal(0, 1, (HORIZON + 1, STATES))
    u[HORIZON] = 0
    return y, variance, u


def node(row):
    """At step 0 one potential serves all start states."""
    return STATE[row] if STEP[row] else 0


def flows(y, variance, u, floor=0.0):
    x = np.empty_like(y)
    kernels.flows(y, variance, STATE, FIRST, floor, u, x)
    return x


def imbalance(x, users=10.0):
    g = np.full((HORIZON, STATES), np.nan)
    kernels.imbalance(x, STATE, FIRST, users, g)
    return g


@pytest.mark.parametrize("floor", [0.0, -np.inf])
def test_flows_are_the_minimiser_for_fixed_potentials(data, floor):
    y, variance, u = data
    expected = [
        np.maximum(floor, y[r] + variance[r] * (u[STEP[r], node(r)] - u[STEP[r] + 1]))
        for r in range(8)
    ]
    assert flows(y, variance, u, floor) == pytest.approx(np.array(expected))


def test_the_imbalance_is_inflow_minus_outflow(data):
    x = flows(*data)
    g = imbalance(x)
    assert g[0] == pytest.approx([10.0 - x[:2].sum(), 0.0])
    for h in (1, 2):
        for s in range(STATES):
            inflow = x[h - 1 == STEP, s].sum()
            outflow = x[(h == STEP) & (s == STATE)].sum()
            assert g[h, s] == pytest.approx(inflow - outflow)


def test_the_imbalance_is_the_gradient_of_the_dual(data):
    y, variance, u = data

    def dual(potentials):
        # The Lagrangian at its minimiser, up to terms that do not depend on the potentials.
        x = flows(y, variance, potentials)
        g = imbalance(x)
        distance = ((x - y) ** 2 / (2 * variance[:, None])).sum()
        return distance + (g * potentials[:HORIZON]).sum()

    g, step = imbalance(flows(y, variance, u)), 1e-6
    for h, s in ((0, 0), (1, 0), (1, 1), (2, 0), (2, 1)):
        up, down = u.copy(), u.copy()
        up[h, s] += step
        down[h, s] -= step
        slope = (dual(up) - dual(down)) / (2 * step)
        assert slope == pytest.approx(g[h, s], rel=1e-4, abs=1e-6)


def test_newton_solves_the_system_of_active_cells(data):
    y, variance, u = data
    x = flows(y, variance, u)
    g, ridge = imbalance(x), np.full((HORIZON, STATES), 0.3)
    step = np.zeros((HORIZON + 1, STATES))
    kernels.newton(x, variance, STATE, FIRST, 0.0, ridge, g, step)
    matrix = np.diag(ridge.ravel())
    for r in range(8):
        for j in range(STATES):
            if x[r, j] > 0:
                edge = np.zeros((HORIZON, STATES))
                edge[STEP[r], node(r)] += 1
                if STEP[r] + 1 < HORIZON:
                    edge[STEP[r] + 1, j] -= 1
                matrix += variance[r] * np.outer(edge.ravel(), edge.ravel())
    assert step[:HORIZON].ravel() == pytest.approx(np.linalg.solve(matrix, g.ravel()))
    diagonal = np.empty((HORIZON, STATES))
    kernels.diagonal(x, variance, STATE, FIRST, 0.0, diagonal)
    assert diagonal.ravel() == pytest.approx(np.diag(matrix) - 0.3)
