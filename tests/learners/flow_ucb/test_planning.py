"""Plans of flow-ucb: optimism within bounds, greed that shuns what is not known."""

import numpy as np
import pytest

from discreet.learners.estimate import BIAS, NOISE, TOTAL, VISIT_VARIANCE, VISITS, CountSums
from discreet.learners.flow_ucb.planning import SHARE, Planner
from discreet.learners.pooling import Pooled, estimated
from discreet.mdp.shape import Shape


def belief_of(visits, rewards, visit_variance, horizon=2, pooled=False):
    """One state; per action the visits, the mean reward and the variance of the visits."""
    sums = CountSums.empty(horizon, 1, len(visits))
    sums.number[:] = np.arange(horizon * len(visits)).reshape(horizon, 1, -1)
    sums.transitions[:, 0] = 1.0
    for part in (sums.transition_sums, sums.reward_sums):
        part[..., VISITS], part[..., VISIT_VARIANCE] = visits, visit_variance
    sums.reward_sums[..., TOTAL] = np.array(visits) * np.array(rewards)
    rows = np.full((1, len(visits)), pooled)
    return estimated(sums, Pooled(rows, rows))


def planner(actions, horizon=2):
    return Planner(Shape(1, actions, horizon), np.ones(1), 0.0)


def values_of(candidate):
    return candidate.values.ravel().tolist()


def test_an_uncertain_row_is_tried_when_exploring_and_shunned_when_greedy():
    # Action 0 pays 0.25 and is well known; action 1 pays 1 on visits that noise explains.
    unknown = belief_of([1e12, 10.0], [0.25, 1.0], [0.0, 100.0])
    width, tie = np.ones((2, 1, 2)), np.zeros((2, 1, 2))
    optimist = planner(2).optimistic(unknown, width, tie)
    assert optimist.actions.ravel().tolist() == [1, 1]
    assert values_of(optimist) == [2.0, 1.0, 0.0]
    assert optimist.bonus.ravel().tolist() == [2.0, 1.0]
    greedy = planner(2).greedy(unknown, tie)
    assert greedy.actions.ravel().tolist() == [0, 0]
    assert values_of(greedy) == [0.5, 0.25, 0.0]
    assert not greedy.bonus.any()
    known = belief_of([1e12, 10.0], [0.25, 1.0], [0.0, 0.0])
    assert planner(2).greedy(known, tie).actions.ravel().tolist() == [1, 1]


def test_no_action_is_worth_more_than_one_reward_and_the_best_next_state():
    # Step 1 is known to pay 0.25; at step 0 nothing is known: 1.25, not the 2 that are left.
    model = belief_of([1e12], [0.25], [0.0])
    model.reward_sums[0] = 0.0
    candidate = planner(1).optimistic(model, np.ones((2, 1, 1)), np.zeros((2, 1, 1)))
    assert values_of(candidate) == [1.25, 0.25, 0.0]
    assert planner(1).value(candidate) == 1.25


def test_the_last_step_needs_no_transitions():
    model = belief_of([1e12], [0.25], [0.0])
    model.transition_sums[1], model.number[1] = 0.0, -1
    candidate = planner(1).optimistic(model, np.ones((2, 1, 1)), np.zeros((2, 1, 1)))
    assert values_of(candidate) == [0.5, 0.25, 0.0]


def test_width_is_per_row():
    model = belief_of([100.0, 100.0], [0.5, 0.5], [0.0, 0.0])
    model.reward_sums[..., 2] = 100.0  # noise variance
    width = np.ones((2, 1, 2))
    width[..., 1] = 2.0
    candidate = planner(2).optimistic(model, width, np.zeros((2, 1, 2)))
    assert candidate.actions.ravel().tolist() == [1, 1]
    np.testing.assert_allclose(candidate.bonus[-1], 0.2)


@pytest.mark.parametrize("horizon", [1, 3, 16])
def test_errors_of_single_steps_add_up_as_squares_and_those_of_a_pooled_row_as_they_are(horizon):
    # Every step's reward is known up to sd 0.1. Independent errors leave 0.1·sqrt(H) of all steps
    # together; one row for all steps is wrong by the same amount H times.
    for pooled, expected in ((False, 0.1 * horizon**0.5), (True, 0.1 * horizon)):
        model = belief_of([100.0], [0.25], [0.0], horizon, pooled)
        # Pooling has added the steps up; here every row has the same sums, pooled or not.
        model.reward_sums[..., VISITS], model.reward_sums[..., NOISE] = 100.0, 100.0
        model.reward_sums[..., TOTAL] = 25.0
        tie = np.zeros((horizon, 1, 1))
        candidate = planner(1, horizon).optimistic(model, np.ones_like(tie), tie)
        assert candidate.bonus.sum() == pytest.approx(expected)
        assert candidate.values[0, 0] == pytest.approx(0.25 * horizon + expected)


