"""What a batch is predicted to leave unknown, against the sums that it really adds."""

import numpy as np
import pytest

from discreet.learners.estimate import (
    BIAS,
    COLUMNS,
    NOISE,
    SAMPLING,
    TOTAL,
    VISIT_VARIANCE,
    VISITS,
    CountSums,
)
from discreet.learners.estimate import weight_of as weights_of_rows
from discreet.learners.flow_ucb import sizing as kernels
from discreet.learners.flow_ucb.learner import accumulate
from discreet.learners.flow_ucb.planning import Planner
from discreet.learners.flow_ucb.sizing import ReleaseTerms
from discreet.learners.pooling import Pooled, estimated
from discreet.mdp.shape import Shape

row_weight = kernels.row_weight.py_func
SHAPE = Shape(2, 2, 3)
INITIAL = np.array([1.0, 0.0])


def test_a_batch_counts_fully_without_noise_and_hardly_below_it():
    assert row_weight(0.0, 0.0, 1.0) == 1.0
    assert row_weight(10.0, 0.0, 3.0) == 1.0
    assert row_weight(0.0, 4.0, 1.0) == 0.0
    assert row_weight(4.0, 4.0, 1.0) == 0.5
    weights = [row_weight(n, 100.0, 2.0) for n in (1.0, 10.0, 100.0, 1e6)]
    assert weights == sorted(weights)
    assert weights[-1] > 0.999
    assert row_weight(10.0, 100.0, 4.0) > row_weight(10.0, 100.0, 1.0)


def terms(users, last_transitions=False, per_visit=0.0):
    factors = np.array([0.0, 0.5, 1.0])
    return ReleaseTerms(
        float(users), 20.0, 10.0, per_visit, per_visit / 4, factors, 0.1, last_transitions
    )


def belief_of(pooled_transitions, pooled_rewards, seed=0):
    rng = np.random.default_rng(seed)
    sums = CountSums.empty(3, 2, 2)
    sums.number[:] = np.arange(12).reshape(3, 2, 2)
    sums.transitions[:] = rng.uniform(20, 90, (12, 2))
    for part in (sums.transition_sums, sums.reward_sums):
        part[..., VISITS] = sums.transitions.sum(axis=1).reshape(3, 2, 2)
        part[..., SAMPLING] = part[..., VISITS]
        part[..., NOISE], part[..., VISIT_VARIANCE] = 30.0, 20.0
    sums.reward_sums[..., TOTAL] = sums.reward_sums[..., VISITS] * rng.random((3, 2, 2))
    rows = np.ones((2, 2), bool)
    return estimated(sums, Pooled(rows & pooled_transitions, rows & pooled_rewards))


@pytest.mark.parametrize("pooled_transitions", [False, True])
@pytest.mark.parametrize("pooled_rewards", [False, True])
@pytest.mark.parametrize("last", [False, True])
def test_the_prediction_is_the_bonus_after_the_expected_counts(
    pooled_transitions, pooled_rewards, last
):
    model, planner = belief_of(pooled_transitions, pooled_rewards), Planner(SHAPE, INITIAL, 0.5)
    width, tie = np.full((3, 2, 2), 0.3), np.zeros((3, 2, 2))
    candidate = planner.optimistic(model, width, tie)
    after = model._replace(
        transition_sums=model.transition_sums.copy(), reward_sums=model.reward_sums.copy()
    )
    kernels.add_expected(after, terms(500, last), candidate)
    expected = 0.0
    for h in range(3):
        for s in range(2):
            a = candidate.actions[h, s]
            gain, move = after.reward_sums[h, s, a], after.transition_sums[h, s, a]
            variance, deviation, reward, share = candidate.moments[h, s]
            square = gain[SAMPLING] * reward * (1 - reward) + gain[NOISE]
            square += (
                gain[VISIT_VARIANCE] * (reward - 0.5) ** 2
                + (2 * gain[SAMPLING] / gain[VISITS]) ** 2
            )
            total = square / (gain[VISITS] - gain[VISIT_VARIANCE] ** 0.5) ** 2
            if h < 2:
                square = move[SAMPLING] * variance + move[NOISE] * deviation
                square += (2 * (3 - h) * move[SAMPLING] / move[VISITS]) ** 2
                total += square / (move[VISITS] - move[VISIT_VARIANCE] ** 0.5) ** 2
            expected += candidate.occupancy[h, s] * min(0.3 * share * total**0.5, 3 - h)
    found = kernels.uncertainty_after(model, terms(500, last), candidate, width, 0.5, 0.25)
    assert found == pytest.approx(expected)


