"""The implicit active set against an LP solver and against the explicit list of policies."""

import numpy as np
import pytest
from scipy.optimize import linprog

from discreet.learners.elimination.active_set import ImplicitActiveSet, enumerate_policies
from discreet.mdp.shape import Shape
from helpers.absorbing import is_active, is_listed

SHAPE = Shape(states=4, actions=2, horizon=5)


def absorbing_problem(seed, shape=SHAPE):
    """A random sub-stochastic model, as private counts leave it, with rewards and an order."""
    rng = np.random.default_rng(seed)
    transitions = rng.dirichlet(np.full(shape.states, 0.4), shape.visits)
    transitions[transitions < 0.15] = 0.0
    transitions[-1] = 0.0
    initial = np.zeros(shape.states)
    initial[0] = 1.0
    upper = rng.random(shape.visits)
    order = rng.permuted(np.broadcast_to(np.arange(shape.actions), shape.visits), axis=-1)
    return transitions, initial, upper, order, rng


def active_set(seed, quantile, shape=SHAPE):
    transitions, initial, upper, order, rng = absorbing_problem(seed, shape)
    everyone = enumerate_policies(shape, initial > 0)
    values = everyone.values(transitions, initial, upper)
    threshold = float(np.quantile(values, quantile))
    implicit = ImplicitActiveSet(transitions, initial, upper, threshold, order)
    return implicit, everyone.keep(values >= threshold), rng


def lp_maximum(implicit, objective):
    """The same maximum over occupancy measures, by HiGHS."""
    horizon, states, actions = implicit.upper.shape
    flow = np.zeros((horizon * states, implicit.upper.size))
    column = np.arange(implicit.upper.size).reshape(implicit.upper.shape)
    for h, x, a in np.ndindex(horizon, states, actions):
        flow[h * states + x, column[h, x, a]] += 1.0
        if h + 1 < horizon:
            row = slice((h + 1) * states, (h + 2) * states)
            flow[row, column[h, x, a]] -= implicit.transitions[h, x, a]
    inflow = np.zeros(horizon * states)
    inflow[:states] = implicit.initial
    solved = linprog(
        -objective.ravel(),
        A_ub=-implicit.upper.reshape(1, -1),
        b_ub=[-implicit.threshold],
        A_eq=flow,
        b_eq=inflow,
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert solved.success
    return -solved.fun


@pytest.mark.parametrize("quantile", [0.0, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("seed", range(5))
def test_linear_maximum_equals_the_lp(seed, quantile):
    implicit, _, rng = active_set(seed, quantile)
    for _ in range(4):
        objective = rng.random(SHAPE.visits) * (rng.random(SHAPE.visits) < 0.3)
        found = implicit.maximise(objective)
        assert found.bound == pytest.approx(lp_maximum(implicit, objective), abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_visit_probabilities_equal_the_lp(seed):
    implicit, _, _ = active_set(seed, 0.95)
    for h, x, a in np.ndindex(*SHAPE.visits):
        objective = np.zeros(SHAPE.visits)
        objective[h, x, a] = 1.0
        assert implicit.maximise(objective).bound == pytest.approx(
            lp_maximum(implicit, objective), abs=1e-9
        )


@pytest.mark.parametrize("quantile", [0.0, 0.3, 0.9, 0.999])
@pytest.mark.parametrize("seed", range(3))
def test_implicit_and_explicit_sets_agree_on_which_policies_may_be_played(seed, quantile):
    implicit, explicit, rng = active_set(seed, quantile)
    everyone = enumerate_policies(SHAPE, implicit.initial > 0)
    for index in rng.integers(len(everyone), size=300):
        policy = everyone.policy(int(index))
        assert is_active(implicit, policy) == is_listed(explicit, policy)


@pytest.mark.parametrize("quantile", [0.3, 0.9, 0.999])
@pytest.mark.parametrize("seed", range(3))
def test_played_vertex_is_in_the_list_and_near_its_maximum(seed, quantile):
    implicit, explicit, rng = active_set(seed, quantile)
    shares = []
    for _ in range(10):
        objective = rng.random(SHAPE.visits)
        found = implicit.maximise(objective)
        exact = explicit.values(implicit.transitions, implicit.initial, objective).max()
        assert is_listed(explicit, found.policy)
        assert found.value <= exact + 1e-9
        assert exact <= found.bound + 1e-9
        assert (found.occupancy * objective).sum() == pytest.approx(found.value)
        shares.append(found.value / exact)
    assert np.mean(shares) > 0.9


def test_every_visiting_policy_is_active():
    implicit, explicit, _ = active_set(3, 0.9)
    policies, visits = implicit.visiting()
    assert (visits > 0).sum() > 10
    for h, x, a in np.argwhere(visits > 0):
        assert is_listed(explicit, policies[h, x, a])
        assert implicit.occupancy(policies[h, x, a])[h, x, a] == pytest.approx(visits[h, x, a])
    for h in range(SHAPE.horizon):
        exact = explicit.visiting(implicit.transitions, implicit.initial, h, 0)[1]
        assert (visits[h] <= exact + 1e-12).all()


def test_unreachable_threshold_gives_the_policy_of_highest_upper_value():
    implicit, explicit, rng = active_set(1, 1.0)
    beyond = ImplicitActiveSet(
        implicit.transitions, implicit.initial, implicit.upper, 1e6, implicit.order
    )
    found = beyond.maximise(rng.random(SHAPE.visits))
    assert is_listed(explicit, found.policy)
    assert found.value == found.bound


def test_ties_follow_the_given_order():
    shape = Shape(states=2, actions=3, horizon=2)
    nothing = np.zeros(shape.visits)
    for favourite in range(3):
        order = np.broadcast_to(np.roll(np.arange(3), -favourite), shape.visits).copy()
        implicit = ImplicitActiveSet(
            np.zeros(shape.transitions), np.array([1.0, 0.0]), nothing, -np.inf, order
        )
        assert (implicit.maximise(nothing).policy == favourite).all()
