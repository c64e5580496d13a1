"""The greedy policy of flow-ucb: the model's best, without a draw and without unknown actions."""

import numpy as np
import pytest

from discreet._seeds import RunSeeds
from discreet.learners.estimate import VISITS
from discreet.learners.learn import public_facts, run_batches
from discreet.mdp import evaluate, make, plan
from discreet.mdp.policies import DeterministicPolicy
from discreet.privacy.trust import NoPrivacy
from helpers.flow_ucb import learner_of

RIVER = make("RiverSwim", states=3, horizon=4, relabel=1)


def experienced():
    """A learner that 20,000 users have told all about RiverSwim."""
    learner = learner_of(RIVER, NoPrivacy(), episodes=20_000)
    run_batches(RIVER, learner, RunSeeds(1))
    return learner


def test_after_many_users_it_is_the_optimum_and_asking_changes_nothing():
    learner = experienced()
    before = learner.rng.bit_generator.state
    first, again = learner.greedy(), learner.greedy()
    np.testing.assert_array_equal(first.actions, again.actions)
    assert learner.rng.bit_generator.state == before
    assert evaluate(RIVER, first) > 0.98 * plan(RIVER).value


def unchecked(episodes):
    """A learner that knows RiverSwim, and has all of it checked by those who explore."""
    learner = experienced()
    known = learner._model(exploring=False)

    def checked(model, *, exploring):
        reward_sums = known.reward_sums.copy()
        reward_sums[..., VISITS] *= not exploring
        return known._replace(reward_sums=reward_sums)

    learner._checked = checked
    learner.problem = public_facts(RIVER, episodes)
    return learner


def test_what_is_unchecked_is_unknown_to_explorers_alone():
    learner, best = unchecked(20_000), plan(RIVER).value
    assert evaluate(RIVER, learner.greedy()) > 0.98 * best
    explorers = learner._planner.greedy(learner._model(), np.zeros(RIVER.shape.visits))
    assert not np.array_equal(explorers.actions, learner.greedy().actions)


@pytest.mark.parametrize(
    ("episodes", "batches"), [(20_001, 0), (10**7, 200)], ids=["last", "filled"]
)
def test_neither_the_last_batch_nor_what_fills_a_batch_shuns_what_is_unchecked(episodes, batches):
    learner = unchecked(episodes)
    learner._batches = batches
    sized = learner._sized
    learner._sized = lambda *how: sized(*how)._replace(users=1)  # the rest fills the batch
    asked, as_ever = [], learner._greedy
    learner._greedy = lambda tie: asked.append(as_ever(tie)) or asked[-1]
    taken = learner._next_request().policy.distribution(RIVER.shape)
    (candidate,) = asked
    assert evaluate(RIVER, DeterministicPolicy(candidate.actions)) > 0.98 * plan(RIVER).value
    chance = np.take_along_axis(taken, candidate.actions[..., None], axis=-1)
    assert (chance[candidate.occupancy > 0] > 0).all()
    assert (chance == 1).all() == (batches == 0)  # others have room for explorers