def test_more_users_leave_less():
    model, planner = belief_of(True, False), Planner(SHAPE, INITIAL, 0.5)
    width = np.full((3, 2, 2), 0.3)
    candidate = planner.optimistic(model, width, np.zeros((3, 2, 2)))
    left = [
        kernels.uncertainty_after(model, terms(n), candidate, width, 0.5, 0.25)
        for n in (10, 100, 10**4)
    ]
    assert left == sorted(left, reverse=True)
    assert left[0] <= (candidate.occupancy * candidate.bonus).sum()


def test_an_unchecked_reward_stays_unknown_until_the_check_makes_it_known():
    # Noise of 10 and no doubt at the first step: known from 2·sqrt(10) = 6.3 visits on. Fewer would
    # bound the reward by more than what it can be, and the check would come back.
    model, planner = belief_of(True, True), Planner(SHAPE, INITIAL, 0.5)
    width = np.full((3, 2, 2), 0.3)
    candidate = planner.optimistic(model, width, np.zeros((3, 2, 2)))
    here = (0, 0, candidate.actions[0, 0])
    model.reward_sums[here], model.pooled_rewards[here] = 0.0, False
    few, enough = (
        kernels.uncertainty_after(model, terms(n), candidate, width, 0.5, 0.25) for n in (6, 7)
    )
    assert few >= 3.0 > enough
    model.number[here] = -1  # never played at all: that is what the first counts are for
    assert kernels.uncertainty_after(model, terms(6), candidate, width, 0.5, 0.25) < 3.0


def test_what_is_expected_of_a_row_by_hand():
    transition_sums, reward_sums = np.zeros(5), np.zeros(5)
    kernels.expected_row(1, 200.0, True, terms(500, per_visit=3.0), transition_sums, reward_sums)
    w, v = 200 / (200 + 20 / 0.1), 200 / (200 + 10 / 0.1)
    visit_variance = 20 * 0.5 + 3 * 200 / 2
    np.testing.assert_allclose(
        transition_sums, [w * 200, w**2 * 200 * 4, w**2 * 20, w**2 * visit_variance, 0], rtol=1e-12
    )
    np.testing.assert_allclose(
        reward_sums,
        [v * 200, v**2 * 200, v**2 * (10 + 200 * 0.75), v**2 * visit_variance, 0],
        rtol=1e-12,
    )
    still = np.zeros(5)
    kernels.expected_row(1, 200.0, False, terms(500), still, reward_sums)
    assert not still.any()


def test_expected_counts_keep_mean_rewards():
    model, planner = belief_of(False, True), Planner(SHAPE, INITIAL, 0.5)
    candidate = planner.greedy(model, np.zeros((3, 2, 2)))
    after = model._replace(
        transition_sums=model.transition_sums.copy(), reward_sums=model.reward_sums.copy()
    )
    kernels.add_expected(after, terms(500), candidate)
    assert (after.reward_sums[..., VISITS] > model.reward_sums[..., VISITS]).any()
    before = model.reward_sums[..., TOTAL] / model.reward_sums[..., VISITS]
    np.testing.assert_allclose(
        after.reward_sums[..., TOTAL] / after.reward_sums[..., VISITS], before
    )


def test_the_two_credits_are_one():
    expected = np.array([0.0, 0.3, 7.0, 1e6])
    for noise, ease in ((0.0, 0.1), (20.7, 0.1), (1e5, 0.4)):
        alone = [kernels.row_weight(one, noise, ease) for one in expected]
        np.testing.assert_array_equal(weights_of_rows(expected, noise, ease), alone)


@pytest.mark.parametrize("last", [True, False])
def test_a_batch_that_goes_as_expected_adds_what_was_predicted(last):
    """But for its lean and its rewards, which nobody predicts."""
    told = terms(500, last, per_visit=3.0)
    expected = np.array([200.0, 30.0, 0.5])
    rows = (np.arange(3), np.array([0, 1, 0]), np.array([0, 1, 1]))
    counts = np.full((3, 2), 0.5) * expected[:, None]
    sums = CountSums.empty(3, 2, 2)
    accumulate(sums, rows, counts, expected, expected / 2, expected, told)
    for h, s, a in zip(*rows, strict=True):
        transition_sums, reward_sums = np.zeros(COLUMNS), np.zeros(COLUMNS)
        kernels.expected_row(h, expected[h], h < 2 or last, told, transition_sums, reward_sums)
        np.testing.assert_allclose(sums.transition_sums[h, s, a, :BIAS], transition_sums[:BIAS])
        np.testing.assert_allclose(sums.reward_sums[h, s, a, :TOTAL], reward_sums[:TOTAL])
        assert transition_sums[BIAS] == reward_sums[TOTAL] == 0.0
