"""The RiverSwim table of docs/learners/flow-ucb.md: mean regret of flow-ucb, with any seed.

Usage: python -m tools.flow_table [--seed 0] [--runs 20] [--rows shuffle central ...]
                                  [--learner flow-ucb-first]

`tools.flow_environments` has the other problems, paired ratios and a file to resume from.
"""

import argparse
from dataclasses import dataclass, field
from typing import Any

import benchmarks.flow_ucb_first  # noqa: F401  (registers the first generation)
import numpy as np

import discreet
from discreet.privacy.trust import TrustModel
from tools.flow_environments import at_least


@dataclass(frozen=True)
class Case:
    """One row of the table: a trust model, settings, and the sizes of study to run."""

    trust: TrustModel
    episodes: tuple[float, ...]
    settings: dict[str, Any] = field(default_factory=dict)


SIZES = (2e4, 2e5, 2e6, 2e8)
POOLED = {"stationary": True}
CASES = {
    "none": Case(discreet.NoPrivacy(), SIZES),
    "central": Case(discreet.Central(1, 1e-6), SIZES),
    "shuffle": Case(discreet.Shuffle(1, 1e-6), SIZES),
    "central-stationary": Case(discreet.Central(1, 1e-6), SIZES, POOLED),
    "shuffle-stationary": Case(discreet.Shuffle(1, 1e-6), SIZES, POOLED),
    "central-0.1-stationary": Case(discreet.Central(0.1, 1e-6), (2e6, 2e8), POOLED),
    "shuffle-0.1-stationary": Case(discreet.Shuffle(0.1, 1e-6), (2e6, 2e8), POOLED),
    "local-split": Case(discreet.Local(1, mechanism="split"), (2e6, 2e7)),
    "local-one-step": Case(discreet.Local(1, mechanism="one-step"), (2e6, 2e7)),
    "local-laplace": Case(discreet.Local(1, mechanism="laplace"), (2e6, 2e7)),
}


def final_regrets(learner: str, case: Case, episodes: float, seed: int, runs: int) -> np.ndarray:
    """Final regret of each run on RiverSwim S=4, H=6, relabelled anew in every run."""
    return np.array(
        [
            discreet.learn(
                discreet.make("RiverSwim", states=4, horizon=6, relabel=seed + run),
                learner=learner,
                trust=case.trust,
                episodes=int(episodes),
                seed=seed,
                run=run,
                **case.settings,
            ).final_regret
            for run in range(runs)
        ]
    )


def main() -> None:
    """Print one line per row and size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=at_least(0), default=0)
    parser.add_argument("--runs", type=at_least(2), default=20, help="two or more: sd is of them")
    parser.add_argument("--learner", default="flow-ucb")
    parser.add_argument("--rows", nargs="+", default=list(CASES), choices=list(CASES))
    options = parser.parse_args()
    print(f"{'row':<24}{'K':>8}{'mean':>12}{'sd':>10}{'max':>12}")
    for name in options.rows:
        for episodes in CASES[name].episodes:
            found = final_regrets(
                options.learner, CASES[name], episodes, options.seed, options.runs
            )
            print(
                f"{name:<24}{episodes:>8.0e}{found.mean():>12,.0f}{found.std(ddof=1):>10,.0f}"
                f"{found.max():>12,.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
