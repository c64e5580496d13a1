"""Logged data: intervals of `discreet.evaluate_policy`, and `discreet.fit` beside DP-APVI.

Usage: python -m research.offline {coverage,rivals} FILE.csv [--runs N] [--environments ...]
       [--users 1e3 ...] [--epsilon 1]

Both write one row per cell, of fresh seeds; people are simulated at count level. *coverage*: the
best policy is evaluated on the data of a uniform behaviour and of one that plays the best action
half of the time; how often the interval holds its true value and today's, and how wide it is with
and without privacy. *rivals*: suboptimality V* - V of `fit` and of DP-APVI, as printed and with its
practical scale, all with known rewards, on the same people.

DP-APVI is Algorithm 1 of Qiao and Wang, "Offline reinforcement learning with differential privacy"
(2206.00810). One release of transitions and visits with noise sigma, then, row by row,

- E = 2·sigma·sqrt(2·ln(4·H·S²·A/failure)), twice what the noise of all counters stays below;
- counts n~(s, a, s') >= 0 nearest to the noisy ones (in the largest difference) whose sum is within
  E/2 of the noisy visits; n~(s, a) is that sum, P~ their ratio where n~ > E, else uniform;
- pessimism, backward with iota = ln(H·S·A/failure):

      Gamma = sqrt(2)·sqrt(Var_P~(V)·iota/(n~ - E)) + 16·S·H·E·iota/n~  where n~ > E, else H,
      Q = min(max(r + P~·V - Gamma, 0), H - h),  V = max Q, greedy, ties at random.

What differs: their noise has the variance 2·H/rho for rho-zCDP, ours is what the trust model needs
for the same counters (less), and E follows from it; discrete noise. With the printed constants
hardly anything is learnt up to 1e6 users, so ``scale`` multiplies Gamma, except where it is H;
`PRACTICAL` was the best of six powers of ten on problems that are not reported. The paper was not
at hand: read its constants again before you cite them from here. DP-VAPVI, for linear features, is
not more on a table: its features are then indicators of (s, a).
"""

import csv
import math
import pathlib
import zlib

import numpy as np

import discreet
from discreet.mdp import DeterministicPolicy, evaluate, sample_counts, solve
from discreet.offline.release import People, Randomness, Slots, release
from discreet.privacy.projection.valid_counts import valid_transitions
from research import parser
from research.fit import behaviour, environment

REPORTED = ("Treatment", "Recommender", "GridWorld")
"""Nothing in `discreet.offline.evaluate` was chosen by looking at these."""


PRACTICAL = 1e-4
"""A scale with which DP-APVI learns."""


def dp_apvi(people, trust, mdp, *, scale, seed, failure=0.1):
    """The pessimistic policy of DP-APVI, by one release."""
    statistics, randomness = ("transitions", "visits"), Randomness.of("simulation", seed)
    counts = release(
        people,
        Slots.of(np.ones(mdp.shape.visits, bool), np.asarray(mdp.start) > 0),
        trust,
        statistics=statistics,
        last_transitions=False,
        randomness=randomness,
        people=People.given(None, people, trust),
    )
    horizon, states, actions = counts.support.shape
    sigma = math.sqrt(max(counts.noise_variance[name] for name in statistics))
    error = 2 * sigma * math.sqrt(2 * math.log(4 * horizon * states**2 * actions / failure))
    iota = math.log(horizon * states * actions / failure)
    valid = valid_transitions(counts.transitions, counts.visits, error / 2)
    total = valid.sum(axis=-1)
    known = total > error
    some = np.where(known, total, 1.0)
    moves = np.where(known[..., None], valid / some[..., None], 1 / states)
    chosen, ahead = np.zeros((horizon, states), np.int64), np.zeros(states)
    for h in reversed(range(horizon)):
        mean = moves[h] @ ahead
        variance = np.maximum(moves[h] @ ahead**2 - mean**2, 0.0)
        doubt = np.sqrt(2 * variance * iota / np.maximum(some[h] - error, 1e-9))
        doubt += 16 * states * horizon * error * iota / some[h]
        doubt = np.where(known[h], scale * doubt, horizon)
        q = np.clip(mdp.full_rewards[h] + mean - doubt, 0.0, horizon - h)
        q = np.where(mdp.shape.mask[h], q, -1.0)
        ahead = q.max(axis=1)
        best = q == ahead[:, None]  # most of them where pessimism leaves nothing above zero
        chosen[h] = (best * (1 - randomness.rounding.random(q.shape))).argmax(axis=1)
    return DeterministicPolicy(chosen)


def coverage(name, kind, users, epsilon, runs):
    """One row: how many intervals of so many runs hold the truth, and their mean widths."""
    mdp = environment(name)
    logged, policy = behaviour(mdp, kind), solve(mdp).policy
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
    logged, best = behaviour(mdp, kind), solve(mdp).value
    lost = {"fit": [], "dp_apvi": [], "dp_apvi_printed": []}
    for run in range(runs):
        seed = [zlib.crc32(f"rivals {name} {kind} {users}".encode()), run]
        people = sample_counts(mdp, logged, users, np.random.default_rng(seed))
        common = {"start": mdp.start, "sampler": "simulation", "seed": run}
        found = discreet.fit(people, trust, rewards=mdp.full_rewards, **common)
        policy = found.policy.with_behaviour(logged, mdp.shape.actions)
        lost["fit"].append(best - evaluate(mdp, policy))
        for label, scale in (("dp_apvi", PRACTICAL), ("dp_apvi_printed", 1.0)):
            policy = dp_apvi(people, trust, mdp, scale=scale, seed=run)
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
