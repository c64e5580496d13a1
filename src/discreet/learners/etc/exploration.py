"""How etc explores: for how long, and by which policy."""

import math

import numpy as np

from discreet._types import FloatArray
from discreet.learners.base import Problem
from discreet.learners.elimination.active_set import ImplicitActiveSet
from discreet.learners.elimination.coverage import (
    check_decisions,
    coverage_design,
    merge_policies,
)
from discreet.learners.elimination.practical_explorer import shuffled_actions
from discreet.mdp.policies import StochasticPolicy, uniform_policy
from discreet.privacy.plans import BatchPlan


def exploration_users(problem: Problem, plan: BatchPlan) -> int:
    """How many users explore: the n that minimises n + (K - n)·min(1, sd(n)), at most K/2.

    sd(n) is the standard deviation of a mean reward that n/(S·A) visits and the noise of a release
    of n users leave. Powers of the square root of two are tried. Public facts only, no constant.
    """
    rows = problem.shape.states * problem.shape.actions

    def loss(users: int) -> float:
        noise, visits = plan.noise_variance(users), users / rows
        variance = (1 + plan.visit_variance) * visits / 4 + noise["rewards"] + noise["transitions"]
        return users + (problem.episodes - users) * min(1.0, math.sqrt(variance) / visits)

    least = plan.least_users
    most = max(least, problem.episodes // 2)
    sizes = {min(most, max(least, round(2 ** (i / 2)))) for i in range(2 * most.bit_length() + 1)}
    return min(sorted(sizes), key=loss)


def check_size(problem: Problem) -> None:
    """Refuse a design that would not fit into memory."""
    check_decisions(problem.shape, "A designed exploration", "set exploration='uniform'")


def designed_policy(
    problem: Problem,
    chances: FloatArray,
    initial: FloatArray,
    least: float,
    rng: np.random.Generator,
) -> StochasticPolicy:
    """The policy whose visits cover, in a model, every (h, s, a) that some policy can visit.

    The coverage design of policy elimination over all policies, played as the one Markov policy
    with its occupancies; random actions where the model never is.

    Args:
        problem: public facts.
        chances: ``[H, S, A, S]``, transitions of the model.
        initial: ``[S]``, distribution of the first state.
        least: what no policy visits with at least this probability is not covered.
        rng: breaks ties.
    """
    nothing = np.zeros(problem.shape.visits)
    order = shuffled_actions(problem, rng)
    everything = ImplicitActiveSet(chances, initial, nothing, -np.inf, order)
    policies, visits = everything.visiting()
    within = visits >= max(least, 1e-12)
    if not within.any():
        return uniform_policy(problem.shape)
    starts, weights = merge_policies(policies[within], np.ones(int(within.sum())))
    # Only what is worth covering counts, whatever else those policies come past.
    occupancies = np.stack([everything.occupancy(policy) * within for policy in starts])
    design = coverage_design(
        starts, weights, occupancies, everything.oracle(), tolerance=1.1, most_iterations=200
    )
    mixed = np.zeros_like(nothing)
    for policy, weight in zip(design.policies, design.weights, strict=True):
        mixed += weight * everything.occupancy(policy)
    return _markov(mixed)


def _markov(occupancy: FloatArray) -> StochasticPolicy:
    """The policy of an occupancy ``[H, S, A]``; uniform where nobody comes."""
    total = occupancy.sum(axis=-1, keepdims=True)
    probabilities = np.full_like(occupancy, 1 / occupancy.shape[-1])
    np.divide(occupancy, total, out=probabilities, where=total > 1e-12)
    return StochasticPolicy(probabilities / probabilities.sum(axis=-1, keepdims=True))
