"""What each part of flow-ucb is worth: the ablation table of its documentation page.

    python -m tools.flow_ablation run ablation.csv --runs 10 --jobs 2
    python -m tools.flow_ablation table ablation.csv

``run`` appends one row per run to a file and goes on where it stopped; ``table`` prints, for each
variant (`benchmarks.flow_variants`), the mean regret over that of flow-ucb as shipped: geometric
means over problems, and the worst problem. Central (1, 1e-6)-JDP, nothing declared.
"""

import argparse
from pathlib import Path

import numpy as np
from benchmarks.flow_problems import LARGE, PROBLEMS
from benchmarks.flow_rows import read_rows
from benchmarks.flow_variants import PLAIN, VARIANTS
from tools.flow_environments import by_cell, regrets, run

SHIPPED = "flow-ucb"
LEARNERS = [SHIPPED, *(f"flow-ucb:{name}" for name in (PLAIN, *VARIANTS)), "flow-ucb-first"]


def print_table(path: Path) -> None:
    """One line per variant, one column per number of users."""
    rows = read_rows(path)
    shipped = by_cell(rows, SHIPPED)
    sizes = sorted({cell.episodes for cell in shipped})
    print(
        "| regret over that of flow-ucb | " + " | ".join(f"K={k:.0e} (worst)" for k in sizes) + " |"
    )
    print("|---" * (len(sizes) + 1) + "|")
    for name in (name for name in LEARNERS[1:] if by_cell(rows, name)):
        found: dict[int, dict[str, float]] = {size: {} for size in sizes}
        for cell, runs in by_cell(rows, name).items():
            keys = sorted(set(runs) & set(shipped.get(cell, {})))
            if keys:
                usual = regrets(shipped[cell], keys).mean()
                found[cell.episodes][cell.problem] = regrets(runs, keys).mean() / usual
        print(f"| {name} | " + " | ".join(_summary(found[size]) for size in sizes) + " |")


def _summary(ratios: dict[str, float]) -> str:
    """Geometric mean and the worst problem."""
    if not ratios:
        return ""
    worst = max(ratios, key=ratios.__getitem__)
    mean = np.exp(np.mean(np.log(list(ratios.values()))))
    return f"{mean:.2f} ({ratios[worst]:.2f}, {worst})"


def main() -> None:
    """Read the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["run", "table"])
    parser.add_argument("file", type=Path)
    parser.add_argument(
        "--problems", nargs="+", default=list(PROBLEMS), choices=[*PROBLEMS, *LARGE]
    )
    parser.add_argument("--learners", nargs="+", default=LEARNERS, choices=LEARNERS)
    parser.add_argument("--episodes", nargs="+", type=float, default=[1e5, 1e7])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    if options.command == "table":
        print_table(options.file)
    else:
        options.trusts, options.epsilons = ["central"], [1.0]
        run(options)


if __name__ == "__main__":
    main()
