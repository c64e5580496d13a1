"""Numbers of the first pages and of the how-to pages for researchers."""

import math
import warnings
from fractions import Fraction

import discreet
from discreet.errors import DiscreetWarning
from discreet.mdp import Shape, solve, uniform_policy
from discreet.mdp import evaluate as value_of
from discreet.papers.presets import get_preset, preset_names
from discreet.privacy.certificates.multiset import multiset_epsilon
from discreet.privacy.guarantee import rounded_up
from discreet.privacy.mechanisms.bits import printed_shuffle

_STATISTICS = {"statistics": ("transitions", "rewards"), "last_transitions": False}
"""What flow-ucb and trial ask a mechanism for."""


def first_result() -> list[list[object]]:
    """The ten lines under every trust model, one run each (start/first-result.md)."""
    users = 200_000
    rows: list[list[object]] = [
        ["trust", "guarantee", "users", "regret", "share of random", "noise", "last batch"]
    ]
    mdp = discreet.make("RiverSwim", states=4, horizon=6, relabel=0)
    random = users * (solve(mdp).value - value_of(mdp, uniform_policy(mdp.shape)))
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
        row: list[object] = [bound, rounded_up(1 / (1 + math.exp(-bound)), 3)]
        for trust in (discreet.Central(epsilon=bound, delta=1e-6), discreet.Local(epsilon=bound)):
            mechanism = trust.calibrate(shape, **_STATISTICS)
            row.append(round(mechanism.worst_noise(users)["transitions"], 1))
        rows.append(row)
    return rows


def presets() -> list[list[object]]:
    """What each paper claims and delivers (how-to/researcher/papers.md)."""
    rows: list[list[object]] = [
        ["preset", "claimed epsilon", "claimed delta", "epsilon", "delta", "of sums", "repaired"]
    ]
    for name in preset_names():
        preset, sums = get_preset(name), get_preset(name).if_only_sums
        at, told = preset.reference, preset.delivers
        delta = preset.delta if at.delta is None else at.delta
        row = [name, at.epsilon, delta, told.epsilon, told.delta]
        rows.append([*row, sums.epsilon if sums else "", _repaired(name) or ""])
    return rows


def _repaired(name: str) -> str | None:
    """What 002 delivers with the last transition counted."""
    preset = get_preset(name)
    if preset.paper != "002":
        return None
    at = preset.reference
    shape = Shape(states=at.states, actions=at.actions, horizon=at.horizon)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscreetWarning)
        found = preset.trust_model(at.epsilon, at.delta).calibrate_stream(
            shape, episodes=at.episodes, stationary=True
        )
    return f"({rounded_up(found.guarantee.epsilon)}, {rounded_up(found.guarantee.delta)})"


_CLAIM = Fraction(1, 100_000)
_SIZES = (
    *(1, 2, 3, 5, 10, 20, 50, 85, 100, 200, 500, 1_000, 1_024, 2_000, 4_096, 5_146, 7_500),
    *range(10_000, 18_000, 1_000),
    *(18_078, 18_079, *range(19_000, 24_000, 1_000), 23_812, 23_813),
    *range(24_000, 40_001, 2_000),
)


def integers() -> list[list[object]]:
    """What the printed integers deliver in a batch (how-to/researcher/papers.md).

    epsilon is an upper bound at delta = 1e-5 (inf: no finite one holds), least delta a lower bound
    at every epsilon.
    """
    rows: list[list[object]] = [["preset", "tau", "users", "bits", "epsilon", "least delta"]]
    river = Shape(states=4, actions=2, horizon=6)
    for name, split in (("000", False), ("001", True)):
        printed = printed_shuffle(river, 1.0, 1e-5, split=split)
        for users in sorted(_SIZES):
            bits = printed.bits(users).bits
            epsilon = multiset_epsilon(users, bits, 36, _CLAIM)
            least = -math.expm1(36 * math.log1p(-(0.5**bits)))
            rows.append([name, round(printed.tau), users, bits, epsilon, f"{least:.3g}"])
    return rows


TABLES = {
    "papers_integers.csv": integers,
    "papers_presets.csv": presets,
    "start_epsilon.csv": epsilon,
    "start_result.csv": first_result,
}
