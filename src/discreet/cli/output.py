"""How the command line speaks: tables to standard output, notes and errors to standard error."""

import codecs
import contextlib
import importlib.util
import io
import json
import os
import shutil
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from discreet._files import check_output
from discreet.errors import DiscreetWarning, InvalidInputError, MissingExtraError

if TYPE_CHECKING:
    from rich import table as rich_table
    from rich.console import JustifyMethod

FACTS = ("what", "value")
"""The columns of a table that says something about one thing."""
_LARGE_DELTA = 1e-3
_ESCAPED: list[UnicodeError] = []
_SHORT = 18  # a cell as short as a guarantee stays on one line


class UnwrittenError(Exception):
    """Standard output took no more: it is full, or closed."""


class _Answers(io.FileIO):
    """Standard output: what cannot be written is known by its error."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise UnwrittenError(error) from None


class _Notes(io.FileIO):
    """Standard error: what cannot be written is left out, there is nobody to tell."""

    def write(self, data: Any, /) -> int:
        with contextlib.suppress(OSError):
            super().write(data)
        return len(data)


def open_streams() -> None:
    """Streams of whatever kind: full, closed, or of an encoding that lacks a letter.

    A stream that is closed becomes one that takes nothing, so that no file gets its number.
    """
    codecs.register_error("discreet", _escaped)
    _ESCAPED.clear()
    for least, (name, kind) in enumerate((("stdout", _Answers), ("stderr", _Notes)), start=1):
        stream: TextIO | None = getattr(sys, name)
        errors = "discreet" if name == "stdout" else "backslashreplace"
        if stream is None:
            while (number := os.open(os.devnull, os.O_RDONLY)) < least:
                pass
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)
            if not isinstance(getattr(stream.buffer, "raw", stream.buffer), io.FileIO):
                continue  # an output in memory
            number = stream.fileno()
        else:
            continue
        made = io.TextIOWrapper(
            io.BufferedWriter(kind(number, "w", closefd=False)),
            encoding="utf-8" if stream is None else stream.encoding,
            errors=errors,
            line_buffering=stream is not None and (stream.line_buffering or stream.write_through),
        )
        setattr(sys, name, made)


def _escaped(error: UnicodeError) -> tuple[str | bytes, int]:
    if not _ESCAPED:
        _ESCAPED.append(error)
        warn(
            "Note: the encoding of standard output lacks letters, which are written by their code; "
            "set PYTHONIOENCODING=utf-8 to see them."
        )
    return codecs.backslashreplace_errors(error)


def close_output() -> None:
    """Nobody reads any more; what is left in the buffer goes nowhere, and silently."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.stdout.flush()


def check_target(
    path: Path,
    *endings: str,
    force: bool,
    inputs: Sequence[Path | None] = (),
) -> None:
    """Refuse an output that would be written over something, before anything else is done.

    Args:
        path: of the file to write.
        endings: that it may have.
        force: what is there may be lost, unless it is an input.
        inputs: what else the command reads or writes.
    """
    check_output(path, *endings)
    for other in inputs:
        if other is not None and _same(path, other):
            raise InvalidInputError(
                f"Expected an output that is no input, got {str(path)!r} for both; give another "
                f"name. Nothing was written."
            )
    if not os.path.lexists(path) or (path.is_file() and force):
        return
    problem = "which is no file; name one"
    if path.is_file():
        problem = "which is there already; give another name, or --force to lose what it holds"
    raise InvalidInputError(
        f"Expected a new file, got {str(path)!r}, {problem}. Nothing was written."
    )


def _same(one: Path, other: Path) -> bool:
    """Whether two paths are, or may become, one file: links, and letters of either case."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return str(one.resolve()).casefold() == str(other.resolve()).casefold()


def echo_json(value: object) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False) + "\n")


def say(text: str) -> None:
    """A plain sentence on standard output."""
    sys.stdout.write(_fitted(text, sys.stdout) + "\n")


def warn(text: str) -> None:
    """A plain sentence on standard error."""
    sys.stderr.write(_fitted(text, sys.stderr) + "\n")


def noted() -> Callable[..., None]:
    """Shows the library's warnings as notes, each once; those of others as Python does."""
    usual, said = warnings.showwarning, set[str]()

    def show(message: object, category: type[Warning], *place: Any, **more: Any) -> None:
        if not issubclass(category, DiscreetWarning):
            usual(message, category, *place, **more)  # type: ignore[arg-type]
        elif str(message) not in said:
            said.add(str(message))
            warn(f"Note: {message}")

    return show


