"""The study behind ``constants="practical"``: multipliers chosen on problems that are not reported.

For every learner and every point of a grid of multipliers: the regret as a share of the uniform
policy's, averaged over held-out problems (random MDPs, a chain, a grid; none of them is an
environment of the reported tables), levels of privacy under the learner's own trust model, seeds
and, without privacy, both kinds of counts. Random MDPs of two states and two actions are among the
problems because there a wrong policy can last for ever: locking in shows in the worst run.

Chosen is, of all points within a tenth (or half a percentage point) of the best score, the one
nearest to the printed constants, in the order of the grid's axes. One to four minutes on one core
for each learner.

Usage: python -m research.choose_constants [LEARNER ...]
"""

import functools
import itertools
from typing import Any

import numpy as np

from discreet import Central, Local, NoPrivacy, learn
from discreet.mdp import GridWorld, RandomMDP, TabularMDP, evaluate, solve, uniform_policy
from research import parser

EPISODES = 10_000
SEEDS = range(2)

GRIDS: dict[str, dict[str, tuple[Any, ...]]] = {
    "ucbvi": {"bonus_scale": (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)},
    "dp-ucbvi": {
        "bonus_scale": (0.01, 0.02, 0.05, 0.1),
        "privacy_scale": (5e-6, 2e-5, 5e-5, 2e-4),
        "error_scale": (0.05, 0.2),
    },
    "private-ucb-vi": {
        "bonus_scale": (0.01, 0.02, 0.05),
        "privacy_scale": (1e-3, 3e-3, 1e-2, 3e-2),
        "error_scale": (0.05, 0.2),
    },
    "private-ucb-po": {
        "bonus_scale": (0.005, 0.02, 0.05),
        "privacy_scale": (3e-3, 1e-2),
        "error_scale": (0.2,),
        "rate_scale": (60.0, 20.0, 5.0),
    },
    "pucb": {
        "bonus_scale": (0.005, 0.01, 0.02, 0.05),
        "privacy_scale": (1e-3, 1e-2, 1e-1),
        "error_scale": (0.02, 0.05, 0.2),
    },
    "ldp-obi": {
        "bonus_scale": (0.005, 0.01, 0.02, 0.05),
        "privacy_scale": (0.03, 0.1, 0.3),
        "error_scale": (0.003, 0.01, 0.03, 0.1),
    },
    "psrl": {"prior": (0.1, 0.3, 1.0)},
    "ldp-psrl": {"prior": (0.1, 1.0), "privacy_scale": (1.0, 0.3, 0.1, 0.03, 0.0)},
}
"""Learner -> setting -> values, from far from to near the printed ones."""


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


@functools.cache
def problems() -> tuple[tuple[TabularMDP, float], ...]:
    """The held-out problems, each with what the uniform policy loses per episode."""
    found = [RandomMDP(states=5, actions=3, horizon=5, seed=seed) for seed in (11, 12)]
    found += [chain(4, 7), GridWorld(layout="S.|.G", slip=0.2, horizon=5)]
    found += [RandomMDP(states=2, actions=2, horizon=2, seed=seed) for seed in range(1000, 1012)]
    losses = [solve(mdp).value - evaluate(mdp, uniform_policy(mdp.shape)) for mdp in found]
    pairs = zip(found, losses, strict=True)
    return tuple(
        (mdp, loss) for mdp, loss in pairs if loss > 0.05
    )  # else there is nothing to learn


def trusts(learner: str) -> list[Any]:
    """Levels of privacy under the learner's own trust model."""
    if learner in ("ucbvi", "psrl"):
        return [NoPrivacy()]
    if learner.startswith("ldp"):
        return [Local(10), Local(100), Local(10, mechanism="one-step")]
    return [Central(1, 1e-6), Central(10, 1e-6)]


def shares(learner: str, settings: dict[str, Any]) -> list[float]:
    """Regret as a share of the uniform policy's, of every run."""
    found = []
    for (mdp, loss), trust, seed in itertools.product(problems(), trusts(learner), SEEDS):
        result = learn(mdp, learner=learner, trust=trust, episodes=EPISODES, seed=seed, **settings)
        found.append(result.final_regret / (EPISODES * loss))
    return found


def study(learner: str) -> None:
    """Print the grid of one learner, best first, and the choice."""
    grid = GRIDS[learner]
    kinds = [True, False] if learner in ("ucbvi", "psrl") else [True]
    rows = []
    for values in itertools.product(*grid.values()):
        settings = dict(zip(grid, values, strict=True))
        runs = [shares(learner, {**settings, "stationary": kind}) for kind in kinds]
        near = tuple(grid[name].index(value) for name, value in settings.items())
        rows.append((float(np.mean(runs)), float(np.max(runs)), near, values))
    rows.sort()
    print(f"## {learner}: {', '.join(grid)}")
    for score, worst, _, values in rows:
        print(f"{score:7.2%}  worst run {worst:4.0%}  {values}")
    limit = max(1.1 * rows[0][0], rows[0][0] + 0.005)
    chosen = max((row for row in rows if row[0] <= limit), key=lambda row: row[2])
    print(f"chosen: {chosen[3]}, {chosen[0]:.2%} (best {rows[0][0]:.2%})", flush=True)


def main() -> None:
    """The grids of some learners, or of all."""
    arguments = parser("research.choose_constants", __doc__)
    arguments.add_argument("learners", nargs="*", metavar="LEARNER", help=", ".join(GRIDS))
    options = arguments.parse_args()
    unknown = sorted(set(options.learners) - set(GRIDS))
    if unknown:
        arguments.error(f"Expected learners of {', '.join(GRIDS)}, got {', '.join(unknown)}.")
    for name in options.learners or GRIDS:
        study(name)


if __name__ == "__main__":
    main()
