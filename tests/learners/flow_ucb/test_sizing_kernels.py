"""What a batch is predicted to leave unknown, against the sums that it really adds."""

import numpy as np
import pytest

from discreet.learners.flow_ucb import sizing_kernels as kernels
from discreet.learners.flow_ucb.belief import Pooled, believed
from discreet.learners.flow_ucb.evidence import (
    BIAS,
    COLUMNS,
    DOUBT,
    NOISE,
    SAMPLING,
    TOTAL,
    VISITS,
    Evidence,
    Observed,
)
from discreet.learners.flow_ucb.plan import Planner
from discreet.learners.flow_ucb.sizing import ReleaseTerms
from discreet.learners.flow_ucb.sizing import credit as credit_of_rows
from discreet.mdp.shape import Shape

credit = kernels.credit.py_func
SHAPE = Shape(2, 2, 3)
INITIAL = np.array([1.0, 0.0])


def test_a_batch_counts_fully_without_noise_and_hardly_below_it():
    assert credit(0.0, 0.0, 1.0) == 1.0
    assert credit(10.0, 0.0, 3.0) == 1.0
    assert credit(0.0, 4.0, 1.0) == 0.0
    assert credit(4.0, 4.0, 1.0) == 0.5
    weights = [credit(n, 100.0, 2.0) for n in (1.0, 10.0, 100.0, 1e6)]
    assert weights == sorted(weights)
    assert weights[-1] > 0.999
    assert credit(10.0, 100.0, 4.0) > credit(10.0, 100.0, 1.0)


def terms(users, last_transitions=False, per_visit=0.0):
    factors = np.array([0.0, 0.5, 1.0])
    return ReleaseTerms(
        float(users), 20.0, 10.0, per_visit, per_visit / 4, factors, 0.1, last_transitions
    )


def belief_of(pooled_moves, pooled_gains, seed=0):
    rng = np.random.default_rng(seed)
    evidence = Evidence.empty(3, 2, 2)
    evidence.number[:] = np.arange(12).reshape(3, 2, 2)
    evidence.transitions[:] = rng.uniform(20, 90, (12, 2))
    for sums in (evidence.moves, evidence.gains):
        sums[..., VISITS] = evidence.transitions.sum(axis=1).reshape(3, 2, 2)
        sums[..., SAMPLING] = sums[..., VISITS]
        sums[..., NOISE], sums[..., DOUBT] = 30.0, 20.0
    evidence.gains[..., TOTAL] = evidence.gains[..., VISITS] * rng.random((3, 2, 2))
    rows = np.ones((2, 2), bool)
    return believed(evidence, Pooled(rows & pooled_moves, rows & pooled_gains))


@pytest.mark.parametrize("pooled_moves", [False, True])
@pytest.mark.parametrize("pooled_gains", [False, True])
@pytest.mark.parametrize("last", [False, True])
def test_the_prediction_is_the_bonus_after_the_expected_counts(pooled_moves, pooled_gains, last):
    belief, planner = belief_of(pooled_moves, pooled_gains), Planner(SHAPE, INITIAL, 0.5)
    width, tie = np.full((3, 2, 2), 0.3), np.zeros((3, 2, 2))
    route = planner.optimistic(belief, width, tie)
    after = belief._replace(moves=belief.moves.copy(), gains=belief.gains.copy())
    kernels.add_expected(after, terms(500, last), route)
    expected = 0.0
    for h in range(3):
        for s in range(2):
            a = route.actions[h, s]
            gain, move = after.gains[h, s, a], after.moves[h, s, a]
            variance, deviation, reward, share = route.moments[h, s]
            square = gain[SAMPLING] * reward * (1 - reward) + gain[NOISE]
            square += gain[DOUBT] * (reward - 0.5) ** 2 + (2 * gain[SAMPLING] / gain[VISITS]) ** 2
            total = square / (gain[VISITS] - gain[DOUBT] ** 0.5) ** 2
            if h < 2:
                square = move[SAMPLING] * variance + move[NOISE] * deviation
                square += (2 * (3 - h) * move[SAMPLING] / move[VISITS]) ** 2
                total += square / (move[VISITS] - move[DOUBT] ** 0.5) ** 2
            expected += route.occupancy[h, s] * min(0.3 * share * total**0.5, 3 - h)
    found = kernels.uncertainty_after(belief, terms(500, last), route, width, 0.5, 0.25)
    assert found == pytest.approx(expected)


