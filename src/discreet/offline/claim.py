"""What may be claimed: the value of behaviour, and a lower value of the policy.

The value of behaviour is estimated without any model, by the mean total reward of the users: the
counters of rewards add up to it, each with its noise. Totals lie in [0, H], so their variance is at
most V·(H - V) (Bhatia and Davis), whatever behaviour does, and

    se² = V·(H - V)/n + G·(reward counters)/n².

Where rewards are known they are not released, and the visits are weighed with them instead. Any
constant c_h may be subtracted from the rewards of a step, because its visits add up to n:
V = sum_h c_h + sum (N - of the release itself, unbiased)·(r - c_h)/n, and the noise is
sigma²·sum over counters of (r - c_h)²/n².

The claim is V - width·se + Delta, where Delta is the gain of `improvement` at the first states,
less ``width`` standard deviations of the noise and sampling of the first states, and not below 0.
Delta alone would be no claim: it is relative to a behaviour whose value is itself uncertain.
"""

import math
from typing import NamedTuple

import numpy as np

from discreet._types import FloatArray
from discreet.offline.evidence import CENTRE, Evidence
from discreet.privacy.statistics import PrivateCounts


class BehaviourValue(NamedTuple):
    """The estimated value of behaviour, per episode, and its standard error."""

    value: float
    error: float


def behaviour_value(
    counts: PrivateCounts, known_rewards: FloatArray, *, keep_last: bool
) -> BehaviourValue:
    """The value of behaviour; see the module docstring."""
    horizon, users = len(counts.played), counts.users
    if counts.row_rewards is None:
        total, noise = _from_visits(counts, known_rewards, keep_last=keep_last)
    else:
        total = float(counts.row_rewards.sum())
        total += CENTRE * horizon * users if counts.centred else 0.0
        noise = counts.noise_variance["rewards"] * counts.row_rewards.size
    value = min(max(total / users, 0.0), float(horizon))
    sampling = max(value * (horizon - value), horizon / users) / users
    return BehaviourValue(value, math.sqrt(sampling + noise / users**2))


def _from_visits(
    counts: PrivateCounts, known_rewards: FloatArray, *, keep_last: bool
) -> tuple[float, float]:
    """The total reward and the variance of its noise, from raw visits and known rewards."""
    transitions = np.asarray(counts.row_transitions)
    steps, rewards = np.nonzero(counts.played)[0], known_rewards[counts.played]
    horizon = len(counts.played)
    columns = np.full(horizon, float(transitions.shape[1]))
    visits = transitions.sum(axis=1)
    if not keep_last:
        columns[-1] = 1.0
        last = steps == horizon - 1
        visits[last] = transitions[last, 0]
    rows = np.bincount(steps, minlength=horizon)
    centre = np.bincount(steps, rewards, horizon) / rows
    beyond = rewards - centre[steps]
    total = counts.users * float(centre.sum()) + float(visits @ beyond)
    variance = counts.noise_variance["transitions"]
    return total, variance * float((columns[steps] * beyond**2).sum())


def gain_at_start(evidence: Evidence, gain: FloatArray, width: float) -> float:
    """Delta: the gain of the first states ``gain[S]``, less what their estimate may be off."""
    initial, first = evidence.initial, evidence.behaviour.layer(0)
    mean = float(initial @ gain)
    sampling = max(float(initial @ (gain - mean) ** 2), 0.0) / evidence.users
    noise = float(first.visit_noise @ (gain - mean) ** 2) / evidence.users**2
    return max(mean - width * math.sqrt(sampling + noise), 0.0)


def lower_value(behaviour: BehaviourValue, gain: float, width: float) -> float:
    """The claim.

    >>> lower_value(BehaviourValue(1.0, 0.1), 0.5, 2.0)
    1.3
    """
    return max(behaviour.value - width * behaviour.error + gain, 0.0)
