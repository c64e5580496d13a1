"""LowerBound: a tree whose leaves hide one slightly better arm."""

import numpy as np

from discreet import _validate
from discreet.errors import InvalidInputError
from discreet.mdp.environments._relabel import relabel_actions
from discreet.mdp.tabular import TabularMDP


def LowerBound(
    *,
    depth: int = 2,
    actions: int = 3,
    horizon: int = 8,
    advantage: float = 0.2,
    relabel: int | None = None,
) -> TabularMDP:
    """A tree to leaves with coin-flip arms, one of which is a little better: as hard as it gets.

    Actions in the tree choose the child. Every arm of a leaf leads to a good state (reward 1 until
    the end) or a bad one (reward 0) with probability one half each, except one arm of one leaf,
    which leads to the good state with probability ``1/2 + advantage``. Finding it takes of the
    order of S * A / advantage^2 episodes, and 1 / (exp(epsilon) - 1)^2 times as many under local
    privacy: the kind of instance behind Theorem 2 of Garcelon, Perchet, Pike-Burke and Pirotta
    (2021) and behind the non-private bound H sqrt(S A K). The tree is complete, so that all leaves
    are equally far away.

    Args:
        depth: levels of the tree; (A^depth - 1) / (A - 1) + 2 states in all.
        actions: A, children per node and arms per leaf.
        horizon: steps per episode; at least depth + 1, the bound needs about twice the depth.
        advantage: how much likelier the good state is after the best arm, at most 1/2.
        relabel: a seed to rename the actions at random in each state, which hides the best arm.
    """
    _validate.count(depth=depth)
    _validate.count(2, actions=actions)
    _validate.count(depth + 1, horizon=horizon)
    _validate.probability(advantage=advantage)
    if advantage > 0.5:
        raise InvalidInputError(f"Expected advantage <= 1/2, got advantage={advantage}.")
    nodes = (actions**depth - 1) // (actions - 1)
    inner = (actions ** (depth - 1) - 1) // (actions - 1)
    good, bad = nodes, nodes + 1
    transitions = np.zeros((nodes + 2, actions, nodes + 2))
    for node in range(inner):
        for a in range(actions):
            transitions[node, a, actions * node + a + 1] = 1
    transitions[inner:nodes, :, [good, bad]] = 0.5
    transitions[inner, actions - 1, [good, bad]] = 0.5 + advantage, 0.5 - advantage
    transitions[[good, bad], :, [good, bad]] = 1
    rewards = np.zeros((nodes + 2, actions))
    rewards[good] = 1
    mdp = TabularMDP(transitions=transitions, rewards=rewards, horizon=horizon, name="LowerBound")
    return relabel_actions(mdp, relabel)
