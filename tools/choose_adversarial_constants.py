"""The study behind ``constants="practical"`` of the adversarial learners.

For every point of a small grid of multipliers: the regret as a share of the uniform policy's,
averaged over problems that no reported table contains (layers of other widths, three actions, a
slippery chain; losses that stay, switch three times or drift, always towards independent means),
two or three trust models, and seeds.

All these adversaries reward large learning rates. ``--fooling`` measures the other side: two
opposite means alternate so that whoever follows the leader is always wrong. The uniform policy has
almost no regret there, so regret is given per step.

Usage: python -m tools.choose_adversarial_constants LEARNER [--part 1/2] [--fooling]
"""

import argparse
import itertools
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from discreet import Central, NoPrivacy
from discreet.mdp.layered import LayeredMDP
from discreet.mdp.losses import (
    LossSequence,
    drifting_losses,
    stochastic_losses,
    switching_losses,
)
from tools._shares import regrets

SEEDS = (71, 72)
FULL, BANDIT = "private-uc-o-reps", "private-uob-lbps"
GRIDS: dict[str, dict[str, tuple[float, ...]]] = {
    FULL: {"confidence": (0.003, 0.01, 0.03), "rate": (1.0, 2.0, 4.0, 8.0)},
    BANDIT: {
        "confidence": (0.003, 0.01, 0.03),
        "rate": (1.0, 3.0, 10.0, 30.0),
        "limit": (0.5,),
        "loss_share": (0.8,),
    },
}
TRUSTS = {
    FULL: (NoPrivacy(), Central(1, 1e-6), Central(10, 1e-6)),
    BANDIT: (NoPrivacy(), Central(10, 1e-6)),
}


def random_layers(seed: int) -> LayeredMDP:
    """Layers of 3, 5 and 3 states, three actions, uniformly random transitions."""
    rng = np.random.default_rng(seed)
    widths = (1, 3, 5, 3, 1)
    transitions = np.zeros((4, 5, 3, 5))
    for h, (here, there) in enumerate(pairwise(widths)):
        transitions[h, :here, :, :there] = rng.dirichlet(np.ones(there), (here, 3))
    return LayeredMDP(transitions=transitions, widths=widths)


def slippery_chain() -> LayeredMDP:
    """Seven steps along five states: go on (it fails in one of five cases) or back to the start."""
    widths = (1, *[5] * 6, 1)
    transitions = np.zeros((7, 5, 2, 5))
    for h, x in itertools.product(range(6), range(5)):
        transitions[h, x, 0, 0] = 1.0
        transitions[h, x, 1, min(x + 1, 4)] += 0.8
        transitions[h, x, 1, x] += 0.2
    transitions[6, :, :, 0] = 1.0
    for h, here in enumerate(widths[:-1]):
        transitions[h, here:] = 0.0
    return LayeredMDP(transitions=transitions, widths=widths)


def adversaries(mdp: LayeredMDP, episodes: int, seed: int) -> Iterator[LossSequence]:
    """Fixed, switching and drifting means."""
    rng = np.random.default_rng([seed, 1])
    means, other = rng.random(mdp.shape.visits), rng.random(mdp.shape.visits)
    yield stochastic_losses(mdp, episodes, means=means, seed=seed)
    yield switching_losses(
        mdp, episodes, means=means, other=other, switches=(0.2, 0.5, 0.8), seed=seed
    )
    yield drifting_losses(mdp, episodes, means=means, other=other, seed=seed)


def fooling_losses(mdp: LayeredMDP, episodes: int, seed: int, switches: int) -> LossSequence:
    """Opposite means in turns; the first turn is half as long, so the leader is always wrong."""
    means = np.random.default_rng([seed, 1]).random(mdp.shape.visits)
    times = tuple((turn + 0.5) / switches for turn in range(switches))
    return switching_losses(mdp, episodes, means=means, other=1 - means, switches=times, seed=seed)


def fooled(learner: str, settings: dict[str, Any], episodes: int) -> list[float]:
    """Regret per step against 6, 20 and 80 turns, one after the other for each trust model."""
    found = []
    for trust, switches in itertools.product(TRUSTS[learner], (6, 20, 80)):
        values = []
        for seed in SEEDS:
            for mdp in (random_layers(seed), slippery_chain()):
                losses = fooling_losses(mdp, episodes, seed, switches)
                ours, _ = regrets(mdp, losses, trust, seed, learner=learner, **settings)
                values.append(ours / (episodes * mdp.horizon))
        found.append(float(np.mean(values)))
    return found


def shares(learner: str, settings: dict[str, Any], episodes: int) -> list[float]:
    """Regret over the uniform policy's, averaged over problems and seeds: one per trust model."""
    found = []
    for trust in TRUSTS[learner]:
        ratios = []
        for seed in SEEDS:
            for mdp in (random_layers(seed), slippery_chain()):
                for losses in adversaries(mdp, episodes, seed):
                    ours, uniform = regrets(mdp, losses, trust, seed, learner=learner, **settings)
                    ratios.append(ours / uniform)
        found.append(float(np.mean(ratios)))
    return found


def main() -> None:
    """Print the mean, its parts and the multipliers of every candidate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("learner", choices=GRIDS)
    parser.add_argument("--part", default="1/1", help="which share of the grid, as 1/2")
    parser.add_argument("--fooling", action="store_true", help="the adversary of large rates")
    parser.add_argument("--episodes", type=int, default=8_000)
    options = parser.parse_args()
    part, parts = (int(number) for number in options.part.split("/"))
    grid = GRIDS[options.learner]
    for values in list(itertools.product(*grid.values()))[part - 1 :: parts]:
        settings = dict(zip(grid, values, strict=True))
        measure = fooled if options.fooling else shares
        found = measure(options.learner, settings, options.episodes)
        each = " ".join(f"{value:.4f}" for value in found)
        print(f"{np.mean(found):.4f}  ({each})  {settings}", flush=True)


if __name__ == "__main__":
    main()
