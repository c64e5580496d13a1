"""Regret of any learner on the problems of `research.problems`: runs into a file, and a summary.

    python -m research.regret run rows.csv --problems Lock chain --learners flow-ucb uniform-etc
    python -m research.regret run rows.csv --learners flow-ucb:shrink=0.8 --trusts shuffle:bits
    python -m research.regret run rows.csv --label 43ada0f --src WORKTREE/src
    python -m research.regret summary rows.csv --against flow-ucb@43ada0f > summary.csv

``run`` appends one row per run as it ends, and leaves out what the file has. A learner may have
settings (``NAME:KEY=VALUE,...``), a trust model a mechanism (``shuffle:bits``). ``--problems`` may
name groups (``reported``, ``families``, ``fresh``). Rows of another version of the package, in
``--src``, or of a learner that was edited, have a ``--label``: they are of ``NAME@label``. All
versions meet the same problems, handed over as arrays.

``uniform-etc`` explores with random actions for n users and commits; it leaves a row for every
n (by quarters of a decade), and the summary picks n *in hindsight*, for every cell anew, by the
least mean regret over all runs. No honest learner could, and so it is a strong baseline.

``summary`` prints CSV: a line for each cell and learner, ratios of mean regrets to ``--against``
(a learner, or a trust model) paired by run with 95% bootstrap intervals, and geometric means of the
ratios over problems. A run is locked in if its last users (regret is recorded at 0.89·K and at K)
lose more than 1% of the uniform policy's regret.
"""

import argparse
import csv
import itertools
import json
import multiprocessing
import sys
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path

import numpy as np

import discreet
from discreet.errors import DiscreetError
from discreet.learners.result import Result
from discreet.mdp import TabularMDP, evaluate, solve, uniform_policy
from discreet.privacy.trust import TrustModel, make_trust
from research import parser

if __name__ != "__mp_main__":  # a process that was spawned may have another version of the package
    from research.problems import FAMILIES, FRESH, REPORTED, problem

DELTA = 1e-6
LENGTHS = tuple(round(10 ** (quarter / 4)) for quarter in range(10, 34))
"""What ``uniform-etc`` may explore for: 316 to 178 million users."""
LOCKED = 0.01
DRAWS = 4000


@dataclass(frozen=True)
class Task:
    """One run; of ``uniform-etc`` one for every length up to ``users``."""

    problem: str
    trust: str
    epsilon: float
    learner: str
    users: int
    seed: int
    run: int

    @property
    def cell(self) -> tuple:
        """What learners are compared in."""
        return self.problem, self.trust, self.epsilon, self.users


@dataclass(frozen=True)
class Row(Task):
    """What a run left.

    Attributes:
        regret: exact expected regret of all users.
        uniform: regret per user of the uniformly random policy.
        last: regret per user between the last two recorded points.
        batches: how many; 0 of a learner that has none.
    """

    regret: float
    uniform: float
    last: float
    batches: int


def model_of(task: Task) -> dict:
    """What its run meets, as arrays that every version of the package takes."""
    mdp = problem(task.problem, task.seed + task.run)
    if mdp.stationary:
        steps = {"horizon": mdp.horizon}
        return steps | {
            "transitions": mdp.transitions[0],
            "rewards": mdp.rewards[0],
            "initial": mdp.initial,
        }
    return {"transitions": mdp.transitions, "rewards": mdp.rewards, "initial": mdp.initial}


def run_task(task: Task, model: dict) -> list[Row]:
    """The rows of one task."""
    mdp = TabularMDP(**model)
    best = solve(mdp).value
    uniform = float(best - evaluate(mdp, uniform_policy(mdp.shape)))
    name, settings = parsed(task.learner.partition("@")[0])

    def learned(users: int, **more) -> Result:
        trust = trust_model(task.trust, task.epsilon)
        return discreet.learn(
            mdp, trust=trust, episodes=users, seed=task.seed, run=task.run, **settings, **more
        )

    if name == "uniform-etc":
        rows = []
        for length in (n for n in LENGTHS if n <= task.users):
            found = learned(
                2 * length, learner="explore-then-commit", exploration="uniform", length=length
            )
            loss = float(best - evaluate(mdp, found.policy))
            key = astuple(replace(task, users=length))
            rows.append(Row(*key, length * uniform, uniform, loss, 2))
        return rows
    found = learned(task.users, learner=name)
    users, values = found.regret.episodes[-2:], found.regret.values[-2:]
    last = float(np.diff(values)[0] / np.diff(users)[0]) if len(users) > 1 else float(values[0])
    batches = len(found.extras.get("batches", ()))
    return [Row(*astuple(task), float(found.final_regret), uniform, last, batches)]


