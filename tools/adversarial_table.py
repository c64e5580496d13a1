"""The regret table of docs/learners/adversarial.md: ratios to the uniform policy's regret.

Usage: python tools/adversarial_table.py [--seed 1000] [--runs 10] [--episodes 20000]
"""

import argparse

import numpy as np

import discreet

KINDS = ("stochastic", "switching", "drifting")
JDP = discreet.Central(10, 1e-6)
CASES = {
    "full, RiverSwim, none, theory": (
        "RiverSwim", "private-uc-o-reps", discreet.NoPrivacy(), "theory"
    ),
    "full, RiverSwim, none, practical": (
        "RiverSwim", "private-uc-o-reps", discreet.NoPrivacy(), "practical"
    ),
    "full, RiverSwim, JDP 10, practical": ("RiverSwim", "private-uc-o-reps", JDP, "practical"),
    "bandit, random MDP, JDP 10, practical": ("RandomMDP", "private-uob-lbps", JDP, "practical"),
}  # fmt: skip


def build(name: str, seed: int) -> discreet.TabularMDP:
    """Four states, two actions, horizon 6; random MDPs differ from run to run."""
    if name == "RiverSwim":
        return discreet.make(name, states=4, horizon=6, relabel=seed)
    return discreet.make(
        name, states=4, actions=2, horizon=6, concentration=1.0, seed=seed, relabel=seed
    )


def main() -> None:
    """Print the mean ratio of each case: by loss kind, and over the three."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--episodes", type=int, default=20_000)
    options = parser.parse_args()
    for title, (environment, learner, trust, constants) in CASES.items():
        ratios = np.empty((len(KINDS), options.runs))
        for i, kind in enumerate(KINDS):
            for run in range(options.runs):
                result = discreet.learn(
                    build(environment, options.seed + run),
                    learner=learner,
                    trust=trust,
                    episodes=options.episodes,
                    seed=options.seed,
                    run=run,
                    losses=kind,
                    constants=constants,
                )
                ratios[i, run] = result.final_regret / result.extras["uniform_regret"]
        parts = ", ".join(
            f"{k} {m:.3f} (sd {s:.3f})"
            for k, m, s in zip(KINDS, ratios.mean(1), ratios.std(1, ddof=1), strict=True)
        )
        print(f"{title}: {ratios.mean():.3f} [{parts}]", flush=True)


if __name__ == "__main__":
    main()
