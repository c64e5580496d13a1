"""Compiled planners and the compiled stream loop, without a learner."""

from typing import NamedTuple

import numpy as np

from discreet._seeds import RunSeeds
from discreet.learners.streams.planner_kernels import ROWS
from discreet.privacy.streams.kernels import NextPolicy, Scratch
from discreet.privacy.streams.lane_users_kernels import LaneScratch
from discreet.privacy.streams.lanes import lane_states


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


class PlannedLanes(NamedTuple):
    """What a planner of many runs left behind, the run as the last axis."""

    actions: np.ndarray
    model: np.ndarray
    values: np.ndarray


def planned_lanes(planner, row, runs, *, horizon, seed=0):
    """Plan for several runs at once; each is (transitions, visits, rewards) ``[1, ...]``."""
    public = np.stack([np.concatenate([p.ravel() for p in run]) for run in runs], axis=1)
    states, choices = runs[0][1].shape[1:]
    n, seeds = len(runs), [RunSeeds(seed, i) for i in range(len(runs))]
    model, q = np.zeros((states * choices, states + 2, n)), np.zeros((states, choices, n))
    values, actions = np.zeros((horizon + 1, states, n)), np.zeros((horizon, states, n), np.int64)
    room, state = np.zeros(planner.room * n), lane_states(seeds, "policy", planner.generators)
    public, row = np.ascontiguousarray(public, np.float64), np.array(row, np.float64)
    planner.plan(row, public, LaneScratch(model, q, values, room, state, actions))
    return PlannedLanes(actions, model, values)


def random_counts(seed, groups, states=3, choices=2, scale=30.0, noise=0.0):
    """Consistent counts of random users, then noise on all of them."""
    rng = np.random.default_rng(seed)
    transitions = np.floor(scale * rng.random((groups, states, choices, states)))
    visits = transitions.sum(axis=-1)
    rewards = np.floor(visits * rng.random(visits.shape))
    return tuple(
        part + noise * rng.normal(size=part.shape) for part in (transitions, visits, rewards)
    )
