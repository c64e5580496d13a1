"""The value of behaviour at one step, from its own rows or from pooled ones.

*Own step*: all slots of a state added up. No probabilities of behaviour are needed, and none are
known.

*With a pool* (rows of actions summed over steps), the same value is also sum b_a·Q_a, where b_a is
the share of slot a at this step and Q_a its pooled value. Its variance is

    sum b_a²·v_a + [N·sum b_a·(Q_a - V_b)² + sum D_a·(Q_a - V_b)²] / (N - 2·sqrt D)² + outside:

that of the pooled rows, that of the shares (sampled, and noisy), and that of slots that are not
known, whose value is taken as uniform: (their share, two standard deviations up)²·(H - h)²/12.
Whichever variance is smaller is used. What is won later (`kept_gain`) is carried back through
behaviour in the same two ways; slots that are not known then add nothing.

Shares that are *told* (public: a trial, a rule, an algorithm) have no variance, and a state whose
slots are all known is then known even if nobody is seen in it at this step.
"""

from typing import NamedTuple

import numpy as np

from discreet._types import BoolArray, FloatArray, IntArray
from discreet.offline.evidence import Evidence, Rows, next_value, row_value
from discreet.offline.release import OTHER


class Behaviour(NamedTuple):
    """Behaviour at one step: is it known, P_b, the value V_b of the row, and the row's variance."""

    known: BoolArray
    probabilities: FloatArray
    values: FloatArray
    variance: FloatArray


class Later(NamedTuple):
    """What follows a step, ``[S]`` each: V_b, its variance, Delta."""

    values: FloatArray
    variance: FloatArray
    gain: FloatArray


class Actions(NamedTuple):
    """The slots of one step: rows ``[S, K]``, P and mean rewards."""

    rows: Rows
    probabilities: FloatArray
    rewards: FloatArray


def action_rows(evidence: Evidence, step: int, known_rewards: FloatArray) -> Actions:
    """The slots of a step, with known rewards in the place of estimates."""
    rows = evidence.at(step)
    estimated = np.clip(rows.means, 0, 1)
    rewards = np.where(np.isnan(known_rewards), estimated, known_rewards)
    return Actions(rows, rows.probabilities, rewards)


def own_step(rows: Rows, later: Later, left: int) -> Behaviour:
    """From the rows ``[S]`` of the step; clipped rewards would favour poor states, so they stay."""
    probabilities, means = rows.probabilities, rows.means
    inside = np.clip(means, 0, 1)
    mean, variance = row_value(rows, probabilities, inside, later.values, float(left))
    return Behaviour(rows.known, probabilities, means + mean, variance)


def with_pool(
    own: Behaviour, evidence: Evidence, step: int, actions: Actions, later: Later, left: int
) -> Behaviour:
    """The better known of ``own`` and of what pooled rows say, state by state."""
    rows, probabilities, rewards = actions
    mean, variance = row_value(rows, probabilities, rewards, later.values, float(left))
    values, state = rewards + mean, evidence.behaviour.layer(step)
    certain = np.maximum(state.certain, 1e-9)
    known = rows.known & evidence.support[step]
    inside = evidence.shares[step] * known
    total = np.maximum(inside.sum(axis=1), 1e-9)
    shares = inside / total[:, None]
    value = (shares * values).sum(axis=1)
    noise = evidence.slots.visit_noise[step]
    apart = (values - value[:, None]) ** 2
    mixing = state.visits * (shares * apart).sum(axis=1) + (noise * known * apart).sum(axis=1)
    unseen = np.sqrt((noise * ~known * evidence.support[step]).sum(axis=1)) / certain
    if evidence.told is not None:
        mixing, unseen = np.zeros_like(mixing), np.zeros_like(unseen)
    outside = np.clip(1 - total + 2 * unseen, 0, 1) ** 2 * left**2 / 12
    variance = np.where(known, variance, 0.0)
    spread = (shares**2 * variance).sum(axis=1) + mixing / certain**2 + outside
    better = own.known & (total > 0.5) & (spread < own.variance)
    better |= ~own.known & _whole(evidence, step, known)
    return Behaviour(
        own.known | better,
        np.where(
            better[:, None], np.einsum("sk,skt->st", shares, probabilities), own.probabilities
        ),
        np.where(better, value, own.values),
        np.where(better, spread, own.variance),
    )


def kept_gain(rows: Rows, behaviour: Behaviour, gain: FloatArray, width: float) -> FloatArray:
    """``[S]``, a lower bound of P_b·Delta by the rows of the step; 0 where behaviour is unknown."""
    most = float(gain.max())
    if most <= 0:
        return np.zeros(len(gain))
    mean, variance = next_value(rows, rows.probabilities, gain, most)
    kept = np.maximum(mean - width * np.sqrt(variance), 0)
    return np.where(behaviour.known, kept, 0.0)


def kept_gain_of_pool(
    evidence: Evidence, step: int, actions: Actions, gain: FloatArray, width: float
) -> FloatArray:
    """``[S]``, the same by pooled rows."""
    most, (rows, probabilities, _) = float(gain.max()), actions
    if most <= 0:
        return np.zeros(len(gain))
    mean, variance = next_value(rows, probabilities, gain, most)
    state, support = evidence.behaviour.layer(step), evidence.support[step]
    known = rows.known & support
    shares = evidence.shares[step] * known
    value = (shares * mean).sum(axis=1)
    # Shares of all slots add up to one: only differences between them can be wrong.
    apart = mean - np.where((known | ~support).all(axis=1), value, 0.0)[:, None]
    noise = evidence.slots.visit_noise[step] * known + state.visits[:, None] * shares
    mixing = (noise * apart**2).sum(axis=1) / np.maximum(state.certain, 1e-9) ** 2
    if evidence.told is not None:
        mixing = np.zeros_like(mixing)
    spread = (shares**2 * np.where(known, variance, 0.0)).sum(axis=1) + mixing
    kept = np.maximum(value - width * np.sqrt(spread), 0)
    return np.where(state.known | _whole(evidence, step, known), kept, 0.0)


