"""A pending batch survives as plain values."""

import json

import numpy as np

from discreet.learners.flow_ucb.learner import Request
from discreet.mdp.policies import DeterministicPolicy, StochasticPolicy

OCCUPANCY = np.array([[1.0, 0.0], [0.25, 0.75]])


def test_one_action_per_state_and_back():
    asked = Request(DeterministicPolicy(np.array([[0, 1], [1, 1]])), 1200, OCCUPANCY)
    again = Request.from_dict(json.loads(json.dumps(asked.to_dict())))
    assert isinstance(again.policy, DeterministicPolicy) and again.users == 1200
    np.testing.assert_array_equal(again.policy.actions, asked.policy.actions)
    np.testing.assert_array_equal(again.occupancy, OCCUPANCY)


def test_several_routes_and_back():
    chances = np.array([[[1 / 3, 2 / 3], [0.5, 0.5]], [[0.0, 1.0], [0.1, 0.9]]])
    asked = Request(StochasticPolicy(chances), 7, OCCUPANCY)
    again = Request.from_dict(json.loads(json.dumps(asked.to_dict())))
    assert isinstance(again.policy, StochasticPolicy) and again.users == 7
    np.testing.assert_array_equal(again.policy.probabilities, asked.policy.probabilities)
