"""Files that are written whole or not at all, and a lock between processes."""

import contextlib
import csv
import io
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from discreet.errors import InvalidInputError

if TYPE_CHECKING:
    from discreet._types import Plain

T = TypeVar("T")


def write_atomically(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write a temporary neighbour, flush it to the disk, rename it into place.

    After a crash at any moment ``path`` holds the old content or the new, never a part; ``private``
    files are readable by their owner only.
    """
    temporary = temporary_of(path, os.getpid())
    mode = 0o600 if private else 0o666  # less what the user's umask takes away
    try:
        temporary.unlink(missing_ok=True)  # whoever put it there would own what is written
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _flush_folder(path.parent)


def temporary_of(path: Path, process: int) -> Path:
    """Where `write_atomically` of this process keeps the new content of ``path`` for a moment.

    >>> temporary_of(Path("study.json"), 7).name
    '.study.json.7.tmp'
    """
    return path.with_name(f".{path.name}.{process}.tmp")


def is_temporary(path: Path) -> bool:
    """Whether ``path`` has the name of a temporary file, of whatever file and process."""
    return re.fullmatch(r"\..+\.[0-9]+\.tmp", path.name, re.DOTALL) is not None


def strays_of(path: Path) -> list[Path]:
    """Temporary files of ``path`` that are there: being written, or left by a process killed."""
    name = re.compile(rf"\.{re.escape(path.name)}\.[0-9]+\.tmp")
    return [p for p in path.parent.iterdir() if name.fullmatch(p.name) and p.is_file()]


def remove_strays(path: Path) -> None:
    """Remove the temporary files of ``path``; only for who keeps all other writers out."""
    strays = strays_of(path)
    for stray in strays:
        stray.unlink(missing_ok=True)
    if strays:
        _flush_folder(path.parent)


def read_file(path: Path, called: str = "") -> bytes:
    """All of a file; ``called`` is what it is, in words for a person: ``the key``."""
    return read_parsed(path, bytes, called)


def read_parsed(path: Path, parse: Callable[[bytes], T], called: str = "") -> T:
    """What ``parse`` makes of a file's bytes; a ``ValueError`` says why it cannot.

    Raises:
        InvalidInputError: it cannot be read, or says something else.
    """
    try:
        return parse(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        name = f"{called} {str(path)!r}".strip()
        raise InvalidInputError(f"Cannot read {name}: {reason(error)}.") from None


def reason(error: Exception) -> str:
    """Why a file cannot be used, without its path, which the sentence around it names.

    >>> reason(FileNotFoundError(2, "No such file or directory", "study.db"))
    'No such file or directory'
    """
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    return getattr(error, "strerror", None) or str(error)


def hold_alone(path: Path, *, wait: bool = False) -> int:
    """A lock beside ``path`` that ends with its process; closing the descriptor gives it back.

    It is a file of its own: to open and close a database itself would drop SQLite's locks.

    Raises:
        BlockingIOError: another process holds it, and nobody wants to wait.
    """
    import fcntl

    descriptor = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _flush_folder(folder: Path) -> None:
    """Without it the new name may be lost although the content is safe."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Files for people and programs: policies as JSON or CSV, every row with its guarantee; text.


Row: TypeAlias = "Mapping[str, Plain]"
TABLES = (".json", ".csv")
"""Endings of the files that `write_rows` writes."""


def write_rows(path: str | Path, rows: Sequence[Row], about: Row) -> None:
    """Write rows with the same keys, whole or not at all, as JSON or CSV by the ending of ``path``.

    JSON says ``about`` beside the rows; its ``guarantee`` stands in every row of a CSV file, as
    rows get copied into other tables. In a CSV file texts are `guarded`: people open it in
    spreadsheets.
    """
    from discreet._spelling import guarded

    where = Path(path)
    check_ending(where, *TABLES)
    if where.suffix.lower() == ".json":
        plain = {**about, "policy": list(rows)}
        write_text(where, json.dumps(plain, indent=1, ensure_ascii=False) + "\n")
        return
    text = io.StringIO()
    writer = csv.DictWriter(text, [*rows[0], "guarantee"], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        said = {**row, "guarantee": about["guarantee"]}
        writer.writerow({k: guarded(v) if isinstance(v, str) else v for k, v in said.items()})
    write_text(where, text.getvalue())


def write_text(path: str | Path, text: str) -> None:
    """Write a file, whole or not at all; refusals in one sentence."""
    where = Path(path)
    try:
        write_atomically(where, text.encode())
    except OSError as error:
        raise InvalidInputError(
            f"Cannot write {str(where)!r}: {error.strerror}; choose a folder in which you may "
            f"write."
        ) from None


def check_output(path: Path, *endings: str) -> None:
    """Refuse a path at which no file can be written; for whoever wants to know before the work."""
    check_ending(path, *endings)
    folder = path.parent
    if path.is_dir():
        problem = "which is a folder; name a file in it"
    elif not folder.is_dir():
        problem = f"but there is no folder {str(folder)!r}; make it first"
    elif not os.access(folder, os.W_OK | os.X_OK):
        problem = f"but you may not write in {str(folder)!r}; choose another"
    else:
        return
    raise InvalidInputError(
        f"Expected a file in a folder that exists and takes files, got {str(path)!r}, {problem}. "
        f"Nothing was written."
    )


def check_ending(path: Path, *endings: str) -> None:
    """Refuse a path that ends otherwise."""
    if endings and path.suffix.lower() not in endings:
        raise InvalidInputError(
            f"Expected a file that ends in {' or '.join(endings)}, got {str(path)!r}; nothing was "
            f"written."
        )
