"""The tables of docs/learners/flow-ucb.md: flow-ucb, its first generation, explore-then-commit.

    python -m tools.flow_environments run rows.csv --trusts central shuffle --runs 20 --jobs 2
    python -m tools.flow_environments table rows.csv
    python -m tools.flow_environments shares rows.csv
    python -m tools.flow_environments locks rows.csv

``run`` appends one row per run to a file as it ends, and goes on where it stopped. ``table`` prints
means, paired ratios with 95% intervals and the number of batches; ``shares`` what remains of the
uniform policy's regret, one column per number of users; ``locks`` counts the runs whose
last tenth of users loses more than 1% of the uniform policy's regret. Problems are fixed in
`benchmarks.flow_problems`, which says what of them was in view when rules and constants were
chosen; they are relabelled or drawn anew in every run.
"""

import argparse
import math
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from benchmarks.flow_problems import LARGE, PROBLEMS
from benchmarks.flow_rows import Row, missing, read_rows, run_all, tasks
from benchmarks.flow_variants import STANDING, known

from discreet.errors import InvalidInputError
from discreet.learners.registry import get_learner
from discreet.study.knowledge import Estimate

LEARNERS = ("flow-ucb", "flow-ucb-first", "uniform-etc", "etc")
TRUSTS = ("none", "central", "shuffle", "local")
LOCKED = 0.01
"""Share of the uniform policy's regret per user that the last users may lose."""
DRAWS = 4000
"""Bootstrap samples of runs behind an interval."""


class Cell(NamedTuple):
    """What is compared: one problem under one promise with one number of users."""

    problem: str
    trust: str
    epsilon: float
    episodes: int


def by_cell(rows: list[Row], learner: str) -> dict[Cell, dict[tuple[int, int], Row]]:
    """The runs of one learner in each cell, by seed and run."""
    cells: dict[Cell, dict[tuple[int, int], Row]] = defaultdict(dict)
    for row in rows:
        if row.learner == learner:
            cell = Cell(row.problem, row.trust, row.epsilon, row.episodes)
            cells[cell][row.seed, row.run] = row
    return dict(cells)


def regrets(runs: dict[tuple[int, int], Row], keys: list[tuple[int, int]]) -> np.ndarray:
    """Regret of each run, in the order of ``keys``."""
    return np.array([runs[key].regret for key in keys])


def hindsight(
    rows: list[Row], cell: Cell, keys: list[tuple[int, int]]
) -> tuple[int, np.ndarray] | None:
    """The length of uniform exploration with the least mean regret over these runs, and its runs.

    Picked for this cell with the regret in view: a baseline that nobody could run.
    """
    best = None
    for length, runs in by_cell(rows, "uniform-etc").items():
        fits = length[:3] == cell[:3] and length.episodes <= cell.episodes
        if not fits or not all(key in runs for key in keys):
            continue
        left = cell.episodes - length.episodes
        found = np.array([runs[key].regret + left * runs[key].last for key in keys])
        if best is None or found.mean() < best[1].mean():
            best = length.episodes, found
    return best


def ratio(ours: np.ndarray, theirs: np.ndarray) -> Estimate:
    """Of mean regrets over the same runs, with a bootstrap over pairs of runs."""
    picks = np.random.default_rng(0).integers(len(ours), size=(DRAWS, len(ours)))
    drawn = ours[picks].mean(axis=1) / theirs[picks].mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Estimate(float(ours.mean() / theirs.mean()), float(low), float(high))


def shown(found: Estimate) -> str:
    """As a cell of a table says it."""
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def within(found: Estimate) -> bool:
    """The goal of a cell: at most 1.1 of the better rival, as far as its runs can tell."""
    return found.value <= 1.15 and found.low <= 1.1


