"""RandomMDP: transitions from a Dirichlet, rewards zero or one."""

import numpy as np

from discreet import _validate
from discreet.mdp.environments._relabel import relabel_actions
from discreet.mdp.tabular import TabularMDP


def RandomMDP(
    *,
    states: int = 2,
    actions: int = 2,
    horizon: int = 2,
    concentration: float = 0.1,
    stationary: bool = True,
    seed: int = 4,
    relabel: int | None = None,
) -> TabularMDP:
    """Random transitions, rewards 0 or 1; a small concentration makes moves nearly certain.

    Each transition row is Dirichlet, each pair (s, a) always pays 1 with probability one half or
    else always 0; episodes begin in state 0. The defaults are the setting of Garcelon, Perchet,
    Pike-Burke and Pirotta (2021), "Local Differential Privacy for Regret Minimization in
    Reinforcement Learning".

    Args:
        states: number of states.
        actions: number of actions.
        horizon: steps per episode.
        concentration: parameter of the symmetric Dirichlet of each transition row.
        stationary: draw one step and repeat it, instead of a fresh draw per step.
        seed: which random MDP; the default is one in which no fixed action is best.
        relabel: a seed to rename the actions at random.
    """
    _validate.count(states=states, actions=actions, horizon=horizon)
    _validate.count(0, seed=seed)
    _validate.positive(concentration=concentration)
    rng = np.random.default_rng(seed)
    steps = 1 if stationary else horizon
    transitions = rng.dirichlet(np.full(states, concentration), size=(steps, states, actions))
    rewards = rng.random((steps, states, actions)) <= 0.5
    mdp = TabularMDP(
        transitions=transitions[0] if stationary else transitions,
        rewards=rewards[0] if stationary else rewards,
        horizon=horizon,
        reward_kind="deterministic",
        name="RandomMDP",
    )
    return relabel_actions(mdp, relabel)
