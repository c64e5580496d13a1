"""The simulated batch loop checks itself: a wrong mask does not drop its users in silence."""

import numpy as np
import pytest

import discreet
from discreet._seeds import RunSeeds
from discreet.errors import InvalidInputError
from discreet.learners.base import Problem
from discreet.learners.learn import make_batch_learner, run_batches
from discreet.learners.registry import get_learner

RIVER = discreet.make("RiverSwim", states=3, horizon=4)


def learner(start):
    problem = Problem(RIVER.shape, 100, np.array(start))
    rng = np.random.default_rng(0)
    trust = discreet.Central(1, 1e-6)
    return make_batch_learner(get_learner("flow-ucb"), problem, trust, rng, {})


def test_simulated_users_outside_the_mask_are_an_error():
    with pytest.raises(InvalidInputError, match="steps are outside"):
        run_batches(RIVER, learner([False, True, False]), RunSeeds(0))
    assert sum(run_batches(RIVER, learner([True, True, False]), RunSeeds(0)).batches) == 100
