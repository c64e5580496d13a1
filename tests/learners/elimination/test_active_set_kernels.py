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
    visits = visits_of(transitions, initial, actions)
    assert one == pytest.approx((visits * first).sum())
    assert other == pytest.approx((visits * second).sum())


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
    feasible, alone, mixed = kernels.constrained_maximum(
        transitions, initial, objective, upper, threshold, order
    )
    assert mixed == pytest.approx(best_mixture(points, threshold))
    visits = visits_of(transitions, initial, feasible)
    assert alone == pytest.approx((visits * objective).sum())
    assert (visits * upper).sum() >= threshold - 1e-12


def test_a_threshold_beyond_everybody_gives_the_policy_of_the_highest_upper_value():
    transitions, initial, upper, order = random_model(2)
    where = (transitions, initial, 1.0 - upper, upper)
    feasible, alone, mixed = kernels.constrained_maximum(*where, 1e9, order)
    best = everyone(transitions, initial, upper)[:, 0].max()
    assert (visits_of(transitions, initial, feasible) * upper).sum() == pytest.approx(best)
    assert mixed == alone


@pytest.mark.parametrize(("first", "last"), [(0, 3), (1, 2)])
def test_visits_are_one_constrained_maximum_for_each_place(first, last):
    transitions, initial, upper, order = random_model(4)
    threshold = float(np.quantile(everyone(transitions, initial, upper)[:, 0], 0.7))
    policies, visits = kernels.constrained_visits(
        transitions, initial, upper, threshold, order, first, last
    )
    assert len(visits) == last - first
    for h, x, a in np.ndindex(*visits.shape):
        target = np.zeros_like(upper)
        target[first + h, x, a] = 1.0
        found = kernels.constrained_maximum(transitions, initial, target, upper, threshold, order)
        assert np.array_equal(policies[h, x, a], found[0])
        reached = visits_of(transitions, initial, policies[h, x, a])[first + h, x, a]
        assert visits[h, x, a] == found[1] == pytest.approx(reached)
