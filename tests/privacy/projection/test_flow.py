"""The flow projection against a general-purpose QP solver, its certificate and its invariances."""

import numpy as np
import pytest

from discreet.errors import InvalidInputError, SolverError
from discreet.privacy.projection import flow as solver
from discreet.privacy.projection.flow import Edges, Network, consistent_flow


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


@pytest.mark.parametrize("users", [3.0, 5000.0, 1e9])
@pytest.mark.parametrize("uneven", [False, True])
def test_conjugate_gradients_agree_with_the_factorisation(monkeypatch, users, uneven):
    rng = np.random.default_rng(3)
    for states, actions, horizon in [(30, 1, 6), (12, 2, 4), (7, 1, 1)]:
        _, noisy, support, start = random_batch(rng, states, actions, horizon, users, 20.0)
        variance = 400.0 * (rng.uniform(0.1, 1.0, support.shape) if uneven else 1.0)
        arguments = {"users": users, "support": support, "start": start, "variance": variance}
        with monkeypatch.context() as patched:
            patched.setattr(solver, "DIRECT_NODES", 1000)
            direct = consistent_flow(noisy, **arguments)
            patched.setattr(solver, "DIRECT_NODES", 0)
            large = consistent_flow(noisy, **arguments)
        np.testing.assert_allclose(large.transitions, direct.transitions, atol=1e-6 + 1e-11 * users)
        gap, lowest = violation(large.transitions, users, start)
        assert gap <= 1e-7 + 1e-11 * users
        assert lowest >= 0


@pytest.mark.parametrize("shift", [0.0, 100.0, 1e4])
def test_hostile_noise_still_meets_the_certificate_with_conjugate_gradients(monkeypatch, shift):
    monkeypatch.setattr(solver, "DIRECT_NODES", 0)
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
    monkeypatch.setattr(solver, "climb", lambda *_: (5.0, 200))
    with pytest.raises(SolverError, match="imbalance of 5 users"):
        consistent_flow(np.ones((2, 2, 1, 2)), users=4)


@pytest.mark.parametrize("users", [30.0, 3e5])
def test_the_flow_equations_hold_to_a_billionth_of_the_noise(users):
    """The least change of a count can decide between two policies of the same value."""
    rng = np.random.default_rng(11)
    _, noisy, support, start = random_batch(rng, 4, 2, 6, users, 20.0)
    flow = consistent_flow(noisy, users=users, support=support, start=start, variance=400.0)
    assert violation(flow.transitions, users, start)[0] <= 2e-8 + 1e-11 * users


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


def test_the_compiled_solver_sees_contiguous_arrays(monkeypatch):
    """Arrays of another layout would be compiled for once more, for seconds."""
    seen, compiled = [], solver.climb

    def spy(network, *others):
        everything = [*network[:4], *network.edges, *others]
        seen.extend(each for each in everything if isinstance(each, np.ndarray))
        return compiled(network, *others)

    monkeypatch.setattr(solver, "climb", spy)
    noisy, support = np.ones((3, 3, 2, 3)), np.ones((3, 3, 2), bool)
    consistent_flow(noisy, users=50, support=support, variance=25.0)
    consistent_flow(np.asfortranarray(noisy[support]), users=50, support=support, variance=25.0)
    assert len(seen) == 18
    assert all(each.flags.c_contiguous for each in seen)


# --- The compiled parts, on networks that can be solved by hand


def network(*edges, nodes):
    """Of (tail, head, measured, variance) alone; head ``nodes`` is the ground."""
    tail, head, measured, variance = (np.array(part) for part in zip(*edges, strict=True))
    listed = Edges(tail, head, measured.astype(float), variance.astype(float))
    return Network(np.empty((0, 1)), np.empty(0), tail[:0], tail[:0], listed, nodes)


def solved(whole, users, direct):
    u, other = np.zeros(whole.ground + 1), np.empty(whole.edges.tail.size)
    worst, _ = solver.climb(whole, users, 1e-9, direct, u)
    assert worst <= 1e-9
    solver.flows(whole, u, np.empty((0, 1)), other)
    return other


both_solvers = pytest.mark.parametrize("direct", [True, False])


@both_solvers
def test_two_ways_share_what_is_missing_by_their_variances(direct):
    found = solved(network((0, 1, 4.0, 1.0), (0, 1, 3.0, 3.0), nodes=1), 11.0, direct)
    np.testing.assert_allclose(found, [5.0, 6.0], atol=1e-6)


@both_solvers
def test_no_flow_is_negative(direct):
    found = solved(network((0, 1, 9.0, 1.0), (0, 1, -9.0, 1.0), nodes=1), 2.0, direct)
    np.testing.assert_allclose(found, [2.0, 0.0], atol=1e-6)


@both_solvers
def test_two_looks_at_one_flow_are_averaged_by_their_precisions(direct):
    # Way 1 is measured as 8 with variance 1 and, further on, as 2 with variance 2; way 2 hardly.
    ways = network((0, 1, 8.0, 1.0), (1, 2, 2.0, 2.0), (0, 2, 0.0, 1e6), nodes=2)
    np.testing.assert_allclose(solved(ways, 100.0, direct)[:2], 6.0, atol=1e-3)


@both_solvers
def test_flow_finds_the_way_that_carries_none_at_first(direct):
    ways = [(0, 1, 1.0, 1.0), (0, 2, -5.0, 1.0), (1, 3, 0.0, 1.0), (2, 3, 60.0, 1.0)]
    found = solved(network(*ways, nodes=3), 10.0, direct)
    assert found[1] > 5
    np.testing.assert_allclose(found, [found[0], 10 - found[0], found[0], 10 - found[0]])


