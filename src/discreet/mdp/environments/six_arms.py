"""SixArms: six doors, from easy and poor to hard and rich."""

import numpy as np

from discreet.mdp.environments._relabel import relabel_actions
from discreet.mdp.tabular import TabularMDP

_OPENS = (1.0, 0.15, 0.10, 0.05, 0.03, 0.01)
_PAYS = (50.0, 133.0, 300.0, 800.0, 1660.0, 6000.0)


def SixArms(*, horizon: int = 20, relabel: int | None = None) -> TabularMDP:
    """Six doors: the harder one opens, the more its room pays.

    In state 0 action i opens door i with probability 1, 0.15, 0.1, 0.05, 0.03, 0.01 and leads to
    state i + 1. In that room action 5 - i pays (50, 133, 300, 800, 1660, 6000, divided by 6000)
    and stays, every other action leaves for state 0 unpaid. The probabilities and payments are
    those of Strehl and Littman (2008), "An analysis of model-based interval estimation for Markov
    decision processes"; one paying action per room is our simplification.

    Args:
        horizon: steps per episode.
        relabel: a seed to rename the actions at random in each state.
    """
    transitions = np.zeros((7, 6, 7))
    rewards = np.zeros((7, 6))
    for door, (opens, pays) in enumerate(zip(_OPENS, _PAYS, strict=True)):
        room, stay = door + 1, 5 - door
        transitions[0, door, [0, room]] = 1 - opens, opens
        transitions[room, :, 0] = 1
        transitions[room, stay] = np.eye(7)[room]
        rewards[room, stay] = pays / max(_PAYS)
    mdp = TabularMDP(transitions=transitions, rewards=rewards, horizon=horizon, name="SixArms")
    return relabel_actions(mdp, relabel)
