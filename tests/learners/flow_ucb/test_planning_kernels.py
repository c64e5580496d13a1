"""Planning of flow-ucb against plain NumPy, and each term of its formula by hand."""

import itertools
import math

import numpy as np
import pytest

from discreet.learners.estimate import (
    BIAS,
    COLUMNS,
    NOISE,
    SAMPLING,
    VISIT_VARIANCE,
    VISITS,
    ModelEstimate,
)
from discreet.learners.flow_ucb import planning as kernels

spread, sparse, middle = (
    kernels.spread.py_func,
    kernels.sparse.py_func,
    kernels.middle.py_func,
)
state_occupancy = kernels.state_occupancy.py_func


@pytest.mark.parametrize("seed", range(3))
def test_the_spread_is_mean_variance_and_deviations(seed):
    rng = np.random.default_rng(seed)
    rows, values = rng.dirichlet(np.ones(4), 3), rng.random(4)
    rows[1] = [0.0, 0.25, 0.0, 0.75]
    plain, around = middle(values)
    for i, p in enumerate(rows):
        mean, variance = spread(sparse(rows), i, values)
        assert mean == pytest.approx(p @ values)
        assert variance == pytest.approx(p @ (values - p @ values) ** 2)
        deviation = around + 4 * (mean - plain) ** 2
        assert deviation == pytest.approx(((values - p @ values) ** 2).sum())


def test_rows_without_their_zeros():
    found = sparse(np.array([[0.0, 0.5, 0.5], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]))
    assert found.ends.tolist() == [0, 2, 2, 3]
    assert found.columns.tolist() == [1, 2, 0] and found.entries.tolist() == [0.5, 0.5, 1.0]


def test_noise_is_small_where_the_projection_left_no_count():
    # 100 visits, noise of sd 20: counts of 0, 10, 20 and 70 keep 0.15, 0.5, all and all of it.
    p, values = np.array([0.0, 0.1, 0.2, 0.7]), np.array([3.0, 2.0, 1.0, 0.0])
    move = np.zeros(COLUMNS)
    move[VISITS], move[NOISE] = 100.0, 400.0
    mean = p @ values
    squares = (values - mean) ** 2
    found = kernels.noisy_deviation.py_func(
        sparse(p[None]), 0, move, values, mean, float(squares.sum())
    )
    assert found == pytest.approx(np.array([0.15, 0.5, 1.0, 1.0]) @ squares)
    move[NOISE] = 0.0  # what is counted is counted
    whole = kernels.noisy_deviation.py_func(
        sparse(p[None]), 0, move, values, mean, float(squares.sum())
    )
    assert whole == pytest.approx(np.array([0.15, 1.0, 1.0, 1.0]) @ squares)


def test_noise_leaves_some_doubt_where_nobody_was_seen():
    # Everybody went to state 0. What the noise may hide of the others still counts, or a row that
    # was seen a few times would be as certain as one seen for ever.
    p, values = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    move = np.zeros(COLUMNS)
    move[VISITS], move[NOISE] = 100.0, 400.0
    assert kernels.noisy_deviation.py_func(sparse(p[None]), 0, move, values, 0.0, 1.0) > 0.1


def test_the_best_state_that_nobody_was_seen_in():
    values = np.array([3.0, 5.0, 4.0])
    best = kernels.best_unseen.py_func
    assert best(np.zeros(3), values) == 0.0
    assert best(np.array([1.0, 0.0, 0.0]), values) == 3.0
    assert best(np.array([1.0, 0.9, 1.0]), values) == 4.5


def test_what_noise_hides_is_a_way_to_something_better():
    # Ten batches of sd 3 may have lost 30 users on a way to 5 from a mean of 1: (30·4)².
    move = np.zeros(COLUMNS)
    move[NOISE], move[BIAS] = 90.0, 30.0
    lost = kernels.hidden_deviation.py_func
    assert 90 * lost(move, 1.0, kernels.Hidden(1.0, 5.0)) == pytest.approx(120**2)
    assert 90 * lost(move, 1.0, kernels.Hidden(0.5, 5.0)) == pytest.approx(60**2)
    assert lost(move, 5.0, kernels.Hidden(1.0, 5.0)) == 0.0
    assert lost(move, 6.0, kernels.Hidden(1.0, 5.0)) == 0.0
    move[NOISE] = 0.0
    assert lost(move, 1.0, kernels.Hidden(1.0, 5.0)) == 0.0


def test_variances_by_hand():
    # 100 visits, sd 20 on them: 80 are certain.
    moved = kernels.transition_variance(100.0, 100.0, 4.0, 400.0, 0.2, 3.0, 3.0)
    assert moved == pytest.approx((100 * 0.2 + 4 * 3 + 6**2) / 80**2)
    plain = kernels.reward_variance(100.0, 100.0, 5.0, 400.0, 0.5, 0.0)
    assert plain == pytest.approx((25 + 5 + 400 * 0.25 + 2**2) / 80**2)
    # Of centred rewards only what is not 1/2 is multiplied by the visits.
    centred = kernels.reward_variance(100.0, 100.0, 5.0, 400.0, 0.75, 0.5)
    assert centred == pytest.approx((100 * 0.75 * 0.25 + 5 + 400 / 16 + 2**2) / 80**2)


@pytest.mark.parametrize(("visits", "known"), [(19.9, False), (20.0, False), (20.1, True)])
def test_visits_that_noise_explains_are_no_visits(visits, known):
    assert math.isfinite(kernels.reward_variance(visits, 1.0, 5.0, 400.0, 0.5, 0.5)) == known
    assert (
        math.isfinite(kernels.transition_variance(visits, 1.0, 4.0, 400.0, 0.2, 3.0, 3.0)) == known
    )


