"""Pooled steps: the gate row by row, its chi-squares, and the model of what is pooled."""

import numpy as np
import pytest
from scipy import stats

from discreet.learners import estimate as columns
from discreet.learners import pooling as kernels
from discreet.learners.estimate import COLUMNS, NOISE, SAMPLING, TOTAL, VISITS, CountSums
from discreet.learners.pooling import Pooled, estimated, pooled_rows
from discreet.privacy.projection.valid_counts import valid_counts


def sums_of(transition_sums, rewards, visits, noise=60.0, seed=0):
    """Noisy sums of ``visits`` of every row, of transitions and rewards of every step."""
    rng = np.random.default_rng(seed)
    sums = CountSums.empty(*rewards.shape)
    sums.number[:] = np.arange(rewards.size).reshape(rewards.shape)
    counts = rng.multinomial(visits, transition_sums) + rng.normal(
        0, noise**0.5, transition_sums.shape
    )
    sums.transitions[:] = counts.reshape(rewards.size, -1)
    for part in (sums.transition_sums, sums.reward_sums):
        part[..., columns.VISITS], part[..., columns.SAMPLING] = visits, visits
        part[..., columns.NOISE], part[..., columns.VISIT_VARIANCE] = noise, noise
    gained = rng.binomial(visits, rewards) + rng.normal(0, noise**0.5, rewards.shape)
    sums.reward_sums[..., columns.TOTAL] = gained
    return sums


def world(seed, horizon=6):
    rng = np.random.default_rng([9, seed])
    transition_sums = np.repeat(rng.dirichlet(np.ones(4), (1, 4, 3)), horizon, axis=0)
    return transition_sums, np.repeat(rng.random((1, 4, 3)), horizon, axis=0)


def test_what_is_stationary_passes():
    # All rows together exceed two standard deviations in one world of forty, by chance.
    found = [pooled_rows(sums_of(*world(seed), 2000, seed=seed), 0.25) for seed in range(40)]
    assert sum(pooled.transitions.all() for pooled in found) >= 36
    assert sum(pooled.rewards.all() for pooled in found) >= 34


@pytest.mark.parametrize("seed", range(3))
def test_a_changing_world_is_not_pooled(seed):
    rng = np.random.default_rng(seed)
    transition_sums, rewards = rng.dirichlet(np.ones(4), (6, 4, 3)), rng.random((6, 4, 3))
    pooled = pooled_rows(sums_of(transition_sums, rewards, 2000), 0.25)
    assert not pooled.transitions.any()
    assert not pooled.rewards.any()


def test_one_odd_row_is_left_out_and_the_others_stay():
    transition_sums, rewards = world(1)
    transition_sums[2, 1, 0] = transition_sums[2, 1, 0][::-1]
    pooled = pooled_rows(sums_of(transition_sums, rewards, 600), 0.25)
    assert not pooled.transitions[1, 0]
    assert pooled.transitions.sum() == 11


@pytest.mark.parametrize("odd", [1, 2])
def test_one_odd_row_that_many_saw_says_nothing_about_the_others_and_two_do(odd):
    # Counted among all rows together, its chi-square alone would end the pooling of all.
    transition_sums, rewards = world(1)
    for a in range(odd):
        transition_sums[2, 1, a] = transition_sums[2, 1, a][::-1]
    pooled = pooled_rows(sums_of(transition_sums, rewards, 50_000), 0.25)
    assert pooled.transitions.sum() == (11 if odd == 1 else 0)
    assert pooled.rewards.any() == (odd == 1)


def test_of_fewer_than_ten_rows_none_may_be_odd():
    # A combination lock of six rows was pooled for 1e5 users, with one of them left out.
    rng = np.random.default_rng(4)
    transition_sums = np.repeat(rng.dirichlet(np.ones(2), (1, 2, 3)), 8, axis=0)
    transition_sums[2, 1, 0] = transition_sums[2, 1, 0][::-1]
    pooled = pooled_rows(sums_of(transition_sums, np.full((8, 2, 3), 0.5), 2000), 0.25)
    assert not pooled.transitions.any()


