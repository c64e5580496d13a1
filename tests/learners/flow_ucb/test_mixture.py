"""Several routes in one batch: the flow of the one policy is the mixture of theirs."""

import numpy as np
import pytest

from discreet.learners.flow_ucb.learner import Part, mixed, several
from discreet.learners.flow_ucb.planning import CandidatePolicy
from discreet.mdp import RandomMDP
from discreet.mdp.policies import DeterministicPolicy, StochasticPolicy

MDP = RandomMDP(states=3, actions=2, horizon=4, seed=5)


def occupancy(chosen):
    """State occupancies of ``chosen[H, S, A]`` in the true model."""
    out, mass = np.zeros((4, 3)), MDP.initial
    for h in range(4):
        out[h] = mass
        step = MDP.transitions[h if len(MDP.transitions) > 1 else 0]
        mass = np.einsum("s,sa,sat->t", mass, chosen[h], step)
    return out


def route_of(seed):
    candidate = CandidatePolicy.empty(4, 3)
    candidate.actions[:] = np.random.default_rng(seed).integers(0, 2, (4, 3))
    candidate.occupancy[:] = occupancy(np.eye(2)[candidate.actions])
    return candidate


def test_one_route_is_played_as_it_is():
    candidate = route_of(0)
    found = mixed([Part(candidate, 10)], 12, 2)
    assert isinstance(found.policy, DeterministicPolicy) and found.users == 12
    np.testing.assert_array_equal(found.policy.actions, candidate.actions)
    np.testing.assert_array_equal(found.occupancy, candidate.occupancy)


@pytest.mark.parametrize("seed", range(3))
def test_the_flow_of_the_policy_is_the_weighted_mean_of_the_flows(seed):
    parts = [Part(route_of(3 * seed + i), users) for i, users in enumerate((10, 70, 20))]
    found = mixed(parts, 40, 2)
    assert isinstance(found.policy, StochasticPolicy)
    expected = sum(
        users / 100 * np.eye(2)[candidate.actions] * candidate.occupancy[..., None]
        for candidate, users in parts
    )
    chosen = found.policy.probabilities
    np.testing.assert_allclose(occupancy(chosen)[..., None] * chosen, expected, atol=1e-12)
    np.testing.assert_allclose(found.occupancy, expected.sum(axis=-1))


def test_where_no_route_goes_actions_are_mixed_by_users():
    routes = [route_of(0), route_of(0)]
    routes[0].actions[2, 1], routes[1].actions[2, 1] = 0, 1
    for candidate in routes:
        candidate.occupancy[2, 1] = 0.0
    found = mixed([Part(routes[0], 30), Part(routes[1], 10)], 40, 2)
    np.testing.assert_allclose(found.policy.probabilities[2, 1], [0.75, 0.25])


def test_routes_are_added_until_there_are_enough_or_no_users_left():
    seen = []

    def size(model, most):
        seen.append((model, most))
        return Part(model, min(40, most))

    def expect(model, part):
        return f"{model}+{part.users}"

    first = Part("b", 40)
    assert [p.users for p in several("b", first, 1000, 3, size, expect)] == [40] * 3
    assert seen == [("b+40", 960), ("b+40+40", 920)]
    assert [p.users for p in several("b", first, 60, 3, size, expect)] == [40, 20]
    assert several("b", first, 30, 3, size, expect) == [first]
    assert several("b", first, 1000, 1, size, expect) == [first]
