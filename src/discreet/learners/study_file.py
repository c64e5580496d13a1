"""One JSON file per study, replaced atomically: after a crash it holds the old state or the new."""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from discreet.errors import StudyError

FORMAT = "discreet-study-1"


def read(path: Path) -> dict[str, Any]:
    """The state in ``path``, or one clear sentence."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StudyError(f"There is no study at {str(path)!r}; begin one with start().") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise StudyError(f"{str(path)!r} is not a study file: {error}.") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise StudyError(f"{str(path)!r} is not a study file of format {FORMAT!r}.")
    return content


def write(path: Path, content: dict[str, Any]) -> None:
    """Replace the file: write a temporary neighbour, flush it to the disk, rename it into place."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()
        raise
    _flush_directory(path.parent)


def _flush_directory(folder: Path) -> None:
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other processes out while a study changes; the lock ends with its process."""
    try:
        import fcntl
    except ImportError:  # no such locks here: the revision check of the study still holds
        yield
        return
    with path.with_name(f".{path.name}.lock").open("w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StudyError(
                f"Another process is working on {str(path)!r}; nothing was counted, try again."
            ) from None
        yield
