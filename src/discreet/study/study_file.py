"""One JSON file per study, replaced atomically: after a crash it holds the old state or the new."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from discreet._files import write_atomically
from discreet.errors import StudyError

FORMAT = "discreet-study-2"


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


def check_new(path: Path) -> None:
    """Refuse a path at which there is something."""
    if path.exists():
        raise StudyError(f"{str(path)!r} exists; resume() it, or choose another file.")


def write(path: Path, content: dict[str, Any]) -> None:
    """Replace the file; only its owner can read it, for it holds the state of the noise."""
    write_atomically(path, json.dumps(content).encode(), private=True)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other processes out while a study changes; the lock ends with its process."""
    try:
        import fcntl
    except ImportError:  # no such locks here: the study still compares heads before it writes
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
