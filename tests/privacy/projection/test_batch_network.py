"""Second looks, missing last transitions and users who leave, against a general QP solver."""

import numpy as np
import pytest

from discreet.errors import InvalidInputError
from discreet.privacy.projection import flow
from discreet.privacy.projection.flow import consistent_flow
from discreet.privacy.projection.measurements import Measurements


class Batch:
    """Users of a random problem, some of whom leave the policy in one state of each step."""

    def __init__(self, rng, states, actions, horizon, users, leaving=0.0, deviation=20.0):
        self.users, self.horizon, self.states = float(users), horizon, states
        support = rng.random((horizon, states, actions)) < 0.5
        np.put_along_axis(support, rng.integers(actions, size=(horizon, states, 1)), True, axis=2)
        self.support, self.start = support, rng.random(states) < 0.5
        self.start[rng.integers(states)] = True
        moves = rng.dirichlet(np.full(states, 0.3), size=(horizon, states, actions))
        policy = support / support.sum(-1, keepdims=True)
        here, self.true = users * self.start / self.start.sum(), np.zeros(moves.shape)
        self.dropped_out = np.zeros(horizon)
        for h in range(horizon):
            stay = np.ones(states)
            stay[rng.integers(states)] -= leaving
            self.dropped_out[h:] += (here * (1 - stay)).sum()
            self.true[h] = (here * stay)[:, None, None] * policy[h][..., None] * moves[h]
            here = self.true[h].sum(axis=(0, 1))
        self.visits = self.true.sum(axis=-1)
        self.noisy = self.true + rng.normal(scale=deviation, size=self.true.shape)
        self.look = self.visits + np.sqrt(2) * rng.normal(scale=deviation, size=self.visits.shape)
        self.gone = self.dropped_out + rng.normal(scale=deviation, size=horizon)
        self.variance = deviation**2

    def measurements(self, *, visits, dropped_out, last):
        steps = self.horizon if last or visits else self.horizon - 1
        counted = self.gone[:steps] if dropped_out else None
        spread = np.full(steps, self.variance) if dropped_out else None
        return Measurements(self.look if visits else None, 2 * self.variance, counted, spread, last)

    def project(self, measurements):
        return consistent_flow(
            self.noisy,
            users=self.users,
            support=self.support,
            start=self.start,
            variance=self.variance,
            measurements=measurements,
        )


def quadratic_program(batch, measurements, free):
    """The same program by Clarabel, from the constraints as written (scaled to order one)."""
    import clarabel
    from scipy import sparse

    horizon, states, users = batch.horizon, batch.states, batch.users
    cells = batch.support.copy()
    cells[0] &= batch.start[:, None]
    rows = list(zip(*np.nonzero(cells), strict=True))
    moving = horizon if measurements.last_transitions else horizon - 1
    names = [("x", *r, j) for r in rows if r[0] < moving for j in range(states)]
    names += [("v", *r) for r in rows]
    counted = 0 if measurements.dropped_out is None else len(measurements.dropped_out)
    names += [("leave", h, s) for h in range(counted) for s in (range(states) if h else [0])]
    names += [("dropped_out", h) for h in range(counted)]
    at = {name: i for i, name in enumerate(names)}
    equations, right = [], []

    def equation(terms, value=0.0):
        row = np.zeros(len(names))
        for sign, name in terms:
            if name in at:
                row[at[name]] += sign
        equations.append(row)
        right.append(value)

    for r in rows:
        if r[0] < moving:
            equation([(1, ("v", *r))] + [(-1, ("x", *r, j)) for j in range(states)])
    equation([(1, ("v", *r)) for r in rows if r[0] == 0] + [(1, ("leave", 0, 0))], 1.0)
    for h in range(1, horizon):
        for s in range(states):
            inflow = [(1, ("x", *r, s)) for r in rows if r[0] == h - 1]
            out = [(-1, ("v", *r)) for r in rows if r[:2] == (h, s)]
            equation([*inflow, *out, (-1, ("leave", h, s))])
    for h in range(counted):
        joined = [(-1, ("leave", h, s)) for s in range(states)]
        equation([(1, ("dropped_out", h)), (-1, ("dropped_out", h - 1)), *joined])
    weight, goal = np.zeros(len(names)), np.zeros(len(names))
    for name, i in at.items():
        match name:
            case ("x", h, s, a, j):
                weight[i], goal[i] = 1 / batch.variance, batch.noisy[h, s, a, j]
            case ("v", h, s, a) if measurements.visits is not None:
                weight[i], goal[i] = 1 / measurements.visit_variance, measurements.visits[h, s, a]
            case ("dropped_out", h):
                weight[i], goal[i] = (
                    1 / measurements.dropped_out_variance[h],
                    measurements.dropped_out[h],
                )
            case ("leave", h, s):
                weight[i], goal[i] = 1 / (free[1] * batch.variance), free[0].get((h, s), 0.0)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    matrix = sparse.vstack([np.array(equations), -sparse.identity(len(names))]).tocsc()
    cones = [clarabel.ZeroConeT(len(equations)), clarabel.NonnegativeConeT(len(names))]
    bound = np.concatenate([right, np.zeros(len(names))])
    scaled = weight * batch.variance
    solver = clarabel.DefaultSolver(
        sparse.diags(scaled).tocsc(), -scaled * goal / users, matrix, bound, cones, settings
    )
    solution = users * np.array(solver.solve().x)
    return {name: solution[i] for name, i in at.items()}


