"""The dynamic programs behind the implicit active set against lists of all policies."""

import numpy as np
import pytest

from discreet.learners.elimination import active_set as kernels
from helpers.absorbing import all_actions, random_model, visits_of

SIZE = (3, 2, 2)


def everyone(transitions, initial, *rewards):
    """One row per policy: its value under each of the rewards, by its visits."""
    visits = [visits_of(transitions, initial, policy) for policy in all_actions(*SIZE)]
    return np.array([[float((v * r).sum()) for r in rewards] for v in visits])


@pytest.mark.parametrize("seed", range(4))
def test_the_value_of_a_policy_is_what_its_visits_earn(seed):
    transitions, initial, rewards, _ = random_model(seed)
    for policy in all_actions(*SIZE):
        visits = visits_of(transitions, initial, policy)
        found = kernels.policy_value(transitions, initial, rewards, policy)
        assert found == pytest.approx((visits * rewards).sum())
        np.testing.assert_allclose(
            kernels.policy_occupancy(transitions, initial, policy), visits, atol=1e-15
        )


def test_what_leaves_for_the_absorbing_state_is_visited_no_more():
    transitions, initial, _, _ = random_model(1)
    policy = np.zeros((3, 2), np.int64)
    reached = kernels.policy_occupancy(transitions, initial, policy).sum(axis=(1, 2))
    assert reached[0] == pytest.approx(1.0)
    assert reached[1] == pytest.approx(float((initial @ transitions[0, :, 0]).sum()))
    assert reached[2] < reached[1] < reached[0]


