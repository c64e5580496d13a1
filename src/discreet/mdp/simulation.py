"""Simulated users: whole batches at count level, whatever their number, or single trajectories."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from discreet import _validate
from discreet._types import BoolArray, FloatArray, IntArray
from discreet.errors import InvalidInputError
from discreet.mdp._arrays import cumulative_rows, one_layout
from discreet.mdp.counts import Counts
from discreet.mdp.policies import (
    DeterministicPolicy,
    MixturePolicy,
    PolicyLike,
    StochasticPolicy,
    as_policy,
    uniform_policy,
)
from discreet.mdp.shape import Shape
from discreet.mdp.tabular import RewardMap, TabularMDP
from discreet.mdp.trajectories import Trajectories

_MOST_USERS = 10**18


def sample_counts(
    mdp: TabularMDP, policy: PolicyLike, users: int, rng: np.random.Generator
) -> Counts:
    """The statistics of ``users`` fresh users who each run one episode with ``policy``.

    The batch is split through the steps by multinomial draws: exactly the distribution that
    simulating every user would give, at a cost that does not depend on how many they are.

    >>> from discreet.mdp import RiverSwim, solve
    >>> mdp = RiverSwim(states=4, horizon=6)
    >>> counts = sample_counts(mdp, solve(mdp).policy, 10**12, np.random.default_rng(0))
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
    mdp: "TabularMDP | Simulator", policy: PolicyLike, users: int, rng: np.random.Generator
) -> Trajectories:
    """The episodes of ``users`` fresh users, one by one: for encoders, audits and examples.

    Statistics of large batches come much cheaper from `sample_counts`, with the same distribution.

    >>> from discreet.mdp import RiverSwim, solve
    >>> mdp = RiverSwim(states=4, horizon=6)
    >>> sample_trajectories(mdp, solve(mdp).policy, 3, np.random.default_rng(0)).states.shape
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
    states = np.zeros((users, mdp.shape.horizon + 1), np.int64)
    actions = np.zeros((users, mdp.shape.horizon), np.int64)
    rewards = np.zeros((users, mdp.shape.horizon))
    for i, part in enumerate(chosen.components):
        mine = np.flatnonzero(component == i)
        states[mine], actions[mine], rewards[mine] = _episodes(mdp, part, len(mine), rng)
    return Trajectories(states, actions, rewards)


def _episodes(
    mdp: "TabularMDP | Simulator",
    policy: DeterministicPolicy | StochasticPolicy,
    users: int,
    rng: np.random.Generator,
) -> tuple[IntArray, IntArray, FloatArray]:
    if isinstance(mdp, Simulator):
        return mdp.play(policy.distribution(mdp.shape), users, rng)
    from discreet.mdp import _kernels

    states = np.zeros((users, mdp.horizon + 1), np.int64)
    actions = np.zeros((users, mdp.horizon), np.int64)
    bits = np.zeros((users, mdp.horizon), np.int64)
    choose = cumulative_rows(policy.distribution(mdp.shape))
    _kernels.run_many(mdp.tables, choose, rng, (states, actions, bits))
    if mdp.reward_kind == "deterministic":
        return states, actions, mdp.rewards[np.arange(mdp.horizon), states[:, :-1], actions]
    return states, actions, bits.astype(np.float64)


Play = Callable[[FloatArray, int, np.random.Generator], tuple[IntArray, IntArray, FloatArray]]
"""From the chances ``[H, S, A]`` of actions, a number of users and a generator to their states
``[n, H + 1]``, actions ``[n, H]`` and rewards ``[n, H]`` in [0, 1]."""


@dataclass(frozen=True, eq=False, repr=False)
class Simulator:
    """An environment that can be played and whose model nobody knows.

    `discreet.learn` plays it episode by episode. Nothing is known of the best policy, so results
    have the return, with its standard error, in place of regret. `discreet.mdp.simulator` makes one
    of a Gymnasium environment; ``play`` may be any function.

    Attributes:
        shape: its size.
        play: plays the episodes of some users.
        start: ``bool[S]``, the states where an episode may begin; public.
        stationary: declares that all steps are alike.
        reward_map: from rewards in [0, 1] to the environment's own.
        name: what it is called in tables.
    """

    shape: Shape
    play: Play
    start: BoolArray
    stationary: bool = False
    reward_map: RewardMap = field(default_factory=RewardMap)
    name: str = ""

    def __repr__(self) -> str:
        sizes = f"states={self.shape.states}, actions={self.shape.actions}"
        return f"Simulator({self.name!r}, {sizes}, horizon={self.shape.horizon})"

    def relabelled(self, seed: int) -> "Simulator":
        """The same with its actions renamed at random, in every state differently."""
        names = np.broadcast_to(np.arange(self.shape.actions), self.shape.visits[1:])
        original = np.random.default_rng(seed).permuted(names, axis=-1)
        renamed = np.argsort(original, axis=-1)

        def play(
            chances: FloatArray, users: int, rng: np.random.Generator
        ) -> tuple[IntArray, IntArray, FloatArray]:
            own = np.take_along_axis(chances, renamed[None], axis=-1)
            states, actions, rewards = self.play(own, users, rng)
            return states, renamed[states[:, :-1], actions], rewards

        return replace(self, play=play)

    def returns(self, played: Trajectories) -> FloatArray:
        """``[n]``: the total reward of each episode, in the environment's own units."""
        totals: FloatArray = played.rewards.sum(axis=1)
        return self.shape.horizon * self.reward_map.offset + self.reward_map.scale * totals


def estimate_model(simulator: Simulator, *, episodes: int, seed: int = 0) -> TabularMDP:
    """Estimate a model from episodes of random actions, for exact regret in the estimated model.

    Transitions and rewards are taken to be the same at all steps. An action that was never tried in
    a state stays there, without a reward.

    Args:
        simulator: the environment that is played.
        episodes: number of episodes.
        seed: an integer that fixes every random draw.
    """
    _validate.count(episodes=episodes)
    rng, shape = np.random.default_rng(seed), simulator.shape
    played = sample_trajectories(simulator, uniform_policy(shape), episodes, rng)
    states, rows = played.states, played.states[:, :-1] * shape.actions + played.actions
    pairs = shape.states * shape.actions
    moves = np.bincount(
        (rows * shape.states + states[:, 1:]).ravel(), minlength=pairs * shape.states
    )
    transitions = moves.reshape(shape.states, shape.actions, shape.states).astype(np.float64)
    visits = transitions.sum(axis=-1)
    unseen, seen = visits == 0, np.maximum(visits, 1)
    transitions[unseen] = np.eye(shape.states)[np.nonzero(unseen)[0]]
    rewards = np.bincount(rows.ravel(), played.rewards.ravel(), pairs).reshape(visits.shape) / seen
    rewards[unseen] = -simulator.reward_map.offset / simulator.reward_map.scale
    return TabularMDP(
        transitions=transitions / seen[..., None],
        rewards=np.clip(rewards, 0, 1),
        initial=np.bincount(states[:, 0], minlength=shape.states) / episodes,
        horizon=shape.horizon,
        name=simulator.name,
        reward_map=simulator.reward_map,
    )
