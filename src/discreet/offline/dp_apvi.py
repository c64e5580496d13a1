"""DP-APVI (Qiao and Wang, "Offline reinforcement learning with differential privacy", 2206.00810).

Algorithm 1 of that paper, for tables: a rival of `fit` on the same logged data. Rewards are known
there, and here. One release of transitions and visits with noise sigma, then, row by row,

- E = 2·sigma·sqrt(2·ln(4·H·S²·A/failure)), twice what the noise of all counters stays below;
- counts n~(s, a, s') >= 0 nearest to the noisy ones (in the largest difference) whose sum is within
  E/2 of the noisy visits; n~(s, a) is that sum, P~ their ratio where n~ > E, else uniform;
- pessimism, backward with iota = ln(H·S·A/failure):

      Gamma = sqrt(2)·sqrt(Var_P~(V)·iota/(n~ - E)) + 16·S·H·E·iota/n~  where n~ > E, else H,
      Q = min(max(r + P~·V - Gamma, 0), H - h),  V = max Q, greedy, ties at random.

What differs: their noise has the variance 2·H/rho for rho-zCDP, ours is what the trust model needs
for the same counters (less), and E follows from it; discrete noise. With the printed constants
hardly anything is learnt up to 1e6 users (see the page on fit), so ``scale`` multiplies Gamma,
except where it is H; `PRACTICAL` was the best of six powers of ten on problems that are not
reported. The paper was not at hand: read its constants again before you cite them from here.

DP-VAPVI, for linear features, is not more on a table: features are then indicators of (s, a), the
weights 1/variance of a regression are one number in each row and cancel, and what is left is the
mean of a row with a ridge, and noise on more statistics.

**Privacy**: as in `release`, of which everything here is post-processing.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from discreet import _validate
from discreet._types import FloatArray
from discreet.mdp.policies import DeterministicPolicy
from discreet.mdp.shape import Shape
from discreet.offline.release import (
    Episodes,
    People,
    Randomness,
    Slots,
    check_trust,
    known_rewards,
    released,
    size_of,
    start_of,
)
from discreet.privacy.ledger import Ledger
from discreet.privacy.projection.valid_counts import valid_transitions
from discreet.privacy.statistics import PrivateCounts
from discreet.privacy.trust import TrustModel

COUNTED = ("transitions", "visits")
PRACTICAL = 1e-4
"""A scale with which it learns."""


def dp_apvi(
    data: Episodes,
    trust: TrustModel,
    rewards: ArrayLike,
    *,
    shape: Shape | None = None,
    start: ArrayLike | None = None,
    failure: float = 0.1,
    scale: float = 1.0,
    sampler: str = "secure",
    seed: int | None = None,
    users: Sequence[str | int] | None = None,
    ledger: str | Path | Ledger | None = None,
) -> DeterministicPolicy:
    """The pessimistic policy of DP-APVI from logged episodes, by one release.

    >>> from discreet import Central
    >>> from discreet.mdp import Treatment, sample_counts, uniform_policy
    >>> mdp = Treatment()
    >>> people = sample_counts(mdp, uniform_policy(mdp.shape), 1_000, np.random.default_rng(0))
    >>> dp_apvi(people, Central(1, 1e-6), mdp.full_rewards, sampler="simulation").actions.shape
    (8, 7)

    Args:
        data: as of `discreet.fit`.
        trust: `Central` or `NoPrivacy`.
        rewards: ``[H, S, A]`` or ``[S, A]`` in [0, 1], the mean rewards, all known.
        shape: as of `discreet.fit`.
        start: as of `discreet.fit`.
        failure: probability with which the pessimism may fail.
        scale: factor of the pessimism; 1 as printed.
        sampler: as of `discreet.fit`.
        seed: as of `discreet.fit`.
        users: as of `discreet.fit`.
        ledger: as of `discreet.fit`.
    """
    check_trust(trust)
    _validate.probability(failure=failure)
    _validate.positive(scale=scale, failure=failure)
    size = size_of(data, shape, None)
    slots = Slots.of(np.ones(size.visits, np.bool_), start_of(start, size))
    known = np.where(size.mask, known_rewards(rewards, slots, size), np.nan)
    randomness, people = Randomness.of(sampler, seed), People.given(users, data, trust)
    counts, _ = released(
        data,
        slots,
        trust,
        statistics=COUNTED,
        keep_last=False,
        randomness=randomness,
        people=people,
        ledger=ledger,
    )
    return pessimistic_policy(counts, known, failure, scale, randomness.rounding)


def pessimistic_policy(
    counts: PrivateCounts,
    rewards: FloatArray,
    failure: float,
    scale: float,
    ties: np.random.Generator,
) -> DeterministicPolicy:
    """The plan, from a release with transitions and visits; ``ties`` draws one of equal actions.

    ``rewards[H, S, A]`` are NaN where an action is not possible.
    """
    horizon, states, actions = counts.support.shape
    transitions, visits = np.asarray(counts.transitions), np.asarray(counts.visits)
    sigma = math.sqrt(max(counts.noise_variance[name] for name in COUNTED))
    error = 2 * sigma * math.sqrt(2 * math.log(4 * horizon * states**2 * actions / failure))
    iota = math.log(horizon * states * actions / failure)
    valid = valid_transitions(transitions, visits, error / 2)
    total = valid.sum(axis=-1)
    known = total > error
    some = np.where(known, total, 1.0)
    moves = np.where(known[..., None], valid / some[..., None], 1 / states)
    chosen, ahead = np.zeros((horizon, states), np.int64), np.zeros(states)
    for h in reversed(range(horizon)):
        mean = moves[h] @ ahead
        variance = np.maximum(moves[h] @ ahead**2 - mean**2, 0.0)
        doubt = np.sqrt(2 * variance * iota / np.maximum(some[h] - error, 1e-9))
        doubt += 16 * states * horizon * error * iota / some[h]
        doubt = np.where(known[h], scale * doubt, horizon)
        q = np.clip(rewards[h] + mean - doubt, 0.0, horizon - h)
        q = np.where(np.isnan(q), -1.0, q)
        ahead = q.max(axis=1)
        best = q == ahead[:, None]  # most of them where pessimism leaves nothing above zero
        chosen[h] = (best * (1 - ties.random(q.shape))).argmax(axis=1)
    return DeterministicPolicy(chosen)
