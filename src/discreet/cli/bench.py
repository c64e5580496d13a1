"""`discreet bench`: speed against peers, as ratios."""

import importlib
import sys
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.options import Json
from discreet.cli.output import Table, answer
from discreet.errors import UnsupportedError


def command(
    only: Annotated[str, typer.Argument(help="Part of a benchmark's name.")] = "",
    quick: Annotated[bool, typer.Option(help="Fewer repetitions.")] = False,
    json: Json = False,
) -> None:
    """Measure speed against peers (from a clone: the benchmarks are not installed)."""
    if not Path("benchmarks/__init__.py").is_file():
        raise UnsupportedError("The benchmarks live in the repository; run this in a clone of it.")
    sys.path.insert(0, str(Path.cwd()))
    rows = importlib.import_module("benchmarks").run_all(quick, only)
    table = Table(
        "Speed against peers, in processor time",
        ["task", "ours", "peer", "unit", "times faster", "spread", "peer is"],
        [
            [
                row["task"],
                f"{row['ours']:.4g}",
                f"{row['peer']:.4g}",
                row["unit"],
                f"{row['ratio']:.2f}",
                f"{row['low']:.2f} to {row['high']:.2f}",
                f"{row['peer_name']} {row['peer_version']}".strip() + f" ({row['peer_is']})",
            ]
            for row in rows
        ],
        right=(1, 2, 4, 5),
    )
    noted = [f"{row['task']}: {row['note']}" for row in rows if row["note"]]
    answer({"results": rows}, [table, *noted], json=json)