def _whole(evidence: Evidence, step: int, known: BoolArray) -> BoolArray:
    """``bool[S]``: behaviour is told, and all that it does is known."""
    if evidence.told is None:
        return np.zeros(len(known), np.bool_)
    inside: BoolArray = (evidence.told[step] * known).sum(axis=1) > 1 - 1e-9
    return inside


# Pessimistic improvement *relative to behaviour*: where to deviate, and what that is worth.
#
# Pessimism about values alone is not safe: it avoids states that are badly covered even where
# behaviour does well in them. Here every comparison is with behaviour in the same state, backward
# over steps, with V_b the estimated value of behaviour, var its variance, and Delta a pessimistic
# estimate of what has been won by later deviations:
#
# * *deviate* to a slot a that is known: r_a + P_a·(V_b' + Delta') - V_b minus ``width`` standard
#   deviations, of variance v_a + max(v_b - b_a²·v_a, 0) + sum (P_a - P_b)²·var', where b_a is the
#   estimated share of a in behaviour (its part of v_b is the same data, not new noise);
# * *defer*: P_b·Delta' minus ``width`` standard deviations, at least 0; 0 where behaviour is
# unknown.
#
# The larger one is taken, ties defer. States in which behaviour is unknown get the mean value of
# their layer with the variance of a uniform value, and always defer.


_TIE = 1e-9


class Improvement(NamedTuple):
    """What to do in each state.

    Attributes:
        slots: ``int64[H, S]``, the slot to deviate to, or -1 to defer.
        gain: ``[H + 1, S]``, Delta.
        behaviour: ``[H + 1, S]``, V_b.
    """

    slots: IntArray
    gain: FloatArray
    behaviour: FloatArray


def improve(
    evidence: Evidence, allowed: BoolArray, known_rewards: FloatArray, width: float
) -> Improvement:
    """Plan backward.

    Args:
        evidence: of the release; slots pooled over steps or not.
        allowed: ``bool[H, S, K]``, slots that may be recommended.
        known_rewards: ``[H, S, K]``, the mean reward where it is public, NaN elsewhere.
        width: standard deviations of pessimism.
    """
    horizon, states, _ = evidence.support.shape
    slots = np.full((horizon, states), OTHER, np.int64)
    gain, values = np.zeros((horizon + 1, states)), np.zeros((horizon + 1, states))
    variance = np.zeros(states)
    for step in range(horizon - 1, -1, -1):
        left = horizon - step
        later = Later(values[step + 1], variance, gain[step + 1])
        rows = evidence.behaviour.layer(step)
        actions = action_rows(evidence, step, known_rewards[step])
        behaviour = own_step(rows, later, left)
        deferred = kept_gain(rows, behaviour, later.gain, width)
        if evidence.pooled is not None:
            behaviour = with_pool(behaviour, evidence, step, actions, later, left)
            other = kept_gain_of_pool(evidence, step, actions, later.gain, width)
            deferred = np.maximum(deferred, other)
        advantage = _advantage(evidence, step, actions, behaviour, later, width)
        advantage = np.where(allowed[step], advantage, -np.inf)
        best = advantage.argmax(axis=1)
        won = np.take_along_axis(advantage, best[:, None], axis=1)[:, 0]
        take = won > deferred + _TIE
        slots[step] = np.where(take, best, OTHER)
        gain[step] = np.minimum(np.where(take, won, deferred), left)
        values[step], variance = _behaviour_value(rows, behaviour, later, left)
    return Improvement(slots, gain, values)


def _advantage(
    evidence: Evidence,
    step: int,
    actions: Actions,
    behaviour: Behaviour,
    later: Later,
    width: float,
) -> FloatArray:
    """``[S, K]``, the pessimistic value of each slot over behaviour; -inf where it is unknown."""
    rows, probabilities, rewards = actions
    left = float(len(evidence.support) - step)
    mean, variance = row_value(rows, probabilities, rewards, later.values + later.gain, left)
    shared = evidence.shares[step] ** 2 * variance
    rest = np.maximum(behaviour.variance[:, None] - shared, 0)
    moved = (probabilities - behaviour.probabilities[:, None, :]) ** 2 @ later.variance
    value = rewards + mean - behaviour.values[:, None]
    lower = value - width * np.sqrt(variance + rest + moved)
    return np.where(rows.known & behaviour.known[:, None], lower, -np.inf)


def _behaviour_value(
    rows: Rows, behaviour: Behaviour, later: Later, left: int
) -> tuple[FloatArray, FloatArray]:
    """V_b of this step and its variance."""
    weight = rows.visits * behaviour.known
    total = float(weight.sum())
    typical = float(weight @ behaviour.values) / total if total > 0 else left / 2
    uniform = left**2 / 12
    spread = behaviour.variance + behaviour.probabilities**2 @ later.variance
    values = np.where(behaviour.known, behaviour.values, typical)
    return values, np.where(behaviour.known, np.minimum(spread, uniform), uniform)
