"""Compiled planners and the compiled stream loop, without a learner."""

from typing import NamedTuple

import numpy as np

from discreet.learners.continual import ROWS
from discreet.privacy.simulation.kernels import NextPolicy, Scratch


def scratch_of(plan, shape):
    """Memory, model and values for planners of one plan."""
    groups = 1 if plan.stationary else shape.horizon
    return Scratch(
        np.zeros((1, *shape.visits)),
        np.zeros((shape.states + ROWS, groups, shape.states * shape.actions)),
        np.zeros((shape.horizon + 1, shape.states)),
    )


class Planned(NamedTuple):
    """What a planner left behind; the model as ``[G, S, A, rows]``."""

    actions: np.ndarray
    probabilities: np.ndarray
    memory: np.ndarray
    model: np.ndarray
    values: np.ndarray


def planned(planner, row, counts, *, memory, seed=0):
    """Call a compiled planner once, on ``counts`` = (transitions, visits, rewards) ``[G, ...]``."""
    transitions, visits, rewards = (np.ascontiguousarray(part, np.float64) for part in counts)
    states, choices = visits.shape[1:]
    horizon = memory.shape[1]
    scratch = Scratch(
        np.array(memory, np.float64),
        np.zeros((states + ROWS, len(visits), states * choices)),
        np.zeros((horizon + 1, states)),
    )
    policy = NextPolicy(
        np.zeros((horizon, states), np.int64),
        np.zeros((horizon, states, choices)),
        np.zeros((horizon, states), np.int64),
        np.zeros(1),
    )
    row, rng = np.array(row, np.float64), np.random.default_rng(seed)
    planner(row, transitions, visits, rewards, *scratch, *policy[:2], rng)
    model = np.moveaxis(scratch.model.reshape(-1, *visits.shape), 0, -1)
    return Planned(policy.actions, policy.probabilities, scratch.memory, model, scratch.values)


def effective(row, counts, s, a):
    """Shapes of the Dirichlet, and the n and total of the rewards, as `psrl` says."""
    transitions, visits, rewards = (part[0] for part in counts)
    n = max(0.0, visits[s, a])
    share = n / (n + row[1]) if n > 0 else 0.0
    shapes = row[0] + share * np.maximum(0.0, transitions[s, a])
    return shapes, share * n, share * min(n, max(0.0, rewards[s, a]))


def random_counts(seed, groups, states=3, choices=2, scale=30.0, noise=0.0):
    """Consistent counts of random users, then noise on all of them."""
    rng = np.random.default_rng(seed)
    transitions = np.floor(scale * rng.random((groups, states, choices, states)))
    visits = transitions.sum(axis=-1)
    rewards = np.floor(visits * rng.random(visits.shape))
    return tuple(
        part + noise * rng.normal(size=part.shape) for part in (transitions, visits, rewards)
    )