def test_a_mean_reward_is_between_zero_and_one():
    rows = np.array([[4.0, 0, 0, 0, 1.0], [4.0, 0, 0, 0, 9.0], [4.0, 0, 0, 0, -9.0], [0.0] * 5])
    assert [kernels.mean_reward(row) for row in rows] == [0.25, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("layers", [1, 3])
def test_occupancies_are_products_of_the_model(layers):
    rng = np.random.default_rng(layers)
    states, actions = 3, rng.integers(0, 2, (3, 3))
    number = np.arange(layers * states * 2).reshape(layers, states, 2)
    probabilities = rng.dirichlet(np.ones(states), number.size)
    initial = rng.dirichlet(np.ones(states))
    out = np.full((3, states), 7.0)
    state_occupancy(number, probabilities, actions, initial, out)
    mass = initial
    for h in range(3):
        np.testing.assert_allclose(out[h], mass)
        layer = h if layers > 1 else 0
        mass = mass @ probabilities[number[layer, np.arange(states), actions[h]]]
    np.testing.assert_allclose(out.sum(axis=1), 1.0)


def test_a_row_that_nobody_visited_leads_anywhere():
    number = np.full((1, 2, 1), -1)
    out = np.zeros((2, 2))
    state_occupancy(number, np.zeros((0, 2)), np.zeros((2, 2), np.int64), np.array([1.0, 0.0]), out)
    assert out.tolist() == [[1.0, 0.0], [0.5, 0.5]]


@pytest.mark.parametrize("unknown", ["transition_sums", "reward_sums", "number"])
def test_nobody_comes_out_of_a_row_that_is_not_known(unknown):
    rng = np.random.default_rng(3)
    number, sums = np.arange(12).reshape(2, 3, 2), np.zeros((2, 3, 2, 5))
    sums[..., VISITS], sums[..., VISIT_VARIANCE] = 11.0, 100.0
    pooled = np.zeros((2, 3, 2), bool)
    model = ModelEstimate(number, rng.dirichlet(np.ones(3), 12), sums, sums.copy(), pooled, pooled)
    actions, initial = rng.integers(0, 2, (2, 3)), rng.dirichlet(np.ones(3))
    known, reachable = np.zeros((2, 3)), np.zeros((2, 3))
    state_occupancy(number, model.probabilities, actions, initial, known)
    kernels.reachable_occupancy(model, actions, initial, reachable)
    np.testing.assert_allclose(reachable, known)
    row = (0, 1, actions[0, 1])
    lost = initial[1] * model.probabilities[number[row]]
    if unknown == "number":
        model.number[row] = -1
    else:
        getattr(model, unknown)[row][VISITS] = 10.0
    kernels.reachable_occupancy(model, actions, initial, reachable)
    np.testing.assert_allclose(reachable, [known[0], known[1] - lost])


def test_renamed_actions_give_the_same_occupancies():
    rng = np.random.default_rng(9)
    number = np.arange(12).reshape(2, 3, 2)
    probabilities = rng.dirichlet(np.ones(3), 12)
    actions, initial = rng.integers(0, 2, (2, 3)), rng.dirichlet(np.ones(3))
    one, other = np.zeros((2, 3)), np.zeros((2, 3))
    state_occupancy(number, probabilities, actions, initial, one)
    state_occupancy(number[:, :, ::-1].copy(), probabilities, 1 - actions, initial, other)
    assert np.array_equal(one, other)


@pytest.mark.parametrize("seed", range(3))
def test_the_largest_chance_is_that_of_the_best_of_all_policies(seed):
    rng = np.random.default_rng(seed)
    number = np.arange(12).reshape(3, 2, 2)
    probabilities, initial = rng.dirichlet(np.ones(2), 12), np.array([0.3, 0.7])
    found, best, out = np.zeros((3, 2)), np.zeros((3, 2)), np.zeros((3, 2))
    kernels.largest_chances(probabilities[number], initial, found)
    for choice in itertools.product((0, 1), repeat=6):
        state_occupancy(number, probabilities, np.array(choice).reshape(3, 2), initial, out)
        best = np.maximum(best, out)
    np.testing.assert_allclose(found, best)


def test_where_noise_alone_leads_nobody_comes():
    # 100 visits with a noise of 10: chances above 0.2 stand out, with the sampling of 100 visits
    # above 0.22. Where visits are noise and where nobody played, nothing does.
    number = np.array([[[0, 1, -1]]])
    transition_sums = np.zeros((1, 1, 3, COLUMNS))
    transition_sums[..., VISITS], transition_sums[..., NOISE] = 100.0, 100.0
    transition_sums[0, 0, 1, VISIT_VARIANCE] = 1e5
    pooled = np.zeros((1, 1, 3), bool)

    def certain(chance):
        model = ModelEstimate(
            number, np.full((2, 1), chance), transition_sums, transition_sums, pooled, pooled
        )
        out = np.full((1, 1, 3, 1), 9.0)
        kernels.certain_transitions.py_func(model, out)
        return out[0, 0, :, 0].tolist()

    assert certain(0.21) == [0.21, 0.0, 0.0]
    assert certain(0.2) == [0.0, 0.0, 0.0]
    transition_sums[..., SAMPLING] = 100.0
    assert certain(0.21) == [0.0, 0.0, 0.0]
    assert certain(0.23) == [0.23, 0.0, 0.0]
