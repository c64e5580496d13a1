"""The practical explorer on exact counts: who is explored, what stays active, who plays at last."""

import json

import numpy as np
import pytest

from discreet.errors import UnsupportedError
from discreet.learners.base import PublicFacts
from discreet.learners.elimination.active_set import MOST_DECISIONS, coverage_design
from discreet.learners.elimination.explorers import (
    CountPool,
    ImplicitElimination,
    greedy_actions,
    shuffled_actions,
    visiting_mixture,
    with_auxiliary,
)
from discreet.learners.elimination.settings import EliminationSettings
from discreet.mdp import RiverSwim, occupancy, solve, uniform_policy
from discreet.mdp.policies import DeterministicPolicy, MixturePolicy
from discreet.mdp.shape import Shape
from helpers.absorbing import is_active

MDP = RiverSwim(states=3, horizon=3, relabel=5)


def explorer(mdp=MDP, **settings):
    problem = PublicFacts(mdp.shape, 10_000, mdp.initial > 0)
    return ImplicitElimination(problem, EliminationSettings(**settings))


def expected_counts(mdp, policy, users, variance=0.0):
    """What ``users`` users leave on average, as a release without noise shows it."""
    visits = users * occupancy(mdp, policy)
    return CountPool(
        visits[..., None] * mdp.transitions,
        visits * mdp.rewards,
        np.full(mdp.shape.visits, variance),
        np.full(mdp.shape.visits, variance),
        users,
    )


def taught(users=10**7, part="crude", **settings):
    made = explorer(**settings)
    batch = expected_counts(MDP, uniform_policy(MDP.shape), users)
    made.learn(part, batch, float(users), np.random.default_rng(0))
    return made


def test_before_any_data_every_policy_is_active_and_actions_are_random():
    made = explorer()
    rng = np.random.default_rng(1)
    active = made.active_set(made.model(), rng)
    assert active.threshold == -np.inf
    policy = made.policy("crude", rng)
    assert isinstance(policy, MixturePolicy)
    for component in policy.components:
        np.testing.assert_allclose(component.probabilities[1:], 0.5)


def test_with_plenty_of_data_the_tail_plays_the_optimal_policy():
    policy = taught().policy("tail", np.random.default_rng(2))
    assert isinstance(policy, DeterministicPolicy)
    best = solve(MDP)
    reached = occupancy(MDP, best.policy).sum(axis=-1) > 0
    assert np.array_equal(policy.actions[reached], best.policy.actions[reached])


def test_the_active_set_shrinks_with_data_and_keeps_the_best():
    made = taught()
    model = made.model()
    active = made.active_set(model, np.random.default_rng(3))
    assert np.isfinite(active.threshold)
    assert is_active(active, solve(MDP).policy.actions)
    worst = 1 - solve(MDP).policy.actions
    assert not is_active(active, worst)


def test_printed_widths_exclude_nobody_at_this_size():
    made = taught(users=1000, constants="theory")
    active = made.active_set(made.model(), np.random.default_rng(3))
    assert is_active(active, 1 - solve(MDP).policy.actions)


def test_fine_exploration_reports_the_certificate_of_its_design():
    made = taught()
    made.policy("fine", np.random.default_rng(4))
    [found] = made.designs
    assert found["tuples"] <= found["value"] <= 1.01 * found["tuples"] * (1 + 1e-9)
    assert found["value"] <= found["bound"]
    plain = taught(fine="mixture")
    plain.policy("fine", np.random.default_rng(4))
    assert plain.designs == []


@pytest.mark.parametrize(("forgetting", "users"), [(False, 300), (True, 200)])
def test_a_new_stage_forgets_only_if_asked_to(forgetting, users):
    made = explorer(forgetting=forgetting)
    rng, uniform = np.random.default_rng(5), uniform_policy(MDP.shape)
    for part, count in (("crude", 50), ("fine", 50), ("crude", 100), ("fine", 100)):
        made.learn(part, expected_counts(MDP, uniform, count), float(count), rng)
    assert made.pool.users == users
    assert made.length == 100.0


def test_noisy_batches_weigh_less():
    """n/(n + sigma²): without noise one, with noise as large as the mean count one half."""
    made = explorer()
    uniform = uniform_policy(MDP.shape)
    assert made._weight(expected_counts(MDP, uniform, 60)) == 1.0
    mean = 60 * MDP.horizon  # nothing is frequent yet: one tuple takes all
    assert made._weight(expected_counts(MDP, uniform, 60, variance=mean)) == pytest.approx(0.5)
    made.learn("crude", expected_counts(MDP, uniform, 60, variance=mean), 60.0, None)
    np.testing.assert_allclose(made.pool.transition_variance, mean / 4)


def test_a_saved_explorer_goes_on_where_it_was():
    made, other = taught(users=500), explorer()
    other.restore(json.loads(json.dumps(made.state())))
    assert other.length == made.length
    one, two = (e.policy("crude", np.random.default_rng(6)) for e in (made, other))
    assert one.key == two.key


def test_sizes_beyond_memory_are_refused_with_a_remedy():
    shape = Shape(states=300, actions=2, horizon=40)
    assert shape.horizon**2 * shape.states**2 * shape.actions > MOST_DECISIONS
    problem = PublicFacts(shape, 10, np.arange(300) == 0)
    with pytest.raises(UnsupportedError, match=r"24000 \(step, state, action\).*use 'flow-ucb'"):
        ImplicitElimination(problem, EliminationSettings())


def test_orders_of_actions_are_permutations_and_all_occur():
    problem = PublicFacts(Shape(states=50, actions=3, horizon=20), 10, np.ones(50, bool))
    order = shuffled_actions(problem.shape, np.random.default_rng(7))
    assert order.shape == (20, 50, 3)
    assert (np.sort(order, axis=-1) == np.arange(3)).all()
    first = np.bincount(order[..., 0].ravel(), minlength=3)
    assert abs(first - 1000 / 3).max() < 5 * np.sqrt(1000 * 2 / 9)


def test_greedy_actions_follow_the_model_and_break_ties_by_the_order():
    made = explorer()
    model = made.model()  # knows nothing: all actions tie
    order = shuffled_actions(made.problem.shape, np.random.default_rng(8))
    assert np.array_equal(greedy_actions(model, order), order[..., 0])


def test_the_visiting_mixture_reaches_all_that_can_be_reached():
    made = taught()
    active = made.active_set(made.model(), np.random.default_rng(9))
    policies, weights = visiting_mixture(active)
    assert weights.sum() == pytest.approx(1.0)
    occupied = sum(w * active.occupancy(p) for w, p in zip(weights, policies, strict=True))
    _, possible = active.visiting()
    assert np.array_equal(occupied > 0, possible > 0)


def test_the_auxiliary_mixture_joins_the_design_in_equal_parts():
    made = taught()
    active = made.active_set(made.model(), np.random.default_rng(10))
    policies, weights = visiting_mixture(active)
    occupancies = np.stack([active.occupancy(policy) for policy in policies])
    design = coverage_design(policies, weights, occupancies, active.maximise)
    both, shares = with_auxiliary(design, policies, weights)
    mixed = sum(s * active.occupancy(p) for s, p in zip(shares, both, strict=True))
    plain = np.tensordot(weights / weights.sum(), occupancies, axes=1)
    np.testing.assert_allclose(mixed, (design.occupancy + plain) / 2, atol=1e-12)
