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


# DoubleChain: two chains of equal length, of which the first one pays less.


def DoubleChain(
    *,
    length: int = 3,
    horizon: int = 8,
    success: float = 0.9,
    consolation: float = 0.6,
    relabel: int | None = None,
) -> TabularMDP:
    """Two chains from one start; the end of the second pays 1, the end of the first less.

    At the start, action 0 enters the first chain and action 1 the second. Inside a chain action 0
    advances with probability ``success`` (else it stays) and action 1 goes back to the start. The
    last state of a chain pays for action 0 and keeps it there. A learner that settles early sits at
    the end of the wrong chain. In the spirit of the double loop of Dearden, Friedman and Russell
    (1998), "Bayesian Q-learning".

    Args:
        length: states per chain; 2 * length + 1 states in all.
        horizon: steps per episode.
        success: probability that an advance succeeds.
        consolation: reward at the end of the first chain.
        relabel: a seed to rename the actions at random in each state.
    """
    _validate.count(length=length)
    _validate.probability(success=success, consolation=consolation)
    advance, back = 0, 1
    states = 2 * length + 1
    transitions = np.zeros((states, 2, states))
    rewards = np.zeros((states, 2))
    for entry, pay in ((1, consolation), (1 + length, 1.0)):
        end = entry + length - 1
        for s in range(entry, end):
            transitions[s, advance, [s, s + 1]] = 1 - success, success
        transitions[end, advance, end] = 1
        transitions[entry : end + 1, back, 0] = 1
        rewards[end, advance] = pay
    transitions[0, 0, 1] = transitions[0, 1, 1 + length] = 1
    mdp = TabularMDP(transitions=transitions, rewards=rewards, horizon=horizon, name="DoubleChain")
    return relabel_actions(mdp, relabel)


# SixArms: six doors, from easy and poor to hard and rich.


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