def swinging(which, swing):
    """Shares of a half that go up and down from step to step, each known to 0.1.

    ``swing[S, A]`` says by how much, of two states and six steps; NaN: nobody was there.
    """
    up = np.array([1.0, -1.0] * 3)[:, None, None]
    sums = CountSums.empty(6, *swing.shape)
    sums.number[:] = np.arange(sums.number.size).reshape(sums.number.shape)
    for part in (sums.transition_sums, sums.reward_sums):
        part[..., columns.VISITS], part[..., columns.NOISE] = 1000.0 * ~np.isnan(swing), 100.0**2
    by = 1000 * np.nan_to_num(up * swing)
    sums.transitions[:], sums.reward_sums[..., columns.TOTAL] = 500.0, 500.0
    if which == "rewards":
        sums.reward_sums[..., columns.TOTAL] += by
    else:
        sums.transitions[:] += np.stack([by, -by], axis=-1).reshape(-1, 2)
    return sums


@pytest.mark.parametrize(("deviations", "passes"), [(3.9, True), (4.1, False)])
@pytest.mark.parametrize("which", ["transitions", "rewards"])
def test_rows_that_are_not_odd_end_the_pooling_together_from_four_deviations_on(
    which, deviations, passes
):
    # Twelve rows of six steps; of transitions, both next states are compared.
    components = 2 if which == "transitions" else 1
    square = stats.chi2.isf(stats.norm.sf(deviations), 12 * 5 * components)
    swing = np.full((2, 6), 0.1 * np.sqrt(square / (12 * 6 * components)))
    pooled = getattr(pooled_rows(swinging(which, swing), 0.25), which)
    assert pooled.all() if passes else not pooled.any()


@pytest.mark.parametrize(("odd", "passes"), [(2, True), (3, False)])
@pytest.mark.parametrize("which", ["transitions", "rewards"])
def test_a_tenth_of_the_rows_may_be_odd_of_those_that_somebody_saw(which, odd, passes):
    # Forty rows, of which twenty were seen.
    swing = np.zeros((2, 20))
    swing[:, 10:] = np.nan
    swing[0, :odd] = 0.4
    pooled = getattr(pooled_rows(swinging(which, swing), 0.25), which)
    assert pooled.any() == passes
    assert not pooled[0, :odd].any()


def test_odd_rewards_leave_transitions_pooled():
    transition_sums, rewards = world(2)
    rewards = np.random.default_rng(0).random(rewards.shape)
    pooled = pooled_rows(sums_of(transition_sums, rewards, 2000), 0.25)
    assert pooled.transitions.all()
    assert not pooled.rewards.any()


def test_what_noise_explains_is_no_contradiction():
    transition_sums, rewards = world(1)
    transition_sums[2, 1, 0] = transition_sums[2, 1, 0][::-1]
    assert pooled_rows(sums_of(transition_sums, rewards, 10, noise=400.0), 0.25).transitions.all()


def test_nothing_is_pooled_where_nothing_may_be():
    pooled = Pooled.all_or_none(CountSums.empty(3, 2, 4), False)
    assert pooled.transitions.shape == pooled.rewards.shape == (2, 4)
    assert not (pooled.transitions | pooled.rewards).any()


def test_a_declared_problem_is_pooled_everywhere():
    declared = Pooled.all_or_none(CountSums.empty(1, 2, 4), True)
    assert declared.transitions.shape == declared.rewards.shape == (2, 4)
    assert (declared.transitions & declared.rewards).all()


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