def warn_of_guarantee(epsilon: float | None, delta: float | None) -> None:
    """Say what a large epsilon or delta means; nobody means it."""
    from discreet.privacy.guarantee import odds, rounded_up

    if epsilon and (text := odds(epsilon)):
        warn(f"Note: {text}")
    if delta and delta > _LARGE_DELTA:
        warn(
            f"Note: delta = {rounded_up(delta, 3)} lets the guarantee fail altogether with that "
            f"probability, for every user. Usual values are far below one over the number of "
            f"users, such as 1e-6."
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


@dataclass(frozen=True)
class Table:
    """A table that a person likes to read; see `print_table`."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Sequence[int] = ()
    caption: str | None = None
    spare: Sequence[str] = ()


def facts(title: str, rows: Sequence[Sequence[str]]) -> Table:
    """What is said about one thing."""
    return Table(title, FACTS, rows)


def answer(
    plain: object, shown: Iterable[Table | str], *, json: bool, notes: Iterable[str] = ()
) -> None:
    """What a command found: ``plain`` for scripts, or tables and sentences for people.

    A command builds both and never asks which is wanted, so that none knows more than the other.
    ``shown`` is not looked at for scripts; ``notes`` go to standard error, for both.
    """
    if json:
        echo_json(plain)
    for part in () if json else shown:
        if isinstance(part, Table):
            print_table(**vars(part))
        else:
            say(part)
    for note in notes:
        warn(note)


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[int] = (),
    caption: str | None = None,
    spare: Sequence[str] = (),
) -> None:
    """A table a person likes to read; ``right`` lists the numeric columns.

    Where it would not fit without cutting numbers off, ``spare`` columns are left out, one after
    the other; where that is not enough, each row is a few lines, one per column.
    """
    from rich.console import Console
    from rich.measure import Measurement
    from rich.text import Text

    plain = "NO_COLOR" in os.environ
    console = Console(file=sys.stdout, highlight=False, color_system=None if plain else "auto")

    def measured(*, fold: bool) -> tuple["rich_table.Table", Measurement]:
        made = _table(columns, rows, right, fold=fold)
        return made, Measurement.get(console, console.options.update(width=10**6), made)

    table, size = measured(fold=False)
    # Redirected output has no width but COLUMNS; 120 columns keep most rows on one line.
    said = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()
    width = shutil.get_terminal_size().columns if said else max(120, size.minimum)
    if size.maximum > width:  # headings are the first to wrap
        table, size = measured(fold=True)
    for name in spare:
        if size.minimum <= width or name not in columns:
            continue
        place = list(columns).index(name)
        right = [i - (i > place) for i in right if i != place]
        columns = [*columns[:place], *columns[place + 1 :]]
        rows = [[*row[:place], *row[place + 1 :]] for row in rows]
        table, size = measured(fold=True)
    console.width = width
    with console.capture() as got:
        console.print(Text(_fitted(title, sys.stdout), "bold"), soft_wrap=True)
        console.print()
        if size.minimum <= width:
            console.print(table)
        else:
            console.print(
                "\n\n".join(_paragraph(columns, row, width) for row in rows), markup=False
            )
        console.print(Text(_fitted(caption or "", sys.stdout), "italic"), soft_wrap=True)
    sys.stdout.write("\n".join(line.rstrip() for line in got.get().splitlines()) + "\n")


def _table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int], *, fold: bool
) -> "rich_table.Table":
    from rich import box
    from rich import table as rich_table
    from rich.text import Text

    table = rich_table.Table(box=box.SIMPLE_HEAD, show_edge=False, collapse_padding=True)
    for index, name in enumerate(columns):
        cells = [row[index] for row in rows]
        longest = max((len(line) for cell in cells for line in cell.split("\n")), default=0)
        whole = longest <= _SHORT or not any(" " in cell for cell in cells)
        if whole and fold:
            name = textwrap.fill(name, max(longest, *map(len, name.split()), 1))  # noqa: PLW2901
        side: JustifyMethod = "right" if index in right else "left"
        wide = max(longest, *map(len, name.split("\n"))) if whole else None  # or cells are cut off
        table.add_column(Text(name), justify=side, no_wrap=whole, overflow="fold", min_width=wide)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _paragraph(columns: Sequence[str], row: Sequence[str], width: int) -> str:
    """A row as lines, one per column. Facts are called by what they are."""
    if tuple(columns) == FACTS:
        lines = [": ".join(part for part in row if part)]
    else:
        lines = [f"{name}: {cell}" for name, cell in zip(columns, row, strict=True) if cell]
    return "\n".join(textwrap.fill(line, width, break_long_words=False) for line in lines)


def need_extra(packages: Iterable[str], extra: str) -> None:
    """Refuse a command whose packages are not there, before its first long step.

    Raises:
        MissingExtraError: one of them is missing; ``extra`` brings them.
    """
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(package, extra)