def suggested(batch, measurements):
    """Inflow minus outflow of every state, as far as they are measured, if positive."""
    cells = batch.support.copy()
    cells[0] &= batch.start[:, None]
    noisy = np.where(cells[..., None], batch.noisy, 0.0)
    if not measurements.last_transitions:
        noisy[-1] = 0.0
    out = (
        noisy.sum(axis=-1)
        if measurements.visits is None
        else np.where(cells, measurements.visits, 0.0)
    )
    gap = noisy.sum(axis=(1, 2))[:-1] - out.sum(axis=2)[1:]
    return {(h + 1, s): max(0.0, gap[h, s]) for h in range(len(gap)) for s in range(gap.shape[1])}


@pytest.mark.parametrize("seed", range(24))
def test_equals_a_general_qp_solver(seed):
    rng = np.random.default_rng(seed)
    visits, dropped_out, last = bool(seed & 1), bool(seed & 2), bool(seed & 4)
    horizon = int(rng.integers(1 if visits else 2, 6))
    batch = Batch(rng, int(rng.integers(2, 5)), int(rng.integers(1, 3)), horizon,
                  float(rng.choice([300, 3000])), leaving=0.4 * dropped_out)  # fmt: skip
    batch.gone += 200.0  # whatever noise explains
    measurements = batch.measurements(visits=visits, dropped_out=dropped_out, last=last)
    found = batch.project(measurements)
    oracle = quadratic_program(batch, measurements, (suggested(batch, measurements), flow.FREE))
    for name, value in oracle.items():
        match name:
            case ("x", *place):
                assert found.transitions[tuple(place)] == pytest.approx(value, abs=0.02)
            case ("v", *place) if visits or last:
                assert found.visits[tuple(place)] == pytest.approx(value, abs=0.02)
            case ("dropped_out", h):
                assert found.dropped_out[h] == pytest.approx(value, abs=0.02)