def test_rows_are_added_where_their_numbers_say_and_nowhere_without_one():
    rng = np.random.default_rng(0)
    numbers, weight = np.array([2, -1, 0, 2]), rng.random(4)
    rows, total = rng.random((4, 3)), rng.random((3, 3))
    expected = total.copy()
    expected[2] += weight[0] * rows[0] + weight[3] * rows[3]
    expected[0] += weight[2] * rows[2]
    kernels.add_rows(numbers, weight, rows, total)
    np.testing.assert_allclose(total, expected, rtol=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_a_model_is_the_valid_distribution_nearest_to_the_counts(seed):
    rng = np.random.default_rng(seed)
    counts = rng.normal(5.0, 6.0, (1, 1, 1, 3))
    visits, found = 1.0 + 20.0 * rng.random(), np.empty(3)
    kernels.row_model(counts[0, 0, 0], visits, found)
    assert found.sum() == pytest.approx(1.0)
    assert (found >= 0).all()
    exact = valid_counts(counts, np.full((1, 1, 1), visits), 0.0).transitions
    np.testing.assert_allclose(found, exact[0, 0, 0] / visits, atol=1e-9)


def test_consistent_counts_are_their_own_model_and_unvisited_rows_lead_anywhere():
    found = np.empty(3)
    kernels.row_model(np.array([3.0, 1.0, 0.0]), 4.0, found)
    assert found.tolist() == [0.75, 0.25, 0.0]
    kernels.row_model(np.full(3, 9.0), 0.0, found)
    np.testing.assert_allclose(found, 1 / 3)


def test_a_pooled_row_has_one_number_for_all_steps_and_others_their_own():
    number = np.array([[[4, -1]], [[-1, 2]], [[0, 1]]])
    out = np.empty_like(number)
    assert kernels.numbered(number, np.array([[True, False]]), out) == 3
    assert out[:, 0, 0].tolist() == [0, 0, 0]
    assert out[:, 0, 1].tolist() == [-1, 1, 2]
    nobody = np.full((2, 1, 1), -1)
    assert kernels.numbered(nobody, np.array([[True]]), nobody.copy()) == 0


def test_the_model_of_a_pooled_row_is_that_of_all_its_counts():
    number = np.array([[[0, 2]], [[1, 3]]])
    counts = np.array([[3.0, 1.0], [1.0, 3.0], [6.0, 2.0], [0.0, 4.0]])
    transition_sums = np.zeros((2, 1, 2, COLUMNS))
    transition_sums[..., VISITS] = counts.sum(axis=1)[number]
    pooled, places = np.array([[True, False]]), np.empty_like(number)
    found = np.empty((kernels.numbered(number, pooled, places), 2))
    kernels.models(number, counts, transition_sums, pooled, places, found)
    np.testing.assert_allclose(found[places[:, 0, 0]], [[0.5, 0.5]] * 2)
    np.testing.assert_allclose(found[places[:, 0, 1]], [[0.75, 0.25], [0.0, 1.0]])


def evidence_of(seed):
    rng = np.random.default_rng(seed)
    sums = CountSums.empty(3, 2, 2)
    sums.number[:] = np.arange(12).reshape(3, 2, 2)
    sums.transitions[:] = rng.uniform(1, 5, (12, 2))
    sums.transition_sums[:] = rng.uniform(1, 5, sums.transition_sums.shape)
    sums.transition_sums[..., VISITS] = sums.transitions.sum(axis=1).reshape(3, 2, 2)
    sums.reward_sums[:] = rng.uniform(1, 5, sums.reward_sums.shape)
    return sums


@pytest.mark.parametrize("seed", range(3))
def test_sums_are_over_steps_exactly_where_they_are_pooled(seed):
    sums = evidence_of(seed)
    pooled = Pooled(
        np.array([[True, False], [False, True]]), np.array([[False, False], [False, True]])
    )
    model = estimated(sums, pooled)
    for h in range(3):
        for s in range(2):
            for a in range(2):
                transition_sums, reward_sums = (
                    sums.transition_sums[h, s, a],
                    sums.reward_sums[h, s, a],
                )
                counts = sums.transitions[sums.number[h, s, a]]
                if pooled.transitions[s, a]:
                    transition_sums = sums.transition_sums[:, s, a].sum(axis=0)
                    counts = sums.transitions[sums.number[:, s, a]].sum(axis=0)
                if pooled.rewards[s, a]:
                    reward_sums = sums.reward_sums[:, s, a].sum(axis=0)
                np.testing.assert_allclose(model.transition_sums[h, s, a], transition_sums)
                np.testing.assert_allclose(model.reward_sums[h, s, a], reward_sums)
                row = model.probabilities[model.number[h, s, a]]
                np.testing.assert_allclose(row, counts / counts.sum())


def test_evidence_is_left_as_it_is():
    sums = evidence_of(0)
    before = [array.copy() for array in sums]
    everything = np.ones((2, 2), bool)
    estimated(sums, Pooled(everything, everything))
    for one, other in zip(before, sums, strict=True):
        np.testing.assert_array_equal(one, other)
