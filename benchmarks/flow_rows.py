"""Runs of flow-ucb and of what it is compared with, as rows of a file that grows as they end.

A row is one run. Two names stand for more than a learner of the roster:

* ``flow-ucb-first``: the first generation, on its own mechanisms (`benchmarks.flow_ucb_first`);
* ``uniform-etc``: explore with random actions, then commit, on the releases of today. One row per
  length n of exploration: ``episodes`` is n, ``regret`` what exploring cost, ``last`` the regret
  per user of the policy committed to. Tables pick n *in hindsight*, for every cell anew, by the
  least mean regret over all runs: no honest learner could, and so it is a strong baseline.
"""

import csv
import itertools
import math
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path

import discreet
from benchmarks.flow_problems import problem
from discreet.errors import InvalidInputError
from discreet.mdp import TabularMDP, uniform_policy
from discreet.mdp.planning import RegretMeter
from discreet.privacy.trust import TrustModel

DELTA = 1e-6
LENGTHS = tuple(round(10 ** (quarter / 4)) for quarter in range(10, 34))
"""What ``uniform-etc`` may explore for: 316 to 178 million users, by quarters of a decade."""


@dataclass(frozen=True)
class Task:
    """One run: of ``uniform-etc`` with all its lengths up to ``episodes``."""

    problem: str
    trust: str
    epsilon: float
    learner: str
    episodes: int
    seed: int
    run: int


@dataclass(frozen=True)
class Row(Task):
    """What a run left.

    Attributes:
        regret: exact expected regret of all users.
        uniform: regret per user of the uniformly random policy.
        last: regret per user between the last two recorded points, 0.89 K and K.
        batches: how many.
        seconds: wall clock, compilation and first calibrations included.
    """

    regret: float
    uniform: float
    last: float
    batches: int
    seconds: float


def trust_model(name: str, epsilon: float) -> TrustModel:
    """Of a task: (epsilon, 1e-6), local pure; local reports are split unless they are one-step."""
    if name == "none":
        return discreet.NoPrivacy()
    if name in ("local", "local-one-step"):
        return discreet.Local(epsilon, mechanism="auto" if name == "local" else "one-step")
    return {"central": discreet.Central, "shuffle": discreet.Shuffle}[name](epsilon, DELTA)


def run_task(task: Task) -> list[Row]:
    """The rows of one task."""
    mdp = problem(task.problem, task.seed + task.run)
    meter = RegretMeter(mdp)
    uniform = meter.regret(uniform_policy(mdp.shape))
    if task.learner == "uniform-etc":
        return _uniform_etc(task, mdp, meter, uniform)
    if task.learner.startswith("flow-ucb-first"):
        import benchmarks.flow_ucb_first  # noqa: F401  (registers the learner)
    if task.learner.startswith("flow-ucb:"):
        from benchmarks.flow_variants import known  # registers the variants

        known(task.learner)
    began = time.perf_counter()
    result = discreet.learn(mdp, learner=task.learner, **_common(task, task.episodes))
    curve = result.regret
    last = curve.values[-1]
    if len(curve.values) > 1:
        last = (last - curve.values[-2]) / (curve.episodes[-1] - curve.episodes[-2])
    spent = time.perf_counter() - began
    batches = len(result.extras["batches"])
    return [Row(*astuple(task), result.final_regret, uniform, float(last), batches, spent)]


def _common(task: Task, episodes: int) -> dict:
    trust = trust_model(task.trust, task.epsilon)
    return {"trust": trust, "episodes": episodes, "seed": task.seed, "run": task.run}


def _uniform_etc(task: Task, mdp: TabularMDP, meter: RegretMeter, uniform: float) -> list[Row]:
    rows = []
    for length in LENGTHS:
        if length > task.episodes:
            break
        began = time.perf_counter()
        how = {"exploration": "uniform", "length": length}
        result = discreet.learn(mdp, learner="etc", **how, **_common(task, 2 * length))
        loss, spent = meter.regret(result.policy), time.perf_counter() - began
        key = asdict(task) | {"episodes": length}
        rows.append(
            Row(
                **key, regret=length * uniform, uniform=uniform, last=loss, batches=2, seconds=spent
            )
        )
    return rows


def tasks(
    problems: Iterable[str],
    trusts: Iterable[str],
    epsilons: Iterable[float],
    learners: Iterable[str],
    episodes: Iterable[int],
    seed: int,
    runs: int,
) -> list[Task]:
    """All runs of a table: cell by cell, so that a table fills from its top."""
    sizes = sorted(episodes)
    cells = itertools.product(problems, trusts, epsilons, learners)
    return [
        Task(name, trust, math.inf if trust == "none" else epsilon, learner, size, seed, run)
        for name, trust, epsilon, learner in dict.fromkeys(cells)
        for size in (sizes[-1:] if learner == "uniform-etc" else sizes)
        for run in range(runs)
    ]


def read_rows(path: Path) -> list[Row]:
    """The rows of a file, none if there is none yet; a line that was cut off is not one."""
    if not path.exists():
        return []
    if not path.is_file():
        raise InvalidInputError(f"Expected a file of rows, got {path}, which is no file.")
    head = [item.name for item in fields(Row)]
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        text = "no text"
    names, *lines = csv.reader(text.splitlines() or ["nothing"])
    if names != head:
        raise InvalidInputError(
            f"Expected a file of rows that begins with {','.join(head)}, got {path}: it begins "
            f"with {','.join(names):.60}."
        )
    kinds, rows = [item.type for item in fields(Row)], []
    for number, cells in enumerate(lines, 2):
        if len(cells) < len(head) or "" in cells:
            continue
        try:
            rows.append(Row(*(kind(cell) for kind, cell in zip(kinds, cells, strict=True))))
        except ValueError as error:
            raise InvalidInputError(
                f"Expected a row in every line, got line {number} of {path}: {error}."
            ) from None
    return rows


def missing(wanted: list[Task], rows: list[Row]) -> list[Task]:
    """The tasks that have no rows yet; ``uniform-etc``: not up to the length asked for."""
    done = {astuple(row)[:7] for row in rows}

    def key(task: Task) -> tuple:
        if task.learner != "uniform-etc":
            return astuple(task)
        longest = max((length for length in LENGTHS if length <= task.episodes), default=0)
        return (*astuple(task)[:4], longest, task.seed, task.run)

    return [task for task in wanted if key(task) not in done]


def run_all(wanted: list[Task], path: Path, jobs: int) -> Iterator[tuple[Task, list[Row]]]:
    """Run what is missing and append it to the file, each task as soon as it has ended."""
    left = missing(wanted, read_rows(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    new, cut = not path.exists(), path.exists() and not path.read_bytes().endswith(b"\n")
    with path.open("a", newline="") as file, ProcessPoolExecutor(jobs) as pool:
        writer = csv.writer(file)
        if new:
            writer.writerow([item.name for item in fields(Row)])
        if cut:
            file.write("\n")
        running = {pool.submit(run_task, task): task for task in left}
        for done in as_completed(running):
            rows = done.result()
            writer.writerows(astuple(row) for row in rows)
            file.flush()
            yield running[done], rows
