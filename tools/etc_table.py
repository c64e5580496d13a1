"""The table of docs/learners/etc.md: designed and uniform exploration, then commit.

Usage: python -m tools.etc_table [--episodes 1000000] [--runs 5] [--seed 0]

Share of the uniform policy's regret that remains: means over runs with relabelled actions, central
and shuffle (1, 1e-6) and without privacy.
"""

import argparse

import numpy as np

import discreet
from discreet.mdp import evaluate, plan, uniform_policy
from discreet.privacy.trust import TrustModel

PROBLEMS = {"RiverSwim": {"states": 4, "horizon": 6}, "GridWorld": {}, "DoubleChain": {}}
TRUSTS = (discreet.Central(1, 1e-6), discreet.Shuffle(1, 1e-6), discreet.NoPrivacy())


def share(name: str, trust: TrustModel, exploration: str, options: argparse.Namespace) -> float:
    """Mean over runs."""
    shares = []
    for run in range(options.runs):
        mdp = discreet.make(name, relabel=run, **PROBLEMS[name])
        result = discreet.learn(
            mdp,
            learner="etc",
            trust=trust,
            episodes=options.episodes,
            seed=options.seed,
            run=run,
            exploration=exploration,
        )
        loss = plan(mdp).value - evaluate(mdp, uniform_policy(mdp.shape))
        shares.append(result.final_regret / (options.episodes * loss))
    return float(np.mean(shares))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print("| | designed | uniform |\n|---|---|---|")
    for name in PROBLEMS:
        for trust in TRUSTS:
            cells = (f"{share(name, trust, how, options):.1%}" for how in ("designed", "uniform"))
            print(f"| {name}, {trust.name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
