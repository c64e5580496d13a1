"""Random layered problems for the tests of adversarial learners."""

import itertools

import numpy as np

from discreet.mdp.layered import LayeredMDP


def random_layered(seed, widths=(1, 3, 3, 1), actions=2):
    """Every transition of every layer is possible."""
    rng = np.random.default_rng(seed)
    moves = np.zeros((len(widths) - 1, max(widths), actions, max(widths)))
    for h in range(len(widths) - 1):
        rows = rng.dirichlet(np.ones(widths[h + 1]), size=(widths[h], actions))
        moves[h, : widths[h], :, : widths[h + 1]] = rows
    return LayeredMDP(transitions=moves, widths=widths)


def all_policies(mdp):
    """Every deterministic policy, as probabilities ``[H, W, A]``."""
    cells = [(h, x) for h in range(mdp.horizon) for x in range(mdp.widths[h])]
    for choice in itertools.product(range(mdp.shape.actions), repeat=len(cells)):
        policy = np.zeros(mdp.shape.visits)
        for (h, x), a in zip(cells, choice, strict=True):
            policy[h, x, a] = 1
        yield policy
