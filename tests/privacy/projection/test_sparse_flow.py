"""The projection of large problems gives the answer of the dense one, to its tolerance."""

import numpy as np
import pytest

from discreet.privacy.projection.flow import flows, imbalance
from discreet.privacy.projection.sparse_flow import Rows, project_large, start

HORIZON, STATES, ACTIONS, USERS = 3, 6, 2, 400.0


@pytest.fixture(params=[0, 1], ids=["plain", "unequal variances"])
def problem(request):
    """Noisy counts of all (h, s, a) but of one start state, as rows."""
    rng = np.random.default_rng(request.param)
    node = np.concatenate([np.zeros(ACTIONS, np.int64)] + [np.repeat(np.arange(STATES), 2)] * 2)
    first = np.array([0, 2, 14, 26])
    variance = rng.uniform(0.5, 2, 26) if request.param else np.ones(26)
    y = rng.normal(0, 4, (26, STATES))
    y[:2] += USERS / 12
    return y, Rows(variance, node, first)


def balance(x, rows):
    g = np.zeros((HORIZON, STATES))
    imbalance(x, rows.node, rows.first, USERS, g)
    return np.abs(g).max()


@pytest.mark.parametrize("floor", [0.0, -np.inf])
def test_the_projection_is_a_flow_of_all_users(problem, floor):
    y, rows = problem
    x = np.empty_like(y)
    worst, iterations = project_large(y, rows, USERS, 1e-6, 4.0, floor, x)
    assert worst <= 1e-6 and iterations < 100
    assert balance(x, rows) <= 1e-6
    assert floor == -np.inf or (x >= 0).all()
    for h in range(HORIZON):
        assert x[rows.first[h] : rows.first[h + 1]].sum() == pytest.approx(USERS, rel=1e-6)


def test_no_flow_is_nearer(problem):
    y, rows = problem
    x = np.empty_like(y)
    project_large(y, rows, USERS, 1e-8, 4.0, 0.0, x)

    def distance(flow):
        return ((flow - y) ** 2 / rows.variance[:, None]).sum()

    for seed in range(5):  # other flows: projections of other counts
        other = np.empty_like(y)
        moved = y + np.random.default_rng(seed).normal(0, 3, y.shape)
        project_large(moved, rows, USERS, 1e-8, 4.0, 0.0, other)
        mixed = 0.5 * (x + other)
        assert distance(x) <= min(distance(other), distance(mixed)) + 1e-4


def test_a_flow_is_left_alone(problem):
    y, rows = problem
    x, again = np.empty_like(y), np.empty_like(y)
    project_large(y, rows, USERS, 1e-8, 4.0, 0.0, x)
    project_large(x, rows, USERS, 1e-6, 4.0, 0.0, again)
    assert again == pytest.approx(x, abs=1e-3)


def test_the_start_gives_every_layer_its_users(problem):
    y, rows = problem
    u, x = np.zeros((HORIZON + 1, STATES)), np.empty_like(y)
    start(y, rows, USERS, u)
    flows(y, rows.variance, rows.node, rows.first, 0.0, u, x)
    for h in range(HORIZON):
        assert x[rows.first[h] : rows.first[h + 1]].sum() == pytest.approx(USERS, rel=1e-5)


def test_the_start_finds_a_layer_that_lies_far_below_the_one_after_it(problem):
    y, rows = problem
    y[:2] -= 1e4
    test_the_start_gives_every_layer_its_users((y, rows))
