"""Worst-case neighbours: two users who have nothing in common, in otherwise equal batches."""

from dataclasses import dataclass

import numpy as np

from discreet._types import FloatArray, IntArray
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy.plans import BatchPlan, StreamPlan
from discreet.privacy.sensitivity import STATISTICS
from discreet.privacy.statistics import PrivateCounts

Plan = BatchPlan | StreamPlan


@dataclass(frozen=True, eq=False)
class Episode:
    """One user's raw episode: ``states`` has one entry more than ``actions`` and ``rewards``."""

    states: IntArray
    actions: IntArray
    rewards: FloatArray

    def counts(self, shape: Shape) -> Counts:
        """The user's statistics (rewards must be bits)."""
        zero = Counts.zeros(shape)
        transitions, rewards = zero.transitions, zero.rewards
        for h, action in enumerate(self.actions):
            transitions[h, self.states[h], action, self.states[h + 1]] += 1
            rewards[h, self.states[h], action] += int(self.rewards[h])
        return Counts(1, transitions, rewards)


def opposites(shape: Shape) -> tuple[Episode, Episode]:
    """Two users who differ in every counter they touch, at every step.

    One stays in the first state and plays the first action, the other stays in the last state and
    plays the last one; both collect reward one. Staying put piles up pooled counters, which is the
    worst case for them too. (With one state and one action only rewards can differ.)
    """
    steps = np.ones(shape.horizon, np.int64)
    distinct = shape.states > 1 or shape.actions > 1
    return (
        Episode(0 * np.r_[steps, 1], 0 * steps, steps.astype(np.float64)),
        Episode(
            (shape.states - 1) * np.r_[steps, 1],
            (shape.actions - 1) * steps,
            np.full(shape.horizon, float(distinct)),
        ),
    )


def batch_of(episode: Episode, users: int, shape: Shape) -> Counts:
    """A batch of ``users``: this one, and others who all do what the first opposite does."""
    other, _ = opposites(shape)
    others = other.counts(shape)
    crowd = Counts(users - 1, (users - 1) * others.transitions, (users - 1) * others.rewards)
    return episode.counts(shape) + crowd


def vector(released: PrivateCounts) -> FloatArray:
    """Everything in a release that depends on data, as one vector."""
    parts = [getattr(released, name) for name in STATISTICS]
    return np.concatenate([np.asarray(p, np.float64).ravel() for p in parts if p is not None])
