"""The greedy policy of flow-ucb: the model's best, without a draw and without unknown actions."""

import numpy as np

from discreet._seeds import RunSeeds
from discreet.learners.learn import make_batch_learner, public_facts, run_batches
from discreet.learners.registry import get_learner
from discreet.mdp import evaluate, make, plan
from discreet.privacy.trust import NoPrivacy

RIVER = make("RiverSwim", states=3, horizon=4, relabel=1)


def test_after_many_users_it_is_the_optimum_and_asking_changes_nothing():
    seeds = RunSeeds(1)
    learner = make_batch_learner(
        get_learner("flow-ucb"),
        public_facts(RIVER, 20_000),
        NoPrivacy(),
        seeds.generator("policy"),
        {},
    )
    run_batches(RIVER, learner, seeds)
    before = learner.rng.bit_generator.state
    first, again = learner.greedy(), learner.greedy()
    np.testing.assert_array_equal(first.actions, again.actions)
    assert learner.rng.bit_generator.state == before
    assert evaluate(RIVER, first) > 0.98 * plan(RIVER).value
