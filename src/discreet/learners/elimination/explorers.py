"""Policy elimination in polynomial time: the practical structure.

A stage is two batches. *Crude*: a mixture that visits every (h, x, a) as often as an active policy
can. *Fine*: the coverage design together with that mixture (paper 001), or the mixture again (000).
After each batch the pooled private model is renewed, and with it the active set: all policies whose
upper value reaches the best lower value. All of it is post-processing of the releases.
"""

from dataclasses import replace

import numpy as np

from discreet._types import FloatArray, IntArray, JsonObject, Plain
from discreet.learners.base import Problem
from discreet.learners.elimination.absorbing_model import (
    AbsorbingModel,
    CountPool,
    SecondLook,
    absorbing_model,
    frequent_tuples,
    upper_and_lower,
)
from discreet.learners.elimination.active_set import ImplicitActiveSet
from discreet.learners.elimination.coverage import (
    Design,
    check_decisions,
    coverage_design,
    merge_policies,
)
from discreet.learners.elimination.policy_enumeration import enumerate_policies
from discreet.learners.elimination.settings import EliminationSettings, PrintedConstants
from discreet.mdp.policies import DeterministicPolicy, MixturePolicy, Policy, StochasticPolicy
from discreet.privacy.projection.valid_counts import valid_counts


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
        from discreet.learners.elimination.active_set import optimal_values

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
    from discreet.learners.elimination.active_set import weighted_plan

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


# Policy elimination as printed, where the print is consistent, on an explicit list of policies.
#
# A stage: for each step h, a batch that explores the (x, a) of that step in the crude model of the
# steps before it (Algorithm 2); one batch of fine exploration (Algorithm 3); then every listed
# policy
# whose confidence interval lies below another's is dropped for good. Only the data of the current
# stage is used, unless ``forgetting=False``.
#
# Visits are released beside transitions and rewards, as printed: the post-processing (equation 6 of
# 001) holds sums of transitions against a visit counter with the noise of *one* counter. A sum of
# transitions has X times its variance, and Assumption 4 would fail for large X (at X = 24, H = 2 in
# almost every draw).
#
# Choices where the print is silent: tuples that no listed policy reaches are dropped; a step with
# nothing to explore plays the greedy policy; the crude model starts with all mass absorbed;
# counters that the public policy of a batch cannot touch are zeros, not noise.


