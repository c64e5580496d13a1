"""RiverSwim: a little reward for giving up, a lot for swimming against the current."""

import numpy as np

from discreet import _validate
from discreet.mdp.environments._relabel import relabel_actions
from discreet.mdp.tabular import TabularMDP


def RiverSwim(*, states: int = 4, horizon: int = 6, relabel: int | None = None) -> TabularMDP:
    """A chain against the current: far right pays 1, staying at the left end pays 0.005.

    Action 0 (left) always succeeds. Action 1 (right) moves up with probability 0.35, stays with 0.6
    and is pushed back with 0.05; at the left end it moves up with 0.6, at the right end it stays
    with 0.6. All episodes start at the left end. After Strehl and Littman (2008); the defaults
    (four states, horizon six) are the setting of Bai et al., "Secure Reinforcement Learning via
    Shuffle Privacy Model".

    >>> RiverSwim().rewards[0].tolist()
    [[0.005, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 1.0]]

    Args:
        states: length of the chain, at least 2.
        horizon: steps per episode.
        relabel: a seed to rename the actions at random in each state.
    """
    _validate.count(2, states=states)
    left, right = 0, 1
    transitions = np.zeros((states, 2, states))
    for s in range(states):
        transitions[s, left, max(s - 1, 0)] = 1
    for s in range(1, states - 1):
        transitions[s, right, s - 1 : s + 2] = 0.05, 0.6, 0.35
    transitions[0, right, :2] = 0.4, 0.6
    transitions[-1, right, -2:] = 0.4, 0.6
    rewards = np.zeros((states, 2))
    rewards[0, left] = 0.005
    rewards[-1, right] = 1
    mdp = TabularMDP(transitions=transitions, rewards=rewards, horizon=horizon, name="RiverSwim")
    return relabel_actions(mdp, relabel)
