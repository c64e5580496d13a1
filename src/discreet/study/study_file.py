"""One JSON file per study, replaced atomically: after a crash it holds the old state or the new.

A process that is killed while it writes can leave a temporary file with a whole release in it. The
batch was not counted and will be told again, with fresh noise: the temporary file would be a second
release of the same people. So it is removed, under the lock, when the study is resumed and before
the next write, and no study can be resumed from it. Removed is not overwritten: what a disk keeps
of deleted files is beyond a study.
"""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from discreet._files import is_temporary, remove_strays, strays_of, write_atomically
from discreet.errors import StudyError

FORMAT = "discreet-study-2"


def read(path: Path) -> dict[str, Any]:
    """The state in ``path``, or one clear sentence."""
    _check_name(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StudyError(f"There is no study at {str(path)!r}; begin one with start().") from None
    except OSError as error:
        raise StudyError(f"Cannot read {str(path)!r}: {error.strerror}.") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise StudyError(f"{str(path)!r} is not a study file: {error}.") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise StudyError(f"{str(path)!r} is not a study file of format {FORMAT!r}.")
    return content


def check_new(path: Path) -> None:
    """Refuse a path at which there is something, or at which no file can be."""
    if path.is_dir():
        raise StudyError(f"{str(path)!r} is a folder; name a file in it.")
    if path.exists():
        raise StudyError(f"{str(path)!r} exists; resume() it, or choose another file.")
    if not path.parent.is_dir():
        raise StudyError(
            f"There is no folder {str(path.parent)!r} for the study {path.name!r}; make it first."
        )
    _check_name(path)


def _check_name(path: Path) -> None:
    if is_temporary(path):
        raise StudyError(
            f"{str(path)!r} has the name of a temporary file, which a write that was cut short can "
            f"leave; resume() the study itself, or choose another name."
        )


def remove_leftovers(path: Path) -> None:
    """Remove what writes that were cut short have left; another process at work does it itself."""
    if not strays_of(path):
        return  # no lock needed: resuming writes nothing
    with contextlib.suppress(_BusyError), locked(path):
        _remove(path)


def _remove(path: Path) -> None:
    try:
        remove_strays(path)
    except OSError as error:
        raise StudyError(
            f"Cannot remove {str(error.filename)!r}, which a write that was cut short has left: "
            f"{error.strerror}; remove it, for it holds a release that was not counted."
        ) from None


def write(path: Path, content: dict[str, Any]) -> None:
    """Replace the file; only its owner can read it, for it holds the state of the noise.

    Call it inside `locked`: temporary files of this study are taken for leftovers.
    """
    _remove(path)
    write_atomically(path, json.dumps(content).encode(), private=True)


class _BusyError(StudyError):
    """Another process holds the lock."""


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other processes out while a study changes; the lock ends with its process."""
    try:
        import fcntl
    except ImportError:  # no such locks here: the study still compares heads before it writes
        yield
        return
    with _lock_file(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _BusyError(
                f"Another process is working on {str(path)!r}; nothing was counted, try again."
            ) from None
        yield


def _lock_file(path: Path) -> TextIO:
    try:
        return path.with_name(f".{path.name}.lock").open("a", encoding="utf-8")
    except OSError as error:
        raise StudyError(
            f"Cannot write in the folder {str(path.parent)!r}: {error.strerror}; nothing was "
            f"counted. Choose a folder in which you may write."
        ) from None
