"""Policy elimination in polynomial time: the practical structure.

A stage is two batches. *Crude*: a mixture that visits every (h, x, a) as often as an active policy
can. *Fine*: the coverage design together with that mixture (paper 001), or the mixture again (000).
After each batch the pooled private model is renewed, and with it the active set: all policies whose
upper value reaches the best lower value. All of it is post-processing of the releases.
"""

import numpy as np

from discreet._plain import JsonObject, Plain
from discreet._types import FloatArray, IntArray
from discreet.learners.base import Problem
from discreet.learners.elimination.absorbing_model import (
    AbsorbingModel,
    CountPool,
    absorbing_model,
    upper_and_lower,
)
from discreet.learners.elimination.active_set import ImplicitActiveSet
from discreet.learners.elimination.coverage import (
    Design,
    check_decisions,
    coverage_design,
    merge_policies,
)
from discreet.learners.elimination.settings import EliminationSettings, PrintedConstants
from discreet.mdp.policies import DeterministicPolicy, MixturePolicy, Policy, StochasticPolicy


class ImplicitElimination:
    """Explores and learns; `elimination.learner` says who plays when."""

    def __init__(self, problem: Problem, settings: EliminationSettings) -> None:
        check_decisions(problem.shape, "Policy elimination", "use 'flow-ucb' at this size")
        self.problem = problem
        self.settings = settings
        self.printed = PrintedConstants(problem, settings)
        self.pool = CountPool.empty(problem.shape)
        self.length = 0.0
        self.designs: list[dict[str, float]] = []

    def policy(self, part: str, rng: np.random.Generator) -> Policy:
        """What the users of one part of a stage play."""
        model = self.model()
        active = self.active_set(model, rng)
        if part == "tail":
            return DeterministicPolicy(greedy_actions(model, active.order))
        policies, weights = visiting_mixture(active)
        if part == "fine" and self.settings.fine == "coverage":
            policies, weights = self._with_design(active, policies, weights)
        return _playable(policies, weights, model)

    def learn(self, part: str, batch: CountPool, length: float, rng: np.random.Generator) -> None:
        """Take the private counts of a batch of a stage of this length."""
        if part == "crude" and self.settings.forgets:
            self.pool = CountPool.empty(self.problem.shape)
        self.pool.add(batch, self._weight(batch))
        self.length = length

    def model(self) -> AbsorbingModel:
        """The absorbing model of everything pooled so far."""
        threshold = self.printed.infrequent(self.pool.transition_variance)
        return absorbing_model(self.pool, threshold, self.problem.start)

    def active_set(self, model: AbsorbingModel, rng: np.random.Generator) -> ImplicitActiveSet:
        """Policies that the latest constraint allows (all of them, before any data)."""
        from discreet.learners.elimination.active_set_kernels import optimal_values

        if self.settings.constants == "theory":
            upper = lower = model.rewards
            deviation = float(np.sqrt(self.pool.transition_variance.max()))
            margin = self.printed.printed_width(max(self.length, 1.0), deviation)
        else:
            upper, lower = upper_and_lower(model, self.printed.iota, self.settings.confidence)
            margin = 0.0
        best = float(model.initial @ optimal_values(model.transitions, lower)[0])
        threshold = best - margin if self.pool.users else -np.inf
        order = shuffled_actions(self.problem, rng)
        return ImplicitActiveSet(model.transitions, model.initial, upper, threshold, order)

    def _with_design(
        self, active: ImplicitActiveSet, policies: IntArray, weights: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        occupancies = np.stack([active.occupancy(policy) for policy in policies])
        oracle = active.oracle(mixed=self.settings.play == "mixture")
        design = coverage_design(policies, weights, occupancies, oracle)
        self.designs.append(numbers_of(design))
        return with_auxiliary(design, policies, weights, self.settings)

    def _weight(self, batch: CountPool) -> float:
        """n/(n + sigma²), with n the mean count of a frequent transition in this batch."""
        frequent = max(int((self.model().transitions > 0.0).sum()), 1)
        mean = batch.users * self.problem.shape.horizon / frequent
        return mean / (mean + float(batch.transition_variance.max()))

    def state(self) -> dict[str, Plain]:
        """Everything told so far, as plain values."""
        return {"pool": self.pool.to_dict(), "length": self.length}

    def restore(self, state: JsonObject) -> None:
        self.pool = CountPool.from_dict(state["pool"])
        self.length = float(state["length"])


def numbers_of(design: Design) -> dict[str, float]:
    """What a run reports about a design."""
    return {"tuples": design.tuples, "value": design.value, "bound": design.bound}


def with_auxiliary(
    design: Design, policies: IntArray, weights: FloatArray, settings: EliminationSettings
) -> tuple[IntArray, FloatArray]:
    """The design and the auxiliary mixture, in the proportion of their shares."""
    _, fine, auxiliary = settings.shares
    both = np.concatenate([design.policies, policies])
    shares = np.concatenate([fine * design.weights, auxiliary * weights / weights.sum()])
    return merge_policies(both, shares)


def shuffled_actions(problem: Problem, rng: np.random.Generator) -> IntArray:
    """``[H, X, A]``: the order in which ties prefer actions, so that no action is special."""
    names = np.broadcast_to(np.arange(problem.shape.actions), problem.shape.visits)
    return rng.permuted(names, axis=-1)


def greedy_actions(model: AbsorbingModel, order: IntArray) -> IntArray:
    """The best policy of the estimated model."""
    from discreet.learners.elimination.active_set_kernels import weighted_plan

    nothing = np.zeros_like(model.rewards)
    actions: IntArray = weighted_plan(
        model.transitions, model.initial, model.rewards, nothing, 0.0, order
    )[0]
    return actions


def visiting_mixture(active: ImplicitActiveSet) -> tuple[IntArray, FloatArray]:
    """For each tuple within reach, the active policy that visits it most; all equally likely."""
    policies, visits = active.visiting()
    within = policies[visits > 0.0]
    return merge_policies(within, np.ones(len(within)))


def _playable(policies: IntArray, weights: FloatArray, model: AbsorbingModel) -> Policy:
    """The mixture, with random actions in states that the model knows nothing about.

    The model does not reach such states or ends there, so no upper value changes by it.
    """
    actions = model.rewards.shape[-1]
    known = model.known
    distinct, shares = merge_policies(np.where(known, policies, 0), weights)
    choices = np.eye(actions)[distinct]
    choices[:, ~known] = 1.0 / actions
    return MixturePolicy(tuple(StochasticPolicy(choice) for choice in choices), shares)
