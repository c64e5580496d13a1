"""A learner: two verbs, `ask` and `tell`."""

import numpy as np

from discreet.learners import Batch, BatchLearner, LearnerSpec
from discreet.mdp import DeterministicPolicy, StochasticPolicy


class ExploreOnce(BatchLearner):
    """Explore with random actions, then play greedily in the estimated model."""

    statistics = ("transitions", "rewards")

    def __init__(self, problem, mechanism, rng, explore=0.1):
        super().__init__(problem, mechanism, rng)
        self.settings = {"explore": explore}
        self.first = max(1, int(explore * problem.episodes))
        self.policy = None

    def ask(self):
        """Random actions for the first users, the greedy policy for all others."""
        if self.policy is None:
            uniform = np.full(self.problem.shape.visits, 1 / self.problem.shape.actions)
            return Batch(StochasticPolicy(uniform), self.first)
        return Batch(self.policy, self.problem.episodes - self.first)

    def tell(self, counts):
        """Plan in the model that the private counts of the first batch tell."""
        if self.policy is not None:
            return
        transitions = np.maximum(counts.transitions, 0) + 1e-9
        visits = transitions.sum(axis=-1)
        model, rewards = transitions / visits[..., None], np.clip(counts.rewards / visits, 0, 1)
        values, actions = np.zeros(self.problem.shape.states), []
        for h in reversed(range(self.problem.shape.horizon)):
            q = rewards[h] + model[h] @ values
            q = q + 1e-9 * self.rng.random(q.shape)  # ties at random
            actions.append(q.argmax(axis=1))
            values = q.max(axis=1)
        self.policy = DeterministicPolicy(np.array(actions[::-1]))

    def greedy(self):
        """What a study hands out in the end."""
        return self.policy

    def state(self):
        """All that it knows, as JSON takes it."""
        return {"policy": None if self.policy is None else self.policy.actions.tolist()}

    def restore(self, state):
        """Go on from `state`."""
        actions = state["policy"]
        self.policy = None if actions is None else DeterministicPolicy(np.array(actions))


SPEC = LearnerSpec(
    name="explore-once",
    summary="random actions first, the greedy policy after",
    paper="folklore",
    schedule="batch",
    trusts=("none", "central", "shuffle", "local"),
    make=ExploreOnce,
)
