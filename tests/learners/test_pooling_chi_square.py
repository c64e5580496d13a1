"""Chi-squares over steps against plain NumPy and against SciPy's tail."""

import numpy as np
import pytest
from scipy import stats

from discreet.learners import pooling as kernels
from discreet.learners.estimate import COLUMNS, NOISE, SAMPLING, TOTAL, VISITS


@pytest.mark.parametrize("freedom", [1.0, 4.0, 30.0])
@pytest.mark.parametrize("tail", [0.5, 0.05, 1e-4])
def test_the_normal_is_as_unlikely_as_the_chi_square(freedom, tail):
    square = stats.chi2.isf(tail, freedom)
    assert kernels.normal(square, freedom) == pytest.approx(stats.norm.isf(tail), abs=0.15)


def row_z(counts, visits, noise):
    steps = len(visits)
    sums, alone = np.zeros((COLUMNS, steps)), np.zeros(steps)
    sums[VISITS] = sums[SAMPLING] = visits
    sums[NOISE] = noise
    return kernels.row_chi_square(np.array(counts, float), sums, steps, alone), alone


def test_the_chi_square_of_a_row_by_numpy():
    rng = np.random.default_rng(0)
    visits, noise = rng.uniform(50, 200, 4), rng.uniform(1, 50, 4)
    counts = rng.uniform(0, 1, (3, 4)) * visits
    (square, freedom, worst), alone = row_z(counts, visits, noise)
    p = np.clip(counts.sum(axis=1) / visits.sum(), 0, 1)[:, None]
    weight = visits**2 / (noise + visits * np.maximum(p * (1 - p), 0.01))
    x = counts / visits
    mean = (weight * x).sum(axis=1, keepdims=True) / weight.sum(axis=1, keepdims=True)
    assert square == pytest.approx((weight * (x - mean) ** 2).sum())
    assert freedom == 9
    for k in range(4):
        rest = np.arange(4) != k
        other = (weight * x)[:, rest].sum(axis=1) / weight[:, rest].sum(axis=1)
        both = 1 / weight[:, k] + 1 / weight[:, rest].sum(axis=1)
        assert alone[k] == pytest.approx(((x[:, k] - other) ** 2 / both).sum())
    expected = max(kernels.normal(square, 9.0), *(kernels.normal(q, 3.0) for q in alone))
    assert worst == pytest.approx(expected)


def test_one_step_contradicts_nothing():
    assert row_z([[3.0]], [9.0], [1.0])[0] == (0.0, 0.0, -np.inf)


def test_a_single_odd_step_is_seen_where_the_sum_over_steps_hides_it():
    visits, noise = np.full(20, 400.0), np.full(20, 4.0)
    counts = np.full((1, 20), 200.0)
    counts[0, 7] = 255.0
    (square, freedom, worst), _ = row_z(counts, visits, noise)
    assert worst > 4 > kernels.normal(square, freedom)


def test_rewards_hold_the_variance_of_their_visits():
    reward_sums = np.zeros((2, 1, 1, COLUMNS))
    reward_sums[..., VISITS], reward_sums[..., SAMPLING] = 100.0, 100.0
    reward_sums[:, 0, 0, TOTAL] = 40.0, 60.0
    sure, doubtful = np.empty((1, 1, 3)), np.empty((1, 1, 3))
    kernels.reward_scores(reward_sums, 0.25, sure)
    reward_sums[..., 3] = 50.0
    kernels.reward_scores(reward_sums, 0.25, doubtful)
    assert doubtful[0, 0, 2] < sure[0, 0, 2]
    assert doubtful[0, 0, 1] == sure[0, 0, 1] == 1


def test_rows_without_a_place_or_without_certain_visits_are_not_compared():
    number = np.full((3, 2, 1), -1)
    number[:, 0, 0] = 0, -1, 1
    counts = np.array([[90.0, 10.0], [10.0, 90.0]])
    transition_sums = np.zeros((3, 2, 1, COLUMNS))
    transition_sums[..., VISITS], transition_sums[..., SAMPLING], transition_sums[..., NOISE] = (
        100.0,
        100.0,
        1.0,
    )
    scores = np.empty((2, 1, 3))
    kernels.transition_scores(number, counts, transition_sums, scores)
    assert scores[0, 0, 1] == 2
    assert scores[0, 0, 2] >= kernels.normal(scores[0, 0, 0], 2.0) > 6
    assert scores[1, 0].tolist() == [0, 0, -np.inf]
    transition_sums[2, 0, 0, 3] = 1e5
    kernels.transition_scores(number, counts, transition_sums, scores)
    assert scores[0, 0].tolist() == [0, 0, -np.inf]
