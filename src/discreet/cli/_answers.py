"""Answers that do not change: what a command has printed is printed again, without computing it.

For commands that are functions of their words and of the code alone (`discreet calibrate`, the
help). The key has the words, the width of the terminal, the version and every source file's size
and time, so an edited file asks again. What was said on standard error, and what failed, is never
kept. Set ``DISCREET_CACHE`` to another folder, or to ``off``.
"""

import contextlib
import hashlib
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO, cast

_PACKAGE = Path(__file__).parents[1]
_MOST = 200


def folder() -> Path | None:
    """Where answers are kept; None if nowhere."""
    chosen = os.environ.get("DISCREET_CACHE", "")
    if chosen == "off":
        return None
    usual = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(chosen) if chosen else Path(usual) / "discreet"


@contextlib.contextmanager
def kept(words: Sequence[str]) -> Iterator[bool]:
    """True inside if the answer was known, and has been printed; else what is printed is kept."""
    place = folder()
    if place is None or "--import" in words:
        yield False
        return
    path = place / f"{_key(words)}.txt"
    if path.is_file():
        sys.stdout.write(path.read_text("utf-8"))
        yield True
        return
    out, err = _Tee(sys.stdout), _Tee(sys.stderr)
    streams = cast(TextIO, out), cast(TextIO, err)
    with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        yield False
    if out.text and not err.text:
        _write(path, out.text)


class _Tee:
    """A stream that remembers what goes through it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text
        return self._stream.write(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


def _key(words: Sequence[str]) -> str:
    import discreet

    files = sorted(_PACKAGE.rglob("*.py"))
    stamps = [(str(f), (found := f.stat()).st_size, found.st_mtime_ns) for f in files]
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    content = repr([list(words), width, discreet.__version__, stamps])
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def _write(path: Path, text: str) -> None:
    """Keep it if that can be done; the oldest answers make room."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        old = sorted(path.parent.glob("*.txt"), key=lambda p: p.stat().st_mtime)
        for each in old[: max(0, len(old) - _MOST + 1)]:
            each.unlink()
        path.write_text(text, "utf-8")
