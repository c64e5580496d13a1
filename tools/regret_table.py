"""The regret table of the docs: RiverSwim S=4, H=6, actions relabelled at random per run.

Usage: ``python -m tools.regret_table --episodes 20000 --runs 20 [--constants practical] [--learners
pucb ...]``. Prints a Markdown table as it goes: mean ± standard deviation over the runs of the
exact expected regret. Central: (eps, 1e-6)-JDP; local: pure eps-LDP; both replace-one, one user's
whole episode.
"""

import argparse
from typing import Any

import numpy as np

from discreet import Central, Local, NoPrivacy, learn
from discreet.mdp import RiverSwim, evaluate, plan, uniform_policy

EPSILONS = (0.1, 1, 10)
PLAIN: list[tuple[str, dict[str, Any]]] = [
    ("ucbvi", {}),
    ("ucbvi", {"bonus": "hoeffding"}),
    ("ucbvi", {"stationary": True}),
    ("psrl", {}),
    ("psrl", {"stationary": True}),
]
PRIVATE: list[tuple[str, str, dict[str, Any]]] = [
    ("dp-ucbvi", "central", {"stationary": True}),
    ("private-ucb-vi", "central", {"stationary": True}),
    ("private-ucb-po", "central", {"stationary": True}),
    ("pucb", "central", {"stationary": True}),
    ("dp-ucbvi", "local", {"stationary": True}),
    ("private-ucb-vi", "local", {"stationary": True}),
    ("private-ucb-po", "local", {"stationary": True}),
    ("ldp-obi", "local", {}),
    ("ldp-psrl", "local", {}),
    ("dp-ucbvi", "central", {}),
]


def cell(learner: str, trust: Any, episodes: int, runs: int, settings: dict[str, Any]) -> str:
    """Mean ± standard deviation over runs."""
    regrets = [
        learn(
            RiverSwim(states=4, horizon=6, relabel=run),
            learner=learner,
            trust=trust,
            episodes=episodes,
            seed=1,
            run=run,
            **settings,
        ).final_regret
        for run in range(runs)
    ]
    return f"{np.mean(regrets):,.0f} ± {np.std(regrets):,.0f}"


def describe(settings: dict[str, Any]) -> str:
    """Which counts, which bonus."""
    bonus = ", Hoeffding" if settings.get("bonus") == "hoeffding" else ""
    return ("pooled" if settings.get("stationary", "obi") else "per step") + bonus


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--constants", nargs="+", default=["practical", "theory"])
    parser.add_argument("--learners", nargs="+")
    options = parser.parse_args()
    wanted = options.learners or {row[0] for row in (*PLAIN, *PRIVATE)}
    K, runs = options.episodes, options.runs
    mdp = RiverSwim(states=4, horizon=6)
    gap = plan(mdp).value - evaluate(mdp, uniform_policy(mdp.shape))
    print(f"K = {K:,}, {runs} runs; uniform policy: {K * gap:,.0f}\n")
    print("| learner | trust | counts | constants | no privacy | eps 0.1 | eps 1 | eps 10 |")
    print("|---|---|---|---|---|---|---|---|")
    for constants in options.constants:
        for learner, settings in (row for row in PLAIN if row[0] in wanted):
            told = {**settings, "constants": constants}
            value = cell(learner, NoPrivacy(), K, runs, told)
            counts = describe({"stationary": False} | settings)
            print(f"| {learner} | none | {counts} | {constants} | {value} | | | |", flush=True)
        for learner, trust, settings in (row for row in PRIVATE if row[0] in wanted):
            told = {**settings, "constants": constants}
            values = [
                cell(learner, Central(e, 1e-6) if trust == "central" else Local(e), K, runs, told)
                for e in EPSILONS
            ]
            default = {} if learner.startswith("ldp") else {"stationary": False}
            counts = describe(default | settings)
            print(
                f"| {learner} | {trust} | {counts} | {constants} | | {' | '.join(values)} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
