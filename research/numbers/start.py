"""Numbers of the first pages and of the how-to pages for researchers."""

import math

import discreet
from discreet.mdp import Shape, plan, uniform_policy
from discreet.mdp import evaluate as value_of

_STATISTICS = {"statistics": ("transitions", "rewards"), "last_transitions": False}
"""What flow-ucb and trial ask a mechanism for."""


def first_result() -> list[list[object]]:
    """The ten lines under every trust model, one run each (start/first-result.md)."""
    users = 200_000
    rows: list[list[object]] = [
        ["trust", "guarantee", "users", "regret", "share of random", "noise", "last batch"]
    ]
    mdp = discreet.make("RiverSwim", states=4, horizon=6, relabel=0)
    random = users * (plan(mdp).value - value_of(mdp, uniform_policy(mdp.shape)))
    rows.append(["random", "", users, round(random), 1, "", ""])
    for name, trust in (
        ("none", discreet.NoPrivacy()),
        ("central", discreet.Central(epsilon=1, delta=1e-6)),
        ("shuffle", discreet.Shuffle(epsilon=1, delta=1e-6)),
        ("local", discreet.Local(epsilon=1)),
    ):
        result = discreet.learn(mdp, learner="flow-ucb", trust=trust, episodes=users, seed=0)
        regret, noise = result.final_regret, result.noise["transitions"]
        share, last = round(regret / random, 5), result.extras["batches"][-1]
        said = str(result.guarantee).partition(", one")[0]
        rows.append([name, said, users, round(regret), share, round(noise, 2), last])
    return rows


def epsilon() -> list[list[object]]:
    """What an epsilon bounds, and the noise that it takes (start/choose.md)."""
    rows: list[list[object]] = [["epsilon", "right guesses", "central noise", "local noise"]]
    shape, users = Shape(states=4, actions=2, horizon=6), 50_000
    for bound in (0.1, 0.5, 1, 2, 4):
        row: list[object] = [bound, round(1 / (1 + math.exp(-bound)), 4)]
        for trust in (discreet.Central(epsilon=bound, delta=1e-6), discreet.Local(epsilon=bound)):
            mechanism = trust.calibrate(shape, **_STATISTICS)
            row.append(round(mechanism.worst_noise(users)["transitions"], 1))
        rows.append(row)
    return rows


TABLES = {"start_epsilon.csv": epsilon, "start_result.csv": first_result}
