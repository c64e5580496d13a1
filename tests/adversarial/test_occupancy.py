"""Layers against dense NumPy; solvers against Clarabel, L-BFGS-B and HiGHS."""

import itertools

import numpy as np
import pytest
from scipy import optimize, sparse

from discreet.adversarial import occupancy as kernels
from discreet.adversarial.barrier import barrier_state, barrier_step
from discreet.adversarial.entropy import box_scale, entropy_state, solve_entropy
from discreet.adversarial.occupancy import (
    Boxes,
    check_gap,
    empty_tridiagonal,
    open_boxes,
    sort_descending,
)
from discreet.errors import SolverError
from helpers.boxes import (
    barrier_update,
    confidence_boxes,
    entropy_ftrl,
    rolled,
    row_major,
    upper_occupancy_bounds,
)
from helpers.layers import random_boxes, random_layered

WIDTHS = np.array([1, 3, 2, 1])


def positive_matrix(rng, n):
    half = rng.normal(size=(n, n))
    return half @ half.T + n * np.eye(n)


@pytest.mark.core
def test_open_boxes_exclude_nothing_and_own_their_widths():
    boxes = open_boxes(WIDTHS, (3, 3, 2, 3))
    assert not boxes.lower.any()
    assert (boxes.upper == 1.0).all()
    boxes.widths[0] = 9
    assert WIDTHS[0] == 1


def test_rows_of_blocks_are_views_in_order():
    blocks = np.arange(2 * 3 * 2 * 3, dtype=float).reshape(2, 3, 2, 3)
    matrix = kernels.rows(blocks)
    for h, x, a in np.ndindex(2, 3, 2):
        assert np.array_equal(matrix[(h * 3 + x) * 2 + a], blocks[h, x, a])
    matrix[0, 0] = -1.0
    assert blocks[0, 0, 0, 0] == -1.0


@pytest.mark.parametrize("n", [1, 2, 5])
def test_cholesky_is_numpys(n):
    matrix = positive_matrix(np.random.default_rng(n), n)
    factor = matrix.copy()
    assert kernels.cholesky(factor, n)
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(matrix), rtol=1e-12)


def test_cholesky_says_when_a_matrix_is_not_positive_definite():
    assert not kernels.cholesky(np.array([[1.0, 2.0], [2.0, 1.0]]), 2)
    assert not kernels.cholesky(np.zeros((1, 1)), 1)


def dense_system(rng, widths):
    """A positive definite block-tridiagonal matrix and where each layer begins in it."""
    starts = np.concatenate([[0], np.cumsum(widths)])
    matrix = np.zeros((starts[-1], starts[-1]))
    for h, n in enumerate(widths):
        here = slice(starts[h], starts[h + 1])
        matrix[here, here] = positive_matrix(rng, n) + 5 * np.eye(n)
        if h + 1 < len(widths):
            ahead = slice(starts[h + 1], starts[h + 2])
            matrix[here, ahead] = 0.5 * rng.normal(size=(n, widths[h + 1]))
            matrix[ahead, here] = matrix[here, ahead].T
    return matrix, starts


@pytest.mark.parametrize(("damping", "ridge"), [(0.0, 0.0), (0.3, 0.0), (0.0, 0.7)])
def test_the_block_solver_solves_the_dense_system(damping, ridge):
    rng, widths = np.random.default_rng(3), np.array([2, 3, 1, 2])
    matrix, starts = dense_system(rng, widths)
    system = empty_tridiagonal(4, 3)
    rhs, out = np.zeros((4, 3)), np.full((4, 3), np.nan)
    for h, n in enumerate(widths):
        here = slice(starts[h], starts[h + 1])
        system.diagonal[h, :n, :n] = np.tril(matrix[here, here])
        rhs[h, :n] = rng.normal(size=n)
        if h < 3:
            ahead = slice(starts[h + 1], starts[h + 2])
            system.coupling[h, :n, : widths[h + 1]] = matrix[here, ahead]
    assert kernels.solve_tridiagonal(widths, 0, 3, system, damping, ridge, rhs, out)
    changed = matrix + damping * np.diag(np.diag(matrix)) + ridge * np.eye(len(matrix))
    flat = np.concatenate([rhs[h, :n] for h, n in enumerate(widths)])
    found = np.concatenate([out[h, :n] for h, n in enumerate(widths)])
    np.testing.assert_allclose(found, np.linalg.solve(changed, flat), rtol=1e-9)


