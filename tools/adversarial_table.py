"""The regret tables of docs/learners/adversarial.md: shares of the uniform policy's regret.

Four states, two actions, horizon 6. RiverSwim: loss 0 for right at the right end (0.9 for left at
the left end); the switching and drifting adversaries move the prize to the left end. Random MDPs:
Dirichlet(0.3) transitions and uniform mean losses, both anew in every run; the drifting adversary
reverses seven tenths of every preference. Both learners treat all actions alike, so actions are not
relabelled.

Usage: python -m tools.adversarial_table [--seed 1000] [--runs 10] [--start-of-learning]
"""

import argparse
from collections.abc import Callable
from itertools import pairwise

import numpy as np

import discreet
from discreet.mdp.layered import LayeredMDP
from discreet.mdp.losses import (
    LossSequence,
    drifting_losses,
    stochastic_losses,
    switching_losses,
)
from discreet.privacy.trust import TrustModel
from tools._shares import regrets

STATES, HORIZON, ACTIONS = 4, 6, 2
KINDS = ("stochastic", "switching", "drifting")
FULL, BANDIT = "private-uc-o-reps", "private-uob-lbps"
WEAK, STRONG = discreet.Central(10, 1e-6), discreet.Central(1, 1e-6)


def river(kind: str, episodes: int, seed: int) -> tuple[LayeredMDP, LossSequence]:
    """RiverSwim by layers, with a prize that can move from one end to the other."""
    mdp = LayeredMDP.from_tabular(discreet.make("RiverSwim", states=STATES, horizon=HORIZON))
    right, left = np.ones(mdp.shape.visits), np.ones(mdp.shape.visits)
    right[1:, -1, 1], right[1:, 0, 0] = 0.0, 0.9
    left[1:, 0, 0], left[1:, -1, 1] = 0.2, 0.9
    if kind == "stochastic":
        return mdp, stochastic_losses(mdp, episodes, means=right, seed=seed)
    if kind == "switching":
        return mdp, switching_losses(mdp, episodes, means=left, other=right, seed=seed)
    return mdp, drifting_losses(mdp, episodes, means=right, other=left, seed=seed)


def random_mdp(kind: str, episodes: int, seed: int) -> tuple[LayeredMDP, LossSequence]:
    """A random layered MDP with random mean losses."""
    rng = np.random.default_rng(seed)
    widths = [1, *[STATES] * (HORIZON - 1), 1]
    transitions = np.zeros((HORIZON, STATES, ACTIONS, STATES))
    for h, (here, there) in enumerate(pairwise(widths)):
        transitions[h, :here, :, :there] = rng.dirichlet(np.full(there, 0.3), (here, ACTIONS))
    mdp = LayeredMDP(transitions=transitions, widths=widths)
    means = stochastic_losses(mdp, episodes, seed=seed).means
    if kind == "stochastic":
        return mdp, stochastic_losses(mdp, episodes, means=means, seed=seed)
    if kind == "switching":
        return mdp, switching_losses(mdp, episodes, means=means, seed=seed)
    other = 0.3 * means + 0.7 * (1 - means)
    return mdp, drifting_losses(mdp, episodes, means=means, other=other, seed=seed)


World = Callable[[str, int, int], tuple[LayeredMDP, LossSequence]]
CASES: dict[str, tuple[World, str, TrustModel, str]] = {
    "full, RiverSwim, none, theory": (river, FULL, discreet.NoPrivacy(), "theory"),
    "full, RiverSwim, none, practical": (river, FULL, discreet.NoPrivacy(), "practical"),
    "full, RiverSwim, (10, 1e-6)-JDP, practical": (river, FULL, WEAK, "practical"),
    "bandit, random, none, practical": (random_mdp, BANDIT, discreet.NoPrivacy(), "practical"),
    "bandit, random, (10, 1e-6)-JDP, practical": (random_mdp, BANDIT, WEAK, "practical"),
}
STARTS: dict[str, tuple[World, str, TrustModel, str]] = {
    "full, RiverSwim, (1, 1e-6)-JDP, practical": (river, FULL, STRONG, "practical"),
    "full, random, (1, 1e-6)-JDP, practical": (random_mdp, FULL, STRONG, "practical"),
    "bandit, random, (1, 1e-6)-JDP, practical": (random_mdp, BANDIT, STRONG, "practical"),
}


def shares(
    case: tuple[World, str, TrustModel, str], kind: str, episodes: int, seeds: range
) -> np.ndarray:
    """Final regret over the uniform policy's, one number per seed."""
    world, learner, trust, constants = case
    found = []
    for seed in seeds:
        mdp, losses = world(kind, episodes, seed)
        ours, uniform = regrets(mdp, losses, trust, seed, learner=learner, constants=constants)
        found.append(ours / uniform)
    return np.array(found)


def main() -> None:
    """Print the table, or at which K learning starts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--start-of-learning", action="store_true")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.runs)
    sizes = (2_000, 20_000, 200_000) if options.start_of_learning else (20_000,)
    for title, case in (STARTS if options.start_of_learning else CASES).items():
        for episodes in sizes:
            rows = [shares(case, kind, episodes, seeds) for kind in KINDS]
            parts = " / ".join(f"{r.mean():.3f} ± {r.std(ddof=1):.3f}" for r in rows)
            print(f"{title}, K={episodes:,}: {np.mean(rows):.3f} ({parts})", flush=True)


if __name__ == "__main__":
    main()
