"""Simulated users: whole batches at count level, whatever their number, or single trajectories."""

import numpy as np

from discreet import _validate
from discreet._types import FloatArray, IntArray
from discreet.errors import InvalidInputError
from discreet.mdp._arrays import cumulative_rows, one_layout
from discreet.mdp.counts import Counts
from discreet.mdp.policies import (
    DeterministicPolicy,
    MixturePolicy,
    PolicyLike,
    StochasticPolicy,
    as_policy,
)
from discreet.mdp.tabular import TabularMDP
from discreet.mdp.trajectories import Trajectories

_MOST_USERS = 10**18


def sample_counts(
    mdp: TabularMDP, policy: PolicyLike, users: int, rng: np.random.Generator
) -> Counts:
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
    if users > _MOST_USERS:
        raise InvalidInputError(f"Expected at most 10^18 users (64-bit counts), got users={users}.")
    chosen = as_policy(policy, mdp.shape)
    counts = Counts.zeros(mdp.shape, chosen.support(mdp.shape, mdp.start))
    if isinstance(chosen, MixturePolicy):
        from discreet.mdp import _kernels

        shares = np.zeros(len(chosen.components), np.int64)
        if chosen.stratified:
            shares = chosen.shares(users)
        else:
            _kernels.split(int(users), chosen.weights, rng, shares)
        for component, share in zip(chosen.components, shares, strict=True):
            _add_users(counts, mdp, component, int(share), rng)
    else:
        _add_users(counts, mdp, chosen, int(users), rng)
    return Counts(int(users), counts.row_transitions, counts.row_rewards, counts.support)


def _add_users(
    counts: Counts,
    mdp: TabularMDP,
    policy: DeterministicPolicy | StochasticPolicy,
    users: int,
    rng: np.random.Generator,
) -> None:
    from discreet.mdp import _kernels

    model = (mdp.rows, mdp.initial, mdp.full_rewards)
    choose = one_layout(policy.distribution(mdp.shape))
    numbers = (np.cumsum(counts.support) - 1).reshape(counts.support.shape)
    _kernels.flow(model, choose, users, rng, (numbers, counts.row_transitions, counts.row_rewards))


def sample_trajectories(
    mdp: TabularMDP, policy: PolicyLike, users: int, rng: np.random.Generator
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
    count = len(chosen.components)
    if chosen.stratified:
        component = rng.permutation(np.repeat(np.arange(count), chosen.shares(users)))
    else:
        component = rng.choice(count, size=users, p=chosen.weights)
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
) -> tuple[IntArray, IntArray, FloatArray]:
    from discreet.mdp import _kernels

    states = np.zeros((users, mdp.horizon + 1), np.int64)
    actions = np.zeros((users, mdp.horizon), np.int64)
    bits = np.zeros((users, mdp.horizon), np.int64)
    choose = cumulative_rows(policy.distribution(mdp.shape))
    _kernels.run_many(mdp.tables, choose, rng, (states, actions, bits))
    if mdp.reward_kind == "deterministic":
        return states, actions, mdp.rewards[np.arange(mdp.horizon), states[:, :-1], actions]
    return states, actions, bits.astype(np.float64)
