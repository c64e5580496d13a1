"""Random renaming of actions, so that no fixed action is special."""

import numpy as np

from discreet import _validate
from discreet._types import IntArray
from discreet.mdp.tabular import TabularMDP


def relabel_actions(mdp: TabularMDP, seed: int | None) -> TabularMDP:
    """The same MDP with its actions permuted at random; ``None`` leaves it as it is.

    The permutation is drawn per state in a stationary MDP (it stays stationary), else per step and
    state. The optimal value does not change; a constant action becomes a random policy.
    """
    if seed is None:
        return mdp
    _validate.count(0, relabel=seed)
    transitions, rewards = mdp.transitions, mdp.rewards
    if mdp.stationary:
        transitions, rewards = transitions[:1], rewards[:1]
    order = relabelling(mdp, seed)
    transitions = np.take_along_axis(transitions, order[..., None], axis=2)
    rewards = np.take_along_axis(rewards, order, axis=2)
    return TabularMDP(
        transitions=transitions[0] if mdp.stationary else transitions,
        rewards=rewards[0] if mdp.stationary else rewards,
        initial=mdp.initial,
        horizon=mdp.horizon,
        reward_kind=mdp.reward_kind,
        name=mdp.name,
        reward_map=mdp.reward_map,
    )


def relabelling(mdp: TabularMDP, seed: int) -> IntArray:
    """``[1 or H, S, A]``: the original action behind each new name, before or after renaming."""
    steps = 1 if mdp.stationary else mdp.horizon
    shape = (steps, mdp.shape.states, mdp.shape.actions)
    names = np.broadcast_to(np.arange(mdp.shape.actions), shape)
    return np.random.default_rng(seed).permuted(names, axis=-1)
