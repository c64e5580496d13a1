"""Simulated users: whole batches at count level, whatever their number, or single trajectories."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet.mdp._arrays import FloatArray
from discreet.mdp.counts import Counts
from discreet.mdp.policies import DeterministicPolicy, MixturePolicy, StochasticPolicy, as_policy
from discreet.mdp.tabular import TabularMDP

Ints = NDArray[np.int64]


def sample_counts(mdp: TabularMDP, policy: Any, users: int, rng: np.random.Generator) -> Counts:
    """The statistics of ``users`` fresh users who each run one episode with ``policy``.

    The batch is split through the steps by multinomial draws: exactly the distribution that
    simulating every user would give, at a cost that does not depend on how many they are.

    >>> from discreet.mdp import RiverSwim, plan
    >>> mdp = RiverSwim(states=4, horizon=6)
    >>> counts = sample_counts(mdp, plan(mdp).policy, 10**12, np.random.default_rng(0))
    >>> counts.visits.sum(axis=(1, 2)).tolist() == [10**12] * 6
    True
    """
    _validate.count(0, users=users)
    chosen = as_policy(policy, mdp.shape)
    if isinstance(chosen, MixturePolicy):
        shares = _split(np.array(users), chosen.weights, rng)
        total = Counts.zeros(mdp.shape)
        for component, share in zip(chosen.components, shares, strict=True):
            if share > 0:
                total = total + _one_policy_counts(mdp, component, int(share), rng)
        return total
    return _one_policy_counts(mdp, chosen, int(users), rng)


def _one_policy_counts(
    mdp: TabularMDP,
    policy: DeterministicPolicy | StochasticPolicy,
    users: int,
    rng: np.random.Generator,
) -> Counts:
    transitions = np.zeros(mdp.shape.transitions, np.int64)
    choose = policy.distribution(mdp.shape)
    here = _split(np.array(users), mdp.initial, rng)
    for h in range(mdp.horizon):
        visits = _split(here, choose[h], rng)
        transitions[h] = _split(visits, mdp.transitions[h], rng)
        here = transitions[h].sum(axis=(0, 1))
    rewards = rng.binomial(transitions.sum(axis=-1), mdp.rewards)
    return Counts(users, transitions, rewards)


def _split(totals: Ints, probabilities: FloatArray, rng: np.random.Generator) -> Ints:
    """Multinomial split of each total by its row of probabilities, drawn for non-zero totals only.

    NumPy gives the last category what is left over, and float rounding leaves about 1e-16 of the
    total: with 10^12 users an impossible last state would be visited now and then. So the most
    likely category goes last.
    """
    parts = np.zeros(probabilities.shape, np.int64)
    busy = totals > 0
    rows = probabilities[busy]
    index = np.arange(len(rows))
    likely = rows.argmax(axis=-1)
    rows[index, likely], rows[:, -1] = rows[:, -1].copy(), rows[index, likely].copy()
    drawn = rng.multinomial(totals[busy], rows)
    drawn[index, likely], drawn[:, -1] = drawn[:, -1].copy(), drawn[index, likely].copy()
    parts[busy] = drawn
    return parts
