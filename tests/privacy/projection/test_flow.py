"""The flow projection against a general-purpose QP solver, its certificate and its invariances."""

import numpy as np
import pytest

from discreet.errors import InvalidInputError, SolverError
from discreet.privacy.projection import flow
from discreet.privacy.projection import flow as flow_module
from discreet.privacy.projection import flow as kernels
from discreet.privacy.projection.flow import consistent_flow


def random_batch(rng, states, actions, horizon, users, deviation):
    """Counts of a real flow under random dynamics, plus noise on every cell."""
    support = rng.random((horizon, states, actions)) < 0.5
    np.put_along_axis(support, rng.integers(actions, size=(horizon, states, 1)), True, axis=2)
    start = rng.random(states) < 0.5
    start[rng.integers(states)] = True
    moves = rng.dirichlet(np.full(states, 0.3), size=(horizon, states, actions))
    policy = support / support.sum(-1, keepdims=True)
    here, true = users * start / start.sum(), np.zeros(moves.shape)
    for h in range(horizon):
        true[h] = here[:, None, None] * policy[h][..., None] * moves[h]
        here = true[h].sum(axis=(0, 1))
    return true, true + rng.normal(scale=deviation, size=true.shape), support, start


def violation(x, users, start):
    """Largest violated flow equation, and the most negative count."""
    inflow, outflow = x.sum(axis=(1, 2)), x.sum(axis=(2, 3))
    gaps = [abs(x[0].sum() - users), np.abs(outflow[0][~start]).sum()]
    gaps += [np.abs(inflow[:-1] - outflow[1:]).max(initial=0.0)]
    return max(gaps), x.min()


def quadratic_program(noisy, users, support, start, variance):
    """The same projection by Clarabel, from the constraints as written (scaled to order one)."""
    import clarabel
    from benchmarks.bench_flow import flow_constraints
    from scipy import sparse

    cells = support.copy()
    cells[0] &= start[:, None]
    rows, matrix, right, cones = flow_constraints(cells, users=1.0)
    states = noisy.shape[1]
    weight = np.repeat(1 / variance[rows], states)
    cost = -weight * noisy[rows].ravel() / users
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    solver = clarabel.DefaultSolver(
        sparse.diags(weight).tocsc(), cost, matrix, right, cones, settings
    )
    out = np.zeros_like(noisy)
    out[rows] = users * np.array(solver.solve().x).reshape(-1, states)
    return out


@pytest.mark.parametrize("seed", range(40))
def test_equals_a_general_qp_solver(seed):
    rng = np.random.default_rng(seed)
    states, actions, horizon = rng.integers(2, 6), rng.integers(1, 4), rng.integers(1, 7)
    users = float(rng.choice([3, 30, 300]))
    _, noisy, support, start = random_batch(rng, states, actions, horizon, users, 20.0)
    variance = rng.uniform(1, 30, size=noisy.shape[:3])
    flow = consistent_flow(noisy, users=users, support=support, start=start, variance=variance)
    gap, lowest = violation(flow.transitions, users, start)
    assert gap < 1e-5
    assert lowest >= 0
    assert (flow.transitions[~support] == 0).all()
    oracle = quadratic_program(noisy, users, support, start, variance)
    np.testing.assert_allclose(flow.transitions, oracle, atol=1e-3)