@pytest.mark.parametrize("seed", range(6))
def test_the_large_solver_finds_the_same(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    batch = Batch(rng, 8, 2, 6, 2000.0, leaving=0.3 * (seed % 2))
    measurements = batch.measurements(visits=True, dropped_out=bool(seed % 2), last=bool(seed & 2))
    direct = batch.project(measurements)
    monkeypatch.setattr(flow, "DIRECT_NODES", 0)
    large = batch.project(measurements)
    np.testing.assert_allclose(large.transitions, direct.transitions, atol=1e-5)
    np.testing.assert_allclose(large.visits, direct.visits, atol=1e-5)


def visits_error(looks_of, leaving, runs=40):
    """Errors of the visits by step ``[runs, H, S]``, at 20,000 users and noise of 16."""
    errors = []
    for seed in range(runs):
        batch = Batch(np.random.default_rng(seed), 4, 1, 6, 20_000.0, leaving, deviation=16.0)
        errors.append((batch.project(looks_of(batch)).visits - batch.visits)[..., 0])
    return np.array(errors)


def root_mean_square(errors):
    return np.sqrt((errors**2).mean())


def test_counting_those_who_left_costs_little_where_nobody_leaves():
    plain = visits_error(lambda b: b.measurements(visits=False, dropped_out=False, last=True), 0.0)
    counted = visits_error(lambda b: b.measurements(visits=False, dropped_out=True, last=True), 0.0)
    assert root_mean_square(counted) <= 1.02 * root_mean_square(plain)
    assert abs(counted.mean()) < 1.0


@pytest.mark.parametrize("visits", [False, True])
def test_visits_stay_right_where_a_fifth_leaves_in_one_state(visits):
    def measurements(batch, dropped_out=True):
        return batch.measurements(visits=visits, dropped_out=dropped_out, last=not visits)

    errors = visits_error(measurements, 0.2)
    nobody = visits_error(measurements, 0.0)
    assert root_mean_square(errors) < 1.35 * root_mean_square(nobody)
    assert abs(errors.mean()) < 2.0
    # Without the count, hundreds of users are where they are not.
    blind = visits_error(lambda b: measurements(b, dropped_out=False), 0.2, runs=5)
    assert root_mean_square(blind) > 300


def test_a_second_look_is_used_by_its_variance():
    alone = visits_error(lambda b: b.measurements(visits=False, dropped_out=False, last=True), 0.0)
    both = visits_error(lambda b: b.measurements(visits=True, dropped_out=False, last=True), 0.0)
    vague = visits_error(lambda b: Measurements(b.look, 1e9), 0.0)
    assert root_mean_square(both) < 0.8 * root_mean_square(alone)
    np.testing.assert_allclose(vague, alone, atol=0.05)


def test_the_last_step_is_visited_by_who_arrives():
    batch = Batch(np.random.default_rng(3), 3, 2, 4, 1e6)
    found = batch.project(batch.measurements(visits=False, dropped_out=False, last=False))
    assert not found.transitions[-1].any()
    arrived = found.transitions[-2].sum(axis=(0, 1))
    np.testing.assert_allclose(found.visits[-1].sum(axis=1), arrived)
    several = batch.support[-1].sum(axis=1) > 1
    assert several.any()
    for s in np.flatnonzero(several):  # nothing tells the actions apart
        assert np.ptp(found.visits[-1, s][batch.support[-1, s]]) == 0


def test_a_single_step_needs_a_look_at_its_visits():
    batch = Batch(np.random.default_rng(0), 3, 2, 1, 1000.0)
    found = batch.project(batch.measurements(visits=True, dropped_out=False, last=False))
    assert found.visits.sum() == pytest.approx(1000.0)
    with pytest.raises(InvalidInputError, match="some measurement of the visits"):
        batch.project(batch.measurements(visits=False, dropped_out=False, last=False))


def test_bad_looks():
    batch = Batch(np.random.default_rng(0), 3, 2, 3, 1000.0)
    with pytest.raises(InvalidInputError, match="rows of the support"):
        batch.project(Measurements(batch.look[0, 0], 2 * batch.variance))
    with pytest.raises(InvalidInputError, match="visit_variance"):
        batch.project(Measurements(batch.look, 0.0))


def test_a_missed_certificate_is_an_error(monkeypatch):
    monkeypatch.setattr(flow, "climb", lambda *_: (0.5, 200))
    batch = Batch(np.random.default_rng(0), 3, 2, 3, 1000.0)
    with pytest.raises(flow.SolverError, match="imbalance"):
        batch.project(batch.measurements(visits=True, dropped_out=False, last=True))
