"""Simulated users: whole batches at count level, whatever their number, or single trajectories."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet.mdp._arrays import FloatArray, cumulative_rows
from discreet.mdp.counts import Counts
from discreet.mdp.policies import DeterministicPolicy, MixturePolicy, StochasticPolicy, as_policy
from discreet.mdp.tabular import TabularMDP
from discreet.mdp.trajectories import Trajectories

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


def sample_trajectories(
    mdp: TabularMDP, policy: Any, users: int, rng: np.random.Generator
) -> Trajectories:
    """The episodes of ``users`` fresh users, one by one: for encoders, audits and examples.

    Statistics of large batches come much cheaper from `sample_counts`, with the same distribution.

    >>> from discreet.mdp import RiverSwim, plan
    >>> mdp = RiverSwim(states=4, horizon=6)
    >>> sample_trajectories(mdp, plan(mdp).policy, 3, np.random.default_rng(0)).states.shape
    (3, 7)
    """
    _validate.count(0, users=users)
    chosen = as_policy(policy, mdp.shape)
    if not isinstance(chosen, MixturePolicy):
        return Trajectories(*_episodes(mdp, chosen, users, rng))
    component = rng.choice(len(chosen.components), size=users, p=chosen.weights)
    states = np.zeros((users, mdp.horizon + 1), np.int64)
    actions = np.zeros((users, mdp.horizon), np.int64)
    rewards = np.zeros((users, mdp.horizon))
    for i, part in enumerate(chosen.components):
        mine = np.flatnonzero(component == i)
        states[mine], actions[mine], rewards[mine] = _episodes(mdp, part, len(mine), rng)
    return Trajectories(states, actions, rewards)


def _episodes(
    mdp: TabularMDP,
    policy: DeterministicPolicy | StochasticPolicy,
    users: int,
    rng: np.random.Generator,
) -> tuple[Ints, Ints, FloatArray]:
    from discreet.mdp import _kernels

    states = np.zeros((users, mdp.horizon + 1), np.int64)
    actions = np.zeros((users, mdp.horizon), np.int64)
    bits = np.zeros((users, mdp.horizon), np.int64)
    choose = cumulative_rows(policy.distribution(mdp.shape))
    _kernels.run_many(mdp.tables, choose, rng, (states, actions, bits))
    if mdp.reward_kind == "deterministic":
        return states, actions, mdp.rewards[np.arange(mdp.horizon), states[:, :-1], actions]
    return states, actions, bits.astype(np.float64)


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
