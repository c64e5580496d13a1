"""How the command line speaks: tables to standard output, notes and errors to standard error."""

import json
import sys
from collections.abc import Sequence
from typing import Any


def echo_json(value: Any) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False) + "\n")


def say(text: str) -> None:
    """A plain sentence on standard output."""
    sys.stdout.write(text + "\n")


def warn(text: str) -> None:
    """A plain sentence on standard error."""
    sys.stderr.write(text + "\n")


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[int] = (),
    caption: str | None = None,
) -> None:
    """A table a person likes to read; ``right`` lists the numeric columns."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=title, caption=caption, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold"
    )
    for index, name in enumerate(columns):
        table.add_column(name, justify="right" if index in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console = Console()
    # Redirected output has no width of its own; 120 columns keep rows on one line.
    Console(width=None if console.is_terminal else 120).print(table)
