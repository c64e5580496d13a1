"""The closed-form valid distribution against its linear program and its geometry."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidInputError
from discreet.privacy.projection.valid_counts import valid_counts, valid_rows, valid_transitions


def optimal_value(counts, total, error):
    """The closed-form optimum of the linear program, for a feasible instance."""
    largest = np.cumsum(np.sort(counts)[::-1])
    above = (largest - total - error) / np.arange(1, counts.size + 1)
    return max(0.0, -counts.min(), (total - error - counts.sum()) / counts.size, above.max())


def linear_program_values(counts, totals, errors):
    """Optimal values of many independent instances, solved as one block-diagonal LP by HiGHS."""
    from scipy.optimize import linprog
    from scipy.sparse import block_diag, csr_matrix

    instances, states = counts.shape
    eye, ones = np.eye(states), np.ones((states, 1))
    row = np.ones((1, states))
    block = np.block([[eye, -ones], [-eye, -ones], [row, 0], [-row, 0]])
    bounds = np.hstack(
        [counts, -counts, (totals + errors)[:, None], (errors - totals)[:, None]]
    ).ravel()
    cost = np.tile(np.append(np.zeros(states), 1.0), instances)
    solved = linprog(
        cost,
        A_ub=block_diag([csr_matrix(block)] * instances, format="csr"),
        b_ub=bounds,
        bounds=(0, None),
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert solved.status == 0
    return solved.x.reshape(instances, states + 1)[:, -1]


def random_instances(rng, instances, states):
    scale = rng.choice([0.5, 5.0, 50.0], size=(instances, 1))
    counts = rng.normal(scale=scale, size=(instances, states)) + rng.integers(-3, 10)
    totals = counts.sum(axis=1) + rng.normal(scale=3 * scale[:, 0], size=instances)
    errors = np.where(rng.random(instances) < 0.2, 0.0, rng.exponential(scale[:, 0]))
    return counts, totals, errors


@pytest.mark.parametrize("states", [1, 2, 4, 7, 20])
def test_value_equals_highs(states):
    rng = np.random.default_rng(states)
    counts, totals, errors = random_instances(rng, 1000, states)
    feasible = totals + errors >= 0
    x = valid_transitions(counts, totals, errors)
    value = np.abs(x - counts).max(axis=1)
    oracle = linear_program_values(counts[feasible], totals[feasible], errors[feasible])
    np.testing.assert_allclose(value[feasible], oracle, atol=1e-9, rtol=0)
    closed = [optimal_value(*instance) for instance in zip(counts, totals, errors, strict=True)]
    np.testing.assert_allclose(value[feasible], np.array(closed)[feasible], atol=1e-9, rtol=0)
    assert (x >= 0).all()
    excess = np.abs(x.sum(axis=1) - totals) - errors
    assert excess[feasible].max() < 1e-9
    assert (~feasible).sum() > 20  # infeasible instances are really in the sample
    assert (x[~feasible] == 0).all()


@pytest.mark.core
def test_it_is_the_euclidean_projection():
    # Variational inequality: <n - x, y - x> <= 0 for every feasible y.
    rng = np.random.default_rng(3)
    counts, totals, errors = random_instances(rng, 400, 5)
    totals = np.maximum(totals, 0.1)
    x = valid_transitions(counts, totals, errors)
    for _ in range(20):
        y = rng.dirichlet(np.full(5, 0.3), size=400)
        y *= (totals + errors * rng.uniform(-1, 1, size=400)).clip(0)[:, None]
        inner = ((counts - x) * (y - x)).sum(axis=1)
        assert (inner <= 1e-8 * (1 + np.abs(counts).max(axis=1) ** 2)).all()


def test_it_is_a_common_shift_of_least_size():
    rng = np.random.default_rng(4)
    counts, totals, errors = random_instances(rng, 500, 6)
    totals = np.maximum(totals, 0.5)
    x = valid_transitions(counts, totals, errors)
    shift = np.where(x > 0, x - counts, np.nan)[x.sum(axis=1) > 0]
    assert len(shift) > 400
    assert (np.nanmax(shift, axis=1) - np.nanmin(shift, axis=1) < 1e-9).all()
    feasible_without = np.abs(np.maximum(counts, 0).sum(axis=1) - totals) <= errors
    assert feasible_without.any()
    np.testing.assert_array_equal(x[feasible_without], np.maximum(counts, 0)[feasible_without])


def test_it_is_continuous():
    rng = np.random.default_rng(5)
    counts, totals, errors = random_instances(rng, 500, 6)
    nudge = 1e-7
    moved = valid_transitions(counts + nudge * rng.uniform(-1, 1, counts.shape), totals, errors)
    assert np.abs(moved - valid_transitions(counts, totals, errors)).max() < 20 * nudge
    below = valid_transitions([[3.0, 1.0]], [-nudge], [0.0])
    above = valid_transitions([[3.0, 1.0]], [nudge], [0.0])
    assert np.abs(above - below).max() <= nudge * 1.001


@pytest.mark.core
def test_ends_where_an_entry_sits_on_the_boundary():
    # Entries that the shift brings to zero up to rounding once made the passes alternate for ever.
    rng = np.random.default_rng(8)
    for states in (3, 5, 9):
        counts = np.sort(rng.random((20_000, states)) * 100, axis=1)[:, ::-1].copy()
        totals = rng.random(20_000) * counts[:, 0]
        kept = states - 2
        counts[:, kept] = (counts[:, :kept].sum(axis=1) - totals) / kept
        x = valid_transitions(counts, totals, 0.0)
        np.testing.assert_allclose(x.sum(axis=1), totals, rtol=1e-9)


@pytest.mark.core
def test_noiseless_counts_are_kept():
    counts = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(valid_transitions(counts, counts.sum(axis=-1), 0.0), counts)


@pytest.mark.core
def test_totals_are_matched_within_a_quarter_and_half_the_error_is_added():
    """E = 8: a sum of 30 against 25 is brought to 27, then E/(2S) = 2 is added to each."""
    valid = valid_counts([10.0, 20.0], 25.0, 8.0)
    assert valid.transitions.tolist() == pytest.approx([8.5 + 2.0, 18.5 + 2.0])
    assert valid.visits == pytest.approx(27.0 + 4.0)


@pytest.mark.core
def test_visits_never_underestimate_while_the_noise_is_within_its_bound():
    rng = np.random.default_rng(6)
    bound = 8.0
    true = rng.integers(0, 30, size=(6, 4, 2, 4)).astype(float)
    # A noisy total within E/4 keeps the true counts feasible for the projection.
    noisy = true + rng.uniform(-bound / 4, bound / 4, true.shape)
    totals = true.sum(-1) + rng.uniform(-bound / 4, bound / 4, true.shape[:-1])
    valid = valid_counts(noisy, totals, bound)
    np.testing.assert_allclose(valid.transitions.sum(axis=-1), valid.visits)
    assert (valid.visits >= true.sum(-1) - 1e-9).all()
    assert (valid.visits <= true.sum(-1) + bound + 1e-9).all()
    assert (valid.transitions >= bound / 8 - 1e-12).all()


def test_huge_counts_and_inputs_left_alone():
    counts = np.array([[6e11, 4e11, -25.0]])
    before = counts.copy()
    x = valid_transitions(counts, [1e12], [0.0])
    np.testing.assert_array_equal(counts, before)
    assert x.sum() == pytest.approx(1e12, abs=1e-3)
    assert x[0, 2] == 0


@pytest.mark.core
@pytest.mark.parametrize(
    ("counts", "totals", "error"),
    [
        ([1.0, 2.0], [3.0], 0.0),
        ([1.0, np.nan], 3.0, 0.0),
        ([1.0, 2.0], np.inf, 0.0),
        ([1.0, 2.0], 3.0, -1.0),
        ([[1.0, 2.0]], [3.0], [0.0, 1.0]),
    ],
)
def test_bad_input_is_refused(counts, totals, error):
    with pytest.raises(InvalidInputError):
        valid_transitions(counts, totals, error)


# --- The nearest valid row, against its definition: shift, clip, and no more than needed


ROWS = st.lists(st.floats(-50, 50), min_size=1, max_size=6)


def valid(counts, total, error):
    row = np.array([counts], np.float64)
    out = np.empty_like(row)
    valid_rows(row, np.array([total]), np.array([error]), out)
    return out[0]


@given(ROWS, st.floats(0.5, 80), st.floats(0, 10))
def test_the_sum_is_within_reach_and_nothing_is_negative(counts, total, error):
    out = valid(counts, total, error)
    assert (out >= 0).all()
    assert total - error - 1e-7 <= out.sum() <= total + error + 1e-7


@given(ROWS, st.floats(0.5, 80), st.floats(0, 10))
def test_entries_keep_their_order_and_differences(counts, total, error):
    out, row = valid(counts, total, error), np.array(counts)
    positive = out > 1e-9
    shifts = (out - row)[positive]
    assert np.ptp(shifts) <= 1e-7 if shifts.size else True
    if shifts.size and not positive.all():  # what is zero would be negative after the same shift
        assert (row[~positive] + shifts[0] <= 1e-7).all()


@given(ROWS)
def test_a_row_that_is_valid_already_is_only_clipped(counts):
    clipped = np.maximum(counts, 0)
    assert np.array_equal(valid(counts, clipped.sum(), 1.0), clipped)


def test_no_users_no_counts():
    assert not valid([3.0, -1.0], -2.0, 1.0).any()


@pytest.mark.parametrize(("total", "expected"), [(2.0, [2.0, 0.0]), (9.0, [6.0, 3.0])])
def test_by_hand(total, expected):
    assert valid([5.0, 2.0], total, 0.0) == pytest.approx(expected)


def test_rows_do_not_touch_each_other():
    counts = np.random.default_rng(0).normal(0, 5, (7, 4))
    totals, errors = np.linspace(1, 9, 7), np.zeros(7)
    out = np.empty_like(counts)
    valid_rows(counts, totals, errors, out)
    for i in range(7):
        assert np.array_equal(out[i], valid(counts[i], totals[i], errors[i]))