@pytest.mark.parametrize("users", [5.0, 3e3, 3e6])
def test_no_feasible_flow_is_closer(users):
    # The variational inequality <(y - x)/variance, z - x> <= 0 for feasible z: exact optimality.
    rng = np.random.default_rng(int(users))
    _, noisy, support, start = random_batch(rng, 4, 2, 6, users, 20.0)
    flow = consistent_flow(noisy, users=users, support=support, start=start, variance=400.0)
    x = flow.transitions
    for _ in range(50):
        moves = rng.dirichlet(np.full(4, 0.3), size=support.shape) * support[..., None]
        choice = rng.dirichlet(np.full(2, 0.5), size=(6, 4)) * support
        choice /= choice.sum(-1, keepdims=True)
        here, z = users * rng.dirichlet(np.ones(4)) * start, np.zeros_like(x)
        here *= users / here.sum()
        for h in range(6):
            z[h] = here[:, None, None] * choice[h][..., None] * moves[h]
            here = z[h].sum(axis=(0, 1))
        gain = ((noisy - x)[support] * (z - x)[support]).sum()
        assert gain <= 1e-6 * np.linalg.norm(z - x) * 20.0 + 1e-9 * users


@pytest.mark.core
@pytest.mark.parametrize("users", [1, 10, 10**4, 10**8, 10**12])
def test_any_number_of_users(users):
    rng = np.random.default_rng(users % 97)
    true, noisy, support, start = random_batch(rng, 5, 3, 8, float(users), 20.0)
    flow = consistent_flow(noisy, users=users, support=support, start=start, variance=400.0)
    gap, lowest = violation(flow.transitions, users, start)
    assert gap <= max(1e-4, 1e-11 * users)
    assert lowest >= 0
    error = np.abs(flow.transitions - true)[support]
    raw = np.abs(noisy - true)[support]
    assert error.mean() < raw.mean()


@pytest.mark.core
def test_consistent_counts_are_kept():
    rng = np.random.default_rng(1)
    true, _, support, start = random_batch(rng, 4, 2, 6, 500.0, 0.0)
    flow = consistent_flow(true, users=500, support=support, start=start)
    np.testing.assert_allclose(flow.transitions, true, atol=1e-5)


def test_signed_flows_are_linear_and_unbiased():
    rng = np.random.default_rng(2)
    true, _, support, start = random_batch(rng, 4, 2, 5, 100.0, 0.0)
    noise = rng.normal(scale=20.0, size=(2, *true.shape))

    def signed(noisy):
        return consistent_flow(
            noisy, users=100, support=support, start=start, variance=400.0, signed=True
        ).transitions

    one, two, both = signed(true + noise[0]), signed(true + noise[1]), signed(true + noise.mean(0))
    np.testing.assert_allclose((one + two) / 2, both, atol=1e-4)
    np.testing.assert_allclose(
        (signed(true + noise[0]) + signed(true - noise[0])) / 2, true, atol=1e-4
    )
    assert one.min() < 0


@pytest.mark.parametrize("users", [3.0, 5000.0, 1e9])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("uneven", [False, True])
def test_the_sparse_solver_agrees_with_the_factorisation(monkeypatch, users, signed, uneven):
    rng = np.random.default_rng(3)
    for states, actions, horizon in [(30, 1, 6), (12, 2, 4), (7, 1, 1)]:
        _, noisy, support, start = random_batch(rng, states, actions, horizon, users, 20.0)
        variance = 400.0 * (rng.uniform(0.1, 1.0, support.shape) if uneven else 1.0)
        arguments = {"users": users, "support": support, "start": start, "variance": variance}
        with monkeypatch.context() as patched:
            direct = consistent_flow(noisy, signed=signed, **arguments)
            patched.setattr(flow_module, "DIRECT_STATES", 1)
            sparse = consistent_flow(noisy, signed=signed, **arguments)
        np.testing.assert_allclose(
            sparse.transitions, direct.transitions, atol=1e-3 + 1e-11 * users
        )
        gap, lowest = violation(sparse.transitions, users, start)
        assert gap <= 2 * max(1e-6 * 20.0, 1e-12 * users)
        assert signed or lowest >= 0


