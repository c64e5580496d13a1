"""Learners of flow-ucb, and rounds that they play on a simulated problem."""

import numpy as np

import discreet
from discreet.learners.learn import make_batch_learner, public_facts
from discreet.learners.registry import get_learner
from discreet.mdp import make
from discreet.mdp.simulation import sample_counts
from discreet.privacy.sampling.samplers import SimulationSampler

CENTRAL = discreet.Central(epsilon=1, delta=1e-6)


def river(relabel):
    """RiverSwim of four states and six steps."""
    return make("RiverSwim", states=4, horizon=6, relabel=relabel)


def learner_of(mdp, trust=CENTRAL, *, episodes=10**9, seed=0, stationary=False, **settings):
    """A learner to whom nobody has told anything."""
    problem = public_facts(mdp, episodes, stationary=stationary)
    rng = np.random.default_rng(seed)
    return make_batch_learner(get_learner("flow-ucb"), problem, trust, rng, settings)


def after(learner, **progress):
    """Put the learner where it had been told so much, as a study that is resumed does."""
    learner.restore(learner.state() | progress)


def play(mdp, learner, rounds, seed=1):
    """Some rounds: the policy of each, and the raw counts that the learner was not told."""
    rng = np.random.default_rng(seed)
    sampler = SimulationSampler(np.random.default_rng(seed + 1))
    found = []
    for _ in range(rounds):
        batch = learner.ask()
        counts = sample_counts(mdp, batch.policy, batch.users, rng)
        support = batch.policy.support(mdp.shape, learner.problem.start)
        learner.tell(learner.mechanism.release(counts, sampler=sampler, support=support))
        found.append((batch.policy, counts))
    return found
