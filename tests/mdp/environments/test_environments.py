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


@pytest.mark.core
def test_the_roster_is_complete():
    assert ALL == [
        "DemandResponse",
        "DoubleChain",
        "GridWorld",
        "LowerBound",
        "RandomMDP",
        "Recommender",
        "RiverSwim",
        "SixArms",
        "Treatment",
    ]


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


def test_relabelling_a_time_inhomogeneous_mdp_differs_by_step():
    plain, relabelled = make("DemandResponse"), make("DemandResponse", relabel=0)
    assert not plain.stationary
    moved = (plain.transitions != relabelled.transitions).any(axis=(2, 3))
    assert (moved != moved[0]).any()


@pytest.mark.parametrize("seed", [-1, 1.5, True])
def test_a_relabelling_seed_is_a_count(seed):
    with pytest.raises(InvalidInputError, match="relabel"):
        make("RiverSwim", relabel=seed)


def test_double_chain_by_hand():
    mdp = make("DoubleChain", length=2, horizon=4, success=1.0, consolation=0.5)
    # Enter, advance, then two paid steps.
    assert plan(mdp).value == pytest.approx(2)
    assert max(constant_values(mdp)) == pytest.approx(1)


def test_six_arms_by_hand():
    mdp = make("SixArms", horizon=3)
    # Two paid steps behind the sure door, or two attempts at a harder one: door k pays
    # p (2 r) + (1 - p) p r over three steps.
    doors = zip((1, 0.15, 0.1, 0.05, 0.03, 0.01), (50, 133, 300, 800, 1660, 6000), strict=True)
    worth = [(2 * p + (1 - p) * p) * r / 6000 for p, r in doors]
    assert plan(mdp).value >= max(worth) - 1e-12
    first = int(plan(mdp).policy.actions[0, 0])
    assert worth[first] == pytest.approx(max(worth), abs=0.003)


@pytest.mark.parametrize(("depth", "actions"), [(1, 2), (2, 3), (3, 2)])
def test_lower_bound_by_hand(depth, actions):
    mdp = make("LowerBound", depth=depth, actions=actions, horizon=9, advantage=0.3)
    assert mdp.shape.states == sum(actions**level for level in range(depth)) + 2
    paid = 9 - depth
    assert plan(mdp).value == pytest.approx(0.8 * paid)
    leaves = actions ** (depth - 1)
    chance = 0.5 + 0.3 / (leaves * actions)
    assert evaluate(mdp, uniform_policy(mdp.shape)) == pytest.approx(chance * paid)


def test_grid_world_by_hand():
    mdp = make("GridWorld", layout="S.G", slip=0.0, horizon=5)
    assert plan(mdp).value == pytest.approx(3)
    blocked = make("GridWorld", layout="S#G", horizon=5)
    assert plan(blocked).value == 0
    slippery = make("GridWorld", layout="SG", slip=0.2, horizon=2)
    assert plan(slippery).value == pytest.approx(0.8)


def test_random_mdp_follows_its_seed_and_switches():
    one, two = (make("RandomMDP", states=4, seed=seed) for seed in (1, 2))
    assert (one.transitions != two.transitions).any()
    assert set(np.unique(one.rewards)) <= {0.0, 1.0}
    assert one.stationary
    assert not make("RandomMDP", horizon=3, stationary=False).stationary


def test_demand_response_rewards_follow_the_tariff():
    mdp = make("DemandResponse")
    assert mdp.same_transitions
    cost = 1 - mdp.rewards[:, 0, 1]  # empty battery, little need, rest
    assert cost.argmax() == 5  # 16 to 19 o'clock
    assert cost.argmin() == 0
    charging = mdp.rewards[:, 0, 1] - mdp.rewards[:, 0, 0]
    assert charging[5] / charging[0] == pytest.approx(5)  # 25 pence against 5


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