def test_more_users_leave_less():
    belief, planner = belief_of(True, False), Planner(SHAPE, INITIAL, 0.5)
    width = np.full((3, 2, 2), 0.3)
    route = planner.optimistic(belief, width, np.zeros((3, 2, 2)))
    left = [
        kernels.uncertainty_after(belief, terms(n), route, width, 0.5, 0.25)
        for n in (10, 100, 10**4)
    ]
    assert left == sorted(left, reverse=True)
    assert left[0] <= (route.occupancy * route.bonus).sum()


def test_an_unchecked_reward_stays_unknown_until_the_check_makes_it_known():
    # Noise of 10 and no doubt at the first step: known from 2·sqrt(10) = 6.3 visits on. Fewer would
    # bound the reward by more than what it can be, and the check would come back.
    belief, planner = belief_of(True, True), Planner(SHAPE, INITIAL, 0.5)
    width = np.full((3, 2, 2), 0.3)
    route = planner.optimistic(belief, width, np.zeros((3, 2, 2)))
    here = (0, 0, route.actions[0, 0])
    belief.gains[here], belief.pooled_gains[here] = 0.0, False
    few, enough = (
        kernels.uncertainty_after(belief, terms(n), route, width, 0.5, 0.25) for n in (6, 7)
    )
    assert few >= 3.0 > enough
    belief.number[here] = -1  # never played at all: that is what the first counts are for
    assert kernels.uncertainty_after(belief, terms(6), route, width, 0.5, 0.25) < 3.0


def test_what_is_expected_of_a_row_by_hand():
    moves, gains = np.zeros(5), np.zeros(5)
    kernels.expected_row(1, 200.0, True, terms(500, per_visit=3.0), moves, gains)
    w, v = 200 / (200 + 20 / 0.1), 200 / (200 + 10 / 0.1)
    doubt = 20 * 0.5 + 3 * 200 / 2
    np.testing.assert_allclose(
        moves, [w * 200, w**2 * 200 * 4, w**2 * 20, w**2 * doubt, 0], rtol=1e-12
    )
    np.testing.assert_allclose(
        gains, [v * 200, v**2 * 200, v**2 * (10 + 200 * 0.75), v**2 * doubt, 0], rtol=1e-12
    )
    still = np.zeros(5)
    kernels.expected_row(1, 200.0, False, terms(500), still, gains)
    assert not still.any()


def test_expected_counts_keep_mean_rewards():
    belief, planner = belief_of(False, True), Planner(SHAPE, INITIAL, 0.5)
    route = planner.greedy(belief, np.zeros((3, 2, 2)))
    after = belief._replace(moves=belief.moves.copy(), gains=belief.gains.copy())
    kernels.add_expected(after, terms(500), route)
    assert (after.gains[..., VISITS] > belief.gains[..., VISITS]).any()
    before = belief.gains[..., TOTAL] / belief.gains[..., VISITS]
    np.testing.assert_allclose(after.gains[..., TOTAL] / after.gains[..., VISITS], before)


def test_the_two_credits_are_one():
    expected = np.array([0.0, 0.3, 7.0, 1e6])
    for noise, ease in ((0.0, 0.1), (20.7, 0.1), (1e5, 0.4)):
        alone = [kernels.credit(one, noise, ease) for one in expected]
        np.testing.assert_array_equal(credit_of_rows(expected, noise, ease), alone)


@pytest.mark.parametrize("last", [True, False])
def test_a_batch_that_goes_as_expected_adds_what_was_predicted(last):
    """But for its lean and its rewards, which nobody predicts."""
    told = terms(500, last, per_visit=3.0)
    expected = np.array([200.0, 30.0, 0.5])
    rows = (np.arange(3), np.array([0, 1, 0]), np.array([0, 1, 1]))
    counts = np.full((3, 2), 0.5) * expected[:, None]
    evidence = Evidence.empty(3, 2, 2)
    evidence.add(Observed(rows, counts, expected, expected / 2, expected), told)
    for h, s, a in zip(*rows, strict=True):
        moves, gains = np.zeros(COLUMNS), np.zeros(COLUMNS)
        kernels.expected_row(h, expected[h], h < 2 or last, told, moves, gains)
        np.testing.assert_allclose(evidence.moves[h, s, a, :BIAS], moves[:BIAS])
        np.testing.assert_allclose(evidence.gains[h, s, a, :TOTAL], gains[:TOTAL])
        assert moves[BIAS] == gains[TOTAL] == 0.0
