"""Plans of flow-ucb: each term of the bonus by hand, optimism within bounds, and greed."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import discreet
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
from discreet.learners.flow_ucb import planning
from discreet.learners.flow_ucb.planning import Planner, ReleaseTerms
from discreet.learners.pooling import Pooled, estimated
from discreet.mdp.planning import occupancy as true_occupancy
from discreet.mdp.shape import Shape
from discreet.privacy.statistics import PrivateCounts
from helpers.flow_ucb import CENTRAL, learner_of, river


def arms(visits, rewards, visit_variance, horizon=2):
    """One state; per action the visits, the mean reward and the variance of the visits."""
    sums = CountSums.empty(horizon, 1, len(visits))
    sums.number[:] = np.arange(horizon * len(visits)).reshape(horizon, 1, -1)
    sums.transitions[:, 0] = 1.0
    for part in (sums.transition_sums, sums.reward_sums):
        part[..., VISITS], part[..., VISIT_VARIANCE] = visits, visit_variance
    sums.reward_sums[..., TOTAL] = np.array(visits) * np.array(rewards)
    return estimated(sums, Pooled.all_or_none(sums, False))


def planner(actions, horizon=2):
    return Planner(Shape(1, actions, horizon), np.ones(1), 0.0)


def hopeful(model, width=1.0, hiding=0.0):
    rows = model.number.shape
    made = planner(rows[2], rows[0]).made
    return made(model, np.zeros(rows), np.broadcast_to(width, rows).astype(float), hiding)


def test_an_uncertain_row_is_tried_when_exploring_and_shunned_when_greedy():
    # Action 0 pays 0.25 and is well known; action 1 pays 1 on visits that noise explains.
    unknown = arms([1e12, 10.0], [0.25, 1.0], [0.0, 100.0])
    optimist = hopeful(unknown)
    assert optimist.actions.ravel().tolist() == [1, 1]
    assert optimist.values.ravel().tolist() == [2.0, 1.0, 0.0]
    assert optimist.bonus.ravel().tolist() == [2.0, 1.0]
    tie = np.zeros((2, 1, 2))
    greedy = planner(2).made(unknown, tie)
    assert greedy.actions.ravel().tolist() == [0, 0]
    assert greedy.values.ravel().tolist() == [0.5, 0.25, 0.0]
    assert not greedy.bonus.any()
    known = arms([1e12, 10.0], [0.25, 1.0], [0.0, 0.0])
    assert planner(2).made(known, tie).actions.ravel().tolist() == [1, 1]


def test_no_action_is_worth_more_than_one_reward_and_the_best_next_state():
    # Step 1 is known to pay 0.25; at step 0 nothing is known: 1.25, not the 2 that are left.
    model = arms([1e12], [0.25], [0.0])
    model.reward_sums[0] = 0.0
    candidate = hopeful(model)
    assert candidate.values.ravel().tolist() == [1.25, 0.25, 0.0]
    assert planner(1).value(candidate) == 1.25


def test_the_last_step_needs_no_transitions():
    model = arms([1e12], [0.25], [0.0])
    model.transition_sums[1], model.number[1] = 0.0, -1
    assert hopeful(model).values.ravel().tolist() == [0.5, 0.25, 0.0]


def test_width_is_per_row_and_errors_add_up_along_a_policy():
    model = arms([100.0, 100.0], [0.25, 0.25], [0.0, 0.0], horizon=3)
    model.reward_sums[..., NOISE] = 100.0
    candidate = hopeful(model, width=np.array([1.0, 2.0]))
    assert (candidate.actions == 1).all()
    np.testing.assert_allclose(candidate.bonus, 0.2)
    assert candidate.values[0, 0] == pytest.approx(3 * 0.45)


def test_ties_go_to_the_luckier_action():
    model, tie = arms([1e12, 1e12], [0.5, 0.5 + 1e-12], [0.0, 0.0]), np.zeros((2, 1, 2))
    tie[0, 0, 0] = tie[1, 0, 1] = 1.0
    assert planner(2).made(model, tie).actions.ravel().tolist() == [0, 1]


def row_of(visits, *, sampling=0.0, noise=0.0, visit_variance=0.0, last=0.0):
    row = np.zeros(COLUMNS)
    row[:] = visits, sampling, noise, visit_variance, last
    return row


def test_variances_by_hand():
    # 100 visits, sd 20 on them: 80 are certain.
    moved = row_of(100.0, sampling=100.0, noise=4.0, visit_variance=400.0)
    assert planning.transition_variance(moved, 0.2, 3.0, 3.0) == pytest.approx(
        (100 * 0.2 + 4 * 3 + 6**2) / 80**2
    )
    paid = row_of(100.0, sampling=100.0, noise=5.0, visit_variance=400.0)
    plain = planning.reward_variance(paid, 0.5, 0.0)
    assert plain == pytest.approx((25 + 5 + 400 * 0.25 + 2**2) / 80**2)
    # Of centred rewards only what is not 1/2 is multiplied by the visits.
    centred = planning.reward_variance(paid, 0.75, 0.5)
    assert centred == pytest.approx((100 * 0.75 * 0.25 + 5 + 400 / 16 + 2**2) / 80**2)


@pytest.mark.parametrize(("visits", "known"), [(19.9, False), (20.0, False), (20.1, True)])
def test_visits_that_noise_explains_are_no_visits(visits, known):
    row = row_of(visits, sampling=1.0, noise=5.0, visit_variance=400.0)
    assert math.isfinite(planning.reward_variance(row, 0.5, 0.5)) == known
    assert math.isfinite(planning.transition_variance(row, 0.1, 1.0, 3.0)) == known


def test_the_bias_of_the_projection_is_beside_the_width_and_ends_with_the_last_step():
    # Batches of noise may have lost 30 of 100 visits, 90 of them certain, on a way that is better
    # by 2; the reward alone has sd 0.1.
    moved = row_of(100.0, visit_variance=100.0, last=30.0)
    paid = row_of(100.0, noise=100.0)
    moments = np.zeros(planning.MOMENTS)
    moments[planning.HIDDEN] = 2.0
    found = [
        planning.bonus_of(moved, paid, moments, width, 2, 0.0) ** 2 for width in (0.0, 1.0, 3.0)
    ]
    assert found == pytest.approx([(60 / 90) ** 2 + width**2 * 0.01 for width in (0.0, 1.0, 3.0)])
    assert planning.bonus_of(moved, paid, moments, 3.0, 1, 0.0) == pytest.approx(0.3)


def test_hidden_ways_lead_to_the_best_next_state():
    # Both states stay where they are; state 1 pays. Of 1e4 visits 100 may have gone there unseen.
    sums = CountSums.empty(2, 2, 1)
    sums.number[:] = np.arange(4).reshape(2, 2, 1)
    sums.transitions[:] = 1e4 * np.tile(np.eye(2), (2, 1))
    sums.transition_sums[..., VISITS] = sums.reward_sums[..., VISITS] = 1e4
    sums.transition_sums[..., BIAS] = 100.0
    sums.reward_sums[:, 1, 0, TOTAL] = 1e4
    model = estimated(sums, Pooled.all_or_none(sums, False))
    made = Planner(Shape(2, 1, 2), np.array([1.0, 0.0]), 0.5).made
    for hiding in (0.0, 0.5, 1.0):
        bonus = made(model, np.zeros((2, 2, 1)), np.zeros((2, 2, 1)), hiding).bonus
        np.testing.assert_allclose(bonus, [[hiding * 0.01, 0.0], [0.0, 0.0]])


@pytest.mark.parametrize("seed", range(3))
def test_the_next_value_has_a_mean_a_variance_and_the_deviations_that_noise_reaches(seed):
    rng = np.random.default_rng(seed)
    p, values = rng.dirichlet(np.ones(4)), rng.random(4)
    p = np.where(p < 0.1, 0.0, p)
    p /= p.sum()
    moved, out = row_of(100.0, noise=400.0), np.zeros(planning.MOMENTS)
    row = planning.sparse(p[None])
    mean = planning.next_value.py_func(row.columns, row.entries, moved, values, out)
    assert mean == pytest.approx(p @ values)
    square = (values - p @ values) ** 2
    assert out[planning.NEXT_VARIANCE] == pytest.approx(p @ square)
    kept = np.minimum(100 * p / 20, 1.0)  # nothing where the projection left no count
    assert out[planning.DEVIATION] == pytest.approx(kept @ square)


def test_rows_without_their_zeros():
    rows = np.array([[0.0, 0.5, 0.5], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    found = planning.sparse(rows)
    assert found.ends.tolist() == [0, 2, 2, 3]
    assert found.columns.tolist() == [1, 2, 0] and found.entries.tolist() == [0.5, 0.5, 1.0]


SHAPE, INITIAL = Shape(2, 2, 3), np.array([1.0, 0.0])


def model_of(transitions=False, rewards=False, seed=0):
    """Three steps, two states, two actions, all seen; pooled or not."""
    rng = np.random.default_rng(seed)
    sums = CountSums.empty(3, 2, 2)
    sums.number[:] = np.arange(12).reshape(3, 2, 2)
    sums.transitions[:] = rng.uniform(20, 90, (12, 2))
    for part in (sums.transition_sums, sums.reward_sums):
        part[..., VISITS] = sums.transitions.sum(axis=1).reshape(3, 2, 2)
        part[..., SAMPLING] = part[..., VISITS]
        part[..., NOISE], part[..., VISIT_VARIANCE] = 30.0, 20.0
    sums.transition_sums[..., BIAS] = 7.0
    sums.reward_sums[..., TOTAL] = sums.reward_sums[..., VISITS] * rng.random((3, 2, 2))
    rows = np.ones((2, 2), bool)
    return estimated(sums, Pooled(rows & transitions, rows & rewards))


def occupancy(model, actions, initial, known=False):
    out = np.zeros((3, 2))
    out[0] = initial
    planning.occupancy_of.py_func(model, actions, known, out)
    return out


@pytest.mark.parametrize("pooled", [False, True])
def test_occupancies_are_products_of_transitions(pooled):
    model, rng = model_of(pooled), np.random.default_rng(1)
    actions, mass = rng.integers(0, 2, (3, 2)), np.array([0.3, 0.7])
    found = occupancy(model, actions, mass)
    for h in range(3):
        np.testing.assert_allclose(found[h], mass)
        mass = mass @ model.probabilities[model.number[h, np.arange(2), actions[h]]]
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_a_row_that_nobody_visited_leads_anywhere():
    sums = CountSums.empty(3, 2, 2)
    model = estimated(sums, Pooled.all_or_none(sums, False))
    found = occupancy(model, np.zeros((3, 2), np.int64), INITIAL)
    assert found.tolist() == [[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize("unknown", ["transition_sums", "reward_sums", "number"])
def test_nobody_comes_out_of_a_row_that_is_not_known(unknown):
    model, actions = model_of(), np.array([[0, 1], [1, 0], [0, 0]])
    initial = np.array([0.4, 0.6])
    whole = occupancy(model, actions, initial, known=True)
    np.testing.assert_allclose(whole, occupancy(model, actions, initial))
    row = (0, 1, 1)
    lost = initial[1] * model.probabilities[model.number[row]]
    if unknown == "number":
        model.number[row] = -1
    else:
        getattr(model, unknown)[row][VISITS] = 20.0**0.5
    np.testing.assert_allclose(occupancy(model, actions, initial, known=True)[1], whole[1] - lost)


@pytest.mark.parametrize("seed", range(3))
def test_the_largest_chance_is_that_of_the_best_of_all_policies(seed):
    model = model_of(seed=seed)
    model.transition_sums[..., NOISE] = model.transition_sums[..., SAMPLING] = 0.0
    initial, best = np.array([0.3, 0.7]), np.zeros((3, 2))
    found = Planner(SHAPE, initial, 0.5).chances(model, best)
    for choice in itertools.product((0, 1), repeat=6):
        best = np.maximum(best, occupancy(model, np.array(choice).reshape(3, 2), initial))
    np.testing.assert_allclose(found, best)


def test_where_noise_alone_leads_nobody_comes():
    # Every chance is of 100 visits: with a noise of 20 those above 0.4 stand out.
    model = model_of()
    model.probabilities[:] = [0.35, 0.65]
    model.transition_sums[..., SAMPLING] = 0.0
    model.transition_sums[..., VISITS], model.transition_sums[..., NOISE] = 100.0, 400.0
    found = Planner(SHAPE, INITIAL, 0.5).chances(model, np.zeros((3, 2)))
    np.testing.assert_allclose(found, [[1.0, 0.0], [0.0, 0.65], [0.0, 0.65**2]])
    model.transition_sums[..., VISIT_VARIANCE] = 1e5
    assert not Planner(SHAPE, INITIAL, 0.5).chances(model, np.zeros((3, 2)))[1:].any()


def test_chances_of_a_large_problem_are_those_along_the_greedy_policy():
    large, greedy = Shape(716, 25, 20), np.ones((20, 716))
    assert Planner(large, np.ones(716) / 716, 0.5).chances(None, greedy) is greedy


def terms(users, last_transitions=False, per_visit=0.0):
    factors = np.array([0.0, 0.5, 1.0])
    return ReleaseTerms(
        float(users), 20.0, 10.0, per_visit, per_visit / 4, factors, 0.1, last_transitions
    )


def test_what_is_expected_of_a_row_by_hand():
    found = np.zeros((2, COLUMNS))
    planning.expected_row(1, 200.0, terms(500, per_visit=3.0), found)
    w, v = 200 / (200 + 20 / 0.1), 200 / (200 + 10 / 0.1)
    visit_variance = 20 * 0.5 + 3 * 200 / 2
    moved = [w * 200, w**2 * 200 * 4, w**2 * 20, w**2 * visit_variance, w * 20**0.5]
    paid = [v * 200, v**2 * 200, v**2 * (10 + 200 * 0.75), v**2 * visit_variance, 0]
    np.testing.assert_allclose(found, [moved, paid], rtol=1e-12)
    planning.expected_row(2, 200.0, terms(500), found)
    assert not found[0].any() and found[1].any()


@pytest.mark.parametrize("trust", [CENTRAL, discreet.Local(1)])
def test_a_batch_that_goes_as_expected_adds_what_was_predicted(trust):
    """A release that holds what the model foretold, and no other number."""
    mdp = river(0)
    learner = learner_of(mdp, trust)
    batch = learner.ask()
    flow = 1e6 * true_occupancy(mdp, batch.policy)
    noise = learner.mechanism.noise_variance(10**6)
    transitions = flow[..., None] * mdp.transitions
    transitions[-1] *= learner.mechanism.last_transitions
    counts = PrivateCounts(
        users=10**6,
        transitions=transitions,
        visits=flow if "visits" in noise else None,
        rewards=0.0 * flow,
        noise_variance=noise,
        support=batch.policy.support(mdp.shape, learner.problem.start),
        guarantee=None,
        last_transitions=learner.mechanism.last_transitions,
    )
    learner.add(counts, replace(batch, occupancy=flow.sum(axis=-1) / 1e6))
    found, sums, told = np.zeros((2, COLUMNS)), learner.sums, learner._terms(10**6)
    for row in np.argwhere((flow > 0) & counts.support):
        planning.expected_row(row[0], flow[tuple(row)], told, found)
        np.testing.assert_allclose(sums.transition_sums[tuple(row)], found[0], rtol=1e-3)
        paid = sums.reward_sums[tuple(row)][:TOTAL]
        np.testing.assert_allclose(paid, found[1, :TOTAL], rtol=1e-3)


@pytest.mark.parametrize("transitions", [False, True])
@pytest.mark.parametrize("rewards", [False, True])
@pytest.mark.parametrize("last", [False, True])
def test_what_a_batch_leaves_is_the_bonus_after_the_expected_counts(transitions, rewards, last):
    model, made = model_of(transitions, rewards), Planner(SHAPE, INITIAL, 0.5)
    width = np.full((3, 2, 2), 0.3)
    candidate = made.made(model, np.zeros((3, 2, 2)), width, 0.5)
    after = planning.expecting(model, terms(500, last), candidate)
    expected = 0.0
    for h, s in np.ndindex(3, 2):
        row = (h, s, candidate.actions[h, s])
        moved, paid, moments = (
            after.transition_sums[row],
            after.reward_sums[row],
            candidate.moments[h, s],
        )
        bonus = planning.bonus_of(moved, paid, moments, 0.3, 3 - h, 0.5)
        expected += candidate.occupancy[h, s] * min(bonus, 3 - h)
    found = planning.unknown_after(model, terms(500, last), candidate, width, 0.5)
    assert found == pytest.approx(expected)
    before = model.reward_sums[..., TOTAL] / model.reward_sums[..., VISITS]
    np.testing.assert_allclose(
        after.reward_sums[..., TOTAL] / after.reward_sums[..., VISITS], before
    )
    assert (after.reward_sums[..., VISITS] > model.reward_sums[..., VISITS]).any()


def test_more_users_leave_less():
    model, made = model_of(True), Planner(SHAPE, INITIAL, 0.5)
    width = np.full((3, 2, 2), 0.3)
    candidate = made.made(model, np.zeros((3, 2, 2)), width, 0.0)
    left = [
        planning.unknown_after(model, terms(n), candidate, width, 0.5) for n in (10, 100, 10**4)
    ]
    assert left == sorted(left, reverse=True)
    assert left[0] <= (candidate.occupancy * candidate.bonus).sum()


def test_an_unchecked_reward_stays_unknown_until_it_is_seen():
    # Noise of variance 10 at the first step and a mean of a half: n visits have the weight w =
    # n/(n + 100) and leave (n/4 + 10 + 4)/n² <= 1/4 from nine on.
    model, made = model_of(True, True), Planner(SHAPE, INITIAL, 0.5)
    width = np.full((3, 2, 2), 1e-3)
    candidate = made.made(model, np.zeros((3, 2, 2)), width, 0.0)
    candidate.moments[0, 0, planning.REWARD] = 0.5
    here = (0, 0, candidate.actions[0, 0])
    model.reward_sums[here], model.pooled_rewards[here] = 0.0, False
    few, enough = (planning.unknown_after(model, terms(n), candidate, width, 0.5) for n in (7, 9))
    assert few >= 3.0 > enough
    model.number[here] = -1  # never played at all: that is what the first counts are for
    assert planning.unknown_after(model, terms(7), candidate, width, 0.5) < 3.0