def unsure_steps(errors, pooled=()):
    """One state, one action: step h pays 0.25 with sd ``errors[h]``; some are pooled."""
    model = belief_of([100.0], [0.25], [0.0], len(errors))
    model.reward_sums[..., VISITS], model.reward_sums[..., TOTAL] = 100.0, 25.0
    model.reward_sums[..., 0, 0, NOISE] = (100 * np.array(errors)) ** 2
    model.pooled_rewards[list(pooled)] = True
    return model


def bonuses(model):
    width = np.ones(model.number.shape)
    return planner(1, len(width)).optimistic(model, width, np.zeros_like(width)).bonus.ravel()


def test_what_is_unsure_is_carried_through_a_pooled_step():
    # The pooled step counts whole and adds nothing to the squares; what lies behind it stays.
    found = bonuses(unsure_steps([0.3, 0.1, 0.4], pooled=[1]))
    np.testing.assert_allclose(found, [0.5 - 0.4, 0.1, 0.4])


@pytest.mark.parametrize("which", ["pooled_transitions", "pooled_rewards"])
def test_a_row_of_which_anything_is_pooled_does_not_stand_alone(which):
    model = unsure_steps([0.3, 0.4])
    getattr(model, which)[0] = True
    np.testing.assert_allclose(bonuses(model), [0.3, 0.4])


def test_behind_an_unknown_row_nothing_is_unsure_that_counts():
    # The unknown step is worth the ceiling, whatever follows; the error before it counts whole.
    model = unsure_steps([0.3, 0.1, 0.4])
    model.reward_sums[1, ..., VISITS] = 0.0
    np.testing.assert_allclose(bonuses(model)[[0, 2]], [0.3, 0.4])


def test_what_is_unsure_is_the_mean_over_next_states():
    # Step 0 leads to state 0 or 1 alike; one is unsure by 0.3, the other by 0.1: U = 0.05.
    sums = CountSums.empty(2, 2, 1)
    sums.number[:] = np.arange(4).reshape(2, 2, 1)
    sums.transitions[:] = 50.0
    sums.transition_sums[..., VISITS] = sums.reward_sums[..., VISITS] = 100.0
    sums.reward_sums[..., NOISE] = np.array([[20.0, 20.0], [30.0, 10.0]])[..., None] ** 2
    sums.reward_sums[..., TOTAL] = 25.0
    nothing = np.zeros((2, 1), bool)
    model, ones = estimated(sums, Pooled(nothing, nothing)), np.ones((2, 2, 1))
    model.transition_sums[..., VISITS] = 1e9  # where the step leads is known
    candidate = Planner(Shape(2, 1, 2), np.array([1.0, 0.0]), 0.0).optimistic(model, ones, 0 * ones)
    assert candidate.bonus[0, 0] == pytest.approx((0.04 + 0.05) ** 0.5 - 0.05**0.5, rel=1e-6)


def test_actions_are_compared_with_the_whole_of_their_own_errors():
    # Two actions lead to the same future, which is very unsure. Action 0 pays 0.5 for certain,
    # action 1 pays 0.3, give or take 0.3: it may be the better one, however unsure the rest is.
    model = belief_of([1e12, 100.0], [0.5, 0.3], [0.0, 0.0])
    model.reward_sums[0, 0, 1, NOISE] = 30.0**2
    model.reward_sums[1, ..., VISITS], model.reward_sums[1, ..., TOTAL] = 100.0, 0.0
    model.reward_sums[1, ..., NOISE] = 90.0**2
    width, tie = np.ones((2, 1, 2)), np.zeros((2, 1, 2))
    candidate = planner(2).optimistic(model, width, tie)
    assert candidate.actions[0, 0] == 1
    # What is hoped for before it is by squares, and the better of both: 0.5 and nothing more.
    added = (0.09 + 0.81) ** 0.5 - 0.9
    assert candidate.values[0, 0] == pytest.approx(0.9 + max(0.5, 0.3 + added))
    assert candidate.bonus[0, 0] == pytest.approx(added)