def test_the_block_solver_takes_some_layers_and_refuses_what_is_not_definite():
    widths = np.array([1, 2, 1])
    system = empty_tridiagonal(3, 2)
    system.diagonal[1, :2, :2] = [[4.0, 0.0], [1.0, 3.0]]
    rhs, out = np.ones((3, 2)), np.zeros((3, 2))
    assert kernels.solve_tridiagonal(widths, 1, 1, system, 0.0, 0.0, rhs, out)
    np.testing.assert_allclose(out[1], np.linalg.solve([[4.0, 1.0], [1.0, 3.0]], [1.0, 1.0]))
    assert not out[[0, 2]].any()
    system.diagonal[1, 1, 1] = 0.1
    assert not kernels.solve_tridiagonal(widths, 1, 1, system, 0.0, 0.0, rhs, out)
    assert kernels.solve_tridiagonal(widths, 1, 1, system, 0.0, 1.0, rhs, out)


def test_the_largest_entry_is_that_of_the_states_that_exist():
    values = np.array([[9.0, 9.0], [-3.0, 99.0], [2.0, -2.5]])
    widths = np.array([1, 1, 2])
    assert kernels.largest(values, widths, 1, 2) == 3.0
    assert kernels.largest(values, widths, 2, 2) == 2.5
    assert kernels.largest(values, widths, 0, 2) == 9.0


@pytest.mark.parametrize("seed", range(3))
def test_occupancies_are_sums_over_paths(seed):
    mdp = random_layered(seed, tuple(WIDTHS))
    policy = np.random.default_rng(seed).dirichlet(np.ones(2), mdp.shape.visits[:2])
    expected = np.zeros(mdp.shape.visits)
    for states in itertools.product(*(range(w) for w in WIDTHS)):
        for actions in itertools.product(range(2), repeat=3):
            chance = 1.0
            for h in range(3):
                chance *= policy[h, states[h], actions[h]]
                chance *= mdp.transitions[h, states[h], actions[h], states[h + 1]]
            for h in range(3):
                expected[h, states[h], actions[h]] += chance
    out = rolled(mdp.transitions, policy)
    np.testing.assert_allclose(out, expected, atol=1e-14)
    assert out.sum(axis=(1, 2)) == pytest.approx(1.0)


