"""What each part of flow-ucb is worth: the ablation table of its documentation page.

    python -m tools.flow_ablation run ablation.csv --runs 10 --jobs 2
    python -m tools.flow_ablation table ablation.csv
    python -m tools.flow_ablation scarcity --episodes 1e5

``run`` appends one row per run to a file and goes on where it stopped; ``table`` prints, for each
variant (`benchmarks.flow_variants`), the mean regret over that of flow-ucb as shipped: geometric
means over problems, and the worst problem. **Where all runs of a problem are the same as shipped, a
variant says nothing about its part**: the table counts those problems. ``one-plan``, for one, can
differ only where users are scarce (below 30 per unit of noise and row), or late in many batches:
``scarcity`` prints the users per unit. Central (1, 1e-6)-JDP by default, nothing declared.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from benchmarks.flow_problems import LARGE, PROBLEMS, problem
from benchmarks.flow_rows import Row, read_rows, trust_model
from benchmarks.flow_variants import PLAIN, VARIANTS

from discreet.learners.flow_ucb.learner import FlowUCB
from discreet.learners.flow_ucb.settings import SCARCE, users_per_unit
from discreet.learners.learn import public_facts
from discreet.learners.registry import get_learner
from tools._flow import (
    TRUSTS,
    Cell,
    Cells,
    add_numbers,
    by_cell,
    learner,
    obey,
    positive,
    print_lines,
    regrets,
    run,
    short,
    usable,
    users,
)

SHIPPED = "flow-ucb"
LEARNERS = [SHIPPED, *(f"flow-ucb:{name}" for name in (PLAIN, *VARIANTS)), "flow-ucb-first"]


def print_table(path: Path) -> None:
    """One line per variant, one column per number of users."""
    rows = read_rows(path)
    shipped = by_cell(rows, SHIPPED)
    sizes = sorted({cell.episodes for cell in shipped})
    # A row of uniform-etc is what exploring alone costs.
    names = dict.fromkeys(
        row.learner for row in rows if row.learner not in (SHIPPED, "uniform-etc")
    )
    head = ["regret over that of flow-ucb", *(f"K={short(size)} (worst)" for size in sizes)]
    print_lines(
        head, ([_described(name), *_compared(rows, name, shipped, sizes)] for name in names)
    )


def _compared(rows: list[Row], name: str, shipped: Cells, sizes: list[int]) -> list[str]:
    """What a variant has of the regret as shipped, by number of users."""
    found: dict[int, dict[Cell, float]] = {size: {} for size in sizes}
    same: dict[int, int] = dict.fromkeys(sizes, 0)
    for cell, runs in by_cell(rows, name).items():
        keys = sorted(set(runs) & set(shipped.get(cell, {})))
        if keys:
            ours, usual = regrets(runs, keys), regrets(shipped[cell], keys)
            found[cell.episodes][cell] = ours.mean() / usual.mean()
            same[cell.episodes] += np.array_equal(ours, usual)
    return [_summary(found[size], same[size]) for size in sizes]


def _described(name: str) -> str:
    """A variant with what it does; another learner by its name."""
    part = name.removeprefix("flow-ucb:")
    if part == name:
        return name
    about = get_learner(name).summary.removesuffix(".")
    return f"`{part}`: {about[:1].lower()}{about[1:]}"


def _summary(ratios: dict[Cell, float], same: int) -> str:
    """Geometric mean, the worst problem, and in how many the runs are those of flow-ucb."""
    if not ratios:
        return ""
    worst = max(ratios, key=ratios.__getitem__)
    mean = np.exp(np.mean(np.log(list(ratios.values()))))
    where = worst.problem if worst.trust == "central" else f"{worst.problem}, {worst.trust}"
    equal = f"; the same runs in {same} of {len(ratios)}" if same else ""
    return f"{mean:.2f} ({ratios[worst]:.2f}, {where}{equal})"


def print_scarcity(options: argparse.Namespace) -> None:
    """Users per unit of noise and row, by problem and number of users."""
    head = ["users per unit", *(f"K={short(size)}" for size in options.episodes)]
    print_lines(head, _scarcity(options))


def _scarcity(options: argparse.Namespace) -> Iterator[list[str]]:
    for name in options.problems:
        mdp = problem(name, options.seed)
        for trust in (trust_model(kind, options.epsilons[0]) for kind in options.trusts):
            plan = trust.calibrate(
                mdp.shape, rhythm="batch", statistics=FlowUCB.statistics, last_transitions=False
            )
            units = [
                users_per_unit(public_facts(mdp, k), plan.noise_variance(k)["transitions"])
                for k in options.episodes
            ]
            cells = (f"{unit:.3g}{' (scarce)' * (unit < SCARCE)}" for unit in units)
            yield [f"{name}, {trust.name}", *cells]


def main(about: str | None, problems: list[str], more: list[str]) -> None:
    """Read the command; ``more`` problems are run only if they are asked for."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["run", "table", "scarcity"])
    parser.add_argument("file", type=Path, nargs="?", help="of rows, one per run")
    parser.add_argument(
        "--problems",
        nargs="+",
        default=problems,
        choices=[*problems, *more],
        metavar="NAME",
        help=f"of {', '.join([*problems, *more])} (all that are usual)",
    )
    parser.add_argument("--learners", nargs="+", type=learner, help="to run (all that can be)")
    parser.add_argument("--trusts", nargs="+", default=["central"], choices=TRUSTS)
    parser.add_argument("--epsilons", nargs="+", type=positive, default=[1.0])
    parser.add_argument("--episodes", nargs="+", type=users, default=[10**5, 10**7])
    add_numbers(parser, runs=10)
    options = parser.parse_args()
    if options.command != "scarcity" and options.file is None:
        parser.error(f"Expected the file of rows to {options.command}, got none.")
    obey(parser, options, follow)


def follow(options: argparse.Namespace) -> None:
    """Run, or print what is in the file."""
    if options.command == "scarcity":
        print_scarcity(options)
    elif options.command == "table":
        print_table(options.file)
    else:
        if options.learners is None:
            options.learners = [one for one in LEARNERS if usable(one, options.trusts)]
        run(options)


if __name__ == "__main__":
    main(__doc__, list(PROBLEMS), list(LARGE))