def test_a_state_that_is_sure_takes_nothing_from_the_errors_before_it():
    # Of two steps the second is known: all that is unsure is the first, and counts whole.
    model = belief_of([1e12], [0.25], [0.0])
    model.reward_sums[0, ..., VISITS], model.reward_sums[0, ..., NOISE] = 100.0, 100.0
    model.reward_sums[0, ..., TOTAL] = 25.0
    candidate = planner(1).optimistic(model, np.ones((2, 1, 1)), np.zeros((2, 1, 1)))
    np.testing.assert_allclose(candidate.bonus.ravel(), [0.1, 0.0], atol=1e-9)
    # Unsure is the second as well, three times as much: sqrt(0.01 + 0.09) in all.
    model.reward_sums[1] = model.reward_sums[0]
    model.reward_sums[1, ..., NOISE] = 900.0
    candidate = planner(1).optimistic(model, np.ones((2, 1, 1)), np.zeros((2, 1, 1)))
    np.testing.assert_allclose(candidate.bonus.ravel(), [0.1**0.5 - 0.3, 0.3])
    np.testing.assert_allclose(candidate.moments[..., SHARE].ravel(), [(0.1**0.5 - 0.3) / 0.1, 1.0])


def test_the_work_of_largest_chances_is_known_before():
    assert Planner(Shape(716, 25, 20), np.ones(716) / 716, 0.5).chance_work > 1e12
    assert planner(2).chance_work == 4.0
    assert planner(2).largest_chances(belief_of([9.0, 9.0], [0, 0], [0, 0])).tolist() == [
        [1.0],
        [1.0],
    ]


def door_belief(seen, at=(0, 1, 2)):
    """Both states stay; state 1 had ``seen`` visits at steps ``at``, and many at others."""
    sums = CountSums.empty(3, 2, 2)
    sums.number[:] = np.arange(12).reshape(3, 2, 2)
    stay = np.tile([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], (3, 1))
    sums.transitions[:] = 1e6 * stay
    for part in (sums.transition_sums, sums.reward_sums):
        part[..., VISITS] = 1e6
        part[at, 1, :, VISITS], part[at, 1, :, VISIT_VARIANCE] = seen, 1e4
    sums.transition_sums[..., NOISE], sums.transition_sums[..., BIAS] = 1e4, 1e2
    none = np.zeros((2, 2), bool)
    return estimated(sums, Pooled(none, none))


DOOR = Planner(Shape(2, 2, 3), np.array([1.0, 0.0]), 0.0)


def hoped(seen, hiding, **where):
    tie = np.zeros((3, 2, 2))
    return DOOR.optimistic(door_belief(seen, **where), np.ones_like(tie), tie, hiding)


def test_a_way_that_noise_may_hide_is_a_bonus_only_to_where_nobody_was_seen():
    values = [hoped(50.0, hiding).values[0, 0] for hiding in (0.0, 0.5, 1.0)]
    assert values == sorted(values) and len(set(values)) == 3
    assert hoped(1e6, 1.0).values[0, 0] == hoped(1e6, 0.0).values[0, 0]


@pytest.mark.parametrize("step", [1, 2])
def test_a_hidden_way_leads_to_the_step_at_which_nobody_was_seen(step):
    more = hoped(50.0, 1.0, at=(step,)).bonus[:, 0] > hoped(50.0, 0.0, at=(step,)).bonus[:, 0]
    assert more.tolist() == [h == step - 1 for h in range(3)]


def test_close_calls_are_close_to_the_best_and_no_others():
    # At the last step actions pay 0.8, 0.7, 0.4 and 0.8; a tenth is far where that is said.
    model = belief_of([1e12] * 4, [0.8, 0.7, 0.4, 0.8], [0.0] * 4)
    last = planner(4).closeness(model, 0.25)[1, 0]
    assert last == pytest.approx([1.0, 0.5, 0.0, 1.0])
    first = planner(4).closeness(model, 0.25)[0, 0]  # 1.6, 1.5, 1.2 and 1.6 of two steps
    assert first == pytest.approx([1.0, 0.75, 0.0, 1.0])
    assert planner(4).closeness(model, 0.1)[1, 0] == pytest.approx([1.0, 0.0, 0.0, 1.0])


def test_nothing_is_far_where_nothing_is_known():
    sums = CountSums.empty(2, 1, 2)
    none = np.zeros((1, 2), bool)
    assert planner(2).closeness(estimated(sums, Pooled(none, none)), 0.3).tolist() == [
        [[1.0, 1.0]],
        [[1.0, 1.0]],
    ]


def test_of_a_declared_problem_an_action_is_as_close_as_at_its_closest_step():
    # One layer: 0.8 and 0.4 of one step are far apart, 1.6 and 1.2 of two are closer.
    sums = CountSums.empty(1, 1, 2)
    sums.number[:] = [[[0, 1]]]
    sums.transitions[:] = 1e12
    for part in (sums.transition_sums, sums.reward_sums):
        part[..., VISITS] = 1e12
    sums.reward_sums[..., TOTAL] = [0.8e12, 0.4e12]
    everything = np.ones((1, 2), bool)
    found = planner(2).closeness(estimated(sums, Pooled(everything, everything)), 0.5)
    assert found.shape == (1, 1, 2) and found[0, 0] == pytest.approx([1.0, 0.5])
