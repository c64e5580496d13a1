"""Planning by hand, by search, and by what must hold for every model."""

import itertools

import numba
import numpy as np
import pytest

from discreet.errors import UnsupportedError
from discreet.mdp import (
    DeterministicPolicy,
    MixturePolicy,
    RandomMDP,
    RegretMeter,
    RiverSwim,
    Shape,
    StochasticPolicy,
    TabularMDP,
    evaluate,
    occupancy,
    solve,
    state_values,
    uniform_policy,
)
from discreet.mdp.layered import LayeredMDP, effective_support, tabular_losses
from helpers.properties import given, settings, st


def random_mdp(seed, *, states=5, actions=3, horizon=4, stationary=False):
    rng = np.random.default_rng(seed)
    steps = () if stationary else (horizon,)
    transitions = rng.dirichlet(np.full(states, 0.3), size=(*steps, states, actions))
    return TabularMDP(
        transitions=transitions,
        rewards=rng.random((*steps, states, actions)),
        initial=rng.dirichlet(np.ones(states)),
        horizon=horizon,
    )


def random_policy(seed, shape):
    rng = np.random.default_rng(seed)
    return StochasticPolicy(rng.dirichlet(np.full(shape.actions, 0.5), size=shape.visits[:2]))


def oracle_values(mdp, rewards, choose):
    """Backward induction; ``choose`` turns q[S, A] of step h into values[S]."""
    values = np.zeros((mdp.horizon + 1, mdp.shape.states))
    for h in reversed(range(mdp.horizon)):
        values[h] = choose(h, rewards[h] + mdp.transitions[h] @ values[h + 1])
    return values


def oracle_occupancy(mdp, probabilities):
    out, here = [], mdp.initial
    for h in range(mdp.horizon):
        out.append(here[:, None] * probabilities[h])
        here = np.einsum("sa,sat->t", out[-1], mdp.transitions[h])
    return np.array(out)


@pytest.fixture(params=[False, True], ids=["inhomogeneous", "stationary"])
def mdp(request):
    return random_mdp(1, stationary=request.param)


@pytest.mark.core
def test_plan_equals_the_oracle(mdp):
    expected = oracle_values(mdp, mdp.rewards, lambda h, q: q.max(axis=1))
    solution = solve(mdp)
    np.testing.assert_allclose(solution.values, expected, rtol=1e-13)
    assert solution.value == pytest.approx(mdp.initial @ expected[0])
    assert evaluate(mdp, solution.policy) == pytest.approx(solution.value, rel=1e-13)


@pytest.mark.core
def test_riverswim_values_of_the_paper():
    mdp = RiverSwim(states=4, horizon=6)
    assert solve(mdp).value == pytest.approx(0.475791, abs=5e-7)
    assert evaluate(mdp, uniform_policy(mdp.shape)) == pytest.approx(0.0316, abs=5e-5)
    assert evaluate(mdp, np.ones((6, 4), int)) == pytest.approx(0.4724, abs=5e-5)


def test_stochastic_evaluation_equals_the_oracle(mdp):
    policy = random_policy(2, mdp.shape)
    expected = oracle_values(
        mdp, mdp.rewards, lambda h, q: (policy.probabilities[h] * q).sum(axis=1)
    )
    np.testing.assert_allclose(state_values(mdp, policy), expected, rtol=1e-13)


def test_deterministic_evaluation_equals_its_stochastic_form(mdp):
    actions = np.random.default_rng(3).integers(0, 3, size=(4, 5))
    policy = DeterministicPolicy(actions)
    same = StochasticPolicy(policy.distribution(mdp.shape))
    np.testing.assert_allclose(state_values(mdp, policy), state_values(mdp, same), rtol=1e-13)


def test_occupancy_equals_the_oracle_and_gives_the_value(mdp):
    policy = random_policy(4, mdp.shape)
    measure = occupancy(mdp, policy)
    np.testing.assert_allclose(
        measure, oracle_occupancy(mdp, policy.probabilities), rtol=1e-12, atol=1e-300
    )
    assert (measure * mdp.rewards).sum() == pytest.approx(evaluate(mdp, policy))


