"""What a policy is worth, with an interval, from counts that are consistent and linear.

**Value.** Backward, Q(h, s, a) = (R + sum x(s')·V(s'))/N, V = sum pi·Q. Where the policy DEFERs to
today's behaviour all actions of a state are one row; so *today* is the policy that defers
everywhere, and its value is simply the sum of all rewards over n. A row is known if N exceeds two
standard deviations of its noise by half a visit. What is not known is worth anything between 0 and
all steps left: two passes, one with the least and one with the most, give the two ends.

**Interval.** With W(h, s) how often the policy comes to a state by the estimated model and W =
W·pi for its rows, V depends on the counts to first order by

    dV = sum W/N·[sum_s' dx(s')·(V(s') + c - Q) + dR] + sum_s dN(0, s)·V(0, s)/n,

R released as a sum of r - c. *Noise*: g is the factor of dx; its variance is that of the counts
(`LinearFlow.noise`), plus (W/N)² times that of R. *Sampling*: given the state and action, people
are independent, and each adds r + V(s') - Q, with a variance of at most (sd r + sd V(s'))², however
the reward depends on the next state; the first states add Var V(0, s)/n. Rewards are bits,
r(1 - r). ((1 + range of V)/2)² is added to the sum of a row, as if half a surprise more had been
seen: rows seen a few times show no variance. *Denominators* are noisy too: N is replaced by
N - 2·sqrt D in the variances, D the noise of N. The interval is 1.96 standard errors of the lower
pass below it to 1.96 of the upper pass above it. It is an approximation (first order, normal),
measured in docs/understand/learners/fit.md, and not a theorem.
"""

import math
from typing import NamedTuple, Protocol

import numpy as np

from discreet._types import BoolArray, FloatArray
from discreet.learners.estimate import Estimate, probabilities_of

NORMAL = 1.959964
"""Two-sided 95%."""


class Counted(Protocol):
    """How noise moves a linear function of consistent counts: a release, or a sum of several."""

    @property
    def support(self) -> BoolArray:
        """``bool[H, S, K]``, the rows of the counts."""

    def noise(self, gradient: FloatArray) -> float:
        """Its variance, of a function given as ``[R, S]``."""


class Layers(NamedTuple):
    """Consistent counts of all rows, and what is known of their rewards and their noise.

    Attributes:
        users: n, episodes that count.
        counts: whose noise moves the transitions.
        transitions: ``[H, S, K, S]``, linear in what was released, perhaps below zero.
        rewards: ``[H, S, K]``, sums of r.
        anchor: ``[H, S, K]``, c: what noise on the visits adds per visit.
        drawn: ``bool[H, S, K]``, rows whose rewards are people's, not public.
        reward_noise: variance of a sum of rewards of one row.
        visit_noise: variance of the visits of rows ``[H, S, K]`` and of states ``[H, S]``.
    """

    users: int
    counts: Counted
    transitions: FloatArray
    rewards: FloatArray
    anchor: FloatArray
    drawn: BoolArray
    reward_noise: float
    visit_noise: tuple[FloatArray, FloatArray]


class _Step(NamedTuple):
    """The rows ``[S, K]`` of one step; a state that defers has one row, the first, of all slots.

    Attributes:
        known: rows that noise does not explain.
        chances: with which the policy takes them.
        moves: probabilities ``[S, K, S]``, signed.
        values: Q; what was given for them where they are not known.
        ahead: V of the next step.
        scale: 1 over the visits that are certain, 0 where a row is not known.
        sampling: variance of Q by sampling.
    """

    known: BoolArray
    chances: FloatArray
    moves: FloatArray
    values: FloatArray
    ahead: FloatArray
    scale: FloatArray
    sampling: FloatArray


