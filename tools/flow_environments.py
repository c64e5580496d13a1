"""The environment table of docs/learners/flow-ucb.md: what remains of the uniform policy's regret.

Usage: python tools/flow_environments.py [--seed 0] [--runs 10] [--names DoubleChain ...]
                                         [--counts per-step stationary] [--trusts none shuffle ...]

Prints Markdown rows, mean (largest) over runs with relabelled actions; eps=1, delta=1e-6 (local:
pure, one-step encoding). Work can be split by names, counts and trusts.
"""

import argparse

import numpy as np

import discreet
from discreet.mdp import TabularMDP, uniform_policy
from discreet.mdp.planning import RegretMeter

NAMES = ("DoubleChain", "GridWorld", "Treatment", "Recommender", "DemandResponse", "RandomMDP")
RANDOM = {"states": 8, "actions": 4, "horizon": 8, "concentration": 0.5}
SIZES = (10**5, 10**6, 10**7)
TRUSTS = {
    "none": discreet.NoPrivacy(),
    "shuffle": discreet.Shuffle(1, 1e-6),
    "central": discreet.Central(1, 1e-6),
    "local": discreet.Local(1),
}


def problem(name: str, relabel: int | None = None) -> TabularMDP:
    """An environment with its default parameters (the default random MDP is too small)."""
    return discreet.make(name, relabel=relabel, **(RANDOM if name == "RandomMDP" else {}))


def shares(name: str, trust: str, episodes: int, pooled: bool, seed: int, runs: int) -> np.ndarray:
    """Final regret of each run as a share of the uniform policy's."""
    found = []
    for run in range(runs):
        mdp = problem(name, relabel=seed + run)
        uniform = RegretMeter(mdp).regret(uniform_policy(mdp.shape)) * episodes
        result = discreet.learn(
            mdp,
            learner="flow-ucb",
            trust=TRUSTS[trust],
            episodes=episodes,
            seed=seed,
            run=run,
            stationary=pooled,
        )
        found.append(result.final_regret / uniform)
    return np.array(found)


def uniform_row(name: str) -> str:
    """Regret of the uniform policy itself, for each size."""
    mdp = problem(name)
    each = RegretMeter(mdp).regret(uniform_policy(mdp.shape))
    return f"| {name} | | uniform | " + " | ".join(f"{each * k:,.0f}" for k in SIZES) + " |"


def main() -> None:
    """Print the rows asked for; environments that change with the step are never pooled."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--names", nargs="*", default=list(NAMES), choices=NAMES)
    parser.add_argument("--counts", nargs="*", default=["per-step", "stationary"])
    parser.add_argument("--trusts", nargs="*", default=list(TRUSTS), choices=list(TRUSTS))
    options = parser.parse_args()
    for name in options.names:
        print(uniform_row(name), flush=True)
        for counts in options.counts:
            if counts == "stationary" and not problem(name).stationary:
                continue
            for trust in options.trusts:
                cells = [
                    shares(name, trust, k, counts == "stationary", options.seed, options.runs)
                    for k in SIZES
                ]
                text = " | ".join(f"{c.mean():.2%} ({c.max():.2%})" for c in cells)
                print(f"| {name} | {counts.replace('-', ' ')} | {trust} | {text} |", flush=True)


if __name__ == "__main__":
    main()