@pytest.mark.parametrize("multiplier", [0.0, 0.3, 4.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_weighted_plan_is_the_best_of_all_policies(seed, multiplier):
    transitions, initial, first, order = random_model(seed)
    second = np.random.default_rng(seed + 100).random(first.shape)
    actions, one, other = kernels.weighted_plan(
        transitions, initial, first, second, multiplier, order
    )
    values = everyone(transitions, initial, first, second)
    assert one + multiplier * other == pytest.approx(values.dot([1.0, multiplier]).max())
    assert one == pytest.approx(kernels.policy_value(transitions, initial, first, actions))
    assert other == pytest.approx(kernels.policy_value(transitions, initial, second, actions))


def test_ties_of_the_first_reward_go_to_more_of_the_second():
    transitions, initial, _, order = random_model(5)
    nothing = np.zeros((3, 2, 2))
    second = np.zeros((3, 2, 2))
    second[:, :, 1] = 1.0
    for tie_order in (order, order[..., ::-1].copy()):
        actions, one, _ = kernels.weighted_plan(
            transitions * 0.0, initial, nothing, second, 0.0, tie_order
        )
        assert (actions == 1).all()
        assert one == 0.0


def test_the_last_step_has_no_successor():
    """Transitions of the last step change nothing: there is nothing left to earn."""
    transitions, initial, rewards, order = random_model(6)
    other = transitions.copy()
    other[-1] = 0.0
    nothing = np.zeros_like(rewards)
    one = kernels.weighted_plan(transitions, initial, rewards, nothing, 0.0, order)
    two = kernels.weighted_plan(other, initial, rewards, nothing, 0.0, order)
    assert np.array_equal(one[0], two[0])
    assert one[1] == two[1]
    policy = one[0]
    assert kernels.policy_value(transitions, initial, rewards, policy) == kernels.policy_value(
        other, initial, rewards, policy
    )


@pytest.mark.parametrize("seed", range(3))
def test_renamed_actions_give_the_renamed_plan(seed):
    transitions, initial, first, order = random_model(seed, actions=2)
    second = np.random.default_rng(seed + 50).random(first.shape)
    actions, one, other = kernels.weighted_plan(transitions, initial, first, second, 0.5, order)
    renamed, one_again, other_again = kernels.weighted_plan(
        transitions[:, :, ::-1].copy(),
        initial,
        first[:, :, ::-1].copy(),
        second[:, :, ::-1].copy(),
        0.5,
        1 - order,
    )
    assert np.array_equal(renamed, 1 - actions)
    assert (one_again, other_again) == (one, other)


def best_mixture(points, threshold):
    """The largest second coordinate of a mixture of two points whose first meets a threshold."""
    best = -np.inf
    for u, v in points:
        for w, x in points:
            if u >= threshold > w:
                share = (u - threshold) / (u - w)
                best = max(best, share * x + (1 - share) * v)
        if u >= threshold:
            best = max(best, v)
    return best


@pytest.mark.parametrize("quantile", [0.1, 0.6, 0.95])
@pytest.mark.parametrize("seed", range(4))
def test_a_constrained_maximum_is_that_of_all_mixtures_of_two_policies(seed, quantile):
    transitions, initial, upper, order = random_model(seed)
    objective = np.random.default_rng(seed + 10).random(upper.shape)
    points = everyone(transitions, initial, upper, objective)
    threshold = float(np.quantile(points[:, 0], quantile))
    feasible, partner, share, mixed, alone, plans = kernels.constrained_maximum(
        transitions, initial, objective, upper, threshold, order
    )
    assert mixed == pytest.approx(best_mixture(points, threshold))
    assert alone == pytest.approx(kernels.policy_value(transitions, initial, objective, feasible))
    uppers = [
        kernels.policy_value(transitions, initial, upper, policy) for policy in (feasible, partner)
    ]
    assert uppers[0] >= threshold - 1e-12
    if share > 0.0:
        assert share * uppers[1] + (1 - share) * uppers[0] == pytest.approx(threshold)
    assert 1 <= plans <= 12


def test_a_threshold_beyond_everybody_gives_the_policy_of_the_highest_upper_value():
    transitions, initial, upper, order = random_model(2)
    objective = 1.0 - upper
    feasible, partner, share, mixed, alone, plans = kernels.constrained_maximum(
        transitions, initial, objective, upper, 1e9, order
    )
    best = everyone(transitions, initial, upper)[:, 0].max()
    assert kernels.policy_value(transitions, initial, upper, feasible) == pytest.approx(best)
    assert np.array_equal(feasible, partner)
    assert (share, mixed, plans) == (0.0, alone, 2)


def test_a_threshold_that_does_not_bind_costs_one_plan():
    transitions, initial, upper, order = random_model(3)
    found = kernels.constrained_maximum(transitions, initial, upper, upper, -np.inf, order)
    assert found[5] == 1
    assert found[3] == pytest.approx(everyone(transitions, initial, upper)[:, 0].max())


def test_visits_are_one_constrained_maximum_for_each_place():
    transitions, initial, upper, order = random_model(4)
    threshold = float(np.quantile(everyone(transitions, initial, upper)[:, 0], 0.7))
    policies, visits, plans = kernels.constrained_visits(
        transitions, initial, upper, threshold, order
    )
    for place in np.ndindex(*upper.shape):
        target = np.zeros_like(upper)
        target[place] = 1.0
        found = kernels.constrained_maximum(transitions, initial, target, upper, threshold, order)
        assert np.array_equal(policies[place], found[0])
        assert (visits[place], plans[place]) == (found[4], found[5])
        reached = visits_of(transitions, initial, policies[place])[place]
        assert visits[place] == pytest.approx(reached)


@pytest.mark.parametrize("seed", range(3))
def test_optimal_values_are_those_of_a_plain_induction(seed):
    transitions, initial, rewards, order = random_model(seed, horizon=4, states=3)
    expected = np.zeros((5, 3))
    for h in (3, 2, 1, 0):
        ahead = transitions[h] @ expected[h + 1] if h < 3 else 0.0
        expected[h] = (rewards[h] + ahead).max(axis=-1)
    found = kernels.optimal_values(transitions, rewards)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    nothing = np.zeros_like(rewards)
    plan = kernels.weighted_plan(transitions, initial, rewards, nothing, 0.0, order)
    assert plan[1] == pytest.approx(float(initial @ found[0]))