class PaperElimination:
    """Explores and learns; `elimination.learner` says who plays when."""

    def __init__(self, problem: Problem, settings: EliminationSettings) -> None:
        self.problem = problem
        self.settings = settings
        self.printed = PrintedConstants(problem, settings)
        self.active = enumerate_policies(problem.shape, problem.start)
        self.crude = CountPool.empty(problem.shape)
        self.refined = CountPool.empty(problem.shape)
        self.greedy: int | None = None
        self.designs: list[dict[str, float]] = []
        self.estimates: list[float] = []  # of the best listed policy, stage by stage

    def policy(self, part: str, rng: np.random.Generator) -> Policy:
        """What the users of one part of a stage play: ``"layer 3"``, ``"fine"`` or ``"tail"``."""
        model = self.crude_model()
        if part == "tail":
            return DeterministicPolicy(self._greedy_policy(rng))
        steps = _steps(part, self.problem.shape.horizon)
        policies, weights = self._visiting(model, steps, rng)
        if part == "fine" and self.settings.fine == "coverage":
            policies, weights = self._with_design(model, policies, weights)
        components = tuple(DeterministicPolicy(actions) for actions in policies)
        return MixturePolicy(components, weights)

    def learn(self, part: str, batch: CountPool, length: float, rng: np.random.Generator) -> None:
        """Take the private counts of a batch of a stage of this length."""
        new_stage = part != "fine" and self.refined.users > 0
        if new_stage and self.settings.forgets:
            self.crude = CountPool.empty(self.problem.shape)
            self.refined = CountPool.empty(self.problem.shape)
        if part == "fine":
            self.refined.add(batch)
            self._eliminate(length, rng)
        else:
            self.crude.add(_one_step(batch, _steps(part, self.problem.shape.horizon)[0]))

    def crude_model(self) -> AbsorbingModel:
        """The model of crude exploration: steps that were not explored yet are all absorbed."""
        pool = self.processed(self.crude)
        return absorbing_model(pool, self._threshold(pool), self.problem.start)

    def refined_model(self) -> AbsorbingModel:
        """The model of fine exploration: Definition 5 with the infrequent tuples of the crude one.

        Their share of the refined counts is absorbed, not given to the others: so that values stay
        below the true ones (Lemma 8).
        """
        crude = self.processed(self.crude)
        frequent = frequent_tuples(crude, self._threshold(crude))
        pool = self.processed(self.refined)
        zeros = np.zeros(pool.rewards.shape)
        return absorbing_model(pool, zeros, self.problem.start, frequent=frequent)

    def _threshold(self, pool: CountPool) -> FloatArray:
        """Per step, since each step of crude exploration is a batch of its own."""
        theory = self.settings.constants == "theory"
        variance = pool.widest if theory else pool.transition_variance
        return np.stack([self.printed.infrequent(v) for v in variance])

    def error(self, pool: CountPool) -> float:
        """E of Assumption 4, for the widest noise of the pool; practical: z_w of its deviations."""
        deviation = float(np.sqrt(pool.widest.max()))
        if self.settings.constants == "theory":
            return self.printed.count_error(deviation)
        return self.settings.z_w * deviation

    def processed(self, pool: CountPool) -> CountPool:
        """Valid counts that never underestimate visits (equation 6 of 001)."""
        error = self.error(pool)
        if error == 0.0:
            return CountPool.from_dict(pool.to_dict())
        explored = pool.reward_variance > 0.0
        visits = pool.visit_sums() if pool.second is None else pool.second.visits
        valid = valid_counts(pool.transitions, visits, error)
        transitions = np.where(explored[..., None], valid.transitions, 0.0)
        return replace(pool, transitions=transitions, second=None)

    def _visiting(
        self, model: AbsorbingModel, steps: tuple[int, ...], rng: np.random.Generator
    ) -> tuple[IntArray, FloatArray]:
        salt = int(rng.integers(2**62))
        found: list[IntArray] = []
        for step in steps:
            policies, visits = self.active.visiting(model.transitions, model.initial, step, salt)
            found.extend(policies[visits > 0.0])
        if not found:
            found.append(self._greedy_policy(rng))
        return merge_policies(np.stack(found), np.ones(len(found)))

    def _with_design(
        self, model: AbsorbingModel, policies: IntArray, weights: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        from discreet.learners.elimination.active_set import policy_occupancy

        visited = [policy_occupancy(model.transitions, model.initial, p) for p in policies]
        oracle = self.active.oracle(model.transitions, model.initial)
        design = coverage_design(policies, weights, np.stack(visited), oracle)
        self.designs.append(numbers_of(design))
        return with_auxiliary(design, policies, weights, self.settings)

    def _eliminate(self, length: float, rng: np.random.Generator) -> None:
        """Drop every policy whose upper value is below the best lower value (never the best)."""
        model = self.refined_model()
        where = (model.transitions, model.initial)
        values = self.active.values(*where, model.rewards)
        self.estimates.append(float(values.max()))
        if self.settings.constants == "theory":
            deviation = float(np.sqrt(self.refined.widest.max()))
            keep = values.max() - values < self.printed.printed_width(length, deviation)
        else:
            upper, lower = upper_and_lower(model, self.printed.iota, self.settings.confidence)
            keep = self.active.values(*where, upper) >= self.active.values(*where, lower).max()
        best = np.flatnonzero(keep & (values >= values[keep].max() - 1e-12))
        self.greedy = int(self.active.indices[rng.choice(best)])
        self.active = self.active.keep(keep)

    def _greedy_policy(self, rng: np.random.Generator) -> IntArray:
        """The best listed policy of the last refined model; before that, any."""
        if self.greedy is None:
            return self.active.policy(int(rng.choice(self.active.indices)))
        return self.active.policy(self.greedy)

    def state(self) -> dict[str, Plain]:
        """Everything told so far, as plain values."""
        return {
            "active": self.active.packed(),
            "crude": self.crude.to_dict(),
            "refined": self.refined.to_dict(),
            "greedy": self.greedy,
            "estimates": list(self.estimates),
        }

    def restore(self, state: JsonObject) -> None:
        self.active = self.active.unpacked(state["active"])
        self.crude = CountPool.from_dict(state["crude"])
        self.refined = CountPool.from_dict(state["refined"])
        self.greedy = state["greedy"]
        self.estimates = [float(value) for value in state["estimates"]]


def _steps(part: str, horizon: int) -> tuple[int, ...]:
    return tuple(range(horizon)) if part == "fine" else (int(part.removeprefix("layer ")),)


def _one_step(batch: CountPool, step: int) -> CountPool:
    """The counters of one step only; crude exploration of a layer uses no others."""
    mask = np.zeros((len(batch.rewards), 1, 1))
    mask[step] = 1.0
    return replace(
        batch,
        transitions=batch.transitions * mask[..., None],
        rewards=batch.rewards * mask,
        transition_variance=batch.transition_variance * mask,
        reward_variance=batch.reward_variance * mask,
        second=batch.second and SecondLook(*(part * mask for part in batch.second)),
    )
