"""The tables of docs/learners/flow-ucb.md: flow-ucb, its first generation, explore-then-commit.

    python -m tools.flow_environments run rows.csv --trusts central shuffle --runs 20 --jobs 2
    python -m tools.flow_environments table rows.csv
    python -m tools.flow_environments means rows.csv
    python -m tools.flow_environments shares rows.csv
    python -m tools.flow_environments locks rows.csv

``run`` appends one row per run to a file as it ends, and goes on where it stopped. The others print
tables as the page has them: ``table`` mean regrets, paired ratios with 95% intervals and the number
of batches; ``means`` mean regret ± standard deviation (the largest), ``shares`` what remains of the
uniform policy's regret, both with one column per number of users; ``locks`` counts the runs whose
last tenth of users loses more than 1% of the uniform policy's regret. Problems are fixed in
`benchmarks.flow_problems`, which says what of them was in view when rules and constants were
chosen; they are relabelled or drawn anew in every run.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
from benchmarks.flow_problems import LARGE, PROBLEMS
from benchmarks.flow_rows import Row, read_rows

from discreet.errors import InvalidInputError
from discreet.study.knowledge import Estimate
from tools._flow import (
    TRUSTS,
    Cell,
    add_numbers,
    by_cell,
    learner,
    obey,
    positive,
    print_lines,
    regrets,
    run,
    short,
    users,
)

LEARNERS = ("flow-ucb", "flow-ucb-first", "uniform-etc", "etc")
LOCKED = 0.01
"""Share of the uniform policy's regret per user that the last users may lose."""
DRAWS = 4000
"""Bootstrap samples of runs behind an interval."""


class Comparison(NamedTuple):
    """One cell: regrets of the same runs, of whoever was run there.

    Attributes:
        cell: what is compared.
        new: ``[n]``, of the learner.
        old: ``[n]``, of what it is divided by, if all these runs were made.
        length: of the random exploration that hindsight picks, if it was run.
        hindsight: ``[n]``, its regrets.
        uniform: of the uniformly random policy, the mean of the runs.
        batches: the most of a run.
    """

    cell: Cell
    new: np.ndarray
    old: np.ndarray | None
    length: int
    hindsight: np.ndarray | None
    uniform: float
    batches: int

    @property
    def rivals(self) -> list[np.ndarray]:
        """Regrets of those who were run."""
        return [one for one in (self.old, self.hindsight) if one is not None]

    @property
    def over_better(self) -> Estimate | None:
        """The ratio to the rival of the smaller mean, if there is one."""
        return ratio(self.new, min(self.rivals, key=np.mean)) if self.rivals else None

    @property
    def judged(self) -> bool:
        """Whether both rivals were run: the better of one says nothing about the goal."""
        return len(self.rivals) == 2


def compared(rows: list[Row], learner: str, old: str) -> list[Comparison]:
    """Every cell of the learner, with the rivals that have all of its runs."""
    theirs, found = by_cell(rows, old), []
    for cell, runs in by_cell(rows, learner).items():
        keys, before = sorted(runs), theirs.get(cell, {})
        length, picked = hindsight(rows, cell, keys) or (0, None)
        found.append(
            Comparison(
                cell,
                regrets(runs, keys),
                regrets(before, keys) if all(key in before for key in keys) else None,
                length,
                picked,
                float(np.mean([one.uniform for one in runs.values()]) * cell.episodes),
                max(one.batches for one in runs.values()),
            )
        )
    return found


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


def shown(found: Estimate | None) -> str:
    """As a cell of a table says it."""
    return "" if found is None else f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def within(found: Estimate) -> bool:
    """The goal of a cell: at most 1.1 of the better rival, as far as its runs can tell."""
    return found.value <= 1.15 and found.low <= 1.1


def print_titled(title: str, head: list[str], lines: Iterable[Iterable[str]]) -> None:
    """A table under its title."""
    print(f"\n{title[:1].upper()}{title[1:]}:\n")
    print_lines(head, lines)


def print_table(rows: list[Row], learner: str, old: str) -> None:
    """A table per promise; then which cells are within the goal, and geometric means."""
    found = compared(rows, learner, old)
    head = ["problem", "K", learner, "share of uniform", old, "hindsight ETC (n)"]
    head += ["new/old", "new/better", "runs", "batches, most"]
    for promise, cells in groupby(sorted(found, key=_by_promise), lambda one: one.cell.promise):
        print_titled(promise, head, map(_line, cells))
    judged = [one for one in found if one.judged]
    above = [one.cell for one in judged if not within(one.over_better)]
    names = [f"{cell.problem} ({cell.promise}, K={short(cell.episodes)})" for cell in above]
    print(f"\nWithin the goal: {len(judged) - len(above)} of {len(judged)} cells with both rivals")
    if judged:
        print(f"Above it: {'; '.join(names) or 'none'}")
    _print_geometric_means(found, learner, old)


def _by_promise(found: Comparison) -> tuple[float, int]:
    """Larger epsilons first, as the page has them."""
    return -found.cell.epsilon, TRUSTS.index(found.cell.trust)