def test_upper_bounds_of_boxes_without_width_are_the_occupancy():
    mdp = random_layered(4, tuple(WIDTHS))
    policy = np.random.default_rng(4).dirichlet(np.ones(2), mdp.shape.visits[:2])
    exact, bounds = np.zeros(mdp.shape.visits), np.zeros(mdp.shape.visits)
    exact = rolled(mdp.transitions, policy)
    boxes = Boxes(mdp.widths, mdp.transitions, mdp.transitions)
    kernels.upper_occupancy(boxes, policy, bounds)
    np.testing.assert_allclose(bounds[mdp.present], exact[mdp.present], atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_upper_bounds_hold_for_all_transitions_in_the_boxes_and_grow_with_them(seed):
    mdp, narrow = random_boxes(seed, radius=0.05)
    _, wide = random_boxes(seed, radius=0.3)
    policy = np.random.default_rng(seed).dirichlet(np.ones(2), mdp.shape.visits[:2])
    found = []
    for boxes in (narrow, wide):
        bounds, exact = np.zeros(mdp.shape.visits), np.zeros(mdp.shape.visits)
        kernels.upper_occupancy(boxes, policy, bounds)
        exact = rolled(mdp.transitions, policy)
        assert (bounds[mdp.present] >= exact[mdp.present] - 1e-12).all()
        found.append(bounds[mdp.present])
    assert (found[1] >= found[0] - 1e-12).all()
    assert (found[1] > found[0] + 1e-6).any()


def test_with_open_boxes_every_state_can_be_reached_for_sure():
    policy = np.full((3, 3, 2), 0.5)
    bounds = np.zeros((3, 3, 2))
    kernels.upper_occupancy(open_boxes(WIDTHS, (3, 3, 2, 3)), policy, bounds)
    for h, here in enumerate(WIDTHS[:-1]):
        np.testing.assert_allclose(bounds[h, :here], 0.5)


@pytest.mark.parametrize("seed", range(4))
def test_sorting_is_descending_and_keeps_the_order_of_equals(seed):
    values = np.random.default_rng(seed).integers(0, 4, 9).astype(float)
    order = np.full(9, -1, np.int64)
    kernels.sort_descending(values, 9, order)
    assert order.tolist() == sorted(range(9), key=lambda i: (-values[i], i))


def learned_boxes(rng, widths, actions, visits, concentration=0.5):
    """Boxes as a learner with ``visits`` visits per pair would build them."""
    widths = np.asarray(widths)
    horizon, width = len(widths) - 1, widths.max()
    lower = np.zeros((horizon, width, actions, width))
    upper = np.zeros_like(lower)
    for h in range(horizon):
        n = widths[h + 1]
        p = rng.dirichlet(np.full(n, concentration), size=(widths[h], actions))
        b = np.sqrt(20 * p * (1 - p) / visits) + 70 / visits
        lower[h, : widths[h], :, :n] = np.maximum(p - b, 0)
        upper[h, : widths[h], :, :n] = np.minimum(p + b, 1)
    return confidence_boxes(widths, lower, upper)


def triples(boxes):
    """All (h, x, a, y), and the index of each."""
    actions = boxes.lower.shape[2]
    listed = [
        (h, x, a, y)
        for h in range(len(boxes.widths) - 1)
        for x in range(boxes.widths[h])
        for a in range(actions)
        for y in range(boxes.widths[h + 1])
    ]
    return listed, {t: i for i, t in enumerate(listed)}


def constraints(boxes):
    """Equalities (one unit starts, flow is kept) and inequalities (boxes) on q."""
    listed, index = triples(boxes)
    widths, actions = boxes.widths, boxes.lower.shape[2]
    equal, value = [], []
    for h in range(len(widths) - 1):
        for x in range(widths[h]):
            row = np.zeros(len(listed))
            for a in range(actions):
                for y in range(widths[h + 1]):
                    row[index[h, x, a, y]] += 1
                if h:
                    for z in range(widths[h - 1]):
                        row[index[h - 1, z, a, x]] -= 1
            equal.append(row)
            value.append(1.0 if h == 0 else 0.0)
    below = []
    for h, x, a, y in listed:
        block = [index[h, x, a, z] for z in range(widths[h + 1])]
        row = np.zeros(len(listed))
        row[index[h, x, a, y]] += 1
        row[block] -= boxes.upper[h, x, a, y]
        below.append(row)
        row = np.zeros(len(listed))
        row[index[h, x, a, y]] -= 1
        row[block] += boxes.lower[h, x, a, y]
        below.append(row)
    return np.array(equal), np.array(value), np.array(below)


def clarabel_solve(cost, boxes, barrier):
    """min cost·q + sum q ln q (or - sum ln q) by Clarabel's exponential cones."""
    import clarabel

    equal, value, below = constraints(boxes)
    n = len(cost)
    # variables (q, t); entropy: (-t, q, 1) in the cone, t >= q ln q; barrier: (t, 1, q), t <= ln q
    cones = [clarabel.ZeroConeT(len(equal)), clarabel.NonnegativeConeT(len(below))]
    exponential = np.zeros((3 * n, 2 * n))
    offset = np.zeros(3 * n)
    for i in range(n):
        if barrier:
            exponential[3 * i, n + i] = -1
            offset[3 * i + 1] = 1
            exponential[3 * i + 2, i] = -1
        else:
            exponential[3 * i, n + i] = 1
            exponential[3 * i + 1, i] = -1
            offset[3 * i + 2] = 1
        cones.append(clarabel.ExponentialConeT())
    wide = np.hstack([np.vstack([equal, below]), np.zeros((len(equal) + len(below), n))])
    matrix = sparse.csc_matrix(np.vstack([wide, exponential]))
    right = np.concatenate([value, np.zeros(len(below)), offset])
    objective = np.concatenate([cost, np.full(n, -1.0 if barrier else 1.0)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    problem = sparse.csc_matrix((2 * n, 2 * n))
    return clarabel.DefaultSolver(problem, objective, matrix, right, cones, settings).solve()


def entropy_objective(costs, occupancy):
    positive = occupancy[occupancy > 0]
    return float((costs[..., None] * occupancy).sum() + (positive * np.log(positive)).sum())


def assert_feasible(solution, boxes):
    listed, _ = triples(boxes)
    q = np.array([solution.occupancy[t] for t in listed])
    equal, value, below = constraints(boxes)
    assert np.abs(equal @ q - value).max() < 1e-12
    assert (below @ q).max() < 1e-12
    assert q.min() >= 0


@pytest.mark.parametrize("visits", [20, 400, 1e5])
@pytest.mark.parametrize("scale", [0.1, 3.0, 20.0])
def test_entropy_matches_clarabel(visits, scale):
    rng = np.random.default_rng([int(visits), int(10 * scale)])
    boxes = learned_boxes(rng, [1, 3, 4, 2, 1], 2, visits)
    costs = scale * rng.standard_normal((4, 4, 2))
    ours = entropy_ftrl(costs, boxes)
    listed, _ = triples(boxes)
    theirs = clarabel_solve(np.array([costs[t[:3]] for t in listed]), boxes, barrier=False)
    assert_feasible(ours, boxes)
    assert ours.gap < 1e-8
    assert entropy_objective(costs, ours.occupancy) == pytest.approx(theirs.obj_val, abs=2e-6)


def printed_dual(variables, costs, boxes, listed):
    """Equation (C.3) of the paper with nu free: the function that L-BFGS-B minimises."""
    middle, half = (boxes.upper + boxes.lower) / 2, (boxes.upper - boxes.lower) / 2
    width, total = boxes.widths.max(), boxes.lower.size
    plus = variables[:total].reshape(boxes.lower.shape)
    minus = variables[total : 2 * total].reshape(boxes.lower.shape)
    nu = np.zeros((len(boxes.widths), width))
    nu[1:-1] = variables[2 * total :].reshape(len(boxes.widths) - 2, width)
    bonus = (middle * (plus - minus) + half * (plus + minus)).sum(-1, keepdims=True)
    exponent = -costs[..., None] - nu[:-1, :, None, None] + nu[1:, None, None, :]
    exponent = exponent - plus + minus + bonus
    mask = np.zeros(boxes.lower.shape, bool)
    for t in listed:
        mask[t] = True
    exponent[~mask] = -np.inf
    value, gradient_exponent = 0.0, np.zeros_like(exponent)
    for h in range(len(exponent)):
        peak = exponent[h].max()
        e = np.exp(exponent[h] - peak)
        value += peak + np.log(e.sum())
        gradient_exponent[h] = e / e.sum()
    q = gradient_exponent
    pairs = q.sum(-1, keepdims=True)
    d_plus, d_minus = -q + pairs * (middle + half), q + pairs * (half - middle)
    d_nu = -q.sum((2, 3))[1:] + q.sum((1, 2))[:-1]
    return value, np.concatenate([d_plus.ravel(), d_minus.ravel(), d_nu.ravel()])


def test_entropy_matches_the_printed_dual():
    rng = np.random.default_rng(3)
    boxes = learned_boxes(rng, [1, 3, 3, 1], 2, 300)
    costs = 2 * rng.standard_normal((3, 3, 2))
    listed, _ = triples(boxes)
    size = 2 * boxes.lower.size + 2 * 3
    bounds = [(0, None)] * (2 * boxes.lower.size) + [(None, None)] * 6
    found = optimize.minimize(
        printed_dual,
        np.zeros(size),
        (costs, boxes, listed),
        jac=True,
        bounds=bounds,
        method="L-BFGS-B",
        options={"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-15, "gtol": 1e-9},
    )
    ours = entropy_ftrl(costs, boxes)
    assert entropy_objective(costs, ours.occupancy) == pytest.approx(-found.fun, abs=1e-5)


@pytest.mark.core
@pytest.mark.parametrize("scale", [1, 10, 100, 1000, 4000])
def test_entropy_never_fails_over_the_range_of_noise(scale):
    rng = np.random.default_rng(scale)
    for widths, actions, repeats in (([1, 4, 4, 4, 4, 4, 1], 2, 40), ([1, *[8] * 5, 1], 3, 8)):
        for visits in (1, 50, 2000, 1e6):
            boxes = learned_boxes(rng, widths, actions, visits)
            state = entropy_state(boxes.widths, actions)
            centre = scale * rng.standard_normal(state.policy.shape)
            for k in range(repeats):
                costs = centre + 0.3 * scale * rng.standard_normal(centre.shape)
                gap, _ = solve_entropy(costs, boxes, state, k > 0)
                assert gap < 1e-6
                inside = row_major(state)[1:, : widths[1]]
                assert np.isfinite(state.policy).all()
                assert (inside >= boxes.lower[1:, : widths[1]] - 1e-15).all()


def test_warm_and_cold_starts_agree():
    rng = np.random.default_rng(5)
    boxes = learned_boxes(rng, [1, 4, 4, 1], 3, 1000)
    state = entropy_state(boxes.widths, 3)
    for k in range(20):
        costs = 5 * rng.standard_normal((3, 4, 3))
        solve_entropy(costs.copy(), boxes, state, k > 0)
        np.testing.assert_allclose(
            state.policy[0, 0], entropy_ftrl(costs, boxes).policy[0, 0], atol=1e-4
        )


@pytest.mark.parametrize("visits", [20, 400, 1e4])
def test_barrier_matches_clarabel(visits):
    rng = np.random.default_rng(int(visits))
    boxes = learned_boxes(rng, [1, 3, 3, 1], 2, visits)
    start = barrier_state(boxes.widths, 2).occupancy
    losses = 4 * rng.random((3, 3, 2))
    ours = barrier_update(losses, 0.5, start, boxes)
    listed, _ = triples(boxes)
    cost = np.array([0.5 * losses[t[:3]] + 1 / start[t] for t in listed])
    theirs = clarabel_solve(cost, boxes, barrier=True)
    q = np.array([ours.occupancy[t] for t in listed])
    assert_feasible(ours, boxes)
    assert ours.gap < 1e-8
    # Clarabel stops at 1e-8 relative to its own scaling; our gap above is the sharper statement.
    assert cost @ q - np.log(q).sum() == pytest.approx(theirs.obj_val, abs=1e-4)


def test_barrier_without_losses_stays():
    rng = np.random.default_rng(0)
    boxes = learned_boxes(rng, [1, 3, 3, 1], 2, 1000)
    moved = barrier_update(
        rng.random((3, 3, 2)), 0.1, barrier_state(boxes.widths, 2).occupancy, boxes
    )
    occupancy = np.maximum(moved.occupancy, 1e-30)
    again = barrier_update(np.zeros((3, 3, 2)), 0.1, occupancy, boxes)
    np.testing.assert_allclose(again.occupancy, moved.occupancy, atol=1e-9)


def test_barrier_certificates_over_many_steps():
    rng = np.random.default_rng(1)
    for visits in (1, 100, 1e5):
        boxes = learned_boxes(rng, [1, 4, 4, 4, 1], 2, visits)
        state, room = barrier_state(boxes.widths, 2), np.zeros_like(boxes.lower)
        for _ in range(200):
            bounds = np.maximum(upper_occupancy_bounds(state.policy, boxes), 1e-12)
            noise = np.clip(rng.laplace(size=(4, 4, 2)), -5, 6) / bounds
            gap, _ = barrier_step(noise, 0.1, boxes, state, room)
            assert gap < 1e-6


@pytest.mark.parametrize("visits", [5, 100, 5000])
def test_upper_occupancy_bounds_equal_the_linear_program(visits):
    rng = np.random.default_rng(visits)
    boxes = learned_boxes(rng, [1, 3, 2, 3, 1], 2, visits)
    policy = rng.dirichlet(np.ones(2), size=(4, 3))
    ours = upper_occupancy_bounds(policy, boxes)
    listed, index = triples(boxes)
    equal, value, below = constraints(boxes)
    rows = []
    for h in range(4):  # q(x,a) = pi(a|x)·q(x)
        for x in range(boxes.widths[h]):
            for a in range(2):
                row = np.zeros(len(listed))
                for b in range(2):
                    for y in range(boxes.widths[h + 1]):
                        row[index[h, x, b, y]] += (a == b) - policy[h, x, a]
                rows.append(row)
    equal = np.vstack([equal, rows])
    value = np.concatenate([value, np.zeros(len(rows))])
    for h in range(4):
        for x in range(boxes.widths[h]):
            goal = np.zeros(len(listed))
            for y in range(boxes.widths[h + 1]):
                goal[index[h, x, 1, y]] = -1
            found = optimize.linprog(
                goal, below, np.zeros(len(below)), equal, value, method="highs"
            )
            assert ours[h, x, 1] == pytest.approx(-found.fun, abs=1e-9)


def test_box_scale_gives_a_distribution():
    rng = np.random.default_rng(2)
    for _ in range(300):
        n = int(rng.integers(1, 7))
        p = rng.dirichlet(np.ones(n))
        width = rng.random(n) * rng.choice([1e-3, 0.1, 1])
        lower, upper = np.maximum(p - width, 0), np.minimum(p + width, 1)
        nu = rng.standard_normal(n) * 3
        weights, order = np.exp(nu - nu.max()), np.empty(n, np.int64)
        column = lower[None, :, None], upper[None, :, None]
        t = box_scale(0, weights, *column, 0, n, 1.0)
        assert np.clip(t * weights, lower, upper).sum() == pytest.approx(1, abs=1e-12)
        sort_descending(nu, n, order)
        assert np.array_equal(nu[order], np.sort(nu)[::-1])


@pytest.mark.core
def test_a_missed_certificate_raises():
    check_gap(1e-6)
    with pytest.raises(SolverError, match=r"duality gap of 0\.5"):
        check_gap(0.5)
    with pytest.raises(SolverError, match="in episode 7"):
        check_gap(float("nan"), 7)