@pytest.mark.parametrize("shift", [0.0, 100.0, 1e4])
def test_hostile_noise_still_meets_the_certificate_sparsely(monkeypatch, shift):
    monkeypatch.setattr(flow_module, "DIRECT_STATES", 1)
    rng = np.random.default_rng(4)
    for _ in range(30):
        noisy = rng.normal(scale=50.0, size=(6, 4, 1, 4)) - shift
        flow = consistent_flow(noisy, users=3, variance=2500.0)
        gap, lowest = violation(flow.transitions, 3, np.ones(4, bool))
        assert gap <= 5e-4
        assert lowest >= 0


def test_a_large_problem_with_few_users():
    # 144,000 cells for 1,000 users: nearly all of them end at zero.
    rng = np.random.default_rng(6)
    _, noisy, support, start = random_batch(rng, 150, 1, 6, 1000.0, 20.0)
    flow = consistent_flow(noisy, users=1000, support=support, start=start, variance=400.0)
    gap, lowest = violation(flow.transitions, 1000, start)
    assert gap <= 2e-5
    assert lowest >= 0
    assert (flow.transitions > 0).mean() < 0.02


def test_hostile_noise_still_meets_the_certificate():
    # Counts that are almost all negative: whole layers start without an active cell.
    rng = np.random.default_rng(4)
    for _ in range(200):
        noisy = rng.normal(scale=50.0, size=(6, 4, 1, 4)) - rng.choice([0.0, 100.0, 1e4])
        flow = consistent_flow(noisy, users=3, variance=2500.0)
        gap, lowest = violation(flow.transitions, 3, np.ones(4, bool))
        assert gap <= 5e-4
        assert lowest >= 0


def test_a_missed_certificate_is_an_error(monkeypatch):
    from discreet.privacy.projection import flow

    monkeypatch.setattr(flow, "project_rows", lambda *_: (5.0, 200))
    with pytest.raises(SolverError, match="imbalance of 5 users"):
        consistent_flow(np.ones((2, 2, 1, 2)), users=4)


@pytest.mark.core
@pytest.mark.parametrize(
    "change",
    [
        {"transitions": np.ones((2, 2, 1, 3))},
        {"transitions": np.full((2, 2, 1, 2), np.nan)},
        {"users": 0},
        {"users": np.inf},
        {"support": np.zeros((2, 2, 1), bool)},
        {"support": np.ones((2, 2, 2), bool)},
        {"start": np.zeros(2, bool)},
        {"variance": 0.0},
        {"variance": np.nan},
    ],
)
def test_bad_input_is_refused(change):
    arguments = {"transitions": np.ones((2, 2, 1, 2)), "users": 4} | change
    with pytest.raises(InvalidInputError):
        consistent_flow(arguments.pop("transitions"), **arguments)


def test_rows_give_what_dense_arrays_give():
    _, noisy, support, start = random_batch(np.random.default_rng(5), 4, 3, 5, 500.0, 20.0)
    arguments = {"users": 500, "support": support, "start": start, "variance": 400.0}
    dense = consistent_flow(noisy, **arguments)
    rows = consistent_flow(noisy[support], **arguments)
    np.testing.assert_array_equal(rows.transitions, dense.transitions[support])
    np.testing.assert_array_equal(rows.visits, dense.visits[support])
    with pytest.raises(InvalidInputError, match="rows of support"):
        consistent_flow(noisy[support][1:], **arguments)


def test_the_compiled_projection_sees_contiguous_arrays(monkeypatch):
    """Arrays of another layout would be compiled for once more, for seconds."""
    seen, compiled = [], flow.project_rows

    def spy(*arguments):
        seen.extend(each for each in arguments if isinstance(each, np.ndarray))
        return compiled(*arguments)

    monkeypatch.setattr(flow, "project_rows", spy)
    _, noisy, support, start = random_batch(np.random.default_rng(6), 3, 2, 3, 50.0, 5.0)
    consistent_flow(noisy, users=50, support=support, start=start, variance=25.0)
    assert len(seen) == 5
    assert all(each.flags.c_contiguous for each in seen)


# --- Parts of the flow solver against the formulas they quote, written with whole arrays


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
