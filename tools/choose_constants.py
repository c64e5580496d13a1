"""The study behind ``constants="practical"``: multipliers chosen on problems that are not reported.

For every learner and every point of a small grid of multipliers: the regret as a share of the
uniform policy's, averaged over held-out problems (random MDPs, a chain, a grid; none of them is an
environment of the reported tables), both kinds of counts where the learner has them, two epsilons
under the learner's own trust model, and seeds. The smallest average wins; the table goes to the
docs. Usage: ``python tools/choose_constants.py [learner ...]`` (a few minutes on one core each).
"""

import itertools
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from discreet import Central, Local, NoPrivacy, learn
from discreet.mdp import GridWorld, RandomMDP, TabularMDP, evaluate, plan, uniform_policy

EPISODES = 10_000
SEEDS = range(2)

SCALES = {
    "bonus_scale": (0.005, 0.01, 0.02, 0.05),
    "privacy_scale": (1e-3, 1e-2, 1e-1),
    "error_scale": (0.05, 0.2),
}
GRIDS: dict[str, dict[str, tuple[Any, ...]]] = {
    "ucbvi": {"bonus_scale": (0.002, 0.005, 0.01, 0.02, 0.05)},
    "dp-ucbvi": {**SCALES, "privacy_scale": (5e-5, 2e-4, 1e-3)},
    "private-ucb-vi": SCALES,
    "private-ucb-po": {**SCALES, "bonus_scale": (0.005, 0.02), "rate_scale": (10.0, 30.0, 100.0)},
    "pucb": SCALES,
    "ldp-obi": {**SCALES, "privacy_scale": (1e-3, 1e-2, 5e-2)},
    "psrl": {"prior": (0.1, 0.3, 1.0)},
    "ldp-psrl": {"prior": (0.1, 1.0), "privacy_scale": (0.1, 0.3, 1.0, 3.0)},
}


def chain(states: int, horizon: int) -> TabularMDP:
    """Walk right through a slippery chain to the only reward; left goes back to the start."""
    transitions = np.zeros((states, 2, states))
    rewards = np.zeros((states, 2))
    rewards[-1, 1] = 1.0
    for s in range(states):
        transitions[s, 0, 0] = 1.0
        transitions[s, 1, min(s + 1, states - 1)] += 0.8
        transitions[s, 1, s] += 0.2
    return TabularMDP(transitions=transitions, rewards=rewards, horizon=horizon)


def problems() -> Iterator[tuple[str, TabularMDP]]:
    """The held-out problems."""
    for seed in (11, 12):
        yield f"random MDP {seed}", RandomMDP(states=5, actions=3, horizon=5, seed=seed)
    yield "chain", chain(4, 7)
    yield "grid", GridWorld(layout="S.|.G", slip=0.2, horizon=5)


def trusts(learner: str) -> list[Any]:
    """Two levels of privacy under the learner's own trust model."""
    if learner in ("ucbvi", "psrl"):
        return [NoPrivacy()]
    if learner.startswith("ldp"):
        return [Local(10), Local(100)]
    return [Central(1, 1e-6), Central(10, 1e-6)]


def share(learner: str, settings: dict[str, Any]) -> float:
    """Mean regret as a share of the uniform policy's."""
    shares = []
    for (_, mdp), trust, seed in itertools.product(problems(), trusts(learner), SEEDS):
        uniform = EPISODES * (plan(mdp).value - evaluate(mdp, uniform_policy(mdp.shape)))
        result = learn(mdp, learner=learner, trust=trust, episodes=EPISODES, seed=seed, **settings)
        shares.append(result.final_regret / uniform)
    return float(np.mean(shares))


def study(learner: str) -> None:
    """Print the grid of one learner, best first."""
    grid = GRIDS[learner]
    rows = []
    for values in itertools.product(*grid.values()):
        settings = dict(zip(grid, values, strict=True))
        kinds = [True, False] if learner in ("ucbvi", "psrl") else [True]
        score = np.mean([share(learner, {**settings, "stationary": kind}) for kind in kinds])
        rows.append((float(score), settings))
    print(f"## {learner}")
    for score, settings in sorted(rows, key=lambda row: row[0])[:8]:
        print(f"{score:7.2%}  {settings}", flush=True)


if __name__ == "__main__":
    for name in sys.argv[1:] or GRIDS:
        study(name)
