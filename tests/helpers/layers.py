"""Random layered problems for the tests of adversarial learners."""

import itertools

import numpy as np

from discreet._seeds import RunSeeds
from discreet.adversarial.occupancy import Boxes
from discreet.adversarial.world import make_world
from discreet.mdp.layered import LayeredMDP
from discreet.privacy.trust import NoPrivacy


def random_layered(seed, widths=(1, 3, 3, 1), actions=2):
    """Every transition of every layer is possible."""
    rng = np.random.default_rng(seed)
    moves = np.zeros((len(widths) - 1, max(widths), actions, max(widths)))
    for h in range(len(widths) - 1):
        rows = rng.dirichlet(np.ones(widths[h + 1]), size=(widths[h], actions))
        moves[h, : widths[h], :, : widths[h + 1]] = rows
    return LayeredMDP(transitions=moves, widths=widths)


def one_block(kind, chosen, count, trust=None, seed=0):
    """A learner of stochastic losses on a small problem, and its only block of episodes."""
    world = make_world(
        random_layered(seed, (1, 3, 2, 1)),
        trust or NoPrivacy(),
        count,
        RunSeeds(seed),
        chosen,
        feedback=kind.feedback,
        losses="stochastic",
    )
    learner = kind(world, chosen)
    [(_, episodes)] = world.blocks(chosen, learner.rate)
    return learner, episodes


def all_policies(mdp):
    """Every deterministic policy, as probabilities ``[H, W, A]``."""
    cells = [(h, x) for h in range(mdp.horizon) for x in range(mdp.widths[h])]
    for choice in itertools.product(range(mdp.shape.actions), repeat=len(cells)):
        policy = np.zeros(mdp.shape.visits)
        for (h, x), a in zip(cells, choice, strict=True):
            policy[h, x, a] = 1
        yield policy


def random_boxes(seed, widths=(1, 3, 2, 1), actions=2, radius=0.15):
    """Confidence boxes around random transitions; entries outside the widths stay zero."""
    mdp = random_layered(seed, widths, actions)
    present = mdp.transitions > 0
    lower = np.where(present, np.maximum(mdp.transitions - radius, 0.0), 0.0)
    upper = np.where(present, np.minimum(mdp.transitions + radius, 1.0), 0.0)
    return mdp, Boxes(np.array(widths, np.int64), lower, upper)


def inside(boxes, transitions, tolerance=1e-9):
    """Are these transitions distributions in their boxes?"""
    for h, here in enumerate(boxes.widths[:-1]):
        ahead = boxes.widths[h + 1]
        p = transitions[h, :here, :, :ahead]
        low, high = boxes.lower[h, :here, :, :ahead], boxes.upper[h, :here, :, :ahead]
        if (p < low - tolerance).any() or (p > high + tolerance).any():
            return False
        if abs(p.sum(axis=-1) - 1.0).max() > tolerance:
            return False
    return True
