"""Pessimistic improvement *relative to behaviour*: where to deviate, and what that is worth.

Pessimism about values alone is not safe: it avoids states that are badly covered even where
behaviour does well in them. Here every comparison is with behaviour in the same state, backward
over steps, with V_b the estimated value of behaviour, var its variance, and Delta a pessimistic
estimate of what has been won by later deviations:

* *deviate* to a slot a that is known: r_a + P_a·(V_b' + Delta') - V_b minus ``width`` standard
  deviations, of variance v_a + max(v_b - b_a²·v_a, 0) + sum (P_a - P_b)²·var', where b_a is the
  estimated share of a in behaviour (its part of v_b is the same data, not new noise);
* *defer*: P_b·Delta' minus ``width`` standard deviations, at least 0; 0 where behaviour is unknown.

The larger one is taken, ties defer. States in which behaviour is unknown get the mean value of
their layer with the variance of a uniform value, and always defer.
"""

from typing import NamedTuple

import numpy as np

from discreet._types import BoolArray, FloatArray, IntArray
from discreet.offline.behaviour import (
    Actions,
    Behaviour,
    Later,
    action_rows,
    kept_gain,
    kept_gain_of_pool,
    own_step,
    with_pool,
)
from discreet.offline.evidence import Evidence, Rows
from discreet.offline.slots import OTHER
from discreet.offline.variance import row_value

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
    horizon, states, _ = evidence.played.shape
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
    left = float(len(evidence.played) - step)
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
