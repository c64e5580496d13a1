"""Tables of the pages about batch learners and the papers."""

import csv
import math
from collections import defaultdict
from pathlib import Path

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


TABLES = {
    "flow_ucb_batches.csv": recruitments,
    "flow_ucb_families.csv": families,
    "flow_ucb_locked.csv": locked,
    "trial_contexts.csv": trial_contexts,
    "trial_means.csv": trial_means,
}
