"""DoubleChain: two chains of equal length, of which the first one pays less."""

import numpy as np

from discreet import _validate
from discreet.mdp.environments._relabel import relabel_actions
from discreet.mdp.tabular import TabularMDP


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