# Two rows lead from the start to both states, three from the states to the ground (nodes 3 and 4);
# two more edges lead from a state to the other one and to the ground.
ROWS = Network(
    np.array([[3.0, -2.0], [0.5, 1.0], [-4.0, 2.0], [1.0, -0.1], [2.0, 3.0]]),
    np.array([1.0, 0.5, 2.0, 1.5, 0.7]),
    np.array([0, 0, 1, 1, 2]),
    np.array([1, 1, 3, 3, 3]),
    Edges(np.array([1, 2]), np.array([2, 3]), np.array([0.5, -0.5]), np.array([3.0, 1.0])),
    3,
)
LISTED = [(t, h + j) for t, h in zip(ROWS.tail, ROWS.head, strict=True) for j in (0, 1)]
LISTED += list(zip(ROWS.edges.tail, ROWS.edges.head, strict=True))
MEASURED = np.append(ROWS.counts.ravel(), ROWS.edges.measured)
VARIANCE = np.append(np.repeat(ROWS.variance, 2), ROWS.edges.variance)


@pytest.fixture
def potentials():
    u = np.random.default_rng(4).normal(0, 1, 5)
    u[3:] = 0
    return u


def minimiser(u):
    x, other = np.empty((5, 2)), np.empty(2)
    solver.flows(ROWS, u, x, other)
    return np.append(x.ravel(), other)


def gradient(u, users=10.0):
    g = np.full(5, np.nan)
    return g, solver.imbalance(ROWS, users, u, g)


def laplacian(u):
    """Of the edges that carry flow, from the definition; without the ground."""
    matrix = np.zeros((5, 5))
    for (tail, head), weight, x in zip(LISTED, VARIANCE, minimiser(u), strict=True):
        edge = np.zeros(5)
        edge[tail], edge[head] = 1, -1
        matrix += weight * (x > 0) * np.outer(edge, edge)
    return matrix[:3, :3]


def carrying(u, room=12):
    tail, head, weight = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room)
    n = solver.active(ROWS, u, tail, head, weight)
    return n, (tail[:n], head[:n], weight[:n])


def test_flows_are_the_minimiser_for_fixed_potentials(potentials):
    rise = np.array([potentials[tail] - potentials[head] for tail, head in LISTED])
    assert minimiser(potentials) == pytest.approx(np.maximum(0, MEASURED + VARIANCE * rise))


def test_the_imbalance_is_inflow_minus_outflow(potentials):
    expected = np.array([10.0, 0, 0, 0, 0])
    for (tail, head), x in zip(LISTED, minimiser(potentials), strict=True):
        expected[tail] -= x
        expected[head] += x
    expected[3:] = 0.0  # the ground takes anything
    g, worst = gradient(potentials)
    assert g == pytest.approx(expected)
    assert worst == pytest.approx(np.abs(expected).max())


def test_the_imbalance_is_the_gradient_of_the_dual(potentials):
    def dual(u):
        # The Lagrangian at its minimiser, up to terms that do not depend on the potentials.
        x = minimiser(u)
        return ((x - MEASURED) ** 2 / (2 * VARIANCE)).sum() + gradient(u)[0] @ u

    for node in range(3):
        up, down = potentials.copy(), potentials.copy()
        up[node] += 1e-6
        down[node] -= 1e-6
        slope = (dual(up) - dual(down)) / 2e-6
        assert slope == pytest.approx(gradient(potentials)[0][node], rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("room", [0, 3, 12])
def test_active_edges_are_counted_and_written_as_far_as_there_is_room(potentials, room):
    expected = np.flatnonzero(minimiser(potentials) > 0)
    n, (tail, head, weight) = carrying(potentials, room)
    assert n == expected.size > 3
    assert list(zip(tail, head, strict=True)) == [LISTED[e] for e in expected[:room]]
    assert weight.tolist() == VARIANCE[expected[:room]].tolist()


def test_newton_solves_the_system_of_active_edges(potentials):
    matrix, (_, edges) = laplacian(potentials), carrying(potentials)
    ridge, scale, g = np.full(5, 0.3), np.empty(5), gradient(potentials)[0]
    solver.diagonal(*edges, scale)
    assert scale[:3] == pytest.approx(np.diag(matrix))
    expected = np.linalg.solve(matrix + 0.3 * np.eye(3), g[:3])
    direct, nearly = g.copy(), g.copy()
    assert solver.envelope(ROWS).tolist() == [0, 0, 0]
    solver.factorised(*edges, ridge, solver.envelope(ROWS), direct)
    assert direct[:3] == pytest.approx(expected)
    solver.conjugate_gradients(*edges, ridge, scale + ridge, 3, nearly)
    assert nearly[:3] == pytest.approx(expected, rel=0.05)
    assert not nearly[3:].any()


@pytest.mark.parametrize("size", [1, 9, 40])
def test_a_matrix_with_a_ragged_envelope_is_factorised(size):
    """Every node has a neighbour somewhere before it, and the ground."""
    rng = np.random.default_rng(size)
    head = np.arange(1, size + 1).repeat(2)
    tail = rng.integers(0, head)
    weight, ridge = rng.uniform(1, 2, tail.size), rng.uniform(0.1, 0.2, size)
    first = np.arange(size)
    inside = head < size
    np.minimum.at(first, head[inside], tail[inside])
    matrix = np.zeros((size + 1, size + 1))
    for i, j, w in zip(tail, head, weight, strict=True):
        matrix[np.ix_([i, j], [i, j])] += w * np.array([[1, -1], [-1, 1]])
    g = rng.normal(size=size)
    step = g.copy()
    solver.factorised(tail.astype(np.int32), head.astype(np.int32), weight, ridge, first, step)
    assert step == pytest.approx(np.linalg.solve(matrix[:size, :size] + np.diag(ridge), g))
