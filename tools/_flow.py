"""What the tools of flow-ucb share: cells of runs, words of the command line, and how to run."""

import argparse
import math
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from benchmarks.flow_rows import Row, missing, read_rows, run_all, tasks, trust_model
from benchmarks.flow_variants import STANDING, known

from discreet.errors import DiscreetError, InvalidInputError
from discreet.learners.registry import get_learner
from discreet.mdp.shape import Shape

TRUSTS = ("none", "central", "shuffle", "local", "local-one-step")


class Cell(NamedTuple):
    """What is compared: one problem under one promise with one number of users."""

    problem: str
    trust: str
    epsilon: float
    episodes: int

    @property
    def promise(self) -> str:
        """As tables say it: ``central, eps=1``; ``no privacy``."""
        return "no privacy" if self.trust == "none" else f"{self.trust}, eps={self.epsilon:g}"


Cells = dict[Cell, dict[tuple[int, int], Row]]
"""Runs by cell, seed and number."""


def short(number: float) -> str:
    """A number of users as tables say it.

    >>> short(100_000), short(20_000), short(3162)
    ('1e5', '2e4', '3e3')
    """
    return f"{number:.0e}".replace("e+0", "e").replace("e+", "e")


def print_lines(head: list[str], lines: Iterable[Iterable[str]]) -> None:
    """A table as pages have it, each line as soon as it is known."""
    print(f"| {' | '.join(head)} |\n{'|---' * len(head)}|")
    for line in lines:
        print(f"| {' | '.join(line)} |")


def by_cell(rows: list[Row], learner: str) -> Cells:
    """The runs of one learner in each cell, by seed and run."""
    cells: Cells = defaultdict(dict)
    for row in rows:
        if row.learner == learner:
            cell = Cell(row.problem, row.trust, row.epsilon, row.episodes)
            cells[cell][row.seed, row.run] = row
    return dict(cells)


def regrets(runs: dict[tuple[int, int], Row], keys: list[tuple[int, int]]) -> np.ndarray:
    """Regret of each run, in the order of ``keys``."""
    return np.array([runs[key].regret for key in keys])


def usable(learner: str, trusts: list[str]) -> bool:
    """Whether a learner has a mechanism for all these promises."""
    models = {trust.partition("-")[0] for trust in trusts}
    return learner in STANDING or models <= set(get_learner(learner).trusts)


def run(options: argparse.Namespace) -> None:
    """Fill the file, with a line of progress for every task; first all that may be refused."""
    for name in options.learners:
        if not usable(name, options.trusts):
            raise InvalidInputError(
                f"Expected --trusts out of {', '.join(get_learner(name).trusts)} with {name}, got "
                f"{' '.join(options.trusts)}."
            )
    for trust in options.trusts:
        for epsilon in options.epsilons:
            trust_model(trust, epsilon).calibrate(Shape(2, 2, 2))
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
            f"{task.learner} K={short(task.episodes)} run {task.run}: {rows[-1].regret:,.0f}",
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
    number = positive(text)
    if number != int(number):
        raise argparse.ArgumentTypeError(f"Expected a whole number of users, got {text!r}.")
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


def obey(
    parser: argparse.ArgumentParser,
    options: argparse.Namespace,
    follow: Callable[[argparse.Namespace], None],
) -> None:
    """Follow a command; what cannot be read or run is refused in a sentence."""
    if options.command not in ("run", "scarcity") and not options.file.is_file():
        parser.error(f"Expected a file of rows, got {options.file}, which is none.")
    try:
        follow(options)
    except (DiscreetError, OSError) as wrong:
        parser.error(str(wrong))
