"""Neighbours: two users who have nothing in common, and users who differ in one respect only."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from discreet._types import BoolArray, FloatArray, IntArray
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy.sensitivity import STATISTICS
from discreet.privacy.statistics import PrivateCounts


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

    def policy(self, shape: Shape) -> BoolArray:
        """A public policy that plays what this user played, in every state."""
        support = np.zeros(shape.visits, np.bool_)
        support[np.arange(shape.horizon), :, self.actions] = True
        return support


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


EVERYTHING = "everything"
REWARDS, ONE_STEP, LAST_STEP = "rewards only", "one step only", "last step only"
OFF_POLICY = "off the policy"


def neighbours(shape: Shape) -> dict[str, Episode]:
    """Who may stand in place of the first opposite, by what is different.

    >>> list(neighbours(Shape(1, 2, 2)))
    ['everything', 'rewards only', 'one step only', 'last step only']
    """
    usual, other = opposites(shape)
    return {
        EVERYTHING: other,
        REWARDS: replace(usual, rewards=0 * usual.rewards),
        ONE_STEP: _changed(usual, shape, 0),
        LAST_STEP: _changed(usual, shape, shape.horizon - 1),
    }


def _changed(user: Episode, shape: Shape, step: int) -> Episode:
    """Another action and another reward at ``step`` (and, after the last one, another state)."""
    states, actions = user.states.copy(), user.actions.copy()
    rewards = user.rewards.copy()
    actions[step], rewards[step] = shape.actions - 1, 1 - rewards[step]
    if step == shape.horizon - 1:
        states[-1] = shape.states - 1
    return Episode(states, actions, rewards)


def total(users: Sequence[Episode], shape: Shape) -> Counts:
    """The counts of a batch, user by user; equal users are counted once and multiplied."""
    counts = Counts.zeros(shape)
    for user in dict.fromkeys(users):
        times = sum(1 for other in users if other is user)
        one = user.counts(shape)
        counts = counts + Counts(times, times * one.transitions, times * one.rewards)
    return counts


def vector(released: PrivateCounts) -> FloatArray:
    parts = [getattr(released, name) for name in STATISTICS]
    return np.concatenate([np.asarray(p, np.float64).ravel() for p in parts if p is not None])


def everything(released: PrivateCounts) -> FloatArray:
    """All that a release says: statistics, who left, users, policy and stated noise."""
    dropped_out = [values for _, values in sorted((released.dropped_out or {}).items())]
    stated = [released.noise_variance[name] for name in sorted(released.noise_variance)]
    facts = [released.users, *stated]
    return np.concatenate([vector(released), *dropped_out, facts, released.support.ravel()])
