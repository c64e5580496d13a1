"""Users who leave the policy are in nobody's way: flow-ucb on raw episodes of a central study."""

import numpy as np
import pytest

import discreet
from discreet.mdp import RandomMDP
from discreet.mdp.simulation import sample_trajectories
from discreet.mdp.trajectories import Trajectories
from discreet.privacy.projection.flow import released_flow
from discreet.privacy.sampling.samplers import SimulationSampler
from helpers.flow_ucb import learner_of

USERS = 20_000


@pytest.mark.parametrize("trust", [discreet.Central(1, 1e-6), discreet.NoPrivacy()])
def test_visits_are_of_those_who_stayed(trust):
    mdp, rng = RandomMDP(states=3, actions=2, horizon=4, seed=1), np.random.default_rng(0)
    learner = learner_of(mdp, trust, episodes=10 * USERS)
    policy = learner.ask().policy
    support = policy.support(mdp.shape, learner.problem.start)
    data = sample_trajectories(mdp, policy, USERS, rng)
    actions = data.actions.copy()
    busiest = np.bincount(data.states[:, 1]).argmax()
    gone = (data.states[:, 1] == busiest) & (rng.random(USERS) < 0.2)
    actions[gone, 1] = 1 - actions[gone, 1]
    counts = Trajectories(data.states, actions, data.rewards).counts(mdp.shape, rng, support)
    stayed = counts.row_visits
    assert USERS - stayed[np.nonzero(support)[0] == 1].sum() == gone.sum() > 500
    release = learner.mechanism.release(counts, sampler=SimulationSampler(rng), support=support)
    rows = np.nonzero(support)
    _, visits = released_flow(release, learner.problem.start, policy.distribution(mdp.shape)[rows])
    deviation = np.sqrt(release.noise_variance["transitions"])
    np.testing.assert_allclose(visits, stayed, atol=8 * deviation + 1e-9)
