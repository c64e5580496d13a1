"""Properties of planning that hold in every MDP."""

import itertools

import numpy as np
import pytest

from discreet.mdp import DeterministicPolicy, MixturePolicy, StochasticPolicy, TabularMDP
from discreet.mdp.layered import LayeredMDP, effective_support, tabular_losses
from discreet.mdp.planning import best_response, evaluate, occupancy, plan

pytest.importorskip("hypothesis")

from hypothesis import given, settings
from hypothesis import strategies as st


@st.composite
def problems(draw, largest=4):
    states, actions, horizon = (draw(st.integers(1, largest)) for _ in range(3))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    steps = () if draw(st.booleans()) else (horizon,)
    rows = rng.dirichlet(np.full(states, 0.4), size=(*steps, states, actions))
    mdp = TabularMDP(
        transitions=rows,
        rewards=rng.random((*steps, states, actions)),
        initial=rng.dirichlet(np.ones(states)),
        horizon=horizon,
    )
    return mdp, rng


def some_policy(mdp, rng):
    return StochasticPolicy(
        rng.dirichlet(np.full(mdp.shape.actions, 0.5), size=mdp.shape.visits[:2])
    )


@settings(max_examples=60, deadline=None)
@given(problems())
def test_the_optimum_is_attained_and_never_exceeded(problem):
    mdp, rng = problem
    best = plan(mdp)
    assert evaluate(mdp, best.policy) == pytest.approx(best.value, rel=1e-12, abs=1e-12)
    assert evaluate(mdp, some_policy(mdp, rng)) <= best.value + 1e-12
    assert 0 <= best.value <= mdp.horizon + 1e-12


@settings(max_examples=60, deadline=None)
@given(problems())
def test_occupancies_are_flows_that_give_values(problem):
    mdp, rng = problem
    policy = some_policy(mdp, rng)
    measure = occupancy(mdp, policy)
    np.testing.assert_allclose(measure.sum(axis=(1, 2)), 1, rtol=1e-12)
    for h in range(mdp.horizon - 1):
        arrivals = np.einsum("sa,sat->t", measure[h], mdp.transitions[h])
        np.testing.assert_allclose(measure[h + 1].sum(axis=1), arrivals, atol=1e-12)
    assert (measure * mdp.rewards).sum() == pytest.approx(evaluate(mdp, policy), abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(problems(), st.floats(-5, 5), st.floats(0, 3))
def test_best_responses_follow_affine_maps_of_the_rewards(problem, shift, scale):
    mdp, _ = problem
    plain = best_response(mdp, mdp.rewards).value
    moved = best_response(mdp, shift + scale * mdp.rewards).value
    assert moved == pytest.approx(mdp.horizon * shift + scale * plain, abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(problems(), st.floats(0, 1))
def test_values_and_occupancies_are_linear_in_a_mixture(problem, weight):
    mdp, rng = problem
    one, two = some_policy(mdp, rng), plan(mdp).policy
    mixture = MixturePolicy((one, two), np.array([weight, 1 - weight]))
    value = weight * evaluate(mdp, one) + (1 - weight) * evaluate(mdp, two)
    assert evaluate(mdp, mixture) == pytest.approx(value, abs=1e-12)
    measure = weight * occupancy(mdp, one) + (1 - weight) * occupancy(mdp, two)
    np.testing.assert_allclose(occupancy(mdp, mixture), measure, atol=1e-12)


@settings(max_examples=20, deadline=None)
@given(problems(largest=2))
def test_no_deterministic_policy_beats_the_plan(problem):
    """All of them, one by one."""
    mdp, _ = problem
    size = (mdp.horizon, mdp.shape.states)
    choices = itertools.product(range(mdp.shape.actions), repeat=size[0] * size[1])
    values = [evaluate(mdp, DeterministicPolicy(np.reshape(c, size))) for c in choices]
    assert max(values) == pytest.approx(plan(mdp).value, rel=1e-12, abs=1e-12)


expansions = problems().map(lambda problem: (problem[0], LayeredMDP.from_tabular(problem[0])))


@settings(max_examples=40, deadline=None)
@given(expansions)
def test_stage_expansion_keeps_the_optimum(expansion):
    mdp, layered = expansion
    losses = tabular_losses(mdp)
    best = -best_response(layered.tabular, -losses).value
    assert mdp.horizon - best == pytest.approx(plan(mdp).value, abs=1e-12)
    assert not losses[~layered.present].any()


@settings(max_examples=40, deadline=None)
@given(expansions)
def test_effective_support_stays_below_its_bounds(expansion):
    """C_{x,a} <= width of the next layer - 1 and C_M <= X sqrt(A)."""
    mdp, layered = expansion
    support = effective_support(layered)
    bound = (layered.widths[1:] - 1)[:, None, None]
    assert (support.pairs <= bound + 1e-9).all()
    assert support.cumulative <= layered.states * np.sqrt(mdp.shape.actions) + 1e-9
