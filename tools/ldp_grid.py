"""The grid of Garcelon et al. (2021), figure 1, on a random MDP S=A=H=2.

Usage: ``python -m tools.ldp_grid [--learner ldp-psrl] [--episodes 100000000] [--runs 20]
[--constants theory] [--epsilons 20]``. Prints mean, least and largest regret over the runs at
powers of ten, the share of the uniform policy's, and the time.
"""

import argparse
import time

import numpy as np

from discreet import Local, learn
from discreet.mdp import RandomMDP, evaluate, plan, uniform_policy


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--learner", choices=["ldp-obi", "ldp-psrl"], default="ldp-obi")
    parser.add_argument("--episodes", type=float, default=1e8)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--constants", nargs="+", default=["theory"])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.2, 2, 20])
    options = parser.parse_args()
    mdp, K = RandomMDP(states=2, actions=2, horizon=2), int(options.episodes)
    gap = plan(mdp).value - evaluate(mdp, uniform_policy(mdp.shape))
    print("| constants | eps | K | regret, mean (least to largest) | of uniform | ns per episode |")
    print("|---|---|---|---|---|---|")
    for constants in options.constants:
        for epsilon in options.epsilons:
            trust = Local(epsilon, mechanism="laplace")
            task = {"learner": options.learner, "trust": trust, "constants": constants}
            start = time.process_time()
            results = [learn(mdp, episodes=K, run=run, **task) for run in range(options.runs)]
            speed = (time.process_time() - start) / K / len(results) * 1e9
            for mark in 10 ** np.arange(4, int(np.log10(K)) + 1):
                at = int(np.searchsorted(results[0].regret.episodes, mark))
                values = np.array([result.regret.values[at] for result in results])
                k = int(results[0].regret.episodes[at])
                share = f"{values.mean() / (k * gap):.0%}"
                print(
                    f"| {constants} | {epsilon:g} | {k:,} | {values.mean():,.0f} "
                    f"({values.min():,.0f} to {values.max():,.0f}) | {share} | {speed:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