def _line(found: Comparison) -> list[str]:
    old, picked = found.old, found.hindsight
    return [
        found.cell.problem,
        short(found.cell.episodes),
        f"{found.new.mean():,.0f}",
        f"{found.new.mean() / found.uniform:.2%}",
        "" if old is None else f"{old.mean():,.0f}",
        "" if picked is None else f"{picked.mean():,.0f} ({short(found.length)})",
        "" if old is None else shown(ratio(found.new, old)),
        shown(found.over_better),
        str(len(found.new)),
        str(found.batches),
    ]


def _print_geometric_means(found: list[Comparison], learner: str, old: str) -> None:
    """Of the ratios of mean regrets over problems, a line per promise."""
    points: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in sorted(found, key=_by_promise):
        if one.old is not None:
            mean = float(one.new.mean() / one.old.mean())
            points[one.cell.promise][one.cell.episodes].append(mean)
    cells = {
        (promise, size): f"{np.exp(np.mean(np.log(ratios))):.3f} ({len(ratios)})"
        for promise, sizes in points.items()
        for size, ratios in sizes.items()
    }
    if cells:
        _print_by_size(f"Geometric means of {learner}/{old} (problems)", "promise", cells)


def _print_by_size(title: str, first: str, cells: dict[tuple[str, int], str]) -> None:
    """A line per name, a column per number of users."""
    sizes = sorted({size for _, size in cells})
    lines = (
        [name, *(cells.get((name, size), "") for size in sizes)]
        for name in dict.fromkeys(name for name, _ in cells)
    )
    print_titled(title, [first, *(f"K={short(size)}" for size in sizes)], lines)


def print_means(rows: list[Row], learner: str) -> None:
    """Mean regret ± standard deviation (the largest): a table per problem, a line per promise."""
    tables: dict[str, dict[tuple[str, int], str]] = defaultdict(dict)
    for cell, runs in by_cell(rows, learner).items():
        found = np.array([one.regret for one in runs.values()])
        spread = f" ± {found.std(ddof=1):,.0f} ({found.max():,.0f})" if len(found) > 1 else ""
        tables[cell.problem][cell.promise, cell.episodes] = f"{found.mean():,.0f}{spread}"
    for name, cells in tables.items():
        _print_by_size(name, "promise", cells)


def print_shares(rows: list[Row], learner: str) -> None:
    """What remains of the uniform policy's regret: a table per promise, a line per problem."""
    tables: dict[str, dict[tuple[str, int], str]] = defaultdict(dict)
    for cell, runs in by_cell(rows, learner).items():
        kept = np.mean([one.regret for one in runs.values()])
        all_of_it = np.mean([one.uniform for one in runs.values()]) * cell.episodes
        tables[cell.promise][cell.problem, cell.episodes] = _percent(float(kept / all_of_it))
    for promise, cells in tables.items():
        _print_by_size(promise, "problem", cells)


def _percent(share: float) -> str:
    """Two digits, however small.

    >>> [_percent(share) for share in (0.961, 0.0123, 0.000000456)]
    ['96%', '1.2%', '0.000046%']
    """
    return f"{np.format_float_positional(float(f'{100 * share:.2g}'), trim='-')}%"


def print_locks(rows: list[Row], learners: list[str]) -> None:
    """Runs whose last users lose too much: a table per learner and number of users."""
    for name in (one for one in learners if one != "uniform-etc"):
        tables: dict[int, list[list[str]]] = defaultdict(list)
        for cell, runs in by_cell(rows, name).items():
            uniform = np.array([one.uniform for one in runs.values()])
            if not uniform.all():  # where nothing can be lost nobody is locked in
                continue
            lasts = np.array([one.last for one in runs.values()]) / uniform
            spent = np.mean(np.array([one.regret for one in runs.values()]) / uniform)
            spent /= cell.episodes
            tables[cell.episodes].append(
                [
                    cell.problem,
                    cell.promise,
                    f"{(lasts > LOCKED).sum()} of {len(lasts)}",
                    f"{lasts.max():.3%}",
                    f"{spent:.4%}",
                    str(max(one.batches for one in runs.values())),
                ]
            )
        head = ["problem", "promise", "locked in", "worst last share", "share of regret"]
        for size, lines in tables.items():
            print_titled(f"{name}, K={short(size)}", [*head, "batches, most"], lines)


def main() -> None:
    """Read the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["run", "table", "means", "shares", "locks"])
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


def follow(options: argparse.Namespace) -> None:
    """Run, or show what is in the file."""
    if options.command == "run":
        options.problems = options.problems or list(PROBLEMS)
        options.trusts = options.trusts or ["central", "shuffle"]
        run(options)
        return
    rows = [row for row in read_rows(options.file) if shows(options, row)]
    first = options.learners[0]
    wanted = options.learners if options.command == "locks" else [first]
    if not any(row.learner in wanted for row in rows):
        raise InvalidInputError(
            f"Expected rows of {' or '.join(wanted)} that were asked for, got none in "
            f"{options.file}."
        )
    tables: dict[str, Callable[[], None]] = {
        "table": lambda: print_table(rows, first, options.old),
        "means": lambda: print_means(rows, first),
        "shares": lambda: print_shares(rows, first),
        "locks": lambda: print_locks(rows, options.learners),
    }
    tables[options.command]()


def shows(options: argparse.Namespace, row: Row) -> bool:
    """Whether a row was asked for."""
    named = options.problems is None or row.problem in options.problems
    return named and (options.trusts is None or row.trust in options.trusts)


if __name__ == "__main__":
    main()
