"""Logged data: intervals of `discreet.evaluate_policy`, and `discreet.fit` beside DP-APVI.

Usage: python -m research.offline {coverage,rivals} FILE.csv [--runs N] [--environments ...]
       [--users 1e3 ...] [--epsilon 1]

Both write one row per cell, of fresh seeds; people are simulated at count level. *coverage*: the
best policy is evaluated on the data of a uniform behaviour and of one that plays the best action
half of the time; how often the interval holds its true value and today's, and how wide it is with
and without privacy. *rivals*: suboptimality V* - V of `fit` and of DP-APVI, as printed and with its
practical scale, all with known rewards, on the same people.
"""

import csv
import pathlib
import zlib

import numpy as np

import discreet
from discreet.mdp import evaluate, plan, sample_counts
from discreet.offline.dp_apvi import PRACTICAL, dp_apvi
from research import parser
from research.fit import behaviour, environment

REPORTED = ("Treatment", "Recommender", "GridWorld")
"""Nothing in `discreet.offline.evaluate` was chosen by looking at these."""


def coverage(name, kind, users, epsilon, runs):
    """One row: how many intervals of so many runs hold the truth, and their mean widths."""
    mdp = environment(name)
    logged, policy = behaviour(mdp, kind), plan(mdp).policy
    truths = {"value": evaluate(mdp, policy), "today": evaluate(mdp, logged)}
    row = {"environment": name, "behaviour": kind, "users": users, "runs": runs}
    for label, trust in (("", discreet.Central(epsilon, 1e-6)), ("_exact", discreet.NoPrivacy())):
        found = []
        for run in range(runs):
            seed = [zlib.crc32(f"{name} {kind} {users}".encode()), run]
            people = sample_counts(mdp, logged, users, np.random.default_rng(seed))
            found.append(
                discreet.evaluate_policy(
                    people, policy, trust, start=mdp.start, sampler="simulation", seed=run
                )
            )
        for part, truth in truths.items():
            estimates = [getattr(one, part) for one in found]
            row[f"{part}{label}_covered"] = sum(e.low <= truth <= e.high for e in estimates)
            row[f"{part}{label}_width"] = round(np.mean([e.high - e.low for e in estimates]), 5)
    return row | {name: round(truth, 5) for name, truth in truths.items()}


def rivals(name, kind, users, epsilon, runs):
    """One row: mean suboptimality, and the standard errors of the differences to `fit`."""
    mdp, trust = environment(name), discreet.Central(epsilon, 1e-6)
    logged, best = behaviour(mdp, kind), plan(mdp).value
    lost = {"fit": [], "dp_apvi": [], "dp_apvi_printed": []}
    for run in range(runs):
        seed = [zlib.crc32(f"rivals {name} {kind} {users}".encode()), run]
        people = sample_counts(mdp, logged, users, np.random.default_rng(seed))
        common = {"start": mdp.start, "sampler": "simulation", "seed": run}
        found = discreet.fit(people, trust, rewards=mdp.full_rewards, **common)
        policy = found.policy.with_behaviour(logged, mdp.shape.actions)
        lost["fit"].append(best - evaluate(mdp, policy))
        for label, scale in (("dp_apvi", PRACTICAL), ("dp_apvi_printed", 1.0)):
            policy = dp_apvi(people, trust, mdp.full_rewards, scale=scale, **common)
            lost[label].append(best - evaluate(mdp, policy))
    row = {"environment": name, "behaviour": kind, "users": users, "runs": runs}
    row["today"] = round(best - evaluate(mdp, logged), 5)
    row |= {label: round(np.mean(values), 5) for label, values in lost.items()}
    apart = np.subtract(lost["dp_apvi"], lost["fit"])
    return row | {"error_of_difference": round(apart.std() / np.sqrt(runs), 5)}


TABLES = {"coverage": (coverage, 200), "rivals": (rivals, 20)}


def main() -> None:
    """Write the table, row by row."""
    arguments = parser("research.offline", __doc__)
    arguments.add_argument("table", choices=list(TABLES))
    arguments.add_argument("file", type=pathlib.Path)
    arguments.add_argument("--runs", type=int, help="default: 200, and 20 for rivals")
    arguments.add_argument("--environments", nargs="*", default=list(REPORTED))
    arguments.add_argument("--behaviours", nargs="*", default=["uniform", "half"])
    arguments.add_argument("--users", nargs="*", type=float, default=[1e3, 1e4, 1e5, 1e6])
    arguments.add_argument("--epsilon", type=float, default=1.0)
    options = arguments.parse_args()
    measure, runs = TABLES[options.table]
    with options.file.open("w", newline="") as file:
        writer = None
        for name in options.environments:
            for kind in options.behaviours:
                for users in options.users:
                    row = measure(name, kind, int(users), options.epsilon, options.runs or runs)
                    if writer is None:
                        writer = csv.DictWriter(file, list(row), lineterminator="\n")
                        writer.writeheader()
                    writer.writerow(row)
                    file.flush()
                    print(row, flush=True)


if __name__ == "__main__":
    main()
