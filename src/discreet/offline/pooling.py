"""Rows summed over steps, for dynamics that the caller declares stationary.

A step at which few people take an action adds noise and hardly any evidence, so each step enters
with the credit w = m/(m + sigma²/0.1), m the visits that the pooled model predicts there: sums
carry w, variances w². Two passes: the first model is pooled without credit. Behaviour is never
pooled: what it does may change from step to step.
"""

import numpy as np

from discreet._types import BoolArray, FloatArray
from discreet.offline.evidence import Evidence, Rows
from discreet.offline.stationarity import stationary_rows

EASE = 0.1
_PASSES = 2


def pooled(evidence: Evidence, named: BoolArray) -> Evidence:
    """The evidence with rows summed over steps, where the data do not contradict it."""
    slots = evidence.slots
    credit = np.ones(slots.visits.shape)
    noise = float(slots.transition_noise.max())
    if noise > 0:
        for _ in range(_PASSES):
            visits = _predicted(evidence, _summed(slots, credit))
            credit = visits / (visits + noise / EASE)
    alike = stationary_rows(slots, evidence.users, named)
    return evidence._replace(pooled=_summed(slots, credit), stationary=alike)


def _summed(slots: Rows, credit: FloatArray) -> Rows:
    """One layer of rows: sums with the credit of each step, variances with its square."""

    def total(values: FloatArray, weight: FloatArray) -> FloatArray:
        added: FloatArray = np.einsum("hsk...,hsk->sk...", values, weight)[None]
        return added

    square = credit**2
    return Rows(
        total(slots.transitions, credit),
        total(slots.visits, credit),
        total(slots.rewards, credit),
        sampling=total(slots.sampling, square),
        transition_noise=total(slots.transition_noise, square),
        reward_noise=total(slots.reward_noise, square),
        visit_noise=total(slots.visit_noise, square),
        anchor=slots.anchor[:1],
        drawn=slots.drawn[:1],
    )


def _predicted(evidence: Evidence, model: Rows) -> FloatArray:
    """``[H, S, K]``, the visits of a run of the pooled model with the shares of each step."""
    probabilities, shares = model.probabilities[0], evidence.shares
    visits, state = np.zeros(shares.shape), evidence.initial
    for step, share in enumerate(shares):
        visits[step] = state[:, None] * share
        state = np.einsum("sk,skt->t", visits[step], probabilities)
        state = state / max(float(state.sum()), 1e-12)
    return evidence.users * visits