def value_of(layers: Layers, chances: FloatArray, defers: BoolArray) -> tuple[Estimate, float]:
    """The value of a policy, and the share of its steps in rows that are not known.

    Args:
        layers: what is known.
        chances: ``[H, S, K]``, with which the policy takes each row.
        defers: ``bool[H, S]``, where it does what is done today, whatever that is.
    """
    horizon, users, support = len(defers), layers.users, layers.counts.support
    ends, unseen = [], 0.0
    for worth in (0.0, 1.0):
        steps = _backward(layers, chances, defers, worth)
        first = (steps[0].chances * steps[0].values).sum(axis=1)
        share = layers.transitions[0].sum(axis=-1).sum(axis=1) / users
        value = float(share @ first)
        variance = max(float(share @ (first - value) ** 2), 0.0) / users
        gradient, of_rewards = np.zeros(layers.transitions.shape), np.zeros(support.shape)
        gradient[0] += first[:, None, None] / users
        unseen = 0.0
        for h, step in enumerate(steps):
            taken = share[:, None] * step.chances
            unseen += float((taken * ~step.known).sum()) * (horizon - h)
            variance += float((taken**2 * step.sampling).sum())
            factor = taken * step.scale
            all_slots = defers[h][:, None, None]
            factor_of = np.where(all_slots[..., 0], factor[:, :1], factor)
            values = np.where(all_slots[..., 0], step.values[:, :1], step.values)
            beyond = step.ahead + (layers.anchor[h] - values)[..., None]
            gradient[h] += factor_of[..., None] * beyond
            of_rewards[h] = factor_of * layers.drawn[h]
            share = np.einsum("sk,skt->t", taken * step.known, step.moves)
        variance += layers.counts.noise(gradient[support])
        variance += layers.reward_noise * float((of_rewards[support] ** 2).sum())
        ends.append((value, NORMAL * math.sqrt(max(variance, 0.0))))  # rounding, where 0 is known
    (least, below), (most, above) = ends
    found = np.clip([(least + most) / 2, least - below, most + above], 0.0, horizon)
    return Estimate(*map(float, found)), float(np.clip(unseen / horizon, 0.0, 1.0))


def _backward(layers: Layers, chances: FloatArray, defers: BoolArray, worth: float) -> list[_Step]:
    """All steps; a row that is not known is worth so much of every step that is left."""
    transitions, rewards, drawn = layers.transitions, layers.rewards, layers.drawn
    horizon, states, slots, _ = transitions.shape
    visits, ahead, steps = transitions.sum(axis=-1), np.zeros(states), []
    one = np.eye(slots)[0]
    for h in reversed(range(horizon)):
        left, every = horizon - h, defers[h][:, None]
        moved = np.where(
            every[..., None], transitions[h].sum(axis=1, keepdims=True), transitions[h]
        )
        seen = np.where(every, visits[h].sum(axis=1, keepdims=True), visits[h])
        earned = np.where(every, rewards[h].sum(axis=1, keepdims=True), rewards[h])
        doubt = np.where(every, layers.visit_noise[1][h][:, None], layers.visit_noise[0][h])
        certain = seen - 2 * np.sqrt(doubt)
        known = certain > 0.5
        some = np.where(known, seen, 1.0)
        moves, mean = moved / some[..., None], earned / some
        values = np.clip(mean + moves @ ahead, -left, 2 * left)  # far outside, only noise is left
        inside = probabilities_of(moved)
        apart = np.sqrt(np.maximum(inside @ ahead**2 - (inside @ ahead) ** 2, 0.0))
        paid = np.clip(mean, 0, 1)
        paid = np.sqrt(paid * (1 - paid)) * np.where(every, True, drawn[h])
        scale = np.where(known, 1 / np.maximum(certain, 0.5), 0.0)
        sampling = (some * (apart + paid) ** 2 + ((1 + np.ptp(ahead)) / 2) ** 2) * scale**2
        values = np.where(known, values, worth * left)
        taken = np.where(every, one, chances[h])
        steps.append(_Step(known, taken, moves, values, ahead, scale, sampling))
        ahead = (taken * values).sum(axis=1)
    return steps[::-1]
