"""check_mdp: values, reachability, problems."""

import json

import numpy as np
import pytest

from discreet import check_mdp
from discreet.errors import InvalidInputError
from discreet.mdp import LayeredMDP, RiverSwim, TabularMDP, make, reachable_states
from discreet.mdp.environments.registry import environment_names


@pytest.mark.core
def test_riverswim_report():
    report = check_mdp(RiverSwim(states=4, horizon=6))
    assert report.optimal_value == pytest.approx(0.475791, abs=5e-7)
    assert report.uniform_value == pytest.approx(0.0316, abs=5e-5)
    assert report.constant_action_value == pytest.approx(0.4724, abs=5e-5)
    assert report.gap == pytest.approx(report.optimal_value - report.uniform_value)
    assert report.problems == ()
    # At step h the states 0 to h are within reach: 18 of 24.
    assert report.reachable == 0.75
    assert json.loads(json.dumps(report.to_dict()))["problems"] == []


@pytest.mark.parametrize("name", environment_names())
def test_no_environment_has_a_problem(name):
    assert check_mdp(make(name)).problems == ()


def test_trivial_problems_are_named():
    same = np.broadcast_to(np.eye(2)[:, None, :], (2, 2, 2))
    one_action = TabularMDP(transitions=np.ones((1, 1, 1)), rewards=[[1.0]], horizon=2)
    no_gap = TabularMDP(transitions=same, rewards=np.ones((2, 2)), horizon=2)
    constant = TabularMDP(transitions=same, rewards=[[0.0, 1.0], [0.0, 1.0]], horizon=2)
    assert "only one action" in check_mdp(one_action).problems[0]
    assert "equally good" in check_mdp(no_gap).problems[0]
    assert "one action always is optimal" in check_mdp(constant).problems[0]
    assert check_mdp(no_gap).never_reached == (1,)


def test_reachability_follows_the_step():
    moves = np.zeros((2, 3, 1, 3))
    moves[0, :, 0, 1] = 1
    moves[1, :, 0, 2] = 1
    mdp = TabularMDP(transitions=moves, rewards=np.zeros((2, 3, 1)))
    assert reachable_states(mdp).tolist() == [[True, False, False], [False, True, False]]


def test_a_layered_mdp_is_reported_without_values():
    report = check_mdp(LayeredMDP.from_tabular(RiverSwim(states=4, horizon=6)))
    assert report.effective_support == pytest.approx(9.677, abs=1e-3)
    assert (report.optimal_value, report.problems) == (0.0, ())
    assert report.reachable == pytest.approx(18 / 21)


def test_a_large_model_is_not_expanded(monkeypatch):
    monkeypatch.setattr("discreet.mdp.check._SMALL", 10)
    assert check_mdp(RiverSwim()).effective_support is None


def test_anything_else_is_refused():
    with pytest.raises(InvalidInputError, match="from_gymnasium"):
        check_mdp("RiverSwim")


def test_a_mask_of_possible_actions_is_obeyed():
    stay = np.full((2, 2, 2), 0.5)
    rewards = [[0.0, 1.0], [0.5, 0.0]]
    allowed = [[True, True], [True, False]]
    mdp = TabularMDP(transitions=stay, rewards=rewards, horizon=1, allowed=allowed)
    report = check_mdp(mdp)
    start = mdp.start / mdp.start.sum()
    assert report.constant_action_value == pytest.approx(start @ [1.0, 0.5])
    assert report.optimal_value == report.constant_action_value
