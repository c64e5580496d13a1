"""flow-ucb beyond toy sizes: rows are kept as they are visited, and nothing else is."""

import tracemalloc

import numpy as np
import pytest

import discreet
from discreet.errors import UnsupportedError
from discreet.learners.estimate import VISITS, CountSums
from discreet.mdp import RandomMDP
from discreet.mdp.simulation import sample_counts
from discreet.privacy.sampling.samplers import SimulationSampler
from helpers.flow_ucb import CENTRAL, learner_of, play


@pytest.mark.parametrize("states", [60, 70])  # factorised, sparse
@pytest.mark.parametrize("stationary", [False, True])
def test_a_medium_problem_runs(states, stationary):
    mdp = RandomMDP(states=states, actions=10, horizon=8, seed=1)
    result = discreet.learn(
        mdp, learner="flow-ucb", trust=CENTRAL, episodes=100_000, stationary=stationary
    )
    assert sum(result.extras["batches"]) == 100_000
    assert 0 < result.final_regret < 8 * 100_000


@pytest.mark.parametrize("stationary", [False, True])
def test_without_noise_exactly_the_visited_rows_are_kept(stationary):
    mdp = RandomMDP(states=30, actions=6, horizon=4, seed=2)
    learner = learner_of(mdp, discreet.NoPrivacy(), episodes=10**6, stationary=stationary)
    visited = np.any([counts.visits > 0 for _, counts in play(mdp, learner, 3)], axis=0)
    evidence = CountSums.from_dict(learner.state()["evidence"])
    kept = evidence.number >= 0
    if not stationary:  # where the last step leads is not released
        visited[-1] = False
    np.testing.assert_array_equal(kept, visited)
    assert evidence.number.max() + 1 == kept.sum() < kept.size
    moved = evidence.transitions.sum(axis=1)[evidence.number[kept]]
    np.testing.assert_allclose(moved, evidence.transition_sums[kept, VISITS])


def test_memory_of_a_batch_does_not_grow_with_the_actions():
    def peak(actions):
        mdp = RandomMDP(states=70, actions=actions, horizon=6, seed=0)
        learner = learner_of(mdp, CENTRAL, episodes=10**6, stationary=True)
        play(mdp, learner, 1)
        batch = learner.ask()
        support = batch.policy.support(mdp.shape, learner.problem.start)
        rng, noise = np.random.default_rng(1), SimulationSampler(np.random.default_rng(2))
        tracemalloc.start()
        counts = sample_counts(mdp, batch.policy, batch.users, rng)
        learner.tell(learner.mechanism.release(counts, sampler=noise, support=support))
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    per_row = 6 * 70 * 30 * 8  # one array [H, S, A]
    assert peak(30) < 1.2 * peak(2) + 8 * per_row  # dense: 15 times


def test_policy_elimination_says_that_a_problem_is_too_large():
    mdp = RandomMDP(states=120, actions=25, horizon=20, seed=0)
    with pytest.raises(UnsupportedError, match="use 'flow-ucb' at this size"):
        discreet.learn(
            mdp, learner="sdp-pe", trust=discreet.Shuffle(epsilon=1, delta=1e-6), episodes=10**6
        )
