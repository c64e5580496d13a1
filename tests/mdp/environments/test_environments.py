"""Every environment: valid, reproducible, not solved by a fixed action."""

import inspect

import numpy as np
import pytest

from discreet.errors import InvalidInputError
from discreet.mdp import TabularMDP, environments, evaluate, make, plan, uniform_policy
from discreet.mdp.environments.registry import environment_names, get_environment

ALL = environment_names()


def constant_values(mdp):
    size = (mdp.horizon, mdp.shape.states)
    return [evaluate(mdp, np.full(size, a)) for a in range(mdp.shape.actions)]


@pytest.mark.parametrize("name", ALL)
def test_each_has_a_summary_parameters_and_a_gap(name):
    spec = get_environment(name)
    assert spec.summary.endswith(".")
    assert len(spec.summary) < 100
    assert {"horizon", "relabel"} <= set(spec.parameters)
    assert all(default is not inspect.Parameter.empty for default in spec.parameters.values())
    mdp = getattr(environments, name)()
    assert isinstance(mdp, TabularMDP)
    assert mdp.name == name
    assert plan(mdp).value > evaluate(mdp, uniform_policy(mdp.shape)) * 1.05
    assert make(name, horizon=11).horizon == 11


@pytest.mark.parametrize("name", ALL)
def test_relabelling_hides_the_actions_and_keeps_the_problem(name):
    plain, one, two, other = (make(name, relabel=seed) for seed in (None, 5, 5, 6))
    np.testing.assert_array_equal(one.transitions, two.transitions)
    np.testing.assert_array_equal(one.rewards, two.rewards)
    assert (one.rewards != plain.rewards).any() or (one.transitions != plain.transitions).any()
    assert plan(one).value == pytest.approx(plan(other).value)
    assert plan(one).value == pytest.approx(plan(plain).value)
    assert one.stationary == plain.stationary
    uniform = uniform_policy(plain.shape)
    assert evaluate(one, uniform) == pytest.approx(evaluate(plain, uniform))


@pytest.mark.parametrize("name", ["Treatment", "Recommender", "DemandResponse"])
@pytest.mark.parametrize("relabel", [None, 1, 2])
def test_the_domains_are_not_solved_by_a_fixed_action(name, relabel):
    mdp = make(name, relabel=relabel)
    best, uniform = plan(mdp).value, evaluate(mdp, uniform_policy(mdp.shape))
    assert max(constant_values(mdp)) <= best - 0.25 * (best - uniform)
    used = plan(mdp).policy.actions
    assert set(used.ravel().tolist()) == set(range(mdp.shape.actions))


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("GridWorld", {"layout": "S.|."}, "equally long rows"),
        ("GridWorld", {"layout": "S.x"}, "equally long rows"),
        ("GridWorld", {"layout": "S.."}, "one start S and a goal G"),
        ("GridWorld", {"layout": "SSG"}, "one start S and a goal G"),
        ("GridWorld", {"slip": 1.5}, "slip in"),
        ("LowerBound", {"advantage": 0.6}, "advantage <= 1/2"),
        ("LowerBound", {"actions": 1}, "actions=1"),
        ("LowerBound", {"depth": 4, "horizon": 4}, "horizon=4"),
        ("DoubleChain", {"length": 0}, "length=0"),
        ("DoubleChain", {"consolation": 2}, "consolation"),
        ("RandomMDP", {"concentration": 0}, "concentration > 0"),
        ("DemandResponse", {"capacity": 0}, "capacity=0"),
        ("RiverSwim", {"states": "four"}, "states='four'"),
        ("Treatment", {"horizon": 0}, "horizon=0"),
        ("Recommender", {"horizon": -2}, "horizon=-2"),
        ("SixArms", {"horizon": 2.5}, "horizon=2.5"),
    ],
)
def test_bad_parameters_get_one_sentence(name, parameters, message):
    with pytest.raises(InvalidInputError, match=message):
        make(name, **parameters)