def parsed(learner: str) -> tuple[str, dict]:
    """Name and settings: ``explore-then-commit:exploration=uniform,rounds=2``."""
    name, _, rest = learner.partition(":")
    return name, {
        key: value(text) for key, text in (one.split("=") for one in rest.split(",") if one)
    }


def value(text: str):
    """A number, a truth value, or a word."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def trust_model(name: str, epsilon: float) -> TrustModel:
    """(epsilon, 1e-6), local pure."""
    model, _, mechanism = name.partition(":")
    if model == "none":
        return discreet.NoPrivacy()
    options = {"epsilon": epsilon} | ({"mechanism": mechanism} if mechanism else {})
    return make_trust(model, **options, **({} if model == "local" else {"delta": DELTA}))


def tasks(options: argparse.Namespace) -> list[Task]:
    """All runs that are asked for, cell by cell; the longest alone of ``uniform-etc``."""
    label = f"@{options.label}" if options.label else ""
    learners = [one if one == "uniform-etc" else one + label for one in options.learners]
    sizes = sorted(int(size) for size in options.users)
    wanted = (
        Task(name, trust, np.inf if trust == "none" else epsilon, learner, size, options.seed, run)
        for name, trust, epsilon, learner in itertools.product(
            options.problems, options.trusts, options.epsilons, learners
        )
        for size in (sizes[-1:] if learner == "uniform-etc" else sizes)
        for run in range(options.runs)
    )
    return list(dict.fromkeys(wanted))


def key_of(task: Task) -> tuple:
    """By which a run is found in a file: its longest row."""
    if not task.learner.startswith("uniform-etc"):
        return astuple(task)[:7]
    longest = max((n for n in LENGTHS if n <= task.users), default=0)
    return astuple(replace(task, users=longest))[:7]


def read_rows(path: Path) -> list[Row]:
    """The rows of a file; a line that was cut off is none."""
    if not path.exists():
        return []
    kinds = [item.type for item in fields(Row)]
    lines = list(csv.reader(path.read_text("utf-8").splitlines()))[1:]
    whole = (line for line in lines if len(line) == len(kinds) and line[-1])
    return [Row(*(kind(cell) for kind, cell in zip(kinds, line, strict=True))) for line in whole]


def run_all(options: argparse.Namespace) -> None:
    """Run what is missing, and append it to the file as it ends."""
    done = {astuple(row)[:7] for row in read_rows(options.file)}
    left = [task for task in tasks(options) if key_of(task) not in done]
    text = options.file.read_text("utf-8") if options.file.exists() else ""
    if options.src:
        sys.path.insert(0, str(options.src))  # processes that are spawned import from there
    context = multiprocessing.get_context("spawn" if options.src else "fork")
    pool = ProcessPoolExecutor(options.jobs, mp_context=context)
    with options.file.open("a", newline="") as file, pool:
        writer = csv.writer(file)
        if not text:
            writer.writerow([item.name for item in fields(Row)])
        elif not text.endswith("\n"):
            file.write("\n")
        running = {pool.submit(run_task, task, model_of(task)): task for task in left}
        for number, ended in enumerate(as_completed(running), 1):
            rows = ended.result()
            writer.writerows(astuple(row) for row in rows)
            file.flush()
            print(f"{number}/{len(left)} {running[ended]}: {rows[-1].regret:,.0f}", file=sys.stderr)


HEAD = ["problem", "trust", "epsilon", "users", "learner", "runs", "regret", "sd", "largest"]
HEAD += ["share_of_uniform", "explored", "ratio", "low", "high"]
HEAD += ["locked_in", "worst_last", "most_batches"]


def summary(rows: list[Row], against: str) -> list[dict]:
    """A line for each cell and learner, then geometric means over problems."""
    cells = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        cells[row.cell][row.learner][row.seed, row.run] = row
    exploring = {
        cell: found.pop("uniform-etc") for cell, found in cells.items() if "uniform-etc" in found
    }
    for cell, found in cells.items():
        if found:
            found.update(in_hindsight(exploring, cell, set(next(iter(found.values())))))
    lines, drawn = [], defaultdict(list)
    for cell, found in cells.items():
        for learner, runs in found.items():
            name, _, *rest = cell
            if against in {row.trust for row in rows}:
                rivals = cells.get((name, against, *rest), {}).get(learner, {})
            else:
                rivals = found.get(against, {})
            ratios = paired_ratios(runs, rivals)
            lines.append(described(cell, learner, runs) | spread(ratios))
            if len(ratios) and rivals is not runs:
                drawn[(*cell[1:], learner)].append(ratios)
    for (trust, epsilon, users, learner), found in drawn.items():
        line = {"problem": f"geometric mean of {len(found)}", "trust": trust, "epsilon": epsilon}
        line |= {"users": users, "learner": learner}
        lines.append(line | spread(np.exp(np.mean(np.log(found), axis=0))))
    return lines


def paired_ratios(runs: dict, rivals: dict) -> np.ndarray:
    """Of mean regrets over the runs of both; then the same of `DRAWS` bootstrap samples."""
    both = sorted(set(runs) & set(rivals))
    if not both:
        return np.empty(0)
    ours, theirs = (np.array([of[key].regret for key in both]) for of in (runs, rivals))
    picks = np.random.default_rng(0).integers(len(both), size=(DRAWS, len(both)))
    picks = np.concatenate([np.arange(len(both))[None], picks])
    return ours[picks].mean(axis=1) / theirs[picks].mean(axis=1)


def spread(ratios: np.ndarray) -> dict:
    """The ratio and its interval; nothing of none."""
    if not len(ratios):
        return {}
    low, high = np.quantile(ratios[1:], [0.025, 0.975])
    return {"ratio": float(ratios[0]), "low": float(low), "high": float(high)}


def in_hindsight(exploring: dict, cell: tuple, keys: set) -> dict[str, dict]:
    """Random exploration of the length with the least mean regret over these runs, then commit."""
    best, least = {}, np.inf
    if max((key[3] for key in exploring), default=0) < max(n for n in LENGTHS if n <= cell[3]):
        return best  # the best length may be one that was not tried
    for (*where, length), runs in exploring.items():
        if tuple(where) != cell[:3] or length > cell[3] or not keys <= set(runs):
            continue
        left = cell[3] - length
        found = {
            key: replace(runs[key], regret=runs[key].regret + left * runs[key].last) for key in keys
        }
        mean = np.mean([row.regret for row in found.values()])
        if mean < least:
            best, least = {"uniform-etc": found}, mean
    return best


def described(cell: tuple, learner: str, runs: dict) -> dict:
    """One line of the summary."""
    regrets = np.array([row.regret for row in runs.values()])
    uniform = np.array([row.uniform for row in runs.values()])
    lasts = np.array([row.last for row in runs.values()]) / np.maximum(uniform, 1e-300)
    line = dict(zip(HEAD, (*cell, learner, len(runs), regrets.mean()), strict=False))
    line |= {
        "sd": regrets.std(ddof=1) if len(runs) > 1 else "",
        "largest": regrets.max(),
        "share_of_uniform": regrets.mean() / max(uniform.mean() * cell[3], 1e-300),
        "explored": next(iter(runs.values())).users if learner == "uniform-etc" else "",
        "locked_in": int((lasts > LOCKED).sum()),
        "worst_last": lasts.max(),
        "most_batches": max(row.batches for row in runs.values()),
    }
    return line


def main() -> None:
    """Read the command."""
    arguments = parser("research.regret", __doc__)
    arguments.add_argument("command", choices=["run", "summary"])
    arguments.add_argument("file", type=Path)
    groups = {"reported": REPORTED, "families": FAMILIES, "fresh": FRESH}
    known = [*groups, *REPORTED, *FAMILIES, *FRESH]
    arguments.add_argument(
        "--problems", nargs="+", default=["reported"], choices=known, metavar="NAME"
    )
    arguments.add_argument("--learners", nargs="+", default=["flow-ucb", "uniform-etc"])
    arguments.add_argument("--trusts", nargs="+", default=["central", "shuffle"])
    arguments.add_argument("--epsilons", nargs="+", type=float, default=[1.0])
    arguments.add_argument("--users", nargs="+", type=float, default=[1e5, 1e6, 1e7])
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--runs", type=int, default=20)
    arguments.add_argument("--jobs", type=int, default=1)
    arguments.add_argument("--label", default="", help="of the rows of another version")
    arguments.add_argument("--src", type=Path, help="folder of the other version's package")
    arguments.add_argument("--against", default="flow-ucb", help="what the summary divides by")
    options = arguments.parse_args()
    options.problems = [one for name in options.problems for one in groups.get(name, [name])]
    if options.command == "run":
        try:
            run_all(options)
        except DiscreetError as wrong:
            arguments.error(str(wrong))
        return
    writer = csv.DictWriter(sys.stdout, HEAD)
    writer.writeheader()
    for line in summary(read_rows(options.file), options.against):
        writer.writerow({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in line.items()})


if __name__ == "__main__":
    main()
