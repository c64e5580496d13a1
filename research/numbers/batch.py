"""Tables of the pages about batch learners and the papers."""

import csv
import math
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np

from discreet import Local, Shuffle
from discreet.errors import DiscreetWarning
from discreet.learners.base import PublicFacts
from discreet.learners.elimination.learner import write_script
from discreet.learners.elimination.settings import EliminationSettings, PrintedConstants
from discreet.mdp import Shape
from discreet.mdp.environments.synthetic import least_regret
from discreet.privacy.accounting import noise_bits
from discreet.privacy.accounting.piles import uneven_piles_delta
from discreet.privacy.mechanisms.bits import (
    integer_messages_delta,
    printed_shuffle,
    whole_vectors_delta,
)
from discreet.privacy.sensitivity import STATISTICS

_TABLES = Path(__file__).parents[1] / "tables"


def _rows(name: str) -> list[dict[str, str]]:
    with (_TABLES / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _cells(learner: str, trust: str, users: int) -> dict[str, dict[str, str]]:
    """Rows of flow_ucb.csv by problem, without its geometric means."""
    return {
        row["problem"]: row
        for row in _rows("flow_ucb.csv")
        if (row["learner"], row["trust"], int(row["users"])) == (learner, trust, users)
        and row["regret"]
    }


def _mean_ratio(above: dict[str, dict[str, str]], below: dict[str, dict[str, str]]) -> float:
    logs = [math.log(float(above[p]["regret"]) / float(below[p]["regret"])) for p in above]
    return math.exp(sum(logs) / len(logs))


def families() -> list[list]:
    """flow-ucb on eleven fresh families, and random exploration of the best length in hindsight."""
    users = (10_000, 100_000, 1_000_000, 10_000_000)
    head = ["family", "users", "epsilon", "flow-ucb", "best length in hindsight", "ratio"]
    table: list[list] = [head]
    for count in users:
        ours = _cells("flow-ucb", "central", count)
        other = _cells("uniform-etc", "central", count)
        for family in _cells("uniform-etc", "central", 100_000):
            share, beside = ours[family]["share_of_uniform"], other.get(family)
            ratio = "" if beside is None else _mean_ratio({family: beside}, {family: ours[family]})
            theirs = "" if beside is None else beside["share_of_uniform"]
            table.append([family, count, 1, share, theirs, ratio and f"{ratio:.4g}"])
        if other:
            mean = _mean_ratio(other, {family: ours[family] for family in other})
            table.append(["geometric mean of 11", count, 1, "", "", f"{mean:.4g}"])
    return table


def recruitments() -> list[list]:
    """Regret with at most so many batches over regret without a limit, central trust."""
    table: list[list] = [["users", "batches", "problems", "ratio"]]
    for users in (100_000, 10_000_000):
        free = _cells("flow-ucb", "central", users)
        for batches in (5, 10, 20):
            few = _cells(f"flow-ucb:batches={batches}", "central", users)
            table.append([users, batches, len(few), f"{_mean_ratio(few, free):.4g}"])
    return table


def locked() -> list[list]:
    """Runs of flow-ucb that end with a policy that still loses."""
    table: list[list] = [["problems", "trust", "users", "runs", "locked in"]]
    for trust in ("central", "shuffle"):
        cells = _cells("flow-ucb", trust, 10_000_000).values()
        runs, lost = (sum(int(row[name]) for row in cells) for name in ("runs", "locked_in"))
        table.append(["all 28", trust, 10_000_000, runs, lost])
    late = [
        row
        for row in _rows("flow_ucb_locks.csv")
        if row["learner"] == "flow-ucb" and row["users"] == "100000000"
    ]
    runs, lost = (sum(int(row[name]) for row in late) for name in ("runs", "locked_in"))
    table.append([f"the {len(late)} of flow_ucb_locks.csv", "central", 100_000_000, runs, lost])
    return table


_TRIAL = ("R", "V", "kept", "recommended", "wrong")


def trial_means() -> list[list]:
    """Means over the rows of trial_table.csv with the same users and learner."""
    found = defaultdict(list)
    for row in _rows("trial_table.csv"):
        found[int(row["users"]), row["learner"]].append(row)
    table: list[list] = [["users", "learner", *_TRIAL, "wrong of recommended", "largest wrong"]]
    for (users, learner), rows in sorted(found.items()):
        means = [sum(float(row[name]) for row in rows) / len(rows) for name in _TRIAL]
        worst = max(float(row["wrong"]) for row in rows)
        rounded = [f"{number:.4f}" for number in (*means, means[-1] / means[-2], worst)]
        table.append([users, learner, *rounded])
    return table


def trial_contexts() -> list[list]:
    """Value of the policy afterwards on twenty contexts with five actions."""
    found = defaultdict(list)
    for row in _rows("trial_table.csv"):
        if row["problem"] == "Contexts":
            found[int(row["users"]), row["learner"]].append(float(row["V"]))
    table: list[list] = [["users", "learner", "V"]]
    for (users, learner), values in sorted(found.items()):
        table.append([users, learner, f"{sum(values) / len(values):.4f}"])
    return table


def printed_elimination() -> list[list]:
    """What the printed constants of 001 ask for at RiverSwim's size, by standard deviation."""
    shape = Shape(states=4, actions=2, horizon=6)
    start = np.arange(4) == 0
    exact = Shuffle(1, 1e-5, mechanism="bits").calibrate(shape, statistics=STATISTICS)
    printed = printed_shuffle(shape, 1, 1e-5).tau ** 0.5 / 2
    deviations = {
        "no privacy": 0.0,
        "epsilon 1, exact noise": exact.noise_variance(400)["transitions"] ** 0.5,
        "epsilon 1, printed noise": printed,
        "epsilon 0.1, printed noise": 10 * printed,
    }
    table: list[list] = [["users", "noise", "deviation", "frequent above", "per layer", "width"]]
    for users in (20_000, 100_000_000, 1_000_000_000):
        problem = PublicFacts(shape, users, start)
        how = {"structure": "paper", "constants": "theory", "literal": True}
        settings = EliminationSettings.choose(how, learner="sdp-pe")
        constants, script = PrintedConstants(problem, settings), write_script(problem, settings)
        layer = max(size for part, size, _ in script if part.startswith("layer"))
        length = max(length for *_, length in script)
        for name, deviation in deviations.items():
            frequent = float(constants.infrequent(np.array([deviation**2]))[0])
            width = constants.printed_width(length, deviation)
            sizes = (f"{deviation:.4g}", f"{frequent:.4g}", layer, f"{width:.4g}")
            table.append([users, name, *sizes])
    return table


def _up(number: float, digits: int) -> float:
    """A bound is rounded up."""
    return math.ceil(number * 10**digits) / 10**digits


def _shuffle_errata() -> list[list]:
    rows: list[list] = []
    for horizon in (2, 6, 20):
        printed = printed_shuffle(Shape(states=4, actions=2, horizon=horizon), 1, 1e-6)
        sums = printed.delivered_epsilon(3 * horizon, 1e-6)
        rows.append([f"shuffle sums, H={horizon}: delivered epsilon", _up(sums, 5)])
    river = Shape(states=4, actions=2, horizon=6)
    printed = printed_shuffle(river, 1, 1e-6)
    least = printed.delivered_epsilon(18, 1e-6, users=math.ceil(printed.tau))
    rows.append(["shuffle sums, H=6, least noisy batch: delivered epsilon", _up(least, 5)])
    for users in (2, 20_000):
        honest = printed.delivered_epsilon(18, 1e-6, 0.9, users=users)
        rows.append([f"shuffle sums, {users} users, 0.9 honest", _up(honest, 4)])
    rows.append(["printed deviation, H=6, beta 1e-06", f"{printed.tau**0.5 / 2:.0f}"])
    exact = Shuffle(1, 1e-6, mechanism="bits").calibrate(river, statistics=STATISTICS)
    deviation = exact.noise_variance(400)["transitions"] ** 0.5
    rows.append(["exact deviation, H=6, delta 1e-06", f"{deviation:.1f}"])
    for paper, split in (("001", True), ("000", False)):
        tau = printed_shuffle(river, 1, 1e-5, split=split).tau
        rows.append([f"{paper}, H=6, beta 1e-05: tau", f"{tau:.0f}"])
    small = printed_shuffle(Shape(states=4, actions=2, horizon=2), 1, 1e-6)
    names = ("nobody else has the bit", "everybody has the bit")
    for name, delta in zip(names, integer_messages_delta(small.bits(597_240)), strict=True):
        rows.append([f"integers, H=2, 597240 users, {name}: delta", f"{delta:.4f}"])
    bits = noise_bits(1000, 18, 18, 1, 1e-6)
    for cells, name in ((6, "transitions"), (18, "all three statistics")):
        delta = math.floor(whole_vectors_delta(bits, cells) * 1e4) / 1e4
        rows.append([f"whole vectors, {name}: delta", delta])
    return rows


def _other_errata() -> list[list]:
    levels, users = 15, 20_000
    rows: list[list] = [["tree, logarithm to base 2: times epsilon", 2 * levels / math.log2(users)]]
    rows.append(["tree, natural logarithm: times epsilon", 2 * levels / math.log(users)])
    pairs = 42  # of the stage expansion of RiverSwim, S=4, A=2, H=6
    rows.append(["004, full information, local: times epsilon", (24 + pairs) / 18])
    rows = [[name, f"{value:.4g}"] for name, value in rows]
    two = Shape(states=2, actions=2, horizon=2)
    how = {"episodes": 1000, "stationary": True}
    for last in (False, True):
        for epsilon in (0.2, 2, 20):
            trust = Local(epsilon, 0.1, mechanism="gaussian", calibration="paper-002")
            found = trust.calibrate_stream(two, last_transitions=last, **how).guarantee.delta
            rows.append(
                [f"002 Gaussian, epsilon {epsilon}, last transition {last}: delta", _up(found, 4)]
            )
        for epsilon in (1.4, 2):
            trust = Local(epsilon, mechanism="randomized-response", calibration="paper-002")
            found = trust.calibrate_stream(two, last_transitions=last, **how).guarantee.epsilon
            name = f"002 randomised response, claimed {epsilon}, last transition {last}: delivered"
            rows.append([name, f"{found:.4g}"])
    for horizon in (2, 6, 20):
        delta = uneven_piles_delta(float(horizon), horizon, 1.0)
        rows.append([f"002 Gaussian, H={horizon}, epsilon 1: bound on delta", _up(delta, 4)])
    return rows


def errata() -> list[list]:
    """What printed mechanisms deliver, by exact accounting."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscreetWarning)  # each says what this table says
        return [["what", "value"], *_shuffle_errata(), *_other_errata()]


def proven_least() -> list[list]:
    """What every learner loses on the instances of the lower bounds."""
    table: list[list] = [["instance", "users", "epsilon", "least regret"]]
    for name, users, epsilon, trust in (
        ("without privacy", 100_000, None, "local"),
        ("local", 100_000, 0.5, "local"),
        ("central", 10_000, 0.001, "central"),
    ):
        least = least_regret(9, users, 6, epsilon, trust)
        table.append([name, users, epsilon or "", f"{least:.0f}"])
    return table


TABLES = {
    "errata.csv": errata,
    "flow_ucb_batches.csv": recruitments,
    "flow_ucb_families.csv": families,
    "flow_ucb_locked.csv": locked,
    "paper-least-regret.csv": proven_least,
    "paper-shuffle-printed.csv": printed_elimination,
    "trial_contexts.csv": trial_contexts,
    "trial_means.csv": trial_means,
}
