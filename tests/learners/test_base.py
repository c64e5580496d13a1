"""What a learner is: what it must have, and what it gets without asking."""

import numpy as np
import pytest

from discreet import Central, Local, NoPrivacy
from discreet.learners.base import Batch, BatchLearner, ContinualLearner, PublicFacts
from discreet.learners.settings import ContinualSettings
from discreet.mdp import uniform_policy
from discreet.mdp.shape import Shape

pytestmark = pytest.mark.core

SHAPE = Shape(states=2, actions=3, horizon=4)
PROBLEM = PublicFacts(SHAPE, 50, np.array([True, False]))


class Uniform(ContinualLearner):
    """Random actions for everybody."""

    name = "uniform"

    def next_policy(self, counts):
        return uniform_policy(self.problem.shape)


class Once(BatchLearner):
    """One batch of everybody."""

    statistics = ("rewards",)

    def ask(self):
        return Batch(uniform_policy(self.problem.shape), self.problem.episodes)

    def tell(self, counts):
        self.told = counts

    def state(self):
        return {}

    def restore(self, state):
        pass


def continual_learner(trust, kind=Uniform, episodes=50):
    plan = trust.calibrate_stream(SHAPE, episodes=episodes)
    return kind(PROBLEM, plan, np.random.default_rng(0), ContinualSettings())


@pytest.mark.parametrize("missing", ["ask", "tell", "state", "restore"])
def test_a_batch_learner_needs_all_four_methods(missing):
    methods = {name: getattr(Once, name) for name in ("ask", "tell", "state", "restore")}
    del methods[missing]
    with pytest.raises(TypeError, match=missing):
        type("Partial", (BatchLearner,), methods)(PROBLEM, None, None)


def test_a_batch_learner_starts_without_settings_and_extras():
    plan = NoPrivacy().calibrate(SHAPE, statistics=("rewards",))
    learner = Once(PROBLEM, plan, np.random.default_rng(0))
    assert learner.settings == {}
    assert learner.extras == {}
    assert learner.settings_type is None
    assert learner.ask().users == 50


def test_a_continual_learner_needs_only_a_policy():
    learner = continual_learner(NoPrivacy())
    assert learner.planner() is None
    assert learner.coefficients(np.arange(7)).shape == (7, 0)
    assert learner.memory().shape == (1, 4, 2, 3)
    assert (learner.memory() == 4.0).all()
    assert learner.stochastic is False
    assert learner.summary == ""
    assert learner.settings_type is ContinualSettings


def test_without_noise_every_error_bound_is_zero():
    learner = continual_learner(NoPrivacy())
    assert learner.error_bounds(np.array([0, 1, 50]), 1e-6).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("trust", [Central(1, mechanism="tree-laplace"), Local(1)])
def test_error_bounds_are_the_plans_and_nothing_before_the_first_user(trust):
    learner = continual_learner(trust)
    bounds = learner.mechanism.error_bounds(0.01)
    found = learner.error_bounds(np.array([0, 1, 2, 50]), 0.01)
    assert found.tolist() == [0.0, bounds[0], bounds[1], bounds[49]]
    assert (found[1:] > 0).all()


def test_bounds_are_asked_for_at_the_times_that_are_needed():
    """A long stream keeps nothing per episode."""
    learner = continual_learner(Local(1))
    real, asked = learner.mechanism.error_bounds, []

    class Watching:
        guarantee = learner.mechanism.guarantee

        def error_bounds(self, failure, users):
            asked.append(users.tolist())
            return real(failure, users)

    learner.mechanism = Watching()
    learner.error_bounds(np.array([0, 1, 2]), 0.1)
    learner.error_bounds(np.array([7]), 0.1)
    assert asked == [[1, 2], [7]]


def test_problems_are_values_that_nobody_changes():
    with pytest.raises(AttributeError):
        PROBLEM.episodes = 3
    assert PROBLEM.stationary is False
