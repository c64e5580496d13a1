"""Files that are written whole or not at all."""

import contextlib
import os
from pathlib import Path


def write_atomically(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write a temporary neighbour, flush it to the disk, rename it into place.

    After a crash at any moment ``path`` holds the old content or the new, never a part.

    Args:
        path: in a folder that exists.
        content: all of it.
        private: readable by its owner only.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    mode = 0o600 if private else 0o666  # less what the user's umask takes away
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
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


def _flush_folder(folder: Path) -> None:
    """Without it the new name may be lost although the content is safe."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
