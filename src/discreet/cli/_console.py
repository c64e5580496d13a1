"""How the command line speaks: tables to standard output, notes and errors to standard error."""

import json
import os
import shutil
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO

from discreet.cli import _tables
from discreet.errors import DiscreetWarning

_LARGE_DELTA = 1e-3
_BOLD, _ITALIC, _PLAIN = "\x1b[1m", "\x1b[3m", "\x1b[0m"


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


def warn_of_promise(epsilon: float | None, delta: float | None) -> None:
    """Say what a large epsilon or delta means; nobody means it."""
    from discreet.privacy.guarantee import odds, rounded_up

    if epsilon and (text := odds(epsilon)):
        warn(f"Note: {text}")
    if delta and delta > _LARGE_DELTA:
        warn(
            f"Note: delta = {rounded_up(delta, 3)} lets the promise fail altogether with that "
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
    least = _tables.least_width(columns, rows)
    # Redirected output has no width of its own; 120 columns keep most rows on one line.
    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else max(120, least)
    head: list[str] = []
    if least > width:
        body = _tables.as_lines(columns, rows, width)
    else:
        head, body = _tables.table(columns, rows, right, width)
    lines = [_styled(_fitted(title, sys.stdout), _BOLD), "", *(_styled(x, _BOLD) for x in head)]
    lines += [*body, _styled(_fitted(caption, sys.stdout), _ITALIC) if caption else ""]
    sys.stdout.write("\n".join(lines) + "\n")


def _styled(text: str, style: str) -> str:
    plain = not sys.stdout.isatty() or os.environ.get("TERM") == "dumb" or "NO_COLOR" in os.environ
    return text if plain else f"{style}{text}{_PLAIN}"


def show_files(name: str, written: Path | list[Path], *, as_json: bool) -> None:
    """Where a command wrote: a line per file, or JSON under a name."""
    files = written if isinstance(written, list) else [written]
    texts = [str(path) for path in files]
    if as_json:
        echo_json({name: texts if isinstance(written, list) else texts[0]})
        return
    for text in texts:
        say(text)