def print_table(rows: list[Row], learner: str, old: str) -> None:
    """Means, shares of the uniform policy's regret, ratios; then their geometric means."""
    ours, theirs = by_cell(rows, learner), by_cell(rows, old)
    print(
        f"| problem | trust, eps | K | uniform | {learner} | share | {old} | uniform ETC in "
        f"hindsight (n) | new/old | new/better | runs | batches, most |\n{'|---' * 12}|"
    )
    points: dict[tuple, list[float]] = defaultdict(list)
    above: list[str] = []
    compared = 0
    for cell, runs in ours.items():
        keys = sorted(runs)
        new = regrets(runs, keys)
        before = theirs.get(cell, {})
        first = regrets(before, keys) if all(key in before for key in keys) else None
        etc = hindsight(rows, cell, keys)
        rivals = [x for x in (first, etc[1] if etc else None) if x is not None]
        better = ""
        if rivals:
            found_ratio = ratio(new, min(rivals, key=np.mean))
            better = shown(found_ratio)
            both = len(rivals) == 2  # the better of one says nothing about the goal
            compared += both
            if both and not within(found_ratio):
                above.append(f"{cell.problem} {cell.trust} {cell.epsilon:g} {cell.episodes:.0e}")
        if first is not None:
            points[cell[1:]].append(float(new.mean() / first.mean()))
        uniform = np.mean([run.uniform for run in runs.values()]) * cell.episodes
        print(
            f"| {cell.problem} | {cell.trust}, {cell.epsilon:g} | {cell.episodes:.0e} "
            f"| {uniform:,.0f} | {new.mean():,.0f} | {new.mean() / uniform:.2%} "
            f"| {'' if first is None else f'{first.mean():,.0f}'} "
            f"| {f'{etc[1].mean():,.0f} ({etc[0]:.0e})' if etc else ''} "
            f"| {'' if first is None else shown(ratio(new, first))} | {better} | {len(keys)} "
            f"| {max(run.batches for run in runs.values())} |"
        )
    print(f"\nWithin the goal: {compared - len(above)} of {compared}; above it: {above or 'none'}")
    print(f"\n| trust, eps | K | geometric mean of {learner}/{old} | problems |\n|---|---|---|---|")
    for (trust, epsilon, episodes), found in sorted(points.items()):
        mean = np.exp(np.mean(np.log(found)))
        print(f"| {trust}, {epsilon:g} | {episodes:.0e} | {mean:.3f} | {len(found)} |")


def print_shares(rows: list[Row], learner: str) -> None:
    """What remains of the uniform policy's regret: a table per promise, a line per problem."""
    shares: dict[tuple[str, float], dict[tuple[str, int], float]] = defaultdict(dict)
    for cell, runs in by_cell(rows, learner).items():
        kept = np.mean([run.regret for run in runs.values()])
        all_of_it = np.mean([run.uniform for run in runs.values()]) * cell.episodes
        shares[cell.trust, cell.epsilon][cell.problem, cell.episodes] = float(kept / all_of_it)
    for (trust, epsilon), found in shares.items():
        sizes = sorted({size for _, size in found})
        print(f"\n{trust}, {epsilon:g}:\n")
        print("| problem | " + " | ".join(f"K={size:.0e}" for size in sizes) + " |")
        print("|---" * (len(sizes) + 1) + "|")
        for name in dict.fromkeys(name for name, _ in found):
            line = (f"{found[name, k]:.3%}" if (name, k) in found else "" for k in sizes)
            print(f"| {name} | " + " | ".join(line) + " |")


def print_locks(rows: list[Row], learners: list[str]) -> None:
    """Runs whose last users lose too much, by cell; the largest share; share of all regret."""
    print("| problem | trust, eps | K | learner | locked in | worst last share | share of regret |")
    print("|---" * 7 + "|")
    for learner in (name for name in learners if name != "uniform-etc"):
        for cell, runs in by_cell(rows, learner).items():
            shares = np.array([run.last / run.uniform for run in runs.values()])
            spent = np.mean([run.regret / run.uniform / cell.episodes for run in runs.values()])
            print(
                f"| {cell.problem} | {cell.trust}, {cell.epsilon:g} | {cell.episodes:.0e} "
                f"| {learner} | {(shares > LOCKED).sum()} of {len(shares)} "
                f"| {shares.max():.3%} | {spent:.4%} |"
            )


def usable(learner: str, trusts: list[str]) -> bool:
    """Whether a learner has a mechanism for all these promises."""
    return learner in STANDING or set(trusts) <= set(get_learner(learner).trusts)