def test_a_mixture_is_drawn_once_per_episode():
    # Both steps must be played alike to be paid: averaging per step would earn 1/2, not 1.
    transitions = np.zeros((2, 3, 2, 3))
    transitions[0, 0, 0, 1] = transitions[0, 0, 1, 2] = 1
    transitions[0, 1:, :, 0] = transitions[1, :, :, 0] = 1
    rewards = np.zeros((2, 3, 2))
    rewards[1, 1, 0] = rewards[1, 2, 1] = 1
    mdp = TabularMDP(transitions=transitions, rewards=rewards)
    both = [DeterministicPolicy(np.full((2, 3), a)) for a in (0, 1)]
    assert evaluate(mdp, MixturePolicy.uniform(both)) == 1
    assert evaluate(mdp, uniform_policy(mdp.shape)) == 0.5
    np.testing.assert_allclose(occupancy(mdp, MixturePolicy.uniform(both))[1, 1:, :].sum(), 1)


def test_a_mixture_has_no_value_per_state(mdp):
    mixture = MixturePolicy.uniform([random_policy(6, mdp.shape)])
    with pytest.raises(UnsupportedError, match="drawn once per episode"):
        state_values(mdp, mixture)


def test_ties_go_to_the_first_action():
    mdp = TabularMDP(transitions=np.ones((1, 3, 1)), rewards=np.ones((1, 3)), horizon=2)
    assert solve(mdp).policy.actions.tolist() == [[0], [0]]


def test_regret_meter_remembers_values(mdp, monkeypatch):
    meter = RegretMeter(mdp)
    policy = random_policy(7, mdp.shape)
    expected = solve(mdp).value - evaluate(mdp, policy)
    assert meter.regret(policy) == pytest.approx(expected)
    assert meter.regret(solve(mdp).policy) == 0
    mixture = MixturePolicy((policy, solve(mdp).policy), np.array([0.25, 0.75]))
    assert meter.regret(mixture) == pytest.approx(expected / 4)
    monkeypatch.setattr("discreet.mdp.planning.evaluate", None)
    assert meter.regret(StochasticPolicy(policy.probabilities.copy())) == pytest.approx(expected)


def test_regret_meter_forgets_when_full(mdp, monkeypatch):
    monkeypatch.setattr("discreet.mdp.planning._REMEMBERED", 2)
    meter = RegretMeter(mdp)
    policies = [random_policy(seed, mdp.shape) for seed in range(5)]
    twice = [[meter.regret(p) for p in policies] for _ in range(2)]
    assert twice[0] == twice[1]


def test_planning_leaves_the_model_alone():
    mdp = RandomMDP(states=3, seed=1)
    with pytest.raises(ValueError, match="read-only"):
        solve(mdp).values[0] = 1
    assert mdp.shape == Shape(states=3, actions=2, horizon=2)


def test_models_of_both_kinds_share_compiled_code():
    """Arrays of another type would be compiled for once more, for seconds."""
    pooled, stepwise = (random_mdp(0, stationary=stationary) for stationary in (True, False))
    assert numba.typeof(pooled.full_rewards) == numba.typeof(stepwise.full_rewards)
    assert numba.typeof(pooled.tables) == numba.typeof(stepwise.tables)
    assert numba.typeof(pooled.rows) == numba.typeof(stepwise.rows)


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
    best = solve(mdp)
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
@given(problems(), st.floats(0, 1))
def test_values_and_occupancies_are_linear_in_a_mixture(problem, weight):
    mdp, rng = problem
    one, two = some_policy(mdp, rng), solve(mdp).policy
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
    assert max(values) == pytest.approx(solve(mdp).value, rel=1e-12, abs=1e-12)


expansions = problems().map(lambda problem: (problem[0], LayeredMDP.from_tabular(problem[0])))


@settings(max_examples=40, deadline=None)
@given(expansions)
def test_stage_expansion_keeps_the_optimum(expansion):
    mdp, layered = expansion
    losses = tabular_losses(mdp)
    rewarded = layered.tabular.replace(rewards=1 - losses)
    best = layered.horizon - solve(rewarded).value
    assert mdp.horizon - best == pytest.approx(solve(mdp).value, abs=1e-12)
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
