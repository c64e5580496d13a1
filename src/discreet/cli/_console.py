"""How the command line speaks: tables to standard output, notes and errors to standard error."""

import json
import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.table import Table

_LARGE_DELTA = 1e-3
_SHORT = 18  # a cell as short as a guarantee stays on one line
FACTS = ("what", "value")  # the columns of a table that says something about one thing


def echo_json(value: object) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False) + "\n")


def say(text: str) -> None:
    """A plain sentence on standard output."""
    sys.stdout.write(_fitted(text, sys.stdout) + "\n")


def warn(text: str) -> None:
    """A plain sentence on standard error."""
    sys.stderr.write(_fitted(text, sys.stderr) + "\n")


def warn_of_delta(delta: float) -> None:
    """Say what a large delta means; nobody means it."""
    if delta > _LARGE_DELTA:
        warn(
            f"Note: delta = {delta:g} lets the promise fail altogether with that probability, for "
            f"every user. Usual values are far below one over the number of users, such as 1e-6."
        )


class Progress:
    """Says on standard error what is under way, a line whenever nothing was said for two seconds.

    What is quick says nothing. A step that takes long is named while it runs.
    """

    def __init__(
        self, *, quiet: bool = False, patience: float = 2.0, verb: str = "checking"
    ) -> None:
        self._quiet, self._patience, self._verb = quiet, patience, verb
        self._said = time.monotonic()
        self._timer: threading.Timer | None = None

    def __call__(self, text: str) -> None:
        """A step begins, and the one before it is over."""
        self._stop()
        if self._quiet:
            return
        left = self._said + self._patience - time.monotonic()
        if left <= 0:
            self._say(text)
            return
        self._timer = threading.Timer(left, self._say, [text])
        self._timer.daemon = True
        self._timer.start()

    def _say(self, text: str) -> None:
        self._said = time.monotonic()
        warn(f"{self._verb} {text} ...")

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()  # a line that is being written is written before what follows it

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()


def _fitted(text: str, stream: TextIO) -> str:
    """Wrapped between words on a terminal; elsewhere one line, for whatever reads it."""
    if not stream.isatty():
        return text
    return textwrap.fill(
        text,
        shutil.get_terminal_size().columns,
        subsequent_indent=text[: len(text) - len(text.lstrip())],
        break_long_words=False,
        break_on_hyphens=False,
    )


def compact(number: float) -> str:
    """How people write numbers of users.

    >>> [compact(n) for n in (300, 10_000, 2.5e5, 12_345, 10**9)]
    ['300', '1e4', '2.5e5', '12,345', '1e9']
    """
    short = f"{number:.1e}".replace(".0e", "e").replace("e+0", "e").replace("e+", "e")
    return short if number >= 10_000 and float(short) == number else f"{number:,.0f}"


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[int] = (),
    caption: str | None = None,
) -> None:
    """A table a person likes to read; ``right`` lists the numeric columns.

    Where it would not fit without cutting numbers off, each row is a few lines, one per column.
    """
    from rich.console import Console
    from rich.text import Text

    # Redirected output has no width of its own; 120 columns keep most rows on one line.
    least, console = sum(_least_widths(columns, rows)) + 2 * len(columns), Console()
    console = Console(width=None if console.is_terminal else max(120, least))
    console.print(Text(title, style="bold"))
    if least > console.width:
        console.print(Text(_as_lines(columns, rows)))
    else:
        console.print(_as_table(columns, rows, right, console.width))
    if caption:
        console.print(Text(caption, style="italic"))


def _as_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int], width: int
) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    wanted = [max(len(cell) for cell in column) for column in zip(columns, *rows, strict=True)]
    narrow = sum(wanted) + 2 * len(wanted) > width
    table = Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    for index, (name, room) in enumerate(
        zip(columns, _shared_out(_least_widths(columns, rows), wanted, width), strict=True)
    ):
        longest = max((len(row[index]) for row in rows), default=0)
        table.add_column(
            name.replace(" ", "\n") if narrow and len(name) > longest else name,
            justify="right" if index in right else "left",
            width=room,
        )
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _shared_out(least: Sequence[int], wanted: Sequence[int], width: int) -> list[int]:
    """How wide each column is: what it needs, and its share of the room that is left."""
    room = max(width - sum(least) - 2 * len(least), 0)
    missing = [max(most - needed, 0) for most, needed in zip(wanted, least, strict=True)]
    share = min(room / max(sum(missing), 1), 1.0)
    return [needed + int(more * share) for needed, more in zip(least, missing, strict=True)]


def _as_lines(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A paragraph per row; facts, which are called by their first column, line by line."""
    if tuple(columns) == FACTS:
        return "".join(f"\n{what}: {text}\n" if what else f"{text}\n" for what, text in rows)
    named = [[f"{n}: {cell}" for n, cell in zip(columns, row, strict=True) if cell] for row in rows]
    return "\n" + "".join("\n".join(lines) + "\n\n" for lines in named).rstrip("\n") + "\n"


def _least_widths(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """Of columns whose short cells and words are whole."""
    needed = []
    for name, *cells in zip(columns, *rows, strict=True):
        longest = max(map(len, cells), default=0)
        whole = longest if longest <= _SHORT else _longest_word(cells)
        needed.append(max(whole, _longest_word([name])))
    return needed


def _longest_word(cells: Sequence[str]) -> int:
    return max((len(word) for cell in cells for word in cell.split()), default=0)


def show_files(name: str, written: Path | list[Path], *, as_json: bool) -> None:
    """Where a command wrote: a line per file, or JSON under a name."""
    files = written if isinstance(written, list) else [written]
    texts = [str(path) for path in files]
    if as_json:
        echo_json({name: texts if isinstance(written, list) else texts[0]})
        return
    for text in texts:
        say(text)