def run(options: argparse.Namespace) -> None:
    """Fill the file, with a line of progress for every task."""
    for name in options.learners:
        if not usable(name, options.trusts):
            raise InvalidInputError(
                f"Expected --trusts out of {', '.join(get_learner(name).trusts)} with {name}, got "
                f"{' '.join(options.trusts)}."
            )
    wanted = tasks(
        options.problems,
        options.trusts,
        options.epsilons,
        options.learners,
        options.episodes,
        options.seed,
        options.runs,
    )
    count, began = len(missing(wanted, read_rows(options.file))), time.monotonic()
    print(f"{count} of {len(wanted)} runs to do", file=sys.stderr)
    for number, (task, rows) in enumerate(run_all(wanted, options.file, options.jobs), 1):
        minutes = (time.monotonic() - began) / number * (count - number) / 60
        print(
            f"{number}/{count}, about {minutes:.0f} min left: {task.problem} {task.trust} "
            f"{task.learner} K={task.episodes:.0e} run {task.run}: {rows[-1].regret:,.0f}",
            file=sys.stderr,
        )


def learner(name: str) -> str:
    """One that can be run."""
    try:
        return known(name)
    except ValueError as wrong:
        raise argparse.ArgumentTypeError(str(wrong)) from None


def at_least(least: int) -> Callable[[str], int]:
    """A whole number from ``least`` on, of the command line."""

    def whole(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"Expected a whole number >= {least}, got {text!r}.")
        return int(text)

    return whole


def users(text: str) -> int:
    """A number of users, of the command line: 1e5 or 100000."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 1 <= number < math.inf or number != int(number):
        raise argparse.ArgumentTypeError(f"Expected a whole number of users >= 1, got {text!r}.")
    return int(number)


def positive(text: str) -> float:
    """A finite number above zero, of the command line."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"Expected a finite number > 0, got {text!r}.")
    return number


def add_numbers(parser: argparse.ArgumentParser, runs: int) -> None:
    """Seed, runs and processes, as all tools of flow-ucb take them."""
    parser.add_argument("--seed", type=at_least(0), default=0, help="of all runs (0)")
    parser.add_argument("--runs", type=at_least(1), default=runs, help=f"per cell ({runs})")
    parser.add_argument("--jobs", type=at_least(1), default=1, help="processes (1)")


def main() -> None:
    """Read the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["run", "table", "shares", "locks"])
    parser.add_argument("file", type=Path)
    parser.add_argument(
        "--problems",
        nargs="+",
        choices=[*PROBLEMS, *LARGE],
        metavar="NAME",
        help=f"of {', '.join([*PROBLEMS, *LARGE])}; to run (all but the large ones), or to show "
        "(all in the file)",
    )
    parser.add_argument(
        "--trusts",
        nargs="+",
        choices=TRUSTS,
        help="to run (central, shuffle), or to show (all in the file)",
    )
    parser.add_argument("--epsilons", nargs="+", type=positive, default=[1.0], help="to run (1)")
    parser.add_argument(
        "--episodes",
        nargs="+",
        type=users,
        default=[10**5, 10**6, 10**7],
        help="users, to run (1e5 1e6 1e7)",
    )
    parser.add_argument(
        "--learners",
        nargs="+",
        default=list(LEARNERS),
        type=learner,
        help=f"to run or, the first, to show ({' '.join(LEARNERS)})",
    )
    add_numbers(parser, runs=20)
    parser.add_argument(
        "--old", default="flow-ucb-first", type=learner, help="what `table` divides by"
    )
    obey(parser, parser.parse_args(), follow)


def obey(
    parser: argparse.ArgumentParser,
    options: argparse.Namespace,
    follow: Callable[[argparse.Namespace], None],
) -> None:
    """Follow a command; what cannot be read or run is refused in a sentence."""
    if options.command in ("table", "shares", "locks") and not options.file.is_file():
        parser.error(f"Expected a file of rows, got {options.file}, which is none.")
    try:
        follow(options)
    except InvalidInputError as wrong:
        parser.error(str(wrong))


def follow(options: argparse.Namespace) -> None:
    """Run, or show what is in the file."""
    if options.command == "run":
        options.problems = options.problems or list(PROBLEMS)
        options.trusts = options.trusts or ["central", "shuffle"]
        run(options)
        return
    rows = [row for row in read_rows(options.file) if shows(options, row)]
    if not rows:
        raise InvalidInputError(f"Expected rows that were asked for, got none in {options.file}.")
    if options.command == "table":
        print_table(rows, options.learners[0], options.old)
    elif options.command == "shares":
        print_shares(rows, options.learners[0])
    else:
        print_locks(rows, options.learners)


def shows(options: argparse.Namespace, row: Row) -> bool:
    """Whether a row was asked for."""
    named = options.problems is None or row.problem in options.problems
    return named and (options.trusts is None or row.trust in options.trusts)


if __name__ == "__main__":
    main()
