"""All that is registered, for tests that go through it, and what ends with a test."""

from discreet.learners import registry as learners
from discreet.learners.base import Batch, BatchLearner
from discreet.learners.registry import get_learner, learner_names
from discreet.mdp import uniform_policy
from discreet.mdp.environments import registry as environments
from discreet.privacy.mechanisms import registry as mechanisms


def forget_afterwards(monkeypatch):
    """What a test registers from now on ends with it."""
    for registry, name in (
        (learners, "_REGISTERED"),
        (environments, "_REGISTERED"),
        (mechanisms, "_MECHANISMS"),
    ):
        monkeypatch.setattr(registry, name, getattr(registry, name).copy())


def learners_and_trusts(schedule):
    """Every learner with the name of every trust model under which it has this schedule."""
    specs = [get_learner(name) for name in learner_names()]
    return [
        (spec.name, trust) for spec in specs for trust in spec.trusts if spec.schedule == schedule
    ]


class Uniform(BatchLearner):
    """One batch of random actions."""

    statistics = ("rewards",)

    def ask(self):
        return Batch(uniform_policy(self.problem.shape), self.problem.episodes)

    def tell(self, counts):
        pass

    def state(self):
        return {}

    def restore(self, state):
        pass
